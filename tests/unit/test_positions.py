import numpy as np
import pytest
import torch
from problems import assert_equal
from reference import attention as book

from saccade import Learned, Rotary, Sinusoidal


def test_sinusoidal_is_the_equation():
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    np.testing.assert_allclose(Sinusoidal(6)(x), x.numpy() + book.sinusoidal(7, 6), atol=1e-10)


def test_rotary_is_the_equation():
    x = torch.randn(7, 6, dtype=torch.float64)
    np.testing.assert_allclose(Rotary(6)(x), [book.rotary(v, t) for t, v in enumerate(x.numpy())], atol=1e-10)


def test_rotary_keeps_lengths():
    x = torch.randn(3, 50, 8)
    assert_equal(Rotary(8)(x).norm(dim=-1), x.norm(dim=-1))


@pytest.mark.parametrize("code", [Sinusoidal(6), Learned(6, 20), Rotary(6)])
def test_positions_can_be_given(code):
    x = torch.randn(2, 9, 6)
    assert_equal(code(x)[:, 4:7], code(x[:, 4:7], torch.arange(4, 7)))


def test_far_positions_keep_their_digits_in_fp32():
    far = torch.tensor([100_000])
    exact = Sinusoidal(8)(torch.zeros(1, 8, dtype=torch.float64), far)
    assert_equal(Sinusoidal(8)(torch.zeros(1, 8), far), exact.float())


@pytest.mark.parametrize("make", [Sinusoidal, Rotary])
def test_odd_widths_are_refused(make):
    with pytest.raises(ValueError, match="width: 5, expected an even number"):
        make(5)


@pytest.mark.parametrize("positions", [None, torch.tensor([0, 1, 2, 9]), torch.tensor([-1, 0, 1, 2])])
def test_learned_positions_end_where_they_were_built_to(positions):
    with pytest.raises(ValueError, match=r"positions: outside 0 … 2; Learned was built with max_length=3"):
        Learned(4, 3)(torch.zeros(4, 4), positions)


@pytest.mark.parametrize("code", [Sinusoidal(6), Learned(6, 20), Rotary(6)])
@pytest.mark.parametrize("x", [torch.zeros(3, 4), torch.zeros(3, 1), torch.zeros(6), torch.zeros(3, 6).long()])
def test_what_has_another_width_is_refused(code, x):
    with pytest.raises(ValueError, match=r"x: torch.*, expected floats \[.., T, 6\]"):
        code(x)
