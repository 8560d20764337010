"""What a model sees in itself, and how much of a glance its gate lets in: told on request, and changing nothing."""

import numpy as np
import pytest
import torch

from saccade.config import ModelConfig
from saccade.config.image import ImageConfig
from saccade.data import Fitted, Frame, Tokeniser
from saccade.model import build
from saccade.search import Translator, Voice

TEXTS = ["ab cd", "a", "dcba dcba"]


def translator(family="transformer", **settings):
    torch.manual_seed(0)
    symbols = Tokeniser.train(["ab cd", "dcba"], "characters")
    given = {"family": family, "width": 16, "layers": 2, "heads": 2, **settings}
    model = build(ModelConfig.model_validate(given), len(symbols), len(symbols)).double()
    return Translator([Voice(model, symbols)], symbols)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_transformer_looks_at_itself(positions):
    transformer = translator(positions=positions)
    plain, inside = transformer(TEXTS, beam=2), transformer(TEXTS, beam=2, inside=True)
    for before, p in zip(plain, inside, strict=True):
        assert before.attention.keys() == {"cross"}
        assert p.text == before.text
        assert p.score == pytest.approx(before.score, abs=1e-10)  # weights are summed in another order
        assert np.allclose(p.cross, before.cross)
        read, written = len(p.source_tokens), len(p.target_tokens)
        assert p.encoder.shape == (2, 2, read, read)
        assert p.decoder.shape == (2, 2, written, written)
        assert np.allclose(p.encoder.sum(-1), 1, atol=1e-5)
        assert np.allclose(p.decoder.sum(-1), 1, atol=1e-5)
        assert not np.triu(p.decoder, 1).any()  # nobody looks ahead


def test_it_is_what_the_layers_did():
    """The block's own weights, taken where the block is called."""
    transformer = translator()
    (model,), seen = transformer.models, []
    for block in model.encoder.blocks:
        block.register_forward_hook(lambda _, __, out: seen.append(out.self_weights))
    p = transformer("ab cd", inside=True, beam=1)
    assert np.allclose(p.encoder, torch.stack(seen)[:, 0].numpy(), atol=1e-6)


def test_of_what_does_not_look_at_itself_or_of_several_nothing_is_told():
    with pytest.raises(ValueError, match="nothing in this model looks at itself"):
        translator("luong")("ab", inside=True)
    transformer = translator()
    both = Translator(transformer.voices * 2, transformer.target)
    with pytest.raises(ValueError, match="inside: for one run alone"):
        both("ab", inside=True)


@pytest.mark.parametrize(("family", "feed"), [("bahdanau", None), ("luong", True), ("luong", False)])
def test_a_gate_tells_how_much_it_let_in(family, feed):
    gated = translator(family, gate=True, **({} if feed is None else {"feed": feed}))
    (model,) = gated.models
    for p in gated(TEXTS):
        assert len(p.gates) == len(p.target_tokens)
        assert all(0 < beta < 1 for beta in p.gates)
    torch.nn.init.zeros_(model.decoder.gate.weight)
    torch.nn.init.constant_(model.decoder.gate.bias, 2.0)
    p = gated("ab cd")
    assert p.gates == pytest.approx([torch.sigmoid(torch.tensor(2.0)).item()] * len(p.target_tokens))
    assert translator(family)("ab").gates == ()


@pytest.mark.parametrize(("encoder", "layers"), [("attentive_cnn", 1), ("patches", 2)])
def test_the_cells_of_a_picture_look_at_each_other(encoder, layers):
    torch.manual_seed(0)
    image = ImageConfig(encoder=encoder, height=24, width=24, channels=16, blocks=layers)
    symbols = Tokeniser.train(["abcd"], "characters")
    model = build(ModelConfig(family="luong", width=16), image, len(symbols)).double()
    frame = Frame(24, 24)
    seer = Translator([Voice(model, frame)], symbols)
    seer.pictures = {"x": Fitted(np.zeros((24, 24, 3), np.uint8), (20, 12))}
    p = seer("x", inside=True, beam=1)
    assert p.grid == (3, 2)
    assert p.cell == 8
    assert p.cell_size() == (8, 8)
    assert p.encoder.shape == (layers, 4, 6, 6)
    assert np.allclose(p.encoder.sum(-1), 1, atol=1e-5)
    assert p.decoder is None


def test_a_look_can_be_steered():
    """For one word to one place alone; the words before it do not notice."""
    for family in ("transformer", "bahdanau", "luong"):
        steered, free = (translator(family).score("ab cd", "dcba", steer=s) for s in ((2, 1), None))
        assert np.allclose(steered.cross[:, :, 2, 1], 1)
        assert np.allclose(steered.cross[:, :, :2], free.cross[:, :, :2], atol=1e-6)
        assert steered.log_probabilities[:2] == pytest.approx(free.log_probabilities[:2])
        assert steered.log_probabilities[2] != pytest.approx(free.log_probabilities[2], abs=1e-9)
    with pytest.raises(ValueError, match=r"steer: \(9, 1\), but there are 5 words and 6 places"):
        translator().score("ab cd", "dcba", steer=(9, 1))
    both = translator().score("ab cd", "dcba", steer=(2, 1, 3)).cross[:, :, 2]
    assert np.allclose(both[..., [1, 3]].sum(-1), 1)  # among several places it looks as it likes
    assert np.all(both[..., [1, 3]] > 0)
    for wrong in ((2,), (2, 1, 99)):
        with pytest.raises(ValueError, match="but there are"):
            translator().score("ab cd", "dcba", steer=wrong)
