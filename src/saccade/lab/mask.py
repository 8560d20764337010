"""What leaks without the causal mask: a model that is shown the answer learns to copy it, and nothing else."""

import itertools
import random
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention import Sinusoidal, TransformerBlock
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values

KINDS, LENGTH, BATCH = 12, 16, 64
LOST = 30.0  # points
ARMS = {"causal mask": True, "no mask": False}


class Speaker(nn.Module):
    """Says what comes next: one block over the words so far, or over all of them if nothing hides what is to come."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(KINDS, 32), Sinusoidal(32)
        self.blocks = nn.ModuleList(TransformerBlock(32, heads=4, hidden=64) for _ in range(2))
        self.out, self.causal = nn.Linear(32, KINDS), causal

    def forward(self, words: Tensor) -> Tensor:
        x = self.place(self.embed(words))  # [B, T, D]
        for block in self.blocks:
            x = block(x, causal=self.causal).output
        logits: Tensor = self.out(x)  # [B, T, V]
        return logits


def counted(chance: random.Random) -> list[int]:
    """A row that goes up by the same step, round and round: two numbers tell all that follow."""
    start, step = chance.randrange(KINDS), chance.randrange(1, KINDS)
    return [(start + i * step) % KINDS for i in range(LENGTH + 1)]


def measure(bench: Bench) -> list[Figure]:
    each = itertools.product(ARMS, bench.seeds)
    return bench.each([(f"mask: {arm}, seed {seed}", run, arm, seed, bench.steps(600, 300)) for arm, seed in each])


def run(arm: str, seed: int, steps: int) -> list[Figure]:
    torch.manual_seed(seed)
    chance = random.Random(seed)
    model = Speaker(ARMS[arm])
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(steps):
        rows = torch.tensor([counted(chance) for _ in range(BATCH)])  # [B, T + 1]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    rows = torch.tensor([counted(chance) for _ in range(200)])
    with torch.no_grad():
        told = (model(rows[:, :-1]).argmax(-1) == rows[:, 1:])[:, 2:]  # the first two cannot be known
        words = rows[:, :3]
        while words.shape[1] <= LENGTH:  # by itself, from the first three on
            words = torch.cat([words, model(words)[:, -1:].argmax(-1)], 1)
    alone = (words == rows)[:, 3:]
    return [
        {"arm": arm, "seed": seed, "who": who, "right": 100 * float(right.float().mean())}
        for who, right in enumerate((told, alone))
    ]


def judge(figures: Sequence[Figure]) -> Verdict:
    shown, alone = ({arm: values(figures, "right", arm=arm, who=who) for arm in ARMS} for who in (0, 1))
    lost = {arm: [a - b for a, b in zip(shown[arm], alone[arm], strict=True)] for arm in ARMS}
    return every(
        above(lost["no mask"], lost["causal mask"], by=LOST), above(alone["causal mask"], alone["no mask"], by=LOST)
    )


CLAIM = Claim(
    "mask",
    ("003",),
    Words("The causal mask", "인과 마스크"),
    Words(
        "While it trains, a decoder is given the whole target. Without a mask it sees the word it should predict, "
        "scores wonderfully, and cannot write.",
        "학습할 때 복호기는 목표 전체를 받는다. 마스크가 없으면 맞혀야 할 단어를 보게 되어 점수는 훌륭하지만 쓰지는 못한다.",
    ),
    Words(
        "Rows of 17 numbers that go up by a constant step, modulo 12. Two blocks, with and without the mask: right words "
        "when the true ones are given (0), and when it goes on by itself from the first three (1).",
        "일정하게 커지는 수 17개(12로 나눈 나머지). 블록 두 개, 마스크 유무: 참된 단어가 주어질 때(0)와 첫 셋에서 스스로 이어 쓸 "
        "때(1) 맞은 비율.",
    ),
    Words(
        f"From being given the truth to writing by itself every seed without the mask loses more than {LOST:g} points more "
        "than every seed with it, and ends more than that below.",
        f"정답이 주어질 때에서 스스로 쓸 때로 가면, 마스크가 없는 모든 시드가 있는 모든 시드보다 {LOST:g}점 넘게 더 잃고, 그만큼 넘게 "
        "낮은 곳에서 끝난다.",
    ),
    1,
    (
        Chart(
            "right",
            Words("words right, %", "맞은 단어, %"),
            "who",
            Words("0: given the truth, 1: by itself", "0: 정답이 주어짐, 1: 스스로"),
        ),
    ),
    measure,
    judge,
)
