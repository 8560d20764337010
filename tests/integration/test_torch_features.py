"""torch.compile, torch.func, torch.export and autocast on every score. (Compiled, additive is always the operation.)"""

import pytest
import torch
from problems import SCORES, assert_equal

from saccade import Attention, TransformerBlock, attend
from saccade.attention import additive

pytestmark = pytest.mark.filterwarnings(
    "ignore:There is a performance drop because we have not yet implemented the batching rule",  # torch's own SDPA
    "ignore::DeprecationWarning:torch",
    "ignore::DeprecationWarning:copyreg",
)


@pytest.fixture(params=SCORES)
def score(request):
    return request.param


@pytest.fixture(params=[*SCORES, "additive, large", "concat, large"])
def sized(request, monkeypatch):
    """Additive scores go through an operation of our own once they are large; here that is at once."""
    score, _, size = request.param.partition(", ")
    if size:
        monkeypatch.setattr(additive, "BLOCK", 1)
    return score


def make(score, heads=2, **options):
    if score == "location":
        options["max_length"] = 8
    return Attention(8, heads=heads, score=score, **options)


def inputs(batch=3):
    return torch.randn(batch, 4, 8), torch.randn(batch, 6, 8), torch.rand(batch, 6) < 0.8


@pytest.mark.parametrize("need_weights", [False, True])
def test_compile(score, need_weights):
    torch._dynamo.reset()
    layer = make(score)
    query, keys, mask = inputs()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)

    def run(function):
        asked = query.clone().requires_grad_()
        glance = function(asked, keys, mask=mask, causal=True, need_weights=need_weights)
        (gradient,) = torch.autograd.grad(glance.context.square().sum(), asked)
        return glance.context, gradient

    for ours, theirs in zip(run(compiled), run(layer), strict=True):
        assert_equal(ours, theirs)


def test_compile_with_inductor():
    """The real compiler, once: it takes seconds."""
    torch._dynamo.reset()
    layer = make("additive", local="p", window=2)
    query, keys, mask = inputs()
    compiled = torch.compile(layer, fullgraph=True)
    assert_equal(compiled(query, keys, mask=mask).context, layer(query, keys, mask=mask).context)


def test_vmap(sized):
    layer = make(sized)
    query, keys, mask = inputs()
    each = torch.vmap(lambda q, k, m: layer(q, k, mask=m).context)(query, keys, mask)
    assert_equal(each, layer(query, keys, mask=mask).context)
    seeing = torch.vmap(lambda q, k: layer(q, k, need_weights=True).weights)(query, keys)
    assert_equal(seeing, layer(query, keys, need_weights=True).weights)


def test_gradients_for_each_example(sized):
    """vmap of grad: what a loop over examples gives."""
    layer = make(sized)
    query, keys, mask = inputs()

    def loss(parameters, q, k, m):
        return torch.func.functional_call(layer, parameters, (q, k), {"mask": m}).context.square().sum()

    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    each = torch.vmap(torch.func.grad(loss), (None, 0, 0, 0))(parameters, query, keys, mask)
    for i in range(len(query)):
        layer.zero_grad()
        layer(query[i], keys[i], mask=mask[i]).context.square().sum().backward()
        for name, parameter in layer.named_parameters():
            alone = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(each[name][i], alone, rtol=1e-4, atol=1e-5)


def test_export(score):
    layer = make(score).eval()
    query, keys, mask = inputs()
    program = torch.export.export(layer, (query, keys), {"mask": mask, "need_weights": True})
    again = program.module()(query, keys, mask=mask, need_weights=True)
    here = layer(query, keys, mask=mask, need_weights=True)
    assert_equal(again.context, here.context)
    assert_equal(again.weights, here.weights)


def test_export_with_a_batch_of_any_size(score):
    layer = make(score).eval()
    batch = torch.export.Dim("batch", min=2)
    query, keys, _ = inputs()
    program = torch.export.export(layer, (query, keys), dynamic_shapes={"query": {0: batch}, "keys": {0: batch}})
    query, keys, _ = inputs(batch=7)
    assert_equal(program.module()(query, keys).context, layer(query, keys).context)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
def test_autocast(sized, heads, need_weights):
    layer = make(sized, heads)
    query, keys, mask = inputs()
    query.requires_grad_()
    exact = layer(query, keys, mask=mask, need_weights=need_weights)
    with torch.autocast("cpu", torch.bfloat16):
        rough = layer(query, keys, mask=mask, need_weights=need_weights)
        prepared = layer(query, layer.prepare(keys), mask=mask, need_weights=need_weights)
    torch.testing.assert_close(rough.context.float(), exact.context, rtol=0.05, atol=0.05)
    torch.testing.assert_close(prepared.context, rough.context)
    if need_weights:
        torch.testing.assert_close(rough.weights.float(), exact.weights, rtol=0.05, atol=0.02)
    rough.context.float().sum().backward()


def test_looking_never_changes_the_answer_under_autocast(score):
    layer = make(score)
    query, keys, mask = inputs()
    with torch.autocast("cpu", torch.bfloat16):
        blind, seeing = (layer(query, keys, mask=mask, need_weights=need) for need in (False, True))
    assert_equal(blind.context, seeing.context)


def test_a_state_dict_goes_round(score):
    one, other = make(score), make(score)
    query, keys, _ = inputs()
    other.load_state_dict(one.state_dict())
    assert_equal(one(query, keys).context, other(query, keys).context)


def test_the_transformer_block_compiles_and_exports():
    torch._dynamo.reset()
    block = TransformerBlock(8, heads=2, cross=True, rotary=True).eval()
    query, keys, mask = inputs()
    here = block(query, keys, causal=True, memory_mask=mask).output
    compiled = torch.compile(block, backend="aot_eager", fullgraph=True)
    assert_equal(compiled(query, keys, causal=True, memory_mask=mask).output, here)
    program = torch.export.export(block, (query, keys), {"causal": True, "memory_mask": mask})
    assert_equal(program.module()(query, keys, causal=True, memory_mask=mask).output, here)


def test_attend_compiles():
    torch._dynamo.reset()
    query, keys, mask = inputs()
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    assert_equal(compiled(query, keys, mask=mask).context, attend(query, keys, mask=mask).context)


def test_meta_device(score):
    """Shapes without data: what a planner asks, and a stand-in for a device that is not a CPU."""
    layer = make(score).to("meta")
    query, keys, mask = (x.to("meta") for x in inputs())
    glance = layer(query, keys, mask=mask, need_weights=True)
    assert glance.context.shape == (3, 4, 8)
    assert glance.weights.shape == (3, 2, 4, 6)
