"""Recurrent cells: x_t [D_in], h_t [D]. Matrices are [D_in, D] or [D, D]; a dictionary names them as the notes do."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn(x, h, W):
    """h_t = tanh(W_x x_t + W_h h_{t−1} + b)"""
    return np.tanh(x @ W["x"] + h @ W["h"] + W["b"])


def lstm(x, h, c, W):
    """The six equations of the LSTM."""
    i = sigmoid(x @ W["xi"] + h @ W["hi"] + W["bi"])  # how much of the new goes into long-term memory
    g = np.tanh(x @ W["xg"] + h @ W["hg"] + W["bg"])  # the new
    f = sigmoid(x @ W["xf"] + h @ W["hf"] + W["bf"])  # how much of the old stays
    c = f * c + i * g
    o = sigmoid(x @ W["xo"] + h @ W["ho"] + W["bo"])  # how much of it is shown
    h = o * np.tanh(c)
    return h, c


def gru(x, h, W):
    """Cho et al. 2014, with the reset gate after the product, as cuDNN and torch have it."""
    r = sigmoid(x @ W["xr"] + h @ W["hr"] + W["br"])
    z = sigmoid(x @ W["xz"] + h @ W["hz"] + W["bz"])
    n = np.tanh(x @ W["xn"] + W["bxn"] + r * (h @ W["hn"] + W["bhn"]))
    return (1 - z) * n + z * h


def both_ways(X, step_forward, step_backward, h_forward, h_backward):
    """A two-directional RNN: at each t, the state of a reader from the left and that of a reader from the right."""
    left, right = [], []
    for x in X:
        h_forward = step_forward(x, h_forward)
        left.append(h_forward)
    for x in X[::-1]:
        h_backward = step_backward(x, h_backward)
        right.append(h_backward)
    return np.concatenate([np.array(left), np.array(right[::-1])], axis=1)
