"""The kernel of a decoder's step: the same context as torch's operations, or it steps aside."""

from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from saccade import Attention, Prepared
from saccade.attention import glance as room
from saccade.attention.glance import can_glance

pytestmark = pytest.mark.skipif(room._kernel is None, reason="the C kernel was not compiled, or not for this processor")
SCORES = ("additive", "concat", "location", "dot", "scaled_dot", "general", "cosine")


def build(score: str, width: int, keys: int, key_width: int | None = None, hidden: int = 7) -> Attention:
    options = {"max_length": keys} if score == "location" else {}
    if score in ("additive", "concat"):
        options["hidden"] = hidden
    if score in ("dot", "scaled_dot", "cosine"):
        key_width = width
    return Attention(width, key_width, score=score, **options).eval()


def without_kernel(layer: Attention, *inputs: object, **options: object) -> torch.Tensor:
    with mock.patch.object(room, "_kernel", None):
        return layer(*inputs, **options).context


@given(
    st.sampled_from(SCORES), *[st.integers(1, n) for n in (9, 6, 40)], *[st.integers(1, 70)] * 4, st.integers(0, 2**31)
)
def test_it_sees_what_torch_sees(score, batch, queries, keys, width, key_width, hidden, spare, seed):
    torch.manual_seed(seed)
    layer = build(score, width, keys + spare % 9, key_width, hidden)
    query, memory = torch.randn(batch, queries, width), torch.randn(batch, keys, layer.key_width)
    mask = torch.rand(batch, keys) < 0.7  # some rows may see nothing
    with torch.no_grad():
        prepared = layer.prepare(memory)
        for given_mask in (None, mask):
            assert can_glance(query, *prepared, given_mask)
            ours, theirs = (
                f(query, prepared, mask=given_mask) for f in (layer, lambda *a, **k: without_kernel(layer, *a, **k))
            )
            torch.testing.assert_close(ours.context, theirs, rtol=1e-5, atol=1e-5)
        assert (layer(query, prepared, mask=mask).context[~mask.any(1)] == 0).all()


@pytest.mark.parametrize("score", SCORES)
def test_great_scores_do_not_overflow(score):
    layer = build(score, 8, 12)
    query, memory = 1e4 * torch.randn(3, 2, 8), 1e4 * torch.randn(3, 12, 8)
    with torch.no_grad():
        ours = layer(query, memory).context
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, without_kernel(layer, query, memory), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("score", SCORES)
def test_nan_is_passed_on_not_hidden(score):
    layer = build(score, 8, 12)
    query = torch.randn(3, 2, 8)
    query[1, 0, 3] = torch.nan
    with torch.no_grad():
        context = layer(query, torch.randn(3, 12, 8)).context
    assert context[1, 0].isnan().all()
    assert context[1, 1].isfinite().all()
    assert context[[0, 2]].isfinite().all()


def test_exponential_and_tanh_over_their_whole_range():
    layer = build("additive", 1, 1, 1, hidden=1)
    x = torch.linspace(-100, 100, 4001)
    with torch.no_grad():
        for p in layer.score.parameters():
            p.fill_(1.0)
        keys, values = x.repeat_interleave(2).view(-1, 2, 1), torch.tensor([0.0, 1.0]).repeat(4001, 1).unsqueeze(-1)
        keys[:, 0] = 0  # so that the context is σ(tanh x − tanh 0)
        context = layer(torch.zeros(4001, 1, 1), keys, values).context.flatten()
    assert can_glance(torch.zeros(4001, 1, 1), *layer.prepare(keys, values), None) is False  # here gradients are on
    torch.testing.assert_close(context.double(), torch.sigmoid(torch.tanh(x.double())), rtol=0, atol=2e-7)


@pytest.mark.parametrize("score", SCORES)
def test_threads_change_nothing(score):
    layer = build(score, 64, 30)
    query, memory = torch.randn(70, 3, 64), torch.randn(70, 30, 64)
    before = torch.get_num_threads()
    with torch.no_grad(), mock.patch.object(room, "PARALLEL", 0):
        try:
            torch.set_num_threads(1)
            one = layer(query, memory).context
            torch.set_num_threads(3)
            assert torch.equal(one, layer(query, memory).context)
        finally:
            torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own SDPA under vmap
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # of its own doing, where it traces
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("score", SCORES)
def test_where_it_cannot_run_torch_does(score):
    """Each of these gives the same as without the kernel; a pointer read at the wrong place would not."""
    layer = build(score, 8, 12)
    query, memory = torch.randn(4, 2, 8), torch.randn(4, 12, 8)
    with torch.no_grad():
        expected = without_kernel(layer, query, memory)
        every_other = torch.randn(4, 2, 16)[..., ::2].copy_(query)
        assert torch.allclose(layer(every_other, memory).context, expected, atol=1e-6)
        assert torch.allclose(layer(query, layer.prepare(memory)).context, expected, atol=1e-6)
        mapped = torch.func.vmap(lambda q, m: layer(q.unsqueeze(0), m.unsqueeze(0)).context[0])(query, memory)
        assert torch.allclose(mapped, expected, atol=1e-6)
        only_query = torch.func.vmap(lambda q: layer(q.unsqueeze(0), memory[:1]).context[0])(query)
        assert torch.allclose(only_query[0], expected[0], atol=1e-6)
        assert layer.double()(query.double(), memory.double()).context.dtype == torch.float64
        layer.float()
        four = layer(query.unsqueeze(0), memory.unsqueeze(0)).context
        assert torch.allclose(four[0], expected, atol=1e-6)
        for mask in (torch.ones(4, 2, 12, dtype=torch.bool), torch.zeros(4, 12), torch.ones(1, 12, dtype=torch.bool)):
            assert torch.allclose(layer(query, memory, mask=mask).context, expected, atol=1e-6)
        compiled = torch.compile(layer, backend="aot_eager")
        assert torch.allclose(compiled(query, memory).context, expected, atol=1e-6)
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        dual = torch.autograd.forward_ad.make_dual(query, torch.ones_like(query))
        if layer.score.dot_like:  # an error of torch's, not a tangent lost in silence
            with pytest.raises(NotImplementedError, match="forward AD"):
                layer(dual, memory)
        else:
            assert torch.autograd.forward_ad.unpack_dual(layer(dual, memory).context).tangent is not None
    with FakeTensorMode(allow_non_fake_inputs=True) as fake, torch.no_grad():
        assert layer(fake.from_tensor(query), fake.from_tensor(memory)).context.shape == (4, 2, 8)


def test_no_keys_and_too_many_keys():
    layer = build("additive", 8, 0)
    with torch.no_grad():
        assert (layer(torch.randn(2, 1, 8), torch.randn(2, 0, 8)).context == 0).all()
        memory = torch.randn(1, room.LONGEST + 3, 8)
        query = torch.randn(1, 1, 8)
        assert torch.allclose(layer(query, memory).context, without_kernel(layer, query, memory), atol=1e-5)


def test_keys_and_values_that_do_not_match_never_reach_the_kernel():
    layer = build("location", 8, 12)
    keys, values = layer.prepare(torch.randn(2, 12, 8))
    with torch.no_grad():
        assert not can_glance(torch.randn(2, 1, 8), keys, values[:, :, :3].contiguous(), None)
        assert not can_glance(torch.randn(2, 1, 8), keys, values[:1], None)
        with pytest.raises(RuntimeError):
            layer(torch.randn(2, 1, 8), Prepared(keys, values[:, :, :3].contiguous()))


def test_location_still_counts_its_keys():
    with (
        torch.no_grad(),
        pytest.raises(ValueError, match="13 positions, but score 'location' was built with max_length=12"),
    ):
        build("location", 8, 12)(torch.randn(1, 1, 8), torch.randn(1, 13, 8))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 20))
def test_location_with_any_number_of_places(width, keys, spare):
    layer = build("location", width, keys + spare)
    query, memory = torch.randn(3, 2, width), torch.randn(3, keys, 5)
    layer = Attention(width, 5, score="location", max_length=keys + spare).eval()
    with torch.no_grad():
        torch.testing.assert_close(layer(query, memory).context, without_kernel(layer, query, memory))


def test_weights_on_another_device_never_reach_the_kernel():
    layer = build("location", 8, 12).to("meta")
    with torch.no_grad():
        query, (keys, values) = torch.randn(2, 1, 8), build("location", 8, 12).prepare(torch.randn(2, 12, 8))
        assert room.glance(query, None, layer.score.weight, values, None) is None
        assert can_glance(query, keys, values, None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_who_records_operations_gets_operations():
    layer = build("dot", 8, 12)
    query, memory = torch.randn(2, 1, 8), torch.randn(2, 12, 8)
    with torch.no_grad():
        traced = torch.jit.trace(lambda q, m: layer(q, m).context, (query, memory), check_trace=False)
        other = torch.randn(2, 1, 8)
        torch.testing.assert_close(traced(other, memory), layer(other, memory).context)
        recorded = make_fx(lambda q, m: layer(q, m).context)(query, memory)
        torch.testing.assert_close(recorded(other, memory), layer(other, memory).context)
        negative = torch._neg_view(query)
        torch.testing.assert_close(layer(negative, memory).context, layer(-query, memory).context)


@pytest.mark.parametrize("score", SCORES)
def test_what_a_layer_does_not_have_is_refused_with_and_without_the_kernel(score):
    layer = build(score, 8, 12)
    query, memory = torch.randn(2, 1, 8), torch.randn(2, 12, 8)
    with torch.no_grad():
        for options in ({"positions": 3}, {"coverage": torch.zeros(2, 1, 12)}):
            for weights in (False, True):
                with pytest.raises(ValueError, match=next(iter(options))):
                    layer(query, memory, need_weights=weights, **options)
