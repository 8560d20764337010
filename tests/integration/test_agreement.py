"""On the same weights we agree with torch's and Keras's attention."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from problems import assert_equal
from torch import nn

from saccade import Attention, attend


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("widths", [(8, 8, 8), (8, 6, 10)])
def test_multi_head_attention_of_torch(bias, widths):
    query_width, key_width, value_width = widths
    theirs = nn.MultiheadAttention(
        query_width, 2, bias=bias, kdim=key_width, vdim=value_width, batch_first=True
    ).double()
    ours = Attention(query_width, key_width, value_width, heads=2, width=query_width, bias=bias).double()
    if theirs.in_proj_weight is not None:
        projections = theirs.in_proj_weight.chunk(3)
    else:
        projections = theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight
    with torch.no_grad():
        for mine, weight in zip((ours.project_query, ours.project_keys, ours.project_values), projections, strict=True):
            mine.weight.copy_(weight)
        ours.project_output.weight.copy_(theirs.out_proj.weight)
        if bias:
            theirs.in_proj_bias.normal_()
            theirs.out_proj.bias.normal_()
            parts = theirs.in_proj_bias.chunk(3)
            for mine, part in zip((ours.project_query, ours.project_keys, ours.project_values), parts, strict=True):
                mine.bias.copy_(part)
            ours.project_output.bias.copy_(theirs.out_proj.bias)
    query, keys, values = (torch.randn(3, n, w, dtype=torch.float64) for n, w in zip((4, 6, 6), widths, strict=True))
    padding = torch.rand(3, 6) < 0.3
    padding[:, 0] = False
    context, weights = theirs(query, keys, values, key_padding_mask=padding, average_attn_weights=False)
    glance = ours(query, keys, values, mask=~padding, need_weights=True)
    assert_equal(glance.context, context)
    assert_equal(glance.weights, weights)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_scaled_dot_product_attention_of_torch(dtype):
    """With V = identity the context is the weights."""
    query, keys, values = (torch.randn(2, n, 16, dtype=dtype) for n in (5, 7, 7))
    mask = torch.rand(2, 5, 7) < 0.7
    mask[:, :, 0] = True
    identity = torch.eye(7, dtype=dtype).expand(2, 7, 7)
    glance = attend(query, keys, values, mask=mask, need_weights=True)
    assert_equal(glance.context, F.scaled_dot_product_attention(query, keys, values, mask))
    assert_equal(glance.weights, F.scaled_dot_product_attention(query, keys, identity, mask))


def test_causal_agrees_with_torch_only_where_both_lengths_are_equal():
    query, keys = torch.randn(2, 5, 16), torch.randn(2, 5, 16)
    assert_equal(
        attend(query, keys, causal=True).context, F.scaled_dot_product_attention(query, keys, keys, is_causal=True)
    )
    shorter = attend(query[:, -2:], keys, causal=True).context  # the last two queries of the same sentence
    assert_equal(shorter, attend(query, keys, causal=True).context[:, -2:])
    assert not torch.allclose(shorter, F.scaled_dot_product_attention(query[:, -2:], keys, keys, is_causal=True))


KERAS = """
import numpy as np, torch
from keras import layers
from saccade import Attention, attend

def close(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), atol=2e-6)

torch.manual_seed(0)
query, keys, values = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 4)
mask = torch.rand(2, 5) < 0.7
mask[:, 0] = True

theirs = layers.AdditiveAttention(use_scale=True)  # Σ scale · tanh(q + k): additive attention on projected inputs
theirs.build([query.shape, values.shape, keys.shape])
theirs.scale.assign(torch.randn(8))
ours = Attention(8, 8, 4, score="additive", hidden=8)
with torch.no_grad():
    ours.score.query_weight.copy_(torch.eye(8))
    ours.score.key_weight.copy_(torch.eye(8))
    ours.score.direction.copy_(theirs.scale.value)
context, weights = theirs([query, values, keys], mask=[None, mask], return_attention_scores=True)
glance = ours(query, keys, values, mask=mask, need_weights=True)
close(glance.context, context)
close(glance.weights[:, 0], weights)

context, weights = layers.Attention()([query, values, keys], mask=[None, mask], return_attention_scores=True)
glance = attend(query, keys, values, score="dot", mask=mask, need_weights=True)
close(glance.context, context)
close(glance.weights, weights)

theirs = layers.Attention(use_scale=True, score_mode="concat")  # Σ tanh(scale · (q + k)), times a number of its own
theirs.build([query.shape, values.shape, keys.shape])
theirs.scale.assign(0.7)
theirs.concat_score_weight.assign(1.3)
ours = Attention(8, 8, 4, score="concat", hidden=8)
with torch.no_grad():
    ours.score.weight.copy_(0.7 * torch.cat([torch.eye(8), torch.eye(8)]))
    ours.score.direction.fill_(1.3)
close(ours(query, keys, values, mask=mask).context, theirs([query, values, keys], mask=[None, mask]))
print("agreed")
"""


def test_keras():
    """In a process of its own: Keras picks its backend when it is imported, and warns of things that are not ours."""
    if importlib.util.find_spec("keras") is None:
        pytest.skip("keras is not installed; it comes with the dev extra")
    environment = {**os.environ, "KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run([sys.executable, "-c", KERAS], capture_output=True, text=True, env=environment, check=False)
    assert ran.stdout.endswith("agreed\n"), ran.stderr
