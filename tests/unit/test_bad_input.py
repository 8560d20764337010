"""A mistake gets a ValueError that names the argument, what came and what was expected; never a shape error of torch."""

import pytest
import torch
import typer
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade import Attention, Residual, TransformerBlock, attend
from saccade.cli import plainly
from saccade.config import ModelConfig
from saccade.model import build

B, M, N, D = 2, 3, 5, 8
Q, K, V = torch.randn(B, M, D), torch.randn(B, N, D), torch.randn(B, N, 4)


def layer(**options):
    return Attention(**{"query_width": D, **options})


BUILDING = {
    "unknown score 'aditive'; did you mean 'additive'? (known: additive, concat, cosine, dot, general, location": {
        "score": "aditive"
    },
    "unknown score 'xyzzy' (known:": {"score": "xyzzy"},
    "heads: 3, expected a number that divides width=8": {"heads": 3},
    "heads: 3, expected a number that divides query_width=8": {"heads": 3, "project": False},
    "heads: 0, expected a whole number, at least 1": {"heads": 0},
    "heads: 2.0, expected a whole number": {"heads": 2.0},
    "query_width: 0, expected a whole number": {"query_width": 0},
    "beta: nan, expected a finite number": {"score": "cosine", "beta": float("nan")},
    "rotary: queries of width 8, keys of 4": {"key_width": 4, "score": "general", "rotary": True},
    "score 'dot' needs queries and keys of one width, not 8 and 4": {"key_width": 4, "score": "dot"},
    "hidden: only for score 'additive' or 'concat', not for 'dot'": {"score": "dot", "hidden": 3},
    "hidden: 0, expected a whole number, at least 1": {"score": "additive", "hidden": 0},
    "beta: only for score 'cosine', not for a callable": {"score": lambda q, k: q @ k.mT, "beta": 2.0},
    "learn_beta: only for score 'cosine'": {"learn_beta": True},
    "max_length: score 'location' needs it": {"score": "location"},
    "unknown normaliser 'softmx'; did you mean 'softmax'?": {"normalise": "softmx"},
    "temperature: 0, expected a number above 0": {"temperature": 0},
    "dropout: 1.5, expected a share": {"dropout": 1.5},
    "unknown local attention 'q'": {"local": "q"},
    "window: 0, expected a whole number, at least 1": {"local": "m", "window": 0},
    "window: only with local='m' or local='p'": {"window": 3},
    "width: only with projections; add project=True": {"width": 16},
    "bias: only with projections; add project=True": {"bias": True},
    "width: 5, expected an even number": {"heads": 2, "width": 10, "rotary": True},
}


@pytest.mark.parametrize(("says", "options"), BUILDING.items(), ids=list(BUILDING))
def test_building(says, options):
    with pytest.raises(ValueError) as error:
        layer(**options)
    assert says in str(error.value)


ASKING = {
    "query: shape [2, 3, 7], expected [.., M, 8]": lambda: layer()(Q[..., :7], K),
    "query: shape [8], expected [.., M, 8]": lambda: layer()(Q[0, 0], K),
    "query: dtype torch.int64, expected a floating-point tensor": lambda: layer()(Q.long(), K),
    "keys: width 7, expected 8": lambda: layer()(Q, K[..., :7]),
    "keys: shape [8], expected at least two axes": lambda: layer()(Q, K[0, 0]),
    "keys: dtype torch.int64": lambda: layer()(Q, K.long()),
    "values: width 4, expected 8": lambda: layer()(Q, K, V),
    "values: axes [2, 4], expected [2, 5], those of the keys": lambda: layer()(Q, K, K[:, :4]),
    "keys: leading axes [1], expected [2], those of the query": lambda: layer()(Q, K[:1]),
    "keys: leading axes [], expected [2]": lambda: layer()(Q, K[0]),
    "keys: prepared by another layer: heads and width [2, 4], expected [4, 2]": lambda: layer(heads=4)(Q, layer(heads=2).prepare(K)),
    "keys: prepared by another layer: heads and width [1, 2], expected [1, 4096]": lambda: layer(score="additive", hidden=4096)(
        torch.randn(1, 300, D), layer(score="additive", hidden=2).prepare(torch.randn(1, 3000, D))
    ),
    "keys: dtype torch.float64, the layer torch.float32: expected one dtype": lambda: layer(score="general")(Q.double(), K.double()),
    "query: list, expected a tensor": lambda: layer()(Q.tolist(), K),
    "keys: ndarray, expected a tensor": lambda: layer()(Q, K.numpy()),
    "mask: list, expected a tensor": lambda: layer()(Q, K, mask=[[True] * N] * B),
    "more: shape [2, 1, 5, 4], expected that of [2, 1, 5, 8] but for N": lambda: layer().prepare(K).grow(Attention(4).prepare(V)),
    "coverage: shape [2, 7, 5], expected [2, 3, 5]": lambda: layer(coverage=True)(Q, K, coverage=torch.zeros(B, 7, N)),
    "positions: this layer does not use them; build": lambda: layer(local="p")(Q, K, positions=3),
    "values: prepared keys bring their own": lambda: layer()(Q, layer().prepare(K), K),
    "keys: 5 positions, but score 'location' was built with max_length=4": lambda: layer(score="location", max_length=4)(Q, K),
    "mask: dtype torch.int64, expected torch.bool (True = may look) or a float": lambda: layer()(Q, K, mask=torch.ones(B, N).long()),
    "mask: shape [5], expected [2, 5], [2, 3, 5] or [2, 1, 3, 5]": lambda: layer()(Q, K, mask=torch.ones(N) > 0),
    "mask: shape [1, 1, 1, 1, 5], expected": lambda: layer()(Q, K, mask=torch.ones(1, 1, 1, 1, N) > 0),
    "mask: shape [2, 4], expected [2, 5], or 1 in place of an axis": lambda: layer()(Q, K, mask=torch.ones(B, 4) > 0),
    "mask: shape [3, 5], expected [2, 5]": lambda: layer()(Q, K, mask=torch.ones(M, N) > 0),
    "mask: shape [2, 5, 3], expected [2, 3, 5]": lambda: layer()(Q, K, mask=torch.ones(B, N, M) > 0),
    "mask: shape [2, 2, 3, 5], expected [2, 1, 3, 5]": lambda: layer()(Q, K, mask=torch.ones(B, 2, M, N) > 0),
    "coverage: this layer was built without it": lambda: layer()(Q, K, coverage=torch.zeros(B, M, N)),
    "coverage: torch.float32 of shape [2, 5], expected float of [2, 3, 5]": lambda: layer(coverage=True)(Q, K, coverage=torch.zeros(B, N)),
    "positions: this layer does not use them": lambda: layer()(Q, K, positions=3),
    "positions: shape [4], expected [2, 3], or 1 in place of an axis": lambda: layer(local="m")(Q, K, positions=torch.arange(4)),
    "score: the callable returned torch.float32 [2, 1, 5, 3], expected a float tensor of shape [2, 1, 3, 5]": lambda: layer(score=lambda q, k: k @ q.mT)(Q, K),
    "score: the callable returned torch.int64 [2, 1, 3, 5], expected a float tensor": lambda: layer(score=lambda q, k: (q @ k.mT).long())(Q, K),
    "score: the callable returned NoneType, expected a float tensor": lambda: layer(score=lambda q, k: None)(Q, K),
    "query: dtype torch.float64, keys torch.float32: expected one dtype": lambda: layer()(Q.double(), K),
    "values: dtype torch.float64, keys torch.float32: expected one dtype": lambda: layer()(Q, K, K.double()),
}  # fmt: skip


@pytest.mark.parametrize(("says", "attempt"), ASKING.items(), ids=list(ASKING))
def test_asking(says, attempt):
    with pytest.raises(ValueError) as error:
        attempt()
    assert says in str(error.value)


ATTENDING = {
    "score 'additive' has parameters to learn: use saccade.Attention(..., score='additive')": {"score": "additive"},
    "unknown score 'doot'; did you mean 'dot'?": {"score": "doot"},
    "query: shape [2, 3, 8], expected [.., M, 7]": {"keys": K[..., :7]},
    "values: axes [2, 4], expected [2, 5]": {"values": V[:, :4]},
    "mask: shape [2, 1, 3, 5, 1], expected [2, 5], [2, 3, 5] or [2, 1, 3, 5]": {"mask": torch.ones(B, 1, M, N, 1) > 0},
}


@pytest.mark.parametrize(("says", "changes"), ATTENDING.items(), ids=list(ATTENDING))
def test_attending(says, changes):
    with pytest.raises(ValueError) as error:
        attend(**{"query": Q, "keys": K, "values": V, **changes})
    assert says in str(error.value)


def test_blocks():
    with pytest.raises(ValueError, match="memory: a block built with cross=True needs one"):
        TransformerBlock(D, cross=True)(Q)
    with pytest.raises(ValueError, match="memory: this block looks at itself alone"):
        TransformerBlock(D)(Q, K)
    with pytest.raises(ValueError, match="memory_mask: this block has no memory"):
        TransformerBlock(D)(Q, memory_mask=torch.ones(B, N) > 0)
    with pytest.raises(ValueError, match=r"x: shape \[2, 3, 7\], expected \[.., M, 8\]"):
        TransformerBlock(D)(Q[..., :7])
    with pytest.raises(ValueError, match="memory: 4 axes, expected from 2 to 3"):
        TransformerBlock(D, cross=True)(Q, K.unsqueeze(1))
    with pytest.raises(ValueError, match=r"memory_mask: shape \[2, 4\], expected \[2, 5\]"):
        TransformerBlock(D, cross=True)(Q, K, memory_mask=torch.ones(B, 4) > 0)
    with pytest.raises(ValueError, match="memory: keys: width 4, expected 8"):
        TransformerBlock(D, cross=True)(Q, V)
    with pytest.raises(ValueError, match="memory_width: only with cross=True"):
        TransformerBlock(D, memory_width=3)
    with pytest.raises(ValueError, match="unknown norm 'pst'; did you mean 'post'"):
        Residual(D, norm="pst")


TOO_LARGE = {
    "more than there is": lambda: torch.empty(2**60),
    "more than can be counted": lambda: torch.empty(2**40, 2**40),
    "a size that is none": lambda: torch.empty(2**70),
    "outside torch": lambda: bytes(2**60),
}


@pytest.mark.parametrize("ask", TOO_LARGE.values(), ids=list(TOO_LARGE))
def test_a_model_that_does_not_fit_into_memory(monkeypatch, ask):
    config = ModelConfig(width=16)
    monkeypatch.setitem(build.__globals__, "RecurrentEncoder", lambda *_: ask())
    with pytest.raises(ValueError, match=r"model: too large for this machine's memory \(width=16, layers=1\); make"):
        build(config, 9, 9)
    monkeypatch.setitem(build.__globals__, "RecurrentEncoder", lambda *_: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):  # another mistake stays what it is
        build(config, 9, 9)


@pytest.mark.parametrize("name", ["more than there is", "outside torch"])
def test_a_command_that_does_not_fit_into_memory(capsys, name):
    with pytest.raises(typer.Exit) as left, plainly():
        TOO_LARGE[name]()
    assert left.value.exit_code == 1
    assert capsys.readouterr().err.startswith("error: not enough memory: ")
    with pytest.raises(RuntimeError, match="inconsistent tensor size"), plainly():  # another mistake stays what it is
        torch.zeros(2) @ torch.zeros(3)


def test_unknown_names_of_the_package():
    with pytest.raises(AttributeError, match="no attribute 'Atention'"):
        saccade.Atention  # noqa: B018


@given(shape=st.lists(st.integers(0, 6), max_size=5), dtype=st.sampled_from([torch.bool, torch.float32, torch.int32]))
def test_a_mask_either_fits_or_is_explained(shape, dtype):
    mask = torch.ones(shape).to(dtype)
    for ask in (lambda: layer(heads=2)(Q, K, mask=mask), lambda: layer(score="additive")(Q, K, mask=mask)):
        try:
            assert ask().context.shape == (B, M, D)
        except ValueError as error:
            assert str(error).startswith("mask: ")
