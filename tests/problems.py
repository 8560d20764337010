"""Random attention problems for the property tests, and how close two answers must be."""

from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from saccade import Attention, Glance

SCORES = ["dot", "scaled_dot", "general", "additive", "concat", "cosine", "location"]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def assert_equal(one: Tensor, other: Tensor) -> None:
    """Equal as the laws mean it: 1e-10 in fp64, 1e-5 in fp32, 2e-2 in bf16."""
    tolerance = TOLERANCE[one.dtype]
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@dataclass
class Problem:
    """A layer and what it is asked: query [B, M, Dq], keys [B, N, Dk], values [B, N, Dv]."""

    layer: Attention
    query: Tensor
    keys: Tensor
    values: Tensor
    temperature: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def mask(self) -> Tensor | None:
        return self.options.get("mask")

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """B, H, M, N"""
        return self.query.shape[0], self.layer.heads, self.query.shape[1], self.keys.shape[1]

    def look(self, **changes: Any) -> Glance:
        inputs = {"query": self.query, "keys": self.keys, "values": self.values, **self.options, **changes}
        return self.layer(**inputs)

    def visible(self) -> Tensor:
        """Who may look where: [B, H, M, N]."""
        b, h, m, n = self.sizes
        seen = torch.ones(b, h, m, n, dtype=torch.bool)
        if self.mask is not None:
            mask = self.mask if self.mask.dtype is torch.bool else self.mask > -torch.inf
            seen = seen & mask.reshape(mask.shape[0], *[1] * (4 - mask.dim()), *mask.shape[1:])
        if self.options.get("causal"):
            seen = seen & torch.ones(m, n, dtype=torch.bool).tril(n - m)
        return seen


@st.composite
def layers(draw, scores=SCORES, dtypes=(torch.float64, torch.float32, torch.bfloat16), **fixed):
    """Any layer: score, heads, projections, widths, normaliser, temperature, local attention."""
    heads = draw(st.sampled_from([1, 2, 3]))
    project = draw(st.booleans())
    score = draw(st.sampled_from(scores))
    options = {
        "score": score,
        "heads": heads,
        "project": project,
        "normalise": draw(st.sampled_from(["softmax", "softmax", "sparsemax", "entmax15", "hard"])),
        "temperature": draw(st.sampled_from([1.0, 1.0, 0.5, 2.0])),
        "local": draw(st.sampled_from([None, None, "m", "p"])),
        "coverage": draw(st.booleans()),
        "rotary": draw(st.booleans()),
        **fixed,
    }
    if options["local"]:
        options["window"] = draw(st.integers(1, 3))
    if score in ("additive", "concat"):
        options["hidden"] = draw(st.integers(1, 5))
    if score == "location":
        options["max_length"] = 12
    if score == "cosine":
        options["beta"], options["learn_beta"] = 2.0, draw(st.booleans())
    if project:
        options["width"], options["bias"] = heads * draw(st.integers(1, 4)), draw(st.booleans())
    query_width = heads * draw(st.integers(1, 4))
    key_width = heads * draw(st.integers(1, 4))
    if not project and score in ("dot", "scaled_dot", "cosine"):
        key_width = query_width
    meeting = (options.get("width", query_width) // heads, options.get("width", key_width) // heads)
    options["rotary"] = options["rotary"] and meeting[0] == meeting[1] and meeting[0] % 2 == 0
    value_width = heads * draw(st.integers(1, 4))
    torch.manual_seed(draw(st.integers(0, 2**16)))
    layer = Attention(query_width, key_width, value_width, **options)
    return layer.to(draw(st.sampled_from(dtypes))).eval(), options["temperature"]


@st.composite
def problems(draw, square=False, masks=True, causal=None, coverage=None, **kinds):
    """A layer with inputs: sizes with M ≠ N, B = H and ones of everything; masks of every rank and kind."""
    layer, temperature = draw(layers(**kinds))
    free = torch.empty(
        0, dtype=draw(st.sampled_from(kinds.get("dtypes", list(TOLERANCE))))
    )  # a layer without parameters
    dtype = next(layer.parameters(), free).dtype
    b, m = draw(st.sampled_from([1, 2, 3])), draw(st.integers(1, 6))
    n = m if square else draw(st.integers(1, 8))
    query = torch.randn(b, m, layer.query_width, dtype=dtype)
    keys = torch.randn(b, n, layer.key_width, dtype=dtype)
    values = torch.randn(b, n, layer.value_width, dtype=dtype)
    options: dict[str, Any] = {"causal": draw(st.booleans()) if causal is None else causal}
    if layer.coverage_weight is not None and coverage is not False:
        torch.nn.init.normal_(layer.coverage_weight)
        options["coverage"] = torch.rand(b, m, n, dtype=dtype)
    if masks:
        shape = draw(
            st.sampled_from([None, (b, n), (b, m, n), (b, layer.heads, m, n), (1, n), (b, 1, n), (b, 1, m, n)])
        )
        if shape is not None:
            mask = torch.rand(shape) < draw(st.sampled_from([0.3, 0.8, 1.0]))  # some rows may look nowhere
            if draw(st.booleans()):
                mask = torch.where(mask, torch.randn(shape, dtype=dtype), -torch.inf)
            options["mask"] = mask
    return Problem(layer, query, keys, values, temperature, options)
