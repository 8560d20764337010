"""Step by step: keys prepared once, a past that grows, positions and coverage that live outside the layer."""

import pytest
import torch
from hypothesis import given
from problems import SCORES, assert_equal, problems

from saccade import Attention, Prepared, TransformerBlock


@given(problems())
def test_prepared_keys_give_the_same_answer(problem):
    prepared = problem.layer.prepare(problem.keys, problem.values)
    cached = problem.layer(problem.query, prepared, **problem.options, need_weights=True)
    direct = problem.look(need_weights=True)
    assert_equal(cached.context, direct.context)
    assert_equal(cached.weights, direct.weights)


@pytest.mark.parametrize("score", [s for s in SCORES if s != "location"])
@pytest.mark.parametrize("rotary", [False, True])
def test_a_past_that_grows_gives_the_causal_answer(score, rotary):
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    layer = Attention(8, heads=2, score=score, rotary=rotary).double()
    at_once = layer(x, x, causal=True, need_weights=True)
    past = None
    for t in range(5):
        now = layer.prepare(x[:, t : t + 1], start=t)
        past = now if past is None else past.grow(now)
        step = layer(x[:, t : t + 1], past, causal=True, need_weights=True)
        assert_equal(step.context, at_once.context[:, t : t + 1])
        assert_equal(step.weights, at_once.weights[:, :, t : t + 1, : t + 1])


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("rotary", [False, True])
def test_a_transformer_block_steps_as_it_reads(norm, rotary):
    x, memory = torch.randn(2, 5, 8, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    block = TransformerBlock(8, heads=2, cross=True, norm=norm, rotary=rotary).double()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    at_once = block(x, memory, causal=True, memory_mask=mask, need_weights=True)
    past, prepared = None, block.memory.prepare(memory)
    for t in range(5):
        step = block(x[:, t : t + 1], prepared, causal=True, memory_mask=mask, past=past, need_weights=True)
        past = step.past
        assert_equal(step.output, at_once.output[:, t : t + 1])
        assert_equal(step.cross_weights, at_once.cross_weights[:, :, t : t + 1])
        assert_equal(step.self_weights, at_once.self_weights[:, :, t : t + 1, : t + 1])


def test_a_block_knows_where_its_past_ends():
    """Without causal, too: one new word at a time needs no mask, only its position."""
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    block = TransformerBlock(8, heads=2, rotary=True).double()
    past = block(x[:, :4], causal=True).past
    assert_equal(block(x[:, 4:], past=past).output, block(x, causal=True).output[:, 4:])


@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_a_block_with_nothing_to_do(sizes):
    block = TransformerBlock(8, heads=2, cross=True)
    got = block(torch.randn(*sizes, 8), torch.randn(sizes[0], 5, 8), causal=True, need_weights=True)
    assert got.output.shape == (*sizes, 8)
    assert got.cross_weights.shape == (*sizes[:2], 2, sizes[2], 5)


def test_hypotheses_of_a_block_share_one_memory():
    """[B, K, M, D] against [B, N, D] gives what each hypothesis gives alone."""
    x, memory = torch.randn(2, 3, 4, 8, dtype=torch.float64), torch.randn(2, 5, 8, dtype=torch.float64)
    block = TransformerBlock(8, heads=2, cross=True).double()
    mask = torch.rand(2, 5) < 0.8
    beam = block(x, memory, causal=True, memory_mask=mask, need_weights=True)
    for k in range(3):
        alone = block(x[:, k], memory, causal=True, memory_mask=mask, need_weights=True)
        assert_equal(beam.output[:, k], alone.output)
        assert_equal(beam.cross_weights[:, k], alone.cross_weights)
        assert_equal(beam.self_weights[:, k], alone.self_weights)


def test_local_m_follows_the_positions_it_is_told():
    layer = Attention(4, score="dot", local="m", window=1)
    query, keys = torch.randn(2, 3, 4), torch.randn(2, 9, 4)
    weights = layer(query, keys, positions=5, need_weights=True).weights  # three hypotheses, all at step 5
    assert ((weights > 0).sum(-1) == 3).all()
    assert (weights[..., 4:7] > 0).all()
    weights = layer(query, keys, positions=torch.tensor([[0, 4, 8], [1, 1, 1]]), need_weights=True).weights
    assert [row.nonzero().flatten().tolist() for row in weights[0, 0]] == [[0, 1], [3, 4, 5], [7, 8]]
    assert [row.nonzero().flatten().tolist() for row in weights[1, 0]] == [[0, 1, 2]] * 3


def test_rotary_scores_depend_on_distance_alone():
    layer = Attention(8, score="dot", rotary=True).double()
    query, keys = torch.randn(1, 1, 8, dtype=torch.float64), torch.randn(1, 6, 8, dtype=torch.float64)
    here = layer(query, layer.prepare(keys), positions=3, need_weights=True)
    there = layer(query, layer.prepare(keys, start=100), positions=103, need_weights=True)
    assert_equal(here.weights, there.weights)


@pytest.mark.parametrize("local", ["m", "p"])
def test_local_attention_counts_beyond_what_bf16_can(local):
    layer = Attention(8, local=local, window=2).bfloat16()
    query, keys = torch.randn(1, 40, 8).bfloat16(), torch.randn(1, 2000, 8).bfloat16()
    placed = {"positions": torch.arange(1900, 1940)} if local == "m" else {}
    rough = layer(query, keys, need_weights=True, **placed).weights
    exact = layer.float()(query.float(), keys.float(), need_weights=True, **placed).weights
    assert_equal(rough, exact.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        cast = layer(query.float(), keys.float(), need_weights=True, **placed).weights
    assert ((cast > 0) == (exact > 0)).all()


def test_another_score_put_in_is_the_one_used():
    one, other = Attention(8, score="additive"), Attention(8, score="additive")
    one.score = other.score
    query, keys = torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    assert_equal(one(query, keys).context, other(query, keys).context)


def test_repr_tells_what_it_is():
    assert "8, 8, 4, heads=2" in repr(Attention(8, 8, 4, heads=2))


def test_coverage_moves_the_look_away_from_what_was_seen():
    layer = Attention(4, score="dot", coverage=True)
    query, keys = torch.randn(1, 1, 4), torch.randn(1, 5, 4)
    seen = torch.zeros(1, 1, 5)
    first = layer(query, keys, coverage=seen, need_weights=True)
    assert_equal(first.weights, layer(query, keys, need_weights=True).weights)  # nothing seen: nothing changes
    torch.nn.init.constant_(layer.coverage_weight, -10.0)
    seen = seen + first.weights[:, 0]
    second = layer(query, keys, coverage=seen, need_weights=True)
    top = first.weights.argmax()
    assert second.weights.flatten()[top] < first.weights.flatten()[top]


def test_dropout_falls_on_what_is_used_not_on_what_is_shown():
    layer = Attention(4, score="dot", dropout=0.5).train()
    query, keys = torch.randn(3, 6, 4), torch.randn(3, 7, 4)
    shown = layer(query, keys, need_weights=True)
    assert_equal(shown.weights.sum(-1), torch.ones(3, 1, 6))
    assert not torch.allclose(shown.context, layer.eval()(query, keys).context)


def test_dropout_keeps_the_mean():
    layer = Attention(4, score="dot", dropout=0.3).train()
    query, keys = torch.randn(1, 1, 4), torch.randn(1, 5, 4)
    many = layer(query.expand(20000, 1, 4), keys.expand(20000, 5, 4)).context.mean(0)
    torch.testing.assert_close(many, layer.eval()(query, keys).context[0], rtol=0, atol=0.03)


def test_no_keys_at_all():
    for options in (
        {},
        {"score": "additive"},
        {"normalise": "sparsemax"},
        {"normalise": "entmax15"},
        {"normalise": "hard"},
    ):
        layer = Attention(4, **options)
        glance = layer(torch.randn(2, 3, 4), torch.randn(2, 0, 4), need_weights=True)
        assert (glance.context == 0).all()
        assert glance.weights.shape == (2, 1, 3, 0)
        assert layer(torch.randn(2, 0, 4), torch.randn(2, 5, 4)).context.shape == (2, 0, 4)


def test_values_of_another_width_on_a_large_problem():
    """Above a certain size widths are padded for the fused kernel: the answer must not show it."""
    layer = Attention(8, 8, 24, score="scaled_dot")
    query, keys, values = torch.randn(1, 1100, 8), torch.randn(1, 1000, 8), torch.randn(1, 1000, 24)
    assert_equal(layer(query, keys, values).context, layer(query, keys, values, need_weights=True).context)


def test_a_prepared_source_is_plain_data():
    prepared = Attention(4, heads=2).prepare(torch.randn(2, 3, 4))
    assert isinstance(prepared, Prepared)
    assert prepared.keys.shape == prepared.values.shape == (2, 2, 3, 2)
