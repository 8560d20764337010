"""How pictures are read, where the source is one."""

from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from saccade.config.base import Config
from saccade.config.model import Share

STRIDES = (4, 8, 16)  # of our own encoders
WIDE = 3  # times as wide as high is a line of writing


class ImageConfig(Config):
    """How pictures are read."""

    height: PositiveInt = Field(64, description="Pixels of the frame that every picture is brought to, from above.")
    width: PositiveInt = Field(64, description="The same, from the left; the aspect of a picture is kept.")
    encoder: Literal["cnn", "attentive_cnn", "patches", "pretrained"] = Field(
        "cnn",
        description="A residual CNN, the same with self-attention over its grid, a Transformer of patches, or a "
        "network that learned to see elsewhere.",
    )
    backbone: str | None = Field(
        None,
        description="The pretrained network, which stays as it is: efficientnet_lite0, or a folder or a name of the "
        "hub that transformers can load.",
    )
    weights: str | None = Field(
        None, description="A fingerprint of the backbone's weights, which training notes: others are refused."
    )
    stride: PositiveInt = Field(
        8, description="Pixels, both ways, of one cell of the grid that is looked at: 4, 8 or 16, or the backbone's."
    )
    channels: PositiveInt = Field(
        128, description="Features of a cell at the end of the CNN; half of that a stage before."
    )
    blocks: PositiveInt = Field(
        1, description="Residual blocks of each stage of the CNN; layers of the patch Transformer."
    )
    near: bool = Field(
        False,
        description="Whether a residual block of the CNN looks around once, not twice: a cell then tells of what is in "
        "it more than of what is beside it. If not given, for Luong's decoder.",
    )
    shift: Share = Field(0.0, description="Training moves pictures by up to this share of their size.")
    crop: Share = Field(
        0.0, description="Training cuts up to this share of each side off, and enlarges what is left to the old size."
    )
    colour: Share = Field(0.0, description="Training changes brightness and contrast by up to this share.")
    flip: bool = Field(
        False, description="Training turns half of the pictures round; never where left and right matter."
    )

    @property
    def wide(self) -> bool:
        """Whether the frame has the shape of a line of writing."""
        return self.width >= WIDE * self.height

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """Who names a backbone means it."""
        if isinstance(given, dict) and given.get("backbone") is not None:
            return {"encoder": "pretrained", **given}
        return given

    @model_validator(mode="after")
    def _whole_cells(self) -> Self:
        for name in ("height", "width"):
            if getattr(self, name) % self.stride:
                raise ValueError(f"{name}: {getattr(self, name)}, expected a multiple of stride={self.stride}")
        if (self.encoder == "pretrained") != (self.backbone is not None):
            raise ValueError("backbone: goes with encoder=pretrained, and encoder=pretrained with a backbone")
        if self.backbone is not None:
            for name in ("shift", "crop", "colour", "flip"):
                if getattr(self, name):
                    raise ValueError(f"{name}: changes pixels, but of a backbone only its features are kept")
            return self
        if self.stride not in STRIDES:
            raise ValueError(f"stride: {self.stride}, expected one of {', '.join(map(str, STRIDES))}")
        if self.channels % 8:
            raise ValueError(f"channels: {self.channels}, expected a multiple of 8")
        return self
