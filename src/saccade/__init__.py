"""saccade: sequence-to-sequence models with attention that show every glance.

`import saccade` is cheap: torch is loaded when one of the names below is first touched.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from saccade.attention import (
        Attention,
        Glance,
        Learned,
        Prepared,
        Residual,
        Rotary,
        Sinusoidal,
        SoftDict,
        TransformerBlock,
        attend,
    )
    from saccade.search import occlude
    from saccade.see import Prediction
    from saccade.train.api import train
    from saccade.train.run import load

__all__ = [
    "Attention",
    "Glance",
    "Learned",
    "Prediction",
    "Prepared",
    "Residual",
    "Rotary",
    "Sinusoidal",
    "SoftDict",
    "TransformerBlock",
    "attend",
    "load",
    "occlude",
    "train",
]
_ELSEWHERE = {"Prediction": "saccade.see", "load": "saccade.train", "occlude": "saccade.search"}


def __getattr__(name: str) -> object:
    if name == "train":  # the room, which can be called
        return import_module("saccade.train")
    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, "saccade.attention")), name)
    raise AttributeError(f"module 'saccade' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
