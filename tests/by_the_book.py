"""A layer's answer computed from its parameters with the NumPy reference alone, one example at a time."""

import numpy as np
from reference import attention as book

from saccade import Attention


def _numpy(x):
    return x.detach().double().numpy()


def _score(layer: Attention, head: int):
    """f(q, k, n) of one head, from the layer's parameters."""
    parameters = {name: _numpy(p) for name, p in layer.score.named_parameters()}
    at = parameters if layer.heads == 1 else {name: p[head] for name, p in parameters.items()}
    match type(layer.score).__name__:
        case "Dot":
            return lambda q, k, n: book.dot(q, k)
        case "ScaledDot":
            return lambda q, k, n: book.scaled_dot(q, k)
        case "General":
            return lambda q, k, n: book.general(q, k, at["weight"])
        case "Additive":
            return lambda q, k, n: book.additive(q, k, at["query_weight"], at["key_weight"], at["direction"])
        case "Concat":
            return lambda q, k, n: book.concat(q, k, at["weight"], at["direction"])
        case "Cosine":
            beta = float(at["beta"].item()) if "beta" in at else layer.score.beta
            return lambda q, k, n: book.cosine(q, k, beta)
        case "Location":
            return lambda q, k, n: book.location(q, n, at["weight"])
    raise AssertionError(type(layer.score))


def answer(problem):
    """Context [B, M, .] and weights [B, H, M, N] of a Problem, by the book."""
    layer, (B, H, M, N) = problem.layer, problem.sizes
    visible = problem.visible().numpy()
    mask = np.zeros((B, H, M, N))
    if problem.mask is not None and problem.mask.is_floating_point():
        given = _numpy(problem.mask)
        given = given.reshape(len(given), *[1] * (4 - given.ndim), *given.shape[1:])
        mask = np.broadcast_to(given, (B, H, M, N)).copy()
    mask[~visible] = -np.inf

    contexts, weights = [], []
    for b in range(B):
        Q, K, V = (_numpy(x[b]) for x in (problem.query, problem.keys, problem.values))
        if layer.project:
            Q, K, V = (
                x @ _numpy(p.weight).T + (0 if p.bias is None else _numpy(p.bias))
                for x, p in ((Q, layer.project_query), (K, layer.project_keys), (V, layer.project_values))
            )
        seen = []
        for h in range(H):
            q, k, v = (np.split(x, H, axis=1)[h] for x in (Q, K, V))
            seen.append(_head(problem, b, h, q, k, v, mask[b, h]))
        context = np.concatenate([c for c, _ in seen], axis=1)
        if layer.project:
            output = layer.project_output
            context = context @ _numpy(output.weight).T + (0 if output.bias is None else _numpy(output.bias))
        contexts.append(context)
        weights.append([a for _, a in seen])
    return np.array(contexts), np.array(weights)


def _head(problem, example, h, q, k, v, mask):
    layer, M, N = problem.layer, len(q), len(k)
    normalise = getattr(book, layer.how.normalise.__name__)
    focus = np.ones((M, N))
    if layer.local is not None:
        if layer.local.kind == "m":
            centres = np.arange(M) + (N - M if problem.options.get("causal") else 0)
        else:
            W, direction = (
                _numpy(p if layer.heads == 1 else p[h]) for p in (layer.local.weight, layer.local.direction)
            )
            places, S = np.cumsum(mask > -np.inf, axis=1) - 1, (mask > -np.inf).sum(1)  # counted among what is seen
            turned = (
                q
                if layer.rotary is None
                else [book.rotary(x, t) for t, x in enumerate(q, N - M if problem.options.get("causal") else 0)]
            )
            centres = np.array([book.predicted_centre(turned[m], W, direction[:, 0], S[m]) for m in range(M)])
            focus = np.array([book.gaussian(c, places[m], layer.local.window) for m, c in enumerate(centres)])
            mask = mask + book.added(
                np.array([book.window(c, places[m], layer.local.window) for m, c in enumerate(centres)])
            )
        if layer.local.kind == "m":
            mask = mask + book.added(np.array([book.window(c, np.arange(N), layer.local.window) for c in centres]))
    if layer.coverage_weight is not None and "coverage" in problem.options:
        mask = mask + layer.coverage_weight[h].item() * _numpy(problem.options["coverage"][example])
    if layer.rotary is not None:
        start = N - M if problem.options.get("causal") else 0
        q = np.array([book.rotary(x, start + m) for m, x in enumerate(q)])
        k = np.array([book.rotary(x, n) for n, x in enumerate(k)])
    _, weights = book.attention(q, k, v, _score(layer, h), mask, normalise, problem.temperature)
    weights = weights * focus
    return weights @ v, weights
