"""Data, models and search together: each family learns to turn letters round, and looks where the letter came from.

Bounds and a random seed, as in test_learning.py. Training here is the plainest loop there is.
"""

import itertools

import pytest
import torch

from saccade.config import ModelConfig
from saccade.data import START, STOP, TASKS, Batch, Examples, Tokeniser, batches
from saccade.model import build
from saccade.search import beam_search, force

SETTINGS = {
    "bahdanau": {"cell": "gru", "score": "additive"},
    "luong": {"cell": "gru", "score": "general"},
    "luong without feeding": {"cell": "lstm", "feed": False},
    "luong on a walk": {"cell": "lstm", "walk": True},
    "transformer": {"heads": 4, "layers": 2, "positions": "rotary", "dropout": 0.0},
}


def short(part, size):
    """Sequences of at most nine letters: enough to need attention, quick to learn."""
    found = (e for seed in itertools.count() for e in TASKS["reverse"].examples(part, seed, 2000))
    return list(itertools.islice((e for e in found if len(e.alignment) <= 9), size))


def train(settings, examples, tokeniser, steps):
    config = ModelConfig.read({"family": settings[0].split()[0], "width": 64, "dropout": 0.1, **settings[1]})
    model = build(config, len(tokeniser), len(tokeniser))
    numbers = Examples.of(tuple(tokeniser.encode_all(list(e.pair))) for e in examples)
    optimiser = torch.optim.Adam(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
    epochs = itertools.chain.from_iterable(batches(numbers, 1500, 0, epoch) for epoch in itertools.count())
    for chosen in itertools.islice(epochs, steps):
        batch = Batch.of([numbers[i] for i in chosen])
        loss = model(batch.source, batch.mask, batch.given, batch.wanted, batch.real) / batch.real.sum()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


@pytest.mark.parametrize("family", SETTINGS)
def test_attention_learns_to_reverse_and_looks_at_the_right_letter(family):
    torch.seed()
    examples, unseen = short("train", 6000), short("test", 100)
    tokeniser = Tokeniser.train([e.pair.source for e in examples], "symbols")
    model = train((family, SETTINGS[family]), examples, tokeniser, 350)

    batch = Batch.of([tuple(tokeniser.encode_all(list(e.pair))) for e in unseen])
    with torch.inference_mode():
        memory = model.encode(batch.source, batch.mask)
    found = beam_search([model], [memory], torch.full((100,), 12), start=START, stop=STOP, beam=3)
    written = [tokeniser.decode(hypotheses[0].tokens) for hypotheses in found]
    assert sum(w == e.pair.target for w, e in zip(written, unseen, strict=True)) > 80

    # A recurrent memory may say at one position what it read at the next, so neighbours count as right.
    weights = force([model], [memory], batch.wanted, start=START).weights.mean((2, 3))  # [B, T, N]
    right = [
        abs(int(weights[b, j].argmax()) - i) <= 1 for b, example in enumerate(unseen) for i, j in example.alignment
    ]
    assert sum(right) / len(right) > 0.5  # looking anywhere at random gives about a third
