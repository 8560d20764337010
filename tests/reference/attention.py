"""Attention: E = f(Q, K), A = softmax(E + mask), C = A·V."""

import numpy as np

# --- Score functions: one query q [Dq], one key k [Dk] ----------------------------------------------------------------


def dot(q, k):
    return q @ k


def scaled_dot(q, k):
    return q @ k / np.sqrt(len(q))


def general(q, k, W):
    return q @ W @ k


def additive(q, k, W_q, W_k, v):
    return v @ np.tanh(q @ W_q + k @ W_k)


def concat(q, k, W, v):
    return v @ np.tanh(np.concatenate([q, k]) @ W)


def cosine(q, k, beta=1.0):
    return beta * (q @ k) / (np.linalg.norm(q) * np.linalg.norm(k))


def location(q, n, W):
    """The n-th component of W q: the key itself is not looked at."""
    return (q @ W)[n]


# --- From scores to weights: one row e [N] ----------------------------------------------------------------------------


def softmax(e):
    """With −∞ for what must not be seen; a row of nothing but −∞ looks nowhere."""
    if np.all(e == -np.inf):
        return np.zeros_like(e)
    a = np.exp(e - np.max(e))
    return a / a.sum()


def sparsemax(e):
    """max(e − τ, 0) with the τ for which it sums to one, found by halving an interval."""
    return _by_bisection(e, lambda tau: np.maximum(e - tau, 0), low=np.max(e) - 1, high=np.max(e))


def entmax15(e):
    """max(e/2 − τ, 0)² with the τ for which it sums to one."""
    return _by_bisection(e, lambda tau: np.maximum(e / 2 - tau, 0) ** 2, low=np.max(e) / 2 - 1, high=np.max(e) / 2)


def hard(e):
    if np.all(e == -np.inf):
        return np.zeros_like(e)
    return np.eye(len(e))[np.argmax(e)]


def _by_bisection(e, weights, low, high):
    if np.all(e == -np.inf):
        return np.zeros_like(e)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if weights(middle).sum() > 1 else (low, middle)
    return weights(low)


# --- Masks [M, N] -----------------------------------------------------------------------------------------------------


def added(mask):
    """A boolean mask as the numbers that are added to the scores."""
    return np.where(mask, 0.0, -np.inf)


def causal(M, N):
    """Query m sees n ≤ m + N − M."""
    return np.array([[n <= m + N - M for n in range(N)] for m in range(M)])


# --- Attention: Q [M, Dq], K [N, Dk], V [N, Dv] -----------------------------------------------------------------------


def attention(Q, K, V, f, mask=None, normalise=softmax, temperature=1.0):
    """f(q, k, n) scores one pair; mask [M, N] is added. Returns the context C [M, Dv] and the weights A [M, N]."""
    E = np.array([[f(q, k, n) for n, k in enumerate(K)] for q in Q]).reshape(len(Q), len(K)) / temperature
    if mask is not None:
        E = E + mask
    A = np.array([normalise(e) for e in E])
    return A @ V, A


def multi_head(Q, K, V, W_Q, W_K, W_V, W_O, fs, **options):
    """HEAD_h = ATTN(Q W_Q^h, K W_K^h, V W_V^h); the joined heads times W_O. Matrices [D_in, D], cut among the heads."""
    contexts, weights = [], []
    for h, f in enumerate(fs):
        W_Qh, W_Kh, W_Vh = (np.split(W, len(fs), axis=1)[h] for W in (W_Q, W_K, W_V))
        C, A = attention(Q @ W_Qh, K @ W_Kh, V @ W_Vh, f, **options)
        contexts.append(C)
        weights.append(A)
    return np.concatenate(contexts, axis=1) @ W_O, np.array(weights)


# --- Local attention (Luong et al. 2015, section 3.2) -----------------------------------------------------------------


def window(p, places, D):
    """Only places n with |n − p| ≤ D may be seen."""
    return np.array([abs(n - p) <= D for n in places])


def predicted_centre(q, W, v, S):
    """p = S · σ(vᵀ tanh(W q))"""
    return S / (1 + np.exp(-v @ np.tanh(q @ W)))


def gaussian(p, places, D):
    """exp(−(n − p)² / 2σ²), σ = D/2"""
    sigma = D / 2
    return np.array([np.exp(-((n - p) ** 2) / (2 * sigma**2)) for n in places])


# --- Positions --------------------------------------------------------------------------------------------------------


def sinusoidal(T, D):
    code = np.zeros((T, D))
    for t in range(T):
        for i in range(0, D, 2):
            code[t, i] = np.sin(t / 10000 ** (i / D))
            code[t, i + 1] = np.cos(t / 10000 ** (i / D))
    return code


def rotary(x, t):
    """Each pair of features of x [D] turned by the angle t / 10000^{i/D}."""
    turned = np.zeros_like(x)
    for i in range(0, len(x), 2):
        a = t / 10000 ** (i / len(x))
        turned[i] = x[i] * np.cos(a) - x[i + 1] * np.sin(a)
        turned[i + 1] = x[i] * np.sin(a) + x[i + 1] * np.cos(a)
    return turned
