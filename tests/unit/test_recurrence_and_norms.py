"""torch's cells and normalisations, which saccade builds on, compute the equations of the lecture notes."""

import numpy as np
import pytest
import torch
from reference import normalisation, recurrent
from torch import nn

T, D_IN, D = 4, 3, 5


def matrices(module, gates, suffix=""):
    """torch stacks the gates of a cell in one matrix: cut it up and name the parts as the notes do."""
    split = {
        name: dict(
            zip(gates, np.split(getattr(module, f"{name}_l0{suffix}").detach().numpy(), len(gates)), strict=True)
        )
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    W = {}
    for gate in gates:
        W[f"x{gate}"], W[f"h{gate}"] = split["weight_ih"][gate].T, split["weight_hh"][gate].T
        W[f"bx{gate}"], W[f"bh{gate}"] = split["bias_ih"][gate], split["bias_hh"][gate]
        W[f"b{gate}"] = W[f"bx{gate}"] + W[f"bh{gate}"]
    return W


@pytest.fixture
def sentence():
    return torch.randn(T, D_IN, dtype=torch.float64)


def test_plain_rnn(sentence):
    module = nn.RNN(D_IN, D).double()
    h, states = np.zeros(D), []
    for x in sentence.numpy():
        h = recurrent.rnn(x, h, matrices(module, [""]))
        states.append(h)
    np.testing.assert_allclose(module(sentence)[0].detach().numpy(), states, atol=1e-10)


def test_lstm(sentence):
    module = nn.LSTM(D_IN, D).double()
    h, c, states = np.zeros(D), np.zeros(D), []
    for x in sentence.numpy():
        h, c = recurrent.lstm(x, h, c, matrices(module, "ifgo"))
        states.append(h)
    output, (_, cell) = module(sentence)
    np.testing.assert_allclose(output.detach().numpy(), states, atol=1e-10)
    np.testing.assert_allclose(cell[0].detach().numpy(), c, atol=1e-10)


def test_gru(sentence):
    module = nn.GRU(D_IN, D).double()
    h, states = np.zeros(D), []
    for x in sentence.numpy():
        h = recurrent.gru(x, h, matrices(module, "rzn"))
        states.append(h)
    np.testing.assert_allclose(module(sentence)[0].detach().numpy(), states, atol=1e-10)


def test_two_directions(sentence):
    module = nn.GRU(D_IN, D, bidirectional=True).double()
    forward, backward = matrices(module, "rzn"), matrices(module, "rzn", "_reverse")
    states = recurrent.both_ways(
        sentence.numpy(),
        lambda x, h: recurrent.gru(x, h, forward),
        lambda x, h: recurrent.gru(x, h, backward),
        np.zeros(D),
        np.zeros(D),
    )
    np.testing.assert_allclose(module(sentence)[0].detach().numpy(), states, atol=1e-10)


def norms():
    gain, shift = torch.randn(D, dtype=torch.float64), torch.randn(D, dtype=torch.float64)
    layer, batch = nn.LayerNorm(D).double(), nn.BatchNorm1d(D).double()
    for norm in (layer, batch):
        norm.load_state_dict({**norm.state_dict(), "weight": gain, "bias": shift})
    return layer, batch, gain.numpy(), shift.numpy()


def test_layer_and_batch_normalisation():
    layer, batch, gain, shift = norms()
    X = torch.randn(6, D, dtype=torch.float64)
    np.testing.assert_allclose(layer(X).detach(), normalisation.layer_norm(X.numpy(), gain, shift), atol=1e-10)
    np.testing.assert_allclose(batch(X).detach(), normalisation.batch_norm(X.numpy(), gain, shift), atol=1e-10)


def test_a_batch_of_one_is_enough_for_layer_normalisation_but_not_for_batch_normalisation():
    layer, _, gain, shift = norms()
    X = torch.randn(6, D, dtype=torch.float64)
    np.testing.assert_allclose(layer(X[:1]).detach(), layer(X).detach()[:1], atol=1e-10)
    np.testing.assert_allclose(normalisation.batch_norm(X[:1].numpy(), gain, shift), [shift], atol=1e-10)
