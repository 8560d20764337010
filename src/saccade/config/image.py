"""How pictures are read, where the source is one."""

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from saccade.config.base import Config
from saccade.config.model import Share


class ImageConfig(Config):
    """How pictures are read."""

    height: PositiveInt = Field(64, description="Pixels of the frame that every picture is brought to, from above.")
    width: PositiveInt = Field(64, description="The same, from the left; the aspect of a picture is kept.")
    encoder: Literal["cnn", "attentive_cnn", "patches"] = Field(
        "cnn", description="A residual CNN, the same with self-attention over its grid, or a Transformer of patches."
    )
    stride: Literal[4, 8, 16] = Field(8, description="Pixels, both ways, of one cell of the grid that is looked at.")
    channels: PositiveInt = Field(
        128, description="Features of a cell at the end of the CNN; half of that a stage before."
    )
    blocks: PositiveInt = Field(
        1, description="Residual blocks of each stage of the CNN; layers of the patch Transformer."
    )
    shift: Share = Field(0.0, description="Training moves pictures by up to this share of their size.")
    colour: Share = Field(0.0, description="Training changes brightness and contrast by up to this share.")
    flip: bool = Field(
        False, description="Training turns half of the pictures round; never where left and right matter."
    )

    @model_validator(mode="after")
    def _whole_cells(self) -> Self:
        for name in ("height", "width"):
            if getattr(self, name) % self.stride:
                raise ValueError(f"{name}: {getattr(self, name)}, expected a multiple of stride={self.stride}")
        if self.channels % 8:
            raise ValueError(f"channels: {self.channels}, expected a multiple of 8")
        return self
