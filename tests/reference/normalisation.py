"""Layer against batch normalisation: over the features of one example, or over the examples for one feature."""

import numpy as np


def layer_norm(X, gain, shift, eps=1e-5):
    """X [B, D]: every row has its own mean and variance, so a batch of one is as good as any."""
    rows = [(x - x.mean()) / np.sqrt(x.var() + eps) for x in X]
    return np.array(rows) * gain + shift


def batch_norm(X, gain, shift, eps=1e-5):
    """X [B, D]: every column has its own mean and variance; with B = 1 nothing but the shift is left."""
    columns = [(x - x.mean()) / np.sqrt(x.var() + eps) for x in X.T]
    return np.array(columns).T * gain + shift
