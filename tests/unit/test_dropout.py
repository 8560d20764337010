"""Dropout by random bytes: the right share is left out, the mean is kept, chance is torch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.attention import Dropout
from saccade.attention.dropout import drop


@given(st.floats(0.01, 0.95), st.integers(0, 2**31))
def test_it_leaves_out_about_the_share_and_enlarges_the_rest_to_keep_the_mean(share, seed):
    torch.manual_seed(seed)
    n = 40_000
    x = drop(torch.ones(n, dtype=torch.float64), share)
    left = (x == 0).double().mean().item()
    assert abs(left - share) < 1 / 512 + 6 * (share * (1 - share) / n) ** 0.5  # a byte's step, and six deviations
    kept = x[x != 0].unique()
    assert kept.shape == (1,)
    assert abs(1 / kept.item() - (1 - share)) <= 1 / 512 + 1e-12  # divided by the share that is kept: no drift


@pytest.mark.parametrize("shape", [(), (1,), (3,), (8,), (9, 5), (2, 0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_dtype(shape, dtype):
    x = drop(torch.ones(shape, dtype=dtype), 0.5)
    assert x.shape == shape
    assert x.dtype == dtype
    assert set(x.flatten().tolist()) <= {0.0, 2.0}


def test_no_share_and_no_training_change_nothing():
    x = torch.randn(4, 5)
    assert drop(x, 0) is x
    assert Dropout(0.5).eval()(x) is x


def test_the_gradient_goes_where_the_numbers_went():
    x = torch.randn(50, 7, requires_grad=True)
    y = drop(x, 0.3)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_the_same_seed_leaves_out_the_same():
    x = torch.randn(30, 30)
    torch.manual_seed(3)
    first, second = drop(x, 0.4), drop(x, 0.4)
    torch.manual_seed(3)
    assert torch.equal(first, drop(x, 0.4))
    assert not torch.equal(first, second)


def test_constant_leaves_out_the_same_features_at_every_place():
    kept = Dropout(0.5, constant=True)(torch.ones(6, 9, 40)) != 0  # [B, T, D]
    assert (kept == kept[:, :1]).all()
    assert not (kept[0] == kept[1]).all()


def test_neighbours_do_not_tell_on_each_other():
    x = (drop(torch.ones(800_000, dtype=torch.float64), 0.5) != 0).double() - 0.5
    for lag in (1, 7, 8, 64):  # bytes of one random word, and of the next
        assert abs((x[:-lag] * x[lag:]).mean().item()) < 6 * 0.25 / 800_000**0.5


def test_vmap_and_compile_see_ordinary_torch():
    kept = torch.func.vmap(lambda x: drop(x, 0.5), randomness="different")(torch.ones(4, 64))
    assert not (kept[0] == kept[1]).all()
    compiled = torch.compile(lambda x: drop(x, 0.5), backend="aot_eager")(torch.ones(64))
    assert set(compiled.tolist()) == {0.0, 2.0}


def test_a_share_that_is_none():
    with pytest.raises(ValueError, match=r"dropout: 1\.5, expected a share"):
        Dropout(1.5)
