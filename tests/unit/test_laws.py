"""The laws of attention, over random layers, shapes, masks and dtypes."""

import numpy as np
import pytest
import torch
from by_the_book import answer
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import SCORES, TOLERANCE, assert_equal, problems

from saccade import Attention, Learned, Sinusoidal, TransformerBlock


@given(problems())
def test_looking_never_changes_the_answer(problem):
    blind = problem.look(need_weights=False)
    seeing = problem.look(need_weights=True)
    assert blind.weights is None
    assert_equal(blind.context, seeing.context)


@given(problems(dtypes=[torch.float64]))
def test_the_reference_is_the_truth(problem):
    context, weights = answer(problem)
    glance = problem.look(need_weights=True)
    np.testing.assert_allclose(glance.weights.detach().numpy(), weights, atol=1e-10)
    np.testing.assert_allclose(glance.context.detach().numpy(), context, atol=1e-10)


@given(problems(dtypes=[torch.float32, torch.bfloat16], normalise="softmax", local=None))
def test_the_reference_is_the_truth_with_fewer_bits(problem):
    context, _ = answer(problem)
    tolerance = 3 * TOLERANCE[problem.query.dtype]  # projections round, too
    got = problem.look().context.detach().double().numpy()
    np.testing.assert_allclose(got, context, rtol=tolerance, atol=tolerance * max(1, np.abs(context).max()))


@given(problems())
def test_rows_sum_to_one_or_look_nowhere(problem):
    assume(problem.layer.local is None or problem.layer.local.kind == "m")
    weights = problem.look(need_weights=True).weights
    assert (weights >= 0).all()
    sums = weights.sum(-1)
    assert_equal(sums, torch.where(sums > 0.5, 1.0, 0.0).to(sums.dtype))
    assert (weights[~problem.visible()] == 0).all()


@given(problems(local="p", normalise="softmax"))
def test_rows_of_local_p_sum_to_at_most_one(problem):
    sums = problem.look(need_weights=True).weights.sum(-1)
    assert (sums <= 1 + TOLERANCE[sums.dtype]).all()


@given(problems(dtypes=[torch.float64, torch.float32]))
def test_who_may_look_nowhere_sees_zero_and_sends_back_finite_gradients(problem):
    b, h, m, n = problem.sizes
    mask = torch.ones(b, m, n, dtype=torch.bool)
    mask[0, 0] = False
    for kind in (mask, torch.where(mask, 0.0, -torch.inf).to(problem.query.dtype)):
        for need_weights in (False, True):
            inputs = [x.clone().requires_grad_() for x in (problem.query, problem.keys, problem.values)]
            glance = problem.layer(*inputs, mask=kind, causal=problem.options["causal"], need_weights=need_weights)
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
    keys, values = (
        torch.cat([x, torch.full_like(x[:, :1], 7.0).expand(-1, extra, -1)], 1) for x in (problem.keys, problem.values)
    )
    mask = torch.arange(n + extra) < n
    alone = problem.look(need_weights=True)
    padded = problem.look(keys=keys, values=values, mask=mask.expand(b, -1), need_weights=True)
    assert_equal(alone.context, padded.context)
    assert_equal(alone.weights, padded.weights[..., :n])
    assert_equal(problem.look().context, problem.look(keys=keys, values=values, mask=mask.expand(b, -1)).context)


@given(problems(square=True, masks=False, causal=True, dtypes=[torch.float64]), st.data())
def test_the_future_never_leaks_into_the_past(problem, data):
    b, h, m, n = problem.sizes
    now = data.draw(st.integers(0, m - 1))
    keys, values = problem.keys.clone().requires_grad_(), problem.values.clone().requires_grad_()
    for need_weights in (False, True):
        past = problem.look(keys=keys, values=values, need_weights=need_weights).context[:, : now + 1]
        changed = [torch.cat([x[:, : now + 1], torch.randn_like(x[:, now + 1 :])], 1) for x in (keys, values)]
        again = problem.look(keys=changed[0], values=changed[1], need_weights=need_weights).context[:, : now + 1]
        assert_equal(past, again)
        for gradient in torch.autograd.grad(past.sum(), (keys, values), allow_unused=True):
            assert gradient is None or (gradient[:, now + 1 :] == 0).all()


@given(problems(masks=False, causal=True, dtypes=[torch.float64]))
def test_causal_is_aligned_at_the_end(problem):
    b, h, m, n = problem.sizes
    weights = problem.look(need_weights=True).weights
    for query in range(m):
        for key in range(n):
            if key > query + n - m:
                assert (weights[:, :, query, key] == 0).all()


@given(problems(masks=False, causal=False, scores=[s for s in SCORES if s != "location"], local=None), st.randoms())
def test_attention_treats_its_memory_as_a_set(problem, random):
    order = list(range(problem.keys.shape[1]))
    random.shuffle(order)
    assume(problem.layer.how.normalise.__name__ != "hard")  # ties go to the first
    shuffled = problem.look(keys=problem.keys[:, order], values=problem.values[:, order], need_weights=True)
    straight = problem.look(need_weights=True)
    assert_equal(straight.context, shuffled.context)
    assert_equal(straight.weights[..., order], shuffled.weights)


@given(st.permutations(range(5)), st.sampled_from([s for s in SCORES if s != "location"]))
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
    flat = problem.look(need_weights=True)
    stacked = problem.look(
        **{name: torch.stack([getattr(problem, name)] * 2) for name in ("query", "keys", "values")}, need_weights=True
    )
    assert_equal(stacked.context[1], flat.context)
    assert_equal(stacked.weights[1], flat.weights)
    single = problem.look(**{name: getattr(problem, name)[0] for name in ("query", "keys", "values")})
    assert_equal(single.context, flat.context[0])


@given(problems(dtypes=[torch.float64]), st.data())
def test_hypotheses_are_queries_so_a_beam_shares_one_memory(problem, data):
    """K queries at once, each with a mask of its own, see what each of them sees alone."""
    assume(problem.layer.local is None or problem.layer.local.kind == "p")
    b, h, m, n = problem.sizes
    prepared = problem.layer.prepare(problem.keys, problem.values)
    mask = torch.rand(b, m, n) < 0.8
    together = problem.layer(problem.query, prepared, mask=mask, need_weights=True)
    for k in range(m):
        alone = problem.layer(
            problem.query[:, k : k + 1], problem.keys, problem.values, mask=mask[:, k], need_weights=True
        )
        assert_equal(together.context[:, k : k + 1], alone.context)
        assert_equal(together.weights[:, :, k : k + 1], alone.weights)
