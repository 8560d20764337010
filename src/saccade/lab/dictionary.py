"""From the exact dictionary to attention in five steps, computed as you watch."""

import torch
from torch import Tensor

from saccade.attention import Attention, SoftDict

# Word vectors small enough to read: animal, young, machine.
WORDS = {
    "dog": [2.0, -0.5, 0.0],
    "cat": [1.6, -0.2, -0.3],
    "computer": [-0.5, 0.0, 2.0],
    "puppy": [1.9, 1.5, 0.0],
    "laptop": [-0.4, 0.5, 1.8],
}


def word2vec(word: str) -> Tensor:
    return torch.tensor(WORDS[word])


def tour() -> None:
    """Prints the five steps."""
    items = {"dog": 1, "computer": 2, "cat": 3}

    _step(1, "A dictionary compares the query with every key: 1 if they are the same, else 0.")
    exact = SoftDict(items)
    exact.explain("dog")
    exact.explain("puppy")
    print("  Nothing fits exactly, so nothing comes back.")

    _step(2, "Let it ask how similar they are instead. Every value now answers, as much as its key fits.")
    likeness = {"dog": 0.9, "computer": 0.1, "cat": 0.7}
    SoftDict(items, similarity=lambda key, query: likeness[key]).explain("puppy")

    _step(3, "Let keys and query be vectors, and a softmax make the weights sum to one. This is attention.")
    soft = SoftDict(items, embed=word2vec)
    soft.explain("puppy")
    soft.explain("laptop")

    _step(4, "Every part can be differentiated, so it can learn where to look.")
    query, keys = word2vec("puppy").requires_grad_(), {word: word2vec(word) for word in items}
    learning = SoftDict([(keys[word], float(value)) for word, value in items.items()])
    print(f"  'puppy' answers {learning(query).item():.3f}; we want 3.")
    for step in range(1, 31):
        (gradient,) = torch.autograd.grad((learning(query) - 3).square(), query)
        query = (query - gradient).detach().requires_grad_()
        if step % 10 == 0:
            weights = learning.weights(query).tolist()
            looks = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(items, weights, strict=True))
            print(f"  after {step} steps it answers {learning(query).item():.3f}, looking at {looks}")

    _step(5, "Ask many queries at once, with several heads: the layer of every Transformer.")
    torch.manual_seed(0)
    words = torch.stack([word2vec(word) for word in WORDS])
    alone = Attention(3, score="dot")
    glance = alone(words, torch.stack([word2vec(word) for word in items]), need_weights=True)
    shown = glance.weights[0] if glance.weights is not None else torch.zeros(0)  # they were asked for
    largest = max(float((shown[i] - soft.weights(word)).abs().max()) for i, word in enumerate(WORDS))
    print(f"  Attention(3, score='dot') and the dictionary differ by at most {largest:.0e} for {len(WORDS)} queries.")
    heads = Attention(3, heads=3)(words, words, need_weights=True)
    shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in heads._asdict().items())
    print(f"  Attention(3, heads=3) on all words: {shapes}.")
    print("\nNext: docs/attention.md shows each equation beside the call that computes it.")


def _step(number: int, says: str) -> None:
    print(f"\n{number}. {says}")
