"""How a model is trained, and the whole of a run."""

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from saccade.config.base import Config
from saccade.config.model import ModelConfig, Share


class TrainConfig(Config):
    """How long and how fast to learn."""

    minutes: PositiveFloat | None = Field(
        None, description="Wall-clock budget; the steps are planned to take about that long."
    )
    steps: PositiveInt | None = Field(None, description="Updates, if there is no budget in minutes.")
    batch_tokens: PositiveInt = Field(4000, description="Tokens of source and target in a batch, padding counted.")
    learning_rate: PositiveFloat = Field(
        2e-3, description="Peak, reached after warm-up; a cosine leads from there to 0."
    )
    warmup: Share = Field(0.1, description="Share of the updates in which the learning rate rises.")
    clip: PositiveFloat = Field(1.0, description="Longest gradient: longer ones are shortened to it.")
    label_smoothing: Share = Field(0.1, description="Share of the probability given to all other tokens.")
    weight_decay: NonNegativeFloat = Field(0.01, description="How fast weights shrink (AdamW).")
    average: Share = Field(
        0.99, description="How slowly the weights that are kept follow those that learn; 0: they are the same."
    )
    evaluations: PositiveInt = Field(10, description="How often the dev set is looked at, and a checkpoint written.")
    seed: NonNegativeInt = Field(
        0, description="Decides the first weights, the order of the batches and what dropout leaves out."
    )

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.minutes is not None and self.steps is not None:
            raise ValueError(
                f"minutes={self.minutes:g} and steps={self.steps}: one of them decides; leave out the other"
            )
        return self


class TokeniserConfig(Config):
    """What counts as one symbol."""

    kind: Literal["characters", "symbols", "words", "bpe", "unigram"] = Field(
        "characters", description="Characters, symbols between blanks, words, or learned pieces."
    )
    size: PositiveInt = Field(8000, description="Most symbols of words, bpe and unigram.")
    form: Literal["NFC", "NFD", "NFKC"] = Field("NFC", description="Unicode form; NFD takes Hangul apart into jamo.")
    lower: bool = Field(False, description="Whether upper case is read as lower case.")


class DataConfig(Config):
    """What it learns from."""

    train: list[str] = Field(
        default_factory=list, description="A file of pairs, two parallel files, or the name of a built-in task."
    )
    dev: list[str] = Field(
        default_factory=list, description="The same to measure progress on; if not given, a part of train."
    )


class RunConfig(Config):
    """Everything that makes a run what it is."""

    data: DataConfig = Field(DataConfig(), description="What it learns from.")

    model: ModelConfig = Field(ModelConfig(), description="What the model is made of.")
    train: TrainConfig = Field(TrainConfig(), description="How it learns.")
    source: TokeniserConfig = Field(TokeniserConfig(), description="Symbols of the source.")
    target: TokeniserConfig = Field(TokeniserConfig(), description="Symbols of the target.")
