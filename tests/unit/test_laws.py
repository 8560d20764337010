"""The laws of attention, over random layers, shapes, masks and dtypes."""

from unittest import mock

import numpy as np
import pytest
import torch
from by_the_book import answer
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import SCORES, TOLERANCE, assert_equal, problems
from reference import attention as book

from saccade import Attention, Learned, Sinusoidal, TransformerBlock, attend
from saccade.attention import additive
from saccade.attention.normalisers import entmax15, sparsemax

BY_CONTENT = [s for s in SCORES if s != "location"]


@given(problems())
def test_looking_never_changes_the_answer(problem):
    blind = problem.look(need_weights=False)
    seeing = problem.look(need_weights=True)
    assert blind.weights is None
    assert_equal(blind.context, seeing.context)


@pytest.mark.parametrize("way", ["plain formula", "C kernel", "torch blocks"])
@given(problem=problems(dtypes=[torch.float64]))
def test_the_reference_is_the_truth(way, problem):
    context, weights = answer(problem)
    library = None if way == "torch blocks" else additive.library
    block = additive.BLOCK if way == "plain formula" else 1  # so small that nothing fits into one
    with mock.patch.multiple(additive, BLOCK=block, library=library):
        glance, blind = problem.look(need_weights=True), problem.look()
    np.testing.assert_allclose(glance.weights.detach().numpy(), weights, atol=1e-10)
    np.testing.assert_allclose(glance.context.detach().numpy(), context, atol=1e-10)
    np.testing.assert_allclose(blind.context.detach().numpy(), context, atol=1e-10)


@given(problems(dtypes=[torch.float32, torch.bfloat16], normalise="softmax", local=None))
def test_the_reference_is_the_truth_with_fewer_bits(problem):
    context, _ = answer(problem)
    tolerance = 3 * TOLERANCE[problem.query.dtype]  # projections round, too
    got = problem.look().context.detach().double().numpy()
    np.testing.assert_allclose(got, context, rtol=tolerance, atol=tolerance * max(1, np.abs(context).max()))


def test_multi_head_is_its_equation():
    layer = Attention(6, 5, 4, heads=2, width=8).double()
    Q, K, V = (torch.randn(n, d, dtype=torch.float64) for n, d in ((3, 6), (7, 5), (7, 4)))
    matrices = (layer.project_query, layer.project_keys, layer.project_values, layer.project_output)
    W = [m.weight.detach().numpy().T for m in matrices]
    scores = [lambda q, k, n: book.scaled_dot(q, k)] * 2
    mask = book.added(book.causal(3, 7))
    context, weights = book.multi_head(Q.numpy(), K.numpy(), V.numpy(), *W, scores, mask=mask)
    glance = layer(Q, K, V, causal=True, need_weights=True)
    np.testing.assert_allclose(glance.context.detach().numpy(), context, atol=1e-10)
    np.testing.assert_allclose(glance.weights.detach().numpy(), weights, atol=1e-10)


# --- Rows of weights --------------------------------------------------------------------------------------------------


@given(problems())
def test_rows_sum_to_one_or_look_nowhere(problem):
    local = problem.layer.local
    assume(local is None or local.kind == "m")
    weights, visible = problem.look(need_weights=True).weights, problem.visible()
    if local is not None:
        b, h, m, n = problem.sizes
        places = torch.arange(m).unsqueeze(1) + (n - m if problem.options["causal"] else 0)
        visible = visible & ((torch.arange(n) - places).abs() <= local.window)
    assert (weights >= 0).all()
    assert (weights[~visible] == 0).all()
    assert_equal(weights.sum(-1), visible.any(-1).to(weights.dtype))


@given(problems(local="p", normalise="softmax"))
def test_rows_of_local_p_sum_to_at_most_one(problem):
    sums = problem.look(need_weights=True).weights.sum(-1)
    assert (sums <= 1 + TOLERANCE[sums.dtype]).all()
    assert ((sums > 0) == problem.visible().any(-1)).all()


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12), st.sampled_from([torch.float32, torch.float64]))
def test_sparse_weights_are_those_of_the_book(scores, dtype):
    for normalise in (sparsemax, entmax15):
        e = torch.tensor(scores, dtype=dtype)
        expected = getattr(book, normalise.__name__)(e.double().numpy())
        np.testing.assert_allclose(normalise(e).numpy(), expected, atol=1e-5 if dtype is torch.float32 else 1e-10)


def test_sparse_weights_at_the_edge_of_their_support():
    """Rows in which the threshold falls on a score, where rounding may count one too many."""
    edge = torch.tensor([0.995491643281879, 0.001451239822464867, -0.8255266396671934], dtype=torch.float64)
    assert_equal(entmax15(edge).sum(), torch.ones((), dtype=torch.float64))
    many = torch.randn(200_000, 20)
    assert_equal(entmax15(many).sum(-1), torch.ones(len(many)))
    assert_equal(sparsemax(many).sum(-1), torch.ones(len(many)))


@pytest.mark.parametrize("normalise", ["softmax", "sparsemax", "entmax15"])
def test_nan_is_never_hidden_and_never_spreads(normalise):
    query = torch.randn(1, 3, 4)
    query[0, 1] = torch.nan
    context = Attention(4, score="additive", normalise=normalise)(query, torch.randn(1, 5, 4)).context
    assert context[0, [0, 2]].isfinite().all()
    assert not context[0, 1].isfinite().all() or normalise != "softmax"


# --- Masks ------------------------------------------------------------------------------------------------------------


@given(problems(dtypes=[torch.float64, torch.float32]))
def test_who_may_look_nowhere_sees_zero_and_sends_back_finite_gradients(problem):
    b, h, m, n = problem.sizes
    mask = torch.ones(b, m, n, dtype=torch.bool)
    mask[0, 0] = False
    for kind in (mask, torch.where(mask, 0.0, -torch.inf).to(problem.query.dtype)):
        for need_weights in (False, True):
            inputs = [x.clone().requires_grad_() for x in (problem.query, problem.keys, problem.values)]
            glance = problem.layer(*inputs, **{**problem.options, "mask": kind}, need_weights=need_weights)
            bias = problem.layer.project_output.bias if problem.layer.project else None
            expected = torch.zeros_like(glance.context[0, 0]) if bias is None else bias
            assert_equal(glance.context[0, 0], expected)
            if need_weights:
                assert (glance.weights[0, :, 0] == 0).all()
            glance.context.sum().backward()
            for x in (*inputs, *problem.layer.parameters()):
                assert x.grad is None or x.grad.isfinite().all()


@given(problems(masks=False, causal=False), st.integers(1, 4))
def test_padding_is_invisible(problem, extra):
    b, h, m, n = problem.sizes
    assume(type(problem.layer.score).__name__ != "Location" or n + extra <= 12)

    def pad(x, axis):
        return torch.cat([x, torch.full_like(x.narrow(axis, 0, 1), 7.0).repeat_interleave(extra, axis)], axis)

    padded = {"keys": pad(problem.keys, 1), "values": pad(problem.values, 1)}
    padded["mask"] = (torch.arange(n + extra) < n).expand(b, -1)
    if "coverage" in problem.options:
        padded["coverage"] = pad(problem.options["coverage"], 2)
    alone, together = problem.look(need_weights=True), problem.look(**padded, need_weights=True)
    assert_equal(alone.context, together.context)
    assert_equal(alone.weights, together.weights[..., :n])
    assert_equal(problem.look().context, problem.look(**padded).context)


@pytest.mark.parametrize("score", BY_CONTENT)
@pytest.mark.parametrize("local", [None, "p"])
def test_padding_on_the_left_is_invisible_too(score, local):
    layer = Attention(4, score=score, local=local, **({"window": 1} if local else {})).double()
    query, keys = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    padded = torch.cat([torch.full_like(keys[:, :1], 7.0).expand(-1, 6, -1), keys], 1)
    mask = (torch.arange(11) >= 6).expand(2, -1)
    assert_equal(layer(query, keys).context, layer(query, padded, mask=mask).context)


@pytest.mark.parametrize("low", [torch.finfo(torch.float32).min, -1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"score": "additive"}, {"normalise": "sparsemax"}, {"normalise": "entmax15"}])
def test_very_low_finite_masks_do_not_hide(options, dtype, low):
    """Where all that may be seen is equally unwelcome, it is seen all the same; gradients too."""
    layer = Attention(8, **options).to(dtype)
    x = torch.randn(1, 4, 8).to(dtype)
    mask = torch.tensor([[low, low, 0, 0]])
    seeing = layer(x, x, mask=mask, causal=True, need_weights=True)
    assert_equal(seeing.weights.sum(-1), torch.ones(1, 1, 4, dtype=dtype))
    assert_equal(layer(x, x, mask=mask, causal=True).context, seeing.context)
    values = torch.randn(1, 4, 8).to(dtype).requires_grad_()
    unwelcome = torch.full((1, 4), low)
    blind, seen = (layer(x, x, values, mask=unwelcome, need_weights=need).context.sum() for need in (False, True))
    assert_equal(torch.autograd.grad(blind, values)[0], torch.autograd.grad(seen, values)[0])


def test_large_float_masks_keep_their_digits_in_bf16():
    x, mask = torch.randn(1, 6, 8).bfloat16(), 1000 + torch.randn(1, 6)
    blind, seeing = (attend(x, x, mask=mask, need_weights=need) for need in (False, True))
    assert_equal(blind.context, seeing.context)
    exact = attend(x.double(), x.double(), mask=mask.double()).context
    assert (blind.context - exact).abs().max() < 2e-2


@given(problems(causal=True, dtypes=[torch.float64]), st.data())
def test_the_future_never_leaks_into_the_past(problem, data):
    b, h, m, n = problem.sizes
    now = data.draw(st.integers(0, m - 1))
    seen = max(0, now + n - m + 1)  # keys that the queries up to now may see
    keys, values = problem.keys.clone().requires_grad_(), problem.values.clone().requires_grad_()
    for need_weights in (False, True):
        past = problem.look(keys=keys, values=values, need_weights=need_weights).context[:, : now + 1]
        changed = [torch.cat([x[:, :seen], torch.randn_like(x[:, seen:])], 1) for x in (keys, values)]
        again = problem.look(keys=changed[0], values=changed[1], need_weights=need_weights).context[:, : now + 1]
        assert_equal(past, again)
        for gradient in torch.autograd.grad(past.sum(), (keys, values), allow_unused=True):
            assert gradient is None or (gradient[:, seen:] == 0).all()


@given(problems(masks=False, causal=True, dtypes=[torch.float64]))
def test_causal_is_aligned_at_the_end(problem):
    b, h, m, n = problem.sizes
    weights = problem.look(need_weights=True).weights
    for query in range(m):
        for key in range(n):
            if key > query + n - m:
                assert (weights[:, :, query, key] == 0).all()


# --- Sets, examples, hypotheses ---------------------------------------------------------------------------------------


@given(problems(masks=False, causal=False, scores=BY_CONTENT, local=None, rotary=False, coverage=False), st.randoms())
def test_attention_treats_its_memory_as_a_set(problem, random):
    assume(problem.layer.how.normalise.__name__ != "hard")  # ties go to the first
    order = list(range(problem.keys.shape[1]))
    random.shuffle(order)
    shuffled = problem.look(keys=problem.keys[:, order], values=problem.values[:, order], need_weights=True)
    straight = problem.look(need_weights=True)
    assert_equal(straight.context, shuffled.context)
    assert_equal(straight.weights[..., order], shuffled.weights)


@given(st.permutations(range(5)), st.sampled_from(BY_CONTENT))
def test_self_attention_is_permutation_equivariant(order, score):
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    layer = Attention(8, heads=2, score=score).double()
    block = TransformerBlock(8, heads=2, score=score).double()
    assert_equal(layer(x, x).context[:, order], layer(x[:, order], x[:, order]).context)
    assert_equal(block(x).output[:, order], block(x[:, order]).output)


@pytest.mark.parametrize("positions", [Sinusoidal(8), Learned(8, 5), "rotary"])
def test_positions_break_the_equivariance(positions):
    x, order = torch.randn(2, 5, 8), [1, 0, 2, 4, 3]
    layer = Attention(8, heads=2, rotary=positions == "rotary")
    place = (lambda x: x) if positions == "rotary" else positions
    with torch.no_grad():
        if isinstance(positions, Learned):
            positions.table.weight.normal_()
        straight = layer(place(x), place(x)).context[:, order]
        shuffled = layer(place(x[:, order]), place(x[:, order])).context
    assert (straight - shuffled).abs().max() > 1e-3


@given(problems(masks=False, dtypes=[torch.float64]))
def test_leading_axes_are_only_more_examples(problem):
    """[2, B, M, D] gives what each [B, M, D] gives, and [M, D] what a batch of one gives."""
    tensors = {"query": problem.query, "keys": problem.keys, "values": problem.values}
    if "coverage" in problem.options:
        tensors["coverage"] = problem.options["coverage"]
    flat = problem.look(need_weights=True)
    stacked = problem.look(**{name: torch.stack([x, x]) for name, x in tensors.items()}, need_weights=True)
    assert_equal(stacked.context[1], flat.context)
    assert_equal(stacked.weights[1], flat.weights)
    assert_equal(problem.look(**{name: x[0] for name, x in tensors.items()}).context, flat.context[0])


@given(problems(dtypes=[torch.float64]), st.integers(0, 20))
def test_hypotheses_are_queries_so_a_beam_shares_one_memory(problem, now):
    """K queries at once, each with a mask of its own, see what each of them sees alone: all stand at the same step."""
    b, h, m, n = problem.sizes
    layer = problem.layer
    placed = {"positions": now} if layer.rotary or (layer.local is not None and layer.local.kind == "m") else {}
    prepared = layer.prepare(problem.keys, problem.values)
    mask = torch.rand(b, m, n) < 0.8
    together = layer(problem.query, prepared, mask=mask, need_weights=True, **placed)
    for k in range(m):
        one = problem.query[:, k : k + 1]
        alone = layer(one, problem.keys, problem.values, mask=mask[:, k], need_weights=True, **placed)
        assert_equal(together.context[:, k : k + 1], alone.context)
        assert_equal(together.weights[:, :, k : k + 1], alone.weights)
