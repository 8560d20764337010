"""The differentiable dictionary: attention explained as a lookup that is allowed to be unsure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention.functional import attend
from saccade.errors import unknown

Form = Literal["exact", "weighted", "softmax"]
FORMS = {
    "exact": "1 where the key is the query, else 0",
    "weighted": "how similar the key is to the query",
    "softmax": "softmax of the dot products of query and keys",
}
SHOWN = 10  # keys that `explain` lists; the rest are summed up in a line


class SoftDict(MutableMapping[Any, Any]):
    """A dictionary that answers with a sum over all its values, each weighted by how well its key fits the query.

    Three forms of one sum, `answer = Σ weight(key, query) · value`:

        exact       weight = 1 if key == query else 0             a Python dictionary
        weighted    weight = similarity(key, query)               now it can be differentiated
        softmax     weight = softmax(embed(key) · embed(query))   the weights sum to one: this is attention

    The softest form that it has the parts for is used unless another is named. Keys are tensors, or anything else with
    `embed` to turn them into tensors; without `similarity`, the cosine of the embeddings is used.

    >>> animals = SoftDict({"dog": 1, "computer": 2, "cat": 3})
    >>> animals["dog"]
    1
    >>> puppy = {"dog": 0.9, "computer": 0.1, "cat": 0.7}
    >>> animals = SoftDict({"dog": 1, "computer": 2, "cat": 3}, similarity=lambda key, query: puppy[key])
    >>> animals("puppy")  # 0.9 · 1 + 0.1 · 2 + 0.7 · 3
    tensor(3.2000)
    """

    def __init__(
        self,
        items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        *,
        embed: Callable[[Any], Tensor] | None = None,
        similarity: Callable[[Any, Any], Tensor | float] | None = None,
    ) -> None:
        self._embed, self._similarity = embed, similarity
        self._keys: list[Any] = []
        self._values: list[Any] = []
        for key, value in items.items() if isinstance(items, Mapping) else items:
            self[key] = value

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __delitem__(self, key: Any) -> None:
        place = self._place(key)
        del self._keys[place], self._values[place]

    def __contains__(self, key: Any) -> bool:
        return self._find(key) is not None

    def __getitem__(self, key: Any) -> Any:
        """The value of exactly this key."""
        return self._values[self._place(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self._find(key)
        if place is None:
            self._keys.append(key)
            self._values.append(value)
        else:
            self._values[place] = value

    def __call__(self, query: Any, form: Form | None = None) -> Tensor:
        """Σ weight · value, in the given form."""
        values = self._stacked_values()  # [N, ..]
        weights = self.weights(query, form).to(values.dtype)  # [.., N]
        answer: Tensor = torch.tensordot(weights, values, 1)
        return answer

    def weights(self, query: Any, form: Form | None = None) -> Tensor:
        """How much of each value the answer holds: [N], or [M, N] for M queries at once in the softmax form."""
        form = self._form(form)
        if not self._keys:
            return torch.zeros(0)
        if form == "exact":
            place = self._find(query)
            return torch.tensor([float(i == place) for i in range(len(self))])
        if form == "weighted" and self._similarity is not None:
            similar = [self._similarity(key, query) for key in self._keys]
            return torch.stack([torch.as_tensor(s, dtype=torch.get_default_dtype()) for s in similar])
        vectors, asked = [self._vector(key) for key in self._keys], self._vector(query)
        if len({v.shape for v in vectors}) > 1:
            raise ValueError(f"keys: shapes {[list(v.shape) for v in vectors]}, expected vectors of one width")
        keys = torch.stack(vectors)  # [N, D]
        if asked.shape[-1] != keys.shape[-1]:
            raise ValueError(f"query: width {asked.shape[-1]}, expected {keys.shape[-1]}, the width of the keys")
        if form == "weighted":
            return torch.matmul(F.normalize(asked, dim=-1), F.normalize(keys, dim=-1).mT)
        weights = attend(asked.reshape(-1, asked.shape[-1]), keys, score="dot", need_weights=True).weights
        assert weights is not None  # it was asked for
        return weights.reshape(*asked.shape[:-1], len(self))

    def explain(self, query: Any, form: Form | None = None) -> None:
        """Prints what it looked at and how much, the most first, and the sum that makes the answer."""
        form = self._form(form)
        weights, answer = self.weights(query, form).detach(), self(query, form).detach()
        if weights.dim() != 1:
            raise ValueError(f"query: {weights.shape[0]} at once; explain takes one")
        print(f"query {_short(query)}: the weight is {FORMS[form]}")
        names = [_short(key) for key in self._keys]
        width = max(map(len, names), default=0)
        largest = max(1.0, float(weights.abs().max())) if len(self) else 1.0
        order = sorted(range(len(self)), key=lambda i: -float(weights[i]))
        for i in order[:SHOWN]:
            bar = "█" * round(24 * max(0.0, float(weights[i])) / largest)
            print(f"  {names[i]:<{width}}  {float(weights[i]):6.3f}  {bar:<24}  {_short(self._values[i])}")
        if len(order) > SHOWN:
            rest = sum(float(weights[i]) for i in order[SHOWN:])
            print(f"  … and {len(order) - SHOWN} more keys with {rest:.3f} together")
        print(f"  answer {_short(answer)}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{_short(k)}: {_short(v)}" for k, v in zip(self._keys, self._values, strict=True))
        return f"SoftDict({{{inside}}})"

    def _form(self, form: Form | None) -> Form:
        vectors = self._embed is not None or (bool(self._keys) and all(isinstance(k, Tensor) for k in self._keys))
        if form is None:
            return "softmax" if vectors else "weighted" if self._similarity is not None else "exact"
        if form not in FORMS:
            raise unknown("form", form, FORMS)
        if form == "softmax" and self._keys and not vectors:
            raise ValueError("form 'softmax' needs vectors: give embed=, or tensors as keys")
        if form == "weighted" and self._keys and not vectors and self._similarity is None:
            raise ValueError("form 'weighted' needs similarity=, or vectors to take the cosine of")
        return form

    def _place(self, key: Any) -> int:
        place = self._find(key)
        if place is None:
            raise KeyError(key)
        return place

    def _find(self, key: Any) -> int | None:
        for i, known in enumerate(self._keys):
            if isinstance(known, Tensor) or isinstance(key, Tensor):
                if isinstance(known, Tensor) and isinstance(key, Tensor) and torch.equal(known, key):
                    return i
            elif known == key:
                return i
        return None

    def _vector(self, key: Any) -> Tensor:
        vector = key if isinstance(key, Tensor) or self._embed is None else self._embed(key)
        if not isinstance(vector, Tensor) or not vector.is_floating_point() or vector.dim() == 0:
            came = f"{vector.dtype} of shape {list(vector.shape)}" if isinstance(vector, Tensor) else repr(vector)
            raise ValueError(f"{came} is no vector: give embed= to turn keys and queries into tensors of one width")
        return vector

    def _stacked_values(self) -> Tensor:
        try:
            values = [torch.as_tensor(v) for v in self._values]
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"values: {self._values!r:.60} cannot be summed; expected numbers or tensors") from None
        values = [v if v.is_floating_point() else v.to(torch.get_default_dtype()) for v in values]
        if len({v.shape for v in values}) > 1:
            raise ValueError(f"values: shapes {[list(v.shape) for v in values]} cannot be summed; expected one shape")
        return torch.stack(values) if values else torch.zeros(0)


def _short(x: Any) -> str:
    if not isinstance(x, Tensor):
        return repr(x)
    if x.dim() == 0:
        return f"{x.item():.4g}"
    numbers = [f"{v:.2f}" for v in x.detach().flatten()[:4].tolist()]
    return "[" + ", ".join(numbers) + (", …]" if x.numel() > 4 else "]")
