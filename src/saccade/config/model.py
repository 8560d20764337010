"""What a model is made of."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from saccade.config.base import Config

Family = Literal["seq2seq", "bahdanau", "luong", "transformer"]
Cell = Literal["rnn", "gru", "lstm"]
CellNorm = Literal["none", "layer", "batch"]
Score = Literal["additive", "concat", "cosine", "dot", "general", "location", "scaled_dot"]
Share = Annotated[float, Field(ge=0, lt=1)]


class ModelConfig(Config):
    """What a model is made of."""

    family: Family = Field(
        "luong", description="Without attention (seq2seq), or with it: who asks, and what becomes of the answer."
    )
    width: PositiveInt = Field(
        256, description="Width of states: of the decoder, and of the encoder with its directions together."
    )
    embedding: PositiveInt | None = Field(
        None, description="Width of word vectors of a recurrent model; the width, if not given."
    )
    layers: Annotated[int, Field(gt=0, le=1000)] = Field(1, description="Layers of the encoder, and of the decoder.")
    dropout: Share = Field(0.2, description="Share of the features that training leaves out.")
    both_ways: bool = Field(
        False,
        description="Whether a second decoder writes the target from its end; a beam then looks for what both like.",
    )
    counts: bool = Field(
        False,
        description="Whether it is also counted which symbols of source and target go together, and in what company; "
        "a beam then looks for what the counts like too.",
    )
    relatives: bool = Field(
        False,
        description="Whether each symbol of a source is also told what it stood for in other words that begin, or end, "
        "as this one does; what that was is told by counts.",
    )
    tied: bool = Field(False, description="Whether the output layer uses the word vectors of the target.")

    groups: NonNegativeInt = Field(
        0, description="Largest group of neighbouring symbols of the source that has a vector of its own; 0: none."
    )
    group_rows: PositiveInt = Field(32_768, description="How many vectors there are for groups; several may share one.")
    cell: Cell = Field("lstm", description="Recurrent cell: plain RNN, GRU or LSTM.")
    bidirectional: bool = Field(True, description="Whether a recurrent encoder also reads from the right.")
    cell_norm: CellNorm = Field(
        "none", description="What the sums inside a recurrent cell are normalised over: the features, or the batch."
    )
    between_norm: bool = Field(False, description="Whether each recurrent layer's output is layer-normalised.")
    variational: bool = Field(
        False, description="Whether recurrent dropout leaves out the same features at every word of a sentence."
    )
    residual: bool = Field(False, description="Whether recurrent layers above the first add to what they were given.")
    score: Score = Field("general", description="How a recurrent decoder compares its state with the memory.")
    heads: PositiveInt = Field(1, description="How many looks are taken side by side.")
    feed: bool = Field(True, description="Luong: whether the decoder is also fed what it made of its last glance.")
    walk: bool = Field(
        False,
        description="Luong without feeding: whether it looks at one place for each word, a short way from the last, "
        "and all walks over the source are summed; for targets that keep step with their source.",
    )
    normalise: Literal["softmax", "sparsemax", "entmax15", "hard"] = Field(
        "softmax", description="From scores to weights, in a recurrent decoder; hard looks at one place alone."
    )
    gate: bool = Field(
        False, description="Whether a recurrent decoder decides at each word how much of its glance to let in."
    )
    coverage: bool = Field(
        False, description="Whether attention minds what it looked at before; recurrent decoders only."
    )
    max_length: PositiveInt = Field(512, description="The longest source for score location and learned positions.")

    shown_layer: NonNegativeInt | None = Field(
        None, description="Whose glances are shown, from 0; of a transformer the last layer but one, if not given."
    )

    hidden: PositiveInt | None = Field(
        None, description="Transformer: width inside the feed-forward part; four times the width, if not given."
    )
    norm: Literal["pre", "post"] = Field("pre", description="Transformer: normalise before each part or after.")
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = Field(
        "sinusoidal", description="Transformer: how it knows the order; none: not at all, to see what that costs."
    )

    @property
    def longest_source(self) -> int | None:
        """The most tokens that the model can read, if there is a limit at all."""
        if self.family == "transformer":
            return self.max_length if self.positions == "learned" else None
        return self.max_length if self.score == "location" and self.family != "seq2seq" else None

    @property
    def can_walk(self) -> bool:
        """Whether nothing stands against looking at one place at a time."""
        return self.family == "luong" and all(getattr(self, name) == wanted for name, wanted in ALONE.items())

    @property
    def glances(self) -> int:
        """The layer whose glances are shown: the last but one aligns best in a transformer (Garg et al. 2019)."""
        if self.family != "transformer":
            return 0
        return max(0, self.layers - 2) if self.shown_layer is None else self.shown_layer

    @model_validator(mode="before")
    @classmethod
    def _implied(cls, given: Any) -> Any:
        """Who asks for a walk means no feeding, which looks at many places at once; relatives are found by counts."""
        if isinstance(given, dict) and given.get("walk") is True and given.get("family", "luong") == "luong":
            given = {"feed": False, **given}
        if isinstance(given, dict) and given.get("relatives") is True:
            given = {"counts": True, **given}
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in sorted(self.model_fields_set):
            if self.family not in OWNERS.get(name, FAMILIES):
                owners = " and ".join(OWNERS[name])
                raise ValueError(f"{name}: only for {owners}, but the family is {self.family}")
        if self.shown_layer is not None and self.shown_layer >= self.layers:
            raise ValueError(f"shown_layer: {self.shown_layer}, but there are layers 0 to {self.layers - 1}")
        if self.walk:
            for name, wanted in ALONE.items():
                if getattr(self, name) != wanted:
                    raise ValueError(f"walk: goes with {name}={str(wanted).lower()}")
        if self.relatives and not self.counts:
            raise ValueError("relatives: goes with counts=true, which tell what a symbol stands for")
        if self.groups == 1:
            raise ValueError("groups: 1, but a group has at least two symbols; 0 for none")
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads}, expected a number that divides width={self.width}")
        if self.bidirectional and self.family != "transformer" and self.width % 2:
            raise ValueError(f"width: {self.width}, expected an even number, half for each direction")
        if self.tied and self.family != "transformer" and (self.embedding or self.width) != self.width:
            raise ValueError(f"tied: needs embedding={self.embedding} and width={self.width} to be equal")
        return self

    def settings(self) -> dict[str, Any]:
        """Every setting that belongs to the family."""
        return {k: v for k, v in self.model_dump(exclude_none=True).items() if self.family in OWNERS.get(k, FAMILIES)}


ALONE = {"feed": False, "heads": 1, "gate": False, "coverage": False}  # what a walk goes with
FAMILIES: tuple[Family, ...] = get_args(Family)
_RECURRENT: tuple[Family, ...] = ("seq2seq", "bahdanau", "luong")
_LOOKING: tuple[Family, ...] = ("bahdanau", "luong")
OWNERS: dict[str, tuple[Family, ...]] = {  # settings of some families only
    **dict.fromkeys(
        (
            "embedding",
            "groups",
            "group_rows",
            "relatives",
            "cell",
            "bidirectional",
            "cell_norm",
            "between_norm",
            "variational",
            "residual",
        ),
        _RECURRENT,
    ),
    **dict.fromkeys(("score", "coverage", "normalise", "gate"), _LOOKING),
    "heads": (*_LOOKING, "transformer"),
    "max_length": (*_LOOKING, "transformer"),
    **dict.fromkeys(("feed", "walk"), ("luong",)),
    **dict.fromkeys(("shown_layer", "hidden", "norm", "positions"), ("transformer",)),
}
