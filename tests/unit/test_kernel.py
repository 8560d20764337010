"""The additive kernel: C, torch blocks and the plain formula give the same scores and gradients."""

import shutil

import pytest
import torch

from saccade.attention import additive, kernels

SHAPES = [(1, 1, 1, 1, 1), (2, 1, 3, 4, 5), (3, 2, 5, 7, 9), (2, 3, 17, 1, 8), (1, 2, 1, 33, 16), (5, 1, 6, 6, 64)]


@pytest.fixture(params=["c", "blocks"])
def way(request, monkeypatch):
    """Each way of computing it, forced to cut up even small problems."""
    if request.param == "blocks":
        monkeypatch.setattr(additive, "library", None)
    elif additive.library is None:
        pytest.skip("the C kernel was not compiled: no C compiler when saccade was installed")
    monkeypatch.setattr(additive, "BLOCK", 40)
    monkeypatch.setattr(additive, "PARALLEL", 1)
    return request.param


def inputs(shape, dtype=torch.float64, size=1.0):
    B, H, M, N, P = shape
    query, keys, direction = (torch.randn(s, dtype=dtype) * size for s in ((B, H, M, P), (B, H, N, P), (H, P)))
    return query.requires_grad_(), keys.requires_grad_(), (direction / size).detach().requires_grad_()


def plain_scores(query, keys, direction):
    hidden = torch.tanh(query.unsqueeze(-2) + keys.unsqueeze(-3))  # [B, H, M, N, P]
    return (hidden * direction[:, None, None]).sum(-1)


def test_a_compiler_at_hand_means_a_compiled_kernel():
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    assert kernels.compiled()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_same_scores_and_gradients_as_the_plain_formula(way, shape, threads):
    torch.set_num_threads(threads)
    query, keys, direction = inputs(shape)
    fast, plain = additive._in_blocks(query, keys, direction), plain_scores(query, keys, direction)
    torch.testing.assert_close(fast, plain, rtol=1e-12, atol=1e-12)
    grad = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad(fast, (query, keys, direction), grad),
        torch.autograd.grad(plain, (query, keys, direction), grad),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", [0.01, 1, 30, 200, 1e4, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_size_of_numbers(way, dtype, size):
    """e^{2q} overflows at 44 in fp32; q and k of opposite sign must still cancel."""
    query, keys, direction = inputs((2, 1, 3, 4, 5), dtype, size)
    with torch.no_grad():
        keys[0] = -query[0, :, :1]  # tanh(0) exactly, however large both are
    fast = additive._in_blocks(query, keys, direction)
    exact = plain_scores(query.double(), keys.double(), direction.double())
    tolerance = 1e-12 if dtype is torch.float64 else 2e-6
    scale = direction.detach().abs().sum().item()
    torch.testing.assert_close(fast.double(), exact, rtol=0, atol=tolerance * scale * max(1, min(size, 10)))
    assert all(g.isfinite().all() for g in torch.autograd.grad(fast.sum(), (query, keys, direction)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_that_overflow_inside_the_kernel(way, dtype):
    """Up to the edge of the range e^{2q} and e^{2k} are finite, but their product is not."""
    edge = additive.RANGE[dtype] - 0.5
    query, keys, direction = inputs((1, 1, 40, 40, 8), dtype)
    with torch.no_grad():
        query.uniform_(-edge, edge)
        keys.uniform_(-edge, edge)
        query[0, 0, 0], keys[0, 0, 0] = edge, edge
        query[0, 0, 1], keys[0, 0, 1] = -edge, -edge
    assert additive.library is None or additive._in_registers(query, keys, direction)
    fast, exact = (
        additive._in_blocks(query, keys, direction),
        plain_scores(query.double(), keys.double(), direction.double()),
    )
    scale = direction.detach().abs().sum().item()
    torch.testing.assert_close(fast.double(), exact, rtol=0, atol=scale * (1e-12 if dtype is torch.float64 else 1e-5))
    grad = torch.randn_like(fast)
    for ours, true in zip(
        torch.autograd.grad(fast, (query, keys, direction), grad),
        torch.autograd.grad(exact, (query, keys, direction), grad.double()),
        strict=True,
    ):
        assert (ours - true).abs().max() < (1e-10 if dtype is torch.float64 else 1e-4) * true.abs().max()


def test_a_long_sum_keeps_its_digits(way, monkeypatch):
    """The gradient of the direction adds M·N terms of one sign."""
    monkeypatch.setattr(additive, "BLOCK", 1 << 19)
    query, keys, direction = inputs((1, 1, 1500, 1500, 4), torch.float32)
    exact = [x.detach().double().requires_grad_() for x in (query, keys, direction)]
    ours = torch.autograd.grad(additive._in_blocks(query, keys, direction).sum(), direction)[0]
    true = torch.autograd.grad(plain_scores(*exact).sum(), exact[2])[0]
    assert (ours - true).abs().max() < 1e-4 * true.abs().max()


def test_fp32_is_as_exact_as_the_plain_formula_on_a_large_problem(way, monkeypatch):
    monkeypatch.setattr(additive, "BLOCK", 1 << 16)
    query, keys, direction = inputs((2, 1, 80, 90, 64), torch.float32)
    exact = [x.detach().double().requires_grad_() for x in (query, keys, direction)]
    grad = torch.randn(2, 1, 80, 90)
    truth = torch.autograd.grad(plain_scores(*exact), exact, grad.double())
    for ours, true in zip(
        torch.autograd.grad(additive._in_blocks(query, keys, direction), (query, keys, direction), grad),
        truth,
        strict=True,
    ):
        assert (ours - true).abs().max() < 1e-5 * true.abs().max()


def test_nan_goes_through_and_nothing_else_becomes_nan(way):
    query, keys, direction = inputs((1, 1, 3, 4, 5))
    with torch.no_grad():
        query[0, 0, 1, 2] = torch.nan
    scores = additive._in_blocks(query, keys, direction)
    assert scores[0, 0, 1].isnan().all()
    assert scores[0, 0, [0, 2]].isfinite().all()


def test_sizes_that_do_not_fit_are_refused_before_the_kernel_sees_them(way):
    query, keys, direction = (x.detach() for x in inputs((2, 2, 3, 4, 5)))
    grad = torch.zeros(2, 2, 3, 4, dtype=torch.float64)
    for wrong in [(query, keys[..., :4], direction), (query, keys[:1], direction), (query, keys, direction[:1])]:
        with pytest.raises(ValueError, match=r"shapes .* expected \[B, H, M, P\]"):
            torch.ops.saccade.additive_scores(*wrong)
        with pytest.raises(ValueError, match=r"shapes .* expected \[B, H, M, P\]"):
            torch.ops.saccade.additive_scores_backward(grad, *wrong)
    with pytest.raises(ValueError, match="expected one dtype"):
        torch.ops.saccade.additive_scores(query, keys.float(), direction)


def test_strided_inputs(way):
    query, keys, direction = inputs((2, 2, 3, 4, 10))
    cut = [query[..., ::2], keys.transpose(0, 1).contiguous().transpose(0, 1)[..., ::2], direction[:, ::2]]
    torch.testing.assert_close(additive._in_blocks(*cut), plain_scores(*cut))
    grad = torch.randn(4, 3, 2, 2, dtype=torch.float64).permute(3, 2, 1, 0)
    for ours, theirs in zip(
        torch.autograd.grad(additive._in_blocks(*cut), (query, keys, direction), grad),
        torch.autograd.grad(plain_scores(*cut), (query, keys, direction), grad),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_empty_tensors(way):
    for shape in [(0, 1, 2, 3, 4), (2, 1, 0, 3, 4), (2, 1, 3, 0, 4)]:
        query, keys, direction = inputs(shape)
        scores = additive._in_blocks(query, keys, direction)
        assert scores.shape == (shape[0], 1, shape[2], shape[3])
        assert all((g == 0).all() for g in torch.autograd.grad(scores.sum(), (query, keys, direction)))


def test_gradcheck(way):
    assert torch.autograd.gradcheck(additive._in_blocks, inputs((2, 2, 3, 4, 5)))


def test_second_derivatives(way):
    assert torch.autograd.gradgradcheck(additive._in_blocks, inputs((2, 2, 2, 3, 2)))


def test_third_derivatives_and_nested_transforms(way):
    query, keys, direction = inputs((1, 1, 2, 3, 2))

    def derivative(score, order):
        if order == 0:
            return lambda q: score(q, keys.detach(), direction.detach()).square().sum()
        return lambda q: torch.func.grad(derivative(score, order - 1))(q).sum()

    for order in (1, 2, 3):
        ours, theirs = (derivative(score, order)(query.detach()) for score in (additive._in_blocks, plain_scores))
        torch.testing.assert_close(ours, theirs)
    by_autograd = []
    for score in (additive._in_blocks, plain_scores):
        value = score(query, keys, direction).square().sum()
        for _ in range(3):
            value = torch.autograd.grad(value, query, create_graph=True)[0].square().sum()
        by_autograd.append(value)
    torch.testing.assert_close(*by_autograd)


def test_opcheck(way):
    """torch's own examination of a custom operator: schema, fake tensors, compiled."""
    query, keys, direction = (x.detach() for x in inputs((2, 2, 3, 4, 5)))
    torch.library.opcheck(torch.ops.saccade.additive_scores.default, (query, keys, direction))
    grad = torch.randn(2, 2, 3, 4, dtype=torch.float64)
    torch.library.opcheck(torch.ops.saccade.additive_scores_backward.default, (grad, query, keys, direction))


@pytest.mark.parametrize("in_dims", [(0, 0, 0), (0, None, None), (None, 1, None), (2, 0, 1), (None, None, 0)])
def test_vmap(way, in_dims):
    def some(shape, dim):
        return torch.randn(*shape[:dim], 4, *shape[dim:]) if dim is not None else torch.randn(shape)

    arguments = [some(s, d) for s, d in zip([(2, 2, 3, 5), (2, 2, 4, 5), (2, 5)], in_dims, strict=True)]
    fast = torch.vmap(additive._in_blocks, in_dims)(*arguments)
    plain = torch.vmap(plain_scores, in_dims)(*arguments)
    torch.testing.assert_close(fast, plain)

    def gradients(score):
        total = lambda *a: score(*a).square().sum()  # noqa: E731
        return torch.vmap(torch.func.grad(total, argnums=(0, 1, 2)), in_dims)(*arguments)

    for ours, theirs in zip(gradients(additive._in_blocks), gradients(plain_scores), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
