"""Gradients by finite differences, for every mechanism (straight-through is exempt: its gradient is not the slope)."""

import pytest
import torch
from problems import SCORES, assert_equal
from torch.autograd import gradcheck

from saccade import Attention, Rotary, SoftDict, TransformerBlock, attend
from saccade.attention.normalisers import entmax15, sparsemax


def widths(score):
    return (6, 6, 4) if score in ("dot", "scaled_dot", "cosine") else (6, 4, 8)


def options(score):
    return {"location": {"max_length": 5}, "cosine": {"learn_beta": True}}.get(score, {})


def check(layer, *shapes, **call):
    """gradcheck in the inputs and in every parameter."""
    layer = layer.double()
    inputs = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    names, parameters = zip(*layer.named_parameters(), strict=True) if list(layer.parameters()) else ((), ())

    def call_with(*tensors):
        given = dict(zip(names, tensors[len(inputs) :], strict=True))
        glance = torch.func.functional_call(layer, given, tuple(tensors[: len(inputs)]), call)
        return tuple(x for x in glance if isinstance(x, torch.Tensor))

    assert gradcheck(call_with, (*inputs, *parameters))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("score", SCORES)
def test_scores(score, heads, need_weights):
    query, key, value = widths(score)
    layer = Attention(query, key, value, score=score, heads=heads, project=False, **options(score))
    mask = torch.tensor([[True, True, True, False, True], [True] * 5])
    check(layer, (2, 3, query), (2, 5, key), (2, 5, value), mask=mask, causal=True, need_weights=need_weights)


@pytest.mark.parametrize("score", SCORES)
def test_scores_with_projections(score):
    layer = Attention(3, 5, 4, score=score, heads=2, width=4, bias=True, **options(score))
    check(layer, (2, 3, 3), (2, 4, 5), (2, 4, 4), need_weights=True)


@pytest.mark.parametrize("normalise", ["sparsemax", "entmax15"])
@pytest.mark.parametrize("score", SCORES)
def test_normalisers_with_every_score(score, normalise):
    query, key, value = widths(score)
    layer = Attention(query, key, value, score=score, normalise=normalise, temperature=0.5, **options(score))
    check(layer, (2, 3, query), (2, 5, key), (2, 5, value), mask=torch.rand(2, 3, 5) < 0.7, need_weights=True)


@pytest.mark.parametrize("local", ["m", "p"])
@pytest.mark.parametrize("score", SCORES)
def test_local_attention_with_every_score(score, local):
    query, key, value = widths(score)
    layer = Attention(query, key, value, score=score, local=local, window=2, **options(score))
    check(layer, (2, 3, query), (2, 5, key), (2, 5, value), need_weights=True)


@pytest.mark.parametrize("score", SCORES)
def test_coverage_with_every_score(score):
    query, key, value = widths(score)
    layer = Attention(query, key, value, score=score, coverage=True, **options(score))
    torch.nn.init.normal_(layer.coverage_weight)
    seen = torch.rand(2, 3, 5, dtype=torch.float64, requires_grad=True)
    check(layer, (2, 3, query), (2, 5, key), (2, 5, value), coverage=seen, need_weights=True)
    glance = layer(
        *(torch.randn(s, dtype=torch.float64) for s in ((2, 3, query), (2, 5, key), (2, 5, value))), coverage=seen
    )
    assert torch.autograd.grad(glance.context.sum(), seen)[0].abs().sum() > 0


@pytest.mark.parametrize("normalise", [sparsemax, entmax15])
def test_sparse_normalisers_with_masked_scores(normalise):
    scores = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    hidden = torch.rand(4, 6) < 0.4
    hidden[:, 0] = False
    assert gradcheck(lambda e: normalise(e.masked_fill(hidden, -torch.inf)), scores)


def test_hard_attention_sends_back_the_gradient_of_the_softmax():
    query, keys = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    values = torch.randn(2, 5, 6)
    gradients = []
    for normalise in ("hard", "softmax"):
        asked = query.clone().requires_grad_()
        glance = Attention(4, 4, 6, score="dot", normalise=normalise)(asked, keys, values, need_weights=True)
        if normalise == "hard":
            assert set(glance.weights.unique().tolist()) == {0.0, 1.0}
        gradients.append(torch.autograd.grad((glance.weights[:, 0] @ values).sum(), asked)[0])
    assert_equal(*gradients)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("rotary", [False, True])
def test_transformer_block(norm, rotary):
    block = TransformerBlock(8, heads=2, hidden=5, cross=True, memory_width=3, norm=norm, rotary=rotary)
    block.think[1] = torch.nn.Tanh()  # finite differences do not like the corner of a ReLU
    layer = block.double()
    x = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, memory: layer(x, memory, causal=True).output, (x, memory))


def test_rotary():
    assert gradcheck(Rotary(6), torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True))


def test_soft_dictionary_in_keys_values_and_query():
    keys, values, query = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((4, 3), (4, 2), (3,)))

    def lookup(keys, values, query):
        return SoftDict(zip(keys, values, strict=True))(query)

    assert gradcheck(lookup, (keys, values, query))
    assert gradcheck(lambda k, v, q: SoftDict(zip(k, v, strict=True))(q, form="weighted"), (keys, values, query))


def test_attend():
    inputs = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((2, 3, 4), (2, 5, 4), (2, 5, 6))]
    for score in ("dot", "scaled_dot", "cosine", lambda q, k: -torch.cdist(q, k)):
        assert gradcheck(lambda *x, score=score: attend(*x, score=score, causal=True).context, inputs)
