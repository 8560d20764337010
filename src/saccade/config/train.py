"""How a model is trained, and the whole of a run."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from saccade.config.base import Config
from saccade.config.image import ImageConfig
from saccade.config.model import ModelConfig, Share

Epochs = Annotated[float, Field(gt=0, le=1_000_000)]


class TrainConfig(Config):
    """How long and how fast to learn."""

    minutes: Annotated[float, Field(gt=0, le=100_000)] | None = Field(
        None, description="Wall-clock budget of the whole command; the schedule is planned to end inside it."
    )
    epochs: Epochs | None = Field(None, description="How often every pair is seen, in place of minutes.")
    steps: Annotated[int, Field(gt=0, le=10**12)] | None = Field(
        None, description="How many updates are made, in place of minutes."
    )
    most_epochs: Epochs | None = Field(
        None,
        description="With minutes: plan no more epochs than that, however much time is left; at least 3,000 steps.",
    )
    batch_tokens: PositiveInt = Field(4000, description="Tokens of source and target in a batch, padding counted.")
    learning_rate: PositiveFloat = Field(2e-3, description="Peak, reached after warm-up.")
    schedule: Literal["cosine", "inverse_sqrt"] = Field(
        "cosine", description="How the learning rate falls from there: to nearly 0, or with the root of the steps."
    )
    warmup: Share = Field(0.1, description="Share of the updates in which the learning rate rises.")
    clip: PositiveFloat = Field(
        1.0, allow_inf_nan=True, description="Longest gradient: longer ones are shortened to it; inf: never."
    )
    label_smoothing: Share = Field(0.1, description="Share of the probability given to all other tokens.")
    scheduled_sampling: Share = Field(
        0.0, description="Share of the words, at the end, that are the model's own choice in place of the true ones."
    )
    word_dropout: Share = Field(
        0.0, description="Share of the words already written that training hides, so that the source has to tell."
    )
    consistency: NonNegativeFloat = Field(
        0.0,
        description="Read each pair twice, other things dropped each time, and ask both to agree this much: R-Drop.",
    )
    doubly_stochastic: NonNegativeFloat = Field(
        0.0, description="How much it costs not to look at every place about once in all (Xu et al. 2015)."
    )
    diagonal: NonNegativeFloat = Field(
        0.0,
        description="How much it costs at first, and less and less, to look far from where a target in step with its "
        "source would look (guided attention); of wide pictures, from left to right.",
    )
    weight_decay: NonNegativeFloat = Field(0.01, description="How fast weights shrink (AdamW).")
    average: Share = Field(
        0.99, description="How slowly the weights that are kept follow those that learn; 0: they are the same."
    )
    evaluations: PositiveInt = Field(10, description="How often the dev set is looked at, and a checkpoint written.")
    patience: PositiveInt | None = Field(
        None, description="Stop after so many looks at the dev set that found nothing better; if not given, never."
    )
    tensorboard: bool = Field(False, description="Whether to write RUN/tensorboard too; needs saccade[tensorboard].")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="What products of matrices are computed in while it learns; all else stays float32. "
        "If not given, bfloat16 on a processor that has instructions for it.",
    )
    device: str = Field("cpu", description="Where it learns: cpu, or what torch knows of besides, such as cuda.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        0, description="Decides the first weights, the order of the batches and what dropout leaves out."
    )

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        given = {name: value for name in LENGTHS if (value := getattr(self, name)) is not None}
        if len(given) > 1:
            listed = " and ".join(f"{name}={value:g}" for name, value in given.items())
            raise ValueError(f"{listed}: one of them decides; leave out the other")
        return self


LENGTHS = ("minutes", "epochs", "steps")  # any one of them says how long to train


class TokeniserConfig(Config):
    """What counts as one symbol."""

    kind: Literal["characters", "symbols", "words", "bpe", "unigram"] = Field(
        "characters", description="Characters, symbols between blanks, words, or learned pieces."
    )
    size: Annotated[int, Field(gt=0, le=10**9)] = Field(8000, description="Most symbols of words, bpe and unigram.")
    form: Literal["NFC", "NFD", "NFKC"] = Field("NFC", description="Unicode form; NFD takes Hangul apart into jamo.")
    lower: bool = Field(False, description="Whether upper case is read as lower case.")

    @property
    def spelt(self) -> bool:
        """Whether words are spelt in these symbols, so that an output is right or wrong as a whole."""
        return self.kind in ("characters", "symbols")


Column = PositiveInt | tuple[PositiveInt, ...]
Paths = Annotated[list[str], BeforeValidator(lambda paths: [paths] if isinstance(paths, str) else paths)]


class DataConfig(Config):
    """What it learns from."""

    train: Paths = Field(
        default_factory=list, description="A file of pairs, two parallel files, or the name of a built-in task."
    )
    dev: Paths = Field(
        default_factory=list, description="The same to measure progress on; if not given, a part of train."
    )
    columns: tuple[Column, Column] | None = Field(
        None, description="Where source and target stand in a table, from 1; several of a side are joined: [[1, 3], 2]."
    )
    langs: tuple[str, str] | None = Field(
        None, description="Languages of source and target; they choose where TMX, JSON keys or a header name several."
    )
    names: tuple[str, str] | None = Field(
        None,
        description="What source and target are called: they choose in every file that calls them so; if not given, "
        "what train calls them.",
    )
    content: str | None = Field(None, description="A hash of all pairs, written when a run begins.")
    growth: Annotated[float, Field(ge=0, le=100_000)] = Field(
        2.0,
        description="An output is cut off after so many tokens for each of its source, 40 of a picture, and 20 more; "
        "if not given, what the pairs need.",
    )
    strict: bool = Field(False, description="Whether a line that cannot be used is an error.")


class RunConfig(Config):
    """Everything that makes a run what it is."""

    format: Literal[1] = Field(1, description="Version of the run folder.")
    data: DataConfig = Field(DataConfig(), description="What it learns from.")
    model: ModelConfig = Field(ModelConfig(), description="What the model is made of.")
    train: TrainConfig = Field(TrainConfig(), description="How it learns.")
    source: TokeniserConfig = Field(TokeniserConfig(), description="Symbols of the source, unless it is a picture.")
    image: ImageConfig | None = Field(None, description="How pictures are read, if the source is one.")
    target: TokeniserConfig = Field(TokeniserConfig(), description="Symbols of the target.")
    shared: bool = Field(False, description="Whether both sides have the same symbols, learned from both together.")

    @model_validator(mode="after")
    def _looks(self) -> Self:
        for name in ("walk", "groups", "relatives", "counts"):
            if self.image is not None and getattr(self.model, name):
                raise ValueError(f"model.{name}: is about places in a row, and the sources are pictures")
        for name in ("diagonal", "doubly_stochastic"):
            if getattr(self.train, name) and self.model.family == "seq2seq":
                raise ValueError(f"train.{name}: is about where a model looks, and seq2seq looks nowhere")
        if self.train.diagonal and self.image is not None and not self.image.wide:
            raise ValueError(
                "train.diagonal: is about lines of writing, and these pictures are not wide enough for one"
            )
        return self

    def settings(self) -> dict[str, Any]:
        """Every setting, as config.toml has it."""
        settings = {**self.model_dump(exclude_none=True, mode="json"), "model": self.model.settings()}
        if self.image is not None:
            del settings["source"]
        return settings
