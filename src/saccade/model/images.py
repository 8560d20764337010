"""Encoders of pictures: pixels [B, 3, H, W] and true sizes [B, 2] → a Memory whose places are the cells of a grid."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention import Dropout, TransformerBlock
from saccade.config import ModelConfig
from saccade.config.image import ImageConfig
from saccade.model.memory import Memory
from saccade.model.recurrent import each
from saccade.model.transformer import stacked

PLACES = 0.5  # how much of a cell, beside features of about 1, is where it is
GROUPS = 8  # of channels that are normalised together: no picture depends on the others of its batch


class ImageEncoder(nn.Module):
    """A picture as a grid of features, cell by cell from the upper left; the summary is their mean, through one layer.

    Every cell also carries where it is, so that what asks can mean a place as well as a look.
    """

    def __init__(self, config: ModelConfig, image: ImageConfig) -> None:
        super().__init__()
        self.stride, self.grid = image.stride, (image.height // image.stride, image.width // image.stride)
        self.change = Change(image)
        self.pixels = image.encoder != "pretrained"  # or features that somebody else found in them
        self.see: CNN | Patches | None = None
        if self.pixels:
            self.see = Patches(config, image) if image.encoder == "patches" else CNN(image, config.dropout)
        width = config.width if image.encoder == "patches" else image.channels
        self.project = nn.Linear(width, config.width)
        down, across = (torch.linspace(-1, 1, n).unsqueeze(1) * torch.randn(config.width) for n in self.grid)
        if image.wide:  # along a line of writing what matters is which is next, not how far to the right
            across = waves(self.grid[1], config.width)
        self.row = nn.Parameter(PLACES * down.unsqueeze(1))  # [h, 1, D]: at first, straight lines
        self.column = nn.Parameter(PLACES * across.unsqueeze(0))  # [1, w, D]
        self.norm = nn.LayerNorm(config.width)
        self.drop = Dropout(config.dropout)
        self.pool = nn.Linear(config.width, config.width)

    def forward(self, pixels: Tensor, sizes: Tensor, need_weights: bool = False) -> Memory:
        x = pixels.to(self.project.weight.dtype)  # [B, 3, H, W]
        mask, itself = self.real(sizes), None  # [B, N]
        if self.see is not None:
            x = x / 127.5 - 1
            x, itself = self.see(self.change(x, sizes) if self.training else x, mask, need_weights)  # [B, C, h, w]
        x = self.project(x.permute(0, 2, 3, 1)) + self.row + self.column  # [B, h, w, D]
        x = x.flatten(1, 2)  # [B, N, D]
        states = self.drop(self.norm(x)) * mask.unsqueeze(-1)
        mean = states.sum(1) / mask.sum(1, keepdim=True)
        columns = (torch.arange(self.grid[1], device=sizes.device) + 0.5) * self.stride  # their middles, in pixels
        along = (columns / sizes[:, 1:]).unsqueeze(1).expand(-1, self.grid[0], -1).flatten(1)  # [B, N]
        return Memory(states, states, mask, torch.tanh(self.pool(mean)), itself=itself, along=along)

    def real(self, sizes: Tensor) -> Tensor:
        """Which cells have something of the picture in them: [B, N]."""
        down, across = (torch.arange(n, device=sizes.device) * self.stride for n in self.grid)
        rows, columns = down < sizes[:, :1], across < sizes[:, 1:]  # [B, h], [B, w]
        return (rows.unsqueeze(2) & columns.unsqueeze(1)).flatten(1)


def waves(count: int, width: int) -> Tensor:
    """Places as sines and cosines [count, width], the shortest two cells long, the longest twice as long as all."""
    lengths = 2 * count ** torch.linspace(0, 1, width // 2)  # [D/2]
    turns = 2 * math.pi * torch.arange(count).unsqueeze(1) / lengths
    both = torch.cat([turns.sin(), turns.cos()], 1)
    return math.sqrt(2) * F.pad(both, (0, width % 2))


class CNN(nn.Module):
    """Halves the picture until a cell is `stride` pixels, each time followed by residual blocks; if it is attentive,
    every cell looks at every other between the last halving and its blocks.
    """

    def __init__(self, image: ImageConfig, dropout: float) -> None:
        super().__init__()
        halvings = image.stride.bit_length() - 1
        self.width = image.channels
        layers: list[nn.Module] = []
        before = 3
        for i in range(halvings):
            width = max(GROUPS, image.channels >> (halvings - 1 - i))
            layers += [_convolution(before, width, 2), nn.ReLU()]
            self.between = len(layers)
            if i > 0:  # at full width and height they would cost more than all the others
                layers += [ResidualBlock(width, image.near) for _ in range(image.blocks)]
            before = width
        self.layers = nn.Sequential(*layers)
        attentive = image.encoder == "attentive_cnn"
        self.itself = TransformerBlock(before, heads=_heads(before), dropout=dropout) if attentive else None

    def forward(self, x: Tensor, mask: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        x = self.layers[: self.between](x.contiguous(memory_format=torch.channels_last))  # [B, C, h, w]
        weights = None
        if self.itself is not None:
            seen, _, weights, _ = self.itself(x.flatten(2).mT, mask=mask, need_weights=need_weights)  # [B, N, C]
            x = seen.mT.reshape(x.shape)
        return self.layers[self.between :](x), stacked([weights], 1)


class ResidualBlock(nn.Module):
    """x + f(x), f being two convolutions, of which the second may leave the neighbours out.

    A cell that sees two cells far knows a thing that lies beside it, and who asks for the thing may look there.
    """

    def __init__(self, width: int, near: bool) -> None:
        super().__init__()
        self.first, self.second = _convolution(width, width), _convolution(width, width, window=1 if near else 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.second(F.relu(self.first(x))))


def _convolution(before: int, after: int, stride: int = 1, window: int = 3) -> nn.Sequential:
    """3×3 or 1×1, or 4×4 where it halves: a window of even width stands over the middle of its cell, one of 3 over its
    corner, and half a cell matters to who looks where.
    """
    window = window if stride == 1 else 4
    convolution = nn.Conv2d(before, after, window, stride, padding=int(window > 1), bias=False)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    return nn.Sequential(convolution, nn.GroupNorm(math.gcd(GROUPS, after), after))


class Patches(nn.Module):
    """Each cell is a patch of pixels; every patch looks at every other, layer after layer."""

    def __init__(self, config: ModelConfig, image: ImageConfig) -> None:
        super().__init__()
        self.width = config.width
        heads = _heads(config.width)
        self.cut = nn.Conv2d(3, config.width, image.stride, image.stride)
        grid = (image.height // image.stride, image.width // image.stride)
        self.place = nn.Parameter(torch.randn(grid[0] * grid[1], config.width) * 0.02)
        self.blocks = nn.ModuleList(
            TransformerBlock(config.width, heads=heads, hidden=2 * config.width, dropout=config.dropout)
            for _ in range(image.blocks)
        )

    def forward(self, x: Tensor, mask: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        x = self.cut(x)  # [B, D, h, w]
        shape = x.shape
        x = x.flatten(2).mT + self.place  # [B, N, D]
        seen = []
        for block in each(self.blocks, TransformerBlock):
            x, _, weights, _ = block(x, mask=mask, need_weights=need_weights)
            seen.append(weights)
        return x.mT.reshape(shape), stacked(seen, 1)


def _heads(width: int) -> int:
    return 4 if width % 4 == 0 else 1


class Change(nn.Module):
    """What training changes about pictures [B, 3, H, W], each one differently and within its own size: place, scale,
    direction, light.
    """

    def __init__(self, image: ImageConfig) -> None:
        super().__init__()
        self.shift, self.crop, self.colour, self.flip = image.shift, image.crop, image.colour, image.flip

    def forward(self, x: Tensor, sizes: Tensor) -> Tensor:
        batch, device = len(x), x.device
        if self.shift or self.crop or self.flip:
            rows, columns = (torch.arange(n, device=device).expand(batch, n) for n in x.shape[2:])  # [B, H], [B, W]
            if self.flip:
                turned = torch.rand(batch, 1, device=device) < 0.5
                last = sizes[:, 1:] - 1
                columns = torch.where(turned & (columns <= last), last - columns, columns)
            if self.crop:
                kept = 1 - self.crop * torch.rand(batch, 1, device=device)  # as much of both sides: the aspect stays
                rows, columns = (_cut(p, size, kept) for p, size in ((rows, sizes[:, :1]), (columns, sizes[:, 1:])))
            if self.shift:
                rows, columns = (self._moved(p, size) for p, size in ((rows, sizes[:, :1]), (columns, sizes[:, 1:])))
            each = torch.arange(batch, device=device)[:, None, None]
            x = x[each, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)  # the indices came first
        if self.colour:
            contrast, light = (1 + self.colour * (2 * torch.rand(batch, 3, 1, 1, device=device) - 1) for _ in range(2))
            down, across = (torch.arange(n, device=device) for n in x.shape[2:])
            own = (down < sizes[:, :1]).unsqueeze(2) & (across < sizes[:, 1:]).unsqueeze(1)  # [B, H, W]
            x = torch.where(own.unsqueeze(1), x * contrast + (light - 1), x)
        return x

    def _moved(self, places: Tensor, size: Tensor) -> Tensor:
        """Places [B, n] of one direction, moved within pictures of that size [B, 1]; their edges are repeated."""
        far = (2 * torch.rand(len(places), 1, device=places.device) - 1) * self.shift * size
        inside = (places + far.round().long()).clamp(min=0)
        return torch.where(places < size, torch.minimum(inside, size - 1), places)


def _cut(places: Tensor, size: Tensor, kept: Tensor) -> Tensor:
    """Places [B, n] of one direction within the share of it that is kept [B, 1], wherever that begins."""
    start = torch.rand(len(places), 1, device=places.device) * (1 - kept) * size
    inside = (start + (places + 0.5) * kept).long()  # of each new pixel, the old one that its middle falls on
    return torch.where(places < size, torch.minimum(inside, size - 1), places)
