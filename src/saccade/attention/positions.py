"""Where a vector stands: attention alone cannot tell, since it treats its memory as a set."""

import torch
from torch import Tensor, nn


class Sinusoidal(nn.Module):
    """Adds sin and cos of the position at geometrically spaced wavelengths (Vaswani et al. 2017): any length.

        PE(t, 2i) = sin(t / 10000^{2i/D})    PE(t, 2i+1) = cos(t / 10000^{2i/D})

    >>> Sinusoidal(4)(torch.zeros(2, 4))
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = _even(width)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """x [.., T, D] with its positions [.., T] added: 0, 1, 2, … unless given."""
        angles = _angles(_positions(x, positions, self.width), self.width)  # [.., T, D/2]
        code = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)  # [.., T, D]
        return x + code.to(x.dtype)


class Learned(nn.Module):
    """Adds a learned vector for each position, up to a length fixed beforehand."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """x [.., T, D] with the vectors of its positions [.., T] added."""
        positions, built = _positions(x, positions, self.table.embedding_dim), self.table.num_embeddings
        try:
            code: Tensor = self.table(positions)
        except IndexError:
            raise ValueError(f"positions: outside 0 … {built - 1}; Learned was built with max_length={built}") from None
        return x + code


class Rotary(nn.Module):
    """Turns each pair of features by an angle that grows with the position (Su et al. 2021).

    The dot product of a turned query and a turned key depends only on how far apart they stand.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = _even(width)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """x [.., T, D], turned by its positions [.., T]."""
        angles = _angles(_positions(x, positions, self.width), self.width)  # [.., T, D/2]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]  # [.., T, D/2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def _even(width: int) -> int:
    if width % 2 or width < 2:
        raise ValueError(f"width: {width}, expected an even number, since positions turn pairs of features")
    return width


def _positions(x: Tensor, positions: Tensor | None, width: int) -> Tensor:
    if x.dim() < 2 or x.shape[-1] != width or not x.is_floating_point():
        raise ValueError(f"x: {x.dtype} {list(x.shape)}, expected floats [.., T, {width}]")
    return torch.arange(x.shape[-2], device=x.device) if positions is None else positions


def _angles(positions: Tensor, width: int) -> Tensor:
    exact = torch.float32 if positions.device.type == "mps" else torch.float64  # far angles need the digits
    exponent = torch.arange(0, width, 2, device=positions.device, dtype=exact) / width
    return positions.unsqueeze(-1).to(exact) / 10000**exponent  # [.., T, D/2]
