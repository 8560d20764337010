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
    """Says what comes next: two blocks over the words so far, or over all of them if nothing hides what is to come."""

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
        told = model(rows[:, :-1]).argmax(-1) == rows[:, 1:]  # [rows, T]
        words = rows[:, :3]
        while words.shape[1] <= LENGTH:  # by itself, from the first three on
            words = torch.cat([words, model(words)[:, -1:].argmax(-1)], 1)
    alone = (words == rows)[:, 3:]
    found = {"guessed": told[:, :1], "given": told[:, 1:], "alone": alone}  # the second number cannot be known
    return [{"arm": arm, "seed": seed, **{name: 100 * float(x.float().mean()) for name, x in found.items()}}]


def judge(figures: Sequence[Figure]) -> Verdict:
    guessed, alone = ({arm: values(figures, name, arm=arm) for arm in ARMS} for name in ("guessed", "alone"))
    return every(
        above(guessed["no mask"], guessed["causal mask"], by=LOST),
        above(alone["causal mask"], alone["no mask"], by=LOST),
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
        "Rows of 17 numbers that go up by a constant step, modulo 12, so that the first tells nothing of the second, and the "
        "first two tell all the rest. Two blocks, with and without the mask: the second number when the true ones are given, "
        "which only a leak can tell (chance: 9%), the others when they are given, and what it writes by itself from the "
        "first three on.",
        "일정하게 커지는 수 17개(12로 나눈 나머지). 첫 수는 둘째 수에 대해 아무것도 알려 주지 않고, 첫 두 수는 나머지를 모두 알려 준다. "
        "블록 두 개, 마스크 유무: 정답이 주어질 때의 둘째 수(새지 않으면 알 수 없다, 우연은 9%), 정답이 주어질 때의 나머지, 첫 셋에서 "
        "스스로 이어 쓴 수.",
    ),
    Words(
        f"Every seed without the mask is more than {LOST:g} points above every seed with it at what cannot be known, and more "
        "than that below when it writes by itself.",
        f"마스크가 없는 모든 시드가 알 수 없는 것에서는 있는 모든 시드보다 {LOST:g}점 넘게 높고, 스스로 쓸 때는 그만큼 넘게 낮다.",
    ),
    1,
    (
        Chart("guessed", Words("the second number, which cannot be known, %", "알 수 없는 둘째 수, %")),
        Chart("given", Words("the others, given the truth, %", "정답이 주어질 때의 나머지, %")),
        Chart("alone", Words("by itself, %", "스스로, %")),
    ),
    measure,
    judge,
)
