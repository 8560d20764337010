"""The model room: an encoder puts a source into a `Memory`, a decoder writes while looking at it.

In come token numbers `[B, N]` (or, later, pictures); between the two stands the one `Memory`, whatever the source was.
`build` makes a model from its config on one readable page; `Counts` judge what it wrote. This room knows nothing of
files, text or training; it imports the attention room and the configs.
"""

from saccade.model.build import Model, build
from saccade.model.counts import Counts
from saccade.model.decoder import Decoder, Outputs, State, Step
from saccade.model.memory import Memory
from saccade.model.relatives import Lexicon

__all__ = ["Counts", "Decoder", "Lexicon", "Memory", "Model", "Outputs", "State", "Step", "build"]
