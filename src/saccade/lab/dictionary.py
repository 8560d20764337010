"""From the exact dictionary to attention in five steps, computed as you watch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.attention import Attention, SoftDict
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values

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


STEPS = (
    Words(
        "A dictionary compares the query with every key: 1 if they are the same, else 0.",
        "사전은 질의를 모든 키와 비교한다. 같으면 1, 다르면 0.",
    ),
    Words(
        "Let it ask how similar they are instead. Every value now answers, as much as its key fits.",
        "같은지 대신 얼마나 닮았는지 묻자. 이제 모든 값이 키가 닮은 만큼 답한다.",
    ),
    Words(
        "Let keys and query be vectors, and a softmax make the weights sum to one. This is attention.",
        "키와 질의를 벡터로, 소프트맥스로 가중치의 합을 1로. 이것이 어텐션이다.",
    ),
    Words(
        "Every part can be differentiated, so it can learn where to look.",
        "모든 부분을 미분할 수 있으므로 어디를 볼지 배울 수 있다.",
    ),
    Words(
        "Ask many queries at once, with several heads: the layer of every Transformer.",
        "많은 질의를 한꺼번에, 여러 머리로: 모든 트랜스포머의 층.",
    ),
)
ASIDES = {
    "nothing": Words("Nothing fits exactly, so nothing comes back.", "꼭 맞는 것이 없으니 아무것도 돌아오지 않는다."),
    "wanted": Words("'puppy' answers {:.3f}; we want 3.", "'puppy'의 답은 {:.3f}, 바라는 답은 3."),
    "learned": Words("after {} steps it answers {:.3f}, looking at {}", "{}단계 뒤의 답은 {:.3f}, 보는 곳은 {}"),
    "same": Words(
        "Attention(3, score='dot') and the dictionary differ by at most {:.0e} for {} queries.",
        "Attention(3, score='dot')과 사전의 차이는 질의 {1}개에서 많아야 {0:.0e}.",
    ),
    "shapes": Words("Attention(3, heads=3) on all words: {}.", "모든 단어에 대한 Attention(3, heads=3): {}."),
    "next": Words(
        "docs/attention.md shows each equation beside the call that computes it.",
        "다음은 docs/attention.md: 수식마다 그것을 계산하는 호출이 곁에 있다.",
    ),
}


def tour(language: str = "en") -> None:
    """Prints the five steps."""
    items = {"dog": 1, "computer": 2, "cat": 3}

    def step(number: int) -> None:
        says = STEPS[number - 1]
        print(f"\n{number}. {says.ko if language == 'ko' else says.en}")

    def aside(name: str, *found: Any) -> None:
        says = ASIDES[name]
        print(f"  {(says.ko if language == 'ko' else says.en).format(*found)}")

    step(1)
    exact = SoftDict(items)
    exact.explain("dog")
    exact.explain("puppy")
    aside("nothing")

    step(2)
    likeness = {"dog": 0.9, "computer": 0.1, "cat": 0.7}
    SoftDict(items, similarity=lambda key, query: likeness[key]).explain("puppy")

    step(3)
    soft = SoftDict(items, embed=word2vec)
    soft.explain("puppy")
    soft.explain("laptop")

    step(4)
    query, keys = word2vec("puppy").requires_grad_(), {word: word2vec(word) for word in items}
    learning = SoftDict([(keys[word], float(value)) for word, value in items.items()])
    aside("wanted", learning(query).item())
    for done in range(1, 31):
        (gradient,) = torch.autograd.grad((learning(query) - 3).square(), query)
        query = (query - gradient).detach().requires_grad_()
        if done % 10 == 0:
            weights = learning.weights(query).tolist()
            looks = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(items, weights, strict=True))
            aside("learned", done, learning(query).item(), looks)

    step(5)
    torch.manual_seed(0)
    words = torch.stack([word2vec(word) for word in WORDS])
    alone = Attention(3, score="dot")
    glance = alone(words, torch.stack([word2vec(word) for word in items]), need_weights=True)
    shown = glance.weights[0] if glance.weights is not None else torch.zeros(0)  # they were asked for
    largest = max(float((shown[i] - soft.weights(word)).abs().max()) for i, word in enumerate(WORDS))
    aside("same", largest, len(WORDS))
    heads = Attention(3, heads=3)(words, words, need_weights=True)
    shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in heads._asdict().items())
    aside("shapes", shapes)
    aside("next")


def measure(bench: Bench) -> list[Figure]:
    return bench.once("dictionary", run)


def run() -> list[Figure]:
    """The answer of the notes, and how far the dictionary is from the layer."""
    items = {"dog": 1, "computer": 2, "cat": 3}
    likeness = {"dog": 0.9, "computer": 0.1, "cat": 0.7}
    answer = SoftDict(items, similarity=lambda key, query: likeness[key])("puppy")
    soft = SoftDict(items, embed=word2vec)
    keys = torch.stack([word2vec(word) for word in items])
    found: list[Figure] = [{"arm": "answer", "seed": 0, "answer": float(answer)}]
    for word in WORDS:
        glance = Attention(3, score="dot")(word2vec(word).unsqueeze(0), keys, need_weights=True)
        assert glance.weights is not None
        away = float((glance.weights[0, 0] - soft.weights(word)).abs().max())
        found.append({"arm": word, "seed": 0, "away": away, "weight_dog": float(glance.weights[0, 0, 0])})
    return found


def judge(figures: Sequence[Figure]) -> Verdict:
    (answer,) = values(figures, "answer")
    puppy, laptop = (values(figures, "weight_dog", arm=word) for word in ("puppy", "laptop"))
    return every(above([1e-6], values(figures, "away")), above([1e-6], [abs(answer - 3.2)]), above(puppy, laptop))


CLAIM = Claim(
    "dictionary",
    ("004",),
    Words("The differentiable dictionary", "미분 가능한 사전"),
    Words(
        "Attention is a dictionary that answers with every value, each as much as its key is like the query.",
        "어텐션은 모든 값을 키가 질의와 닮은 만큼씩 섞어 답하는 사전이다.",
    ),
    Words(
        "The five steps of `saccade lab dictionary`: exact keys, likeness, vectors with softmax, learning, the layer. "
        "No training is involved but that of one query.",
        "`saccade lab dictionary`의 다섯 단계: 정확한 키, 닮음, 벡터와 소프트맥스, 학습, 층. 질의 하나를 빼면 학습은 없다.",
    ),
    Words(
        "The dictionary of the notes answers 3.2 for 'puppy'; the layer with the dot score gives the same weights as the "
        "dictionary, to 1e-6; and 'puppy' looks more at 'dog' than 'laptop' does.",
        "노트의 사전이 'puppy'에 3.2라고 답하고, dot 점수의 층이 사전과 같은 가중치를 주며(1e-6), 'puppy'가 'laptop'보다 'dog'를 더 "
        "많이 본다.",
    ),
    0.1,
    (
        Chart("weight_dog", Words("weight on 'dog'", "'dog'에 준 가중치")),
        Chart("answer", Words("answer for 'puppy', 3.2 in the notes", "'puppy'에 대한 답, 노트에서는 3.2")),
        Chart("away", Words("difference between the dictionary and the layer", "사전과 층의 차이")),
    ),
    measure,
    judge,
    live=tour,
    fixed=True,
)
