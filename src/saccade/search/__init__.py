"""The search room: from a Memory to the best thing to write.

In come models and the memories they made of a batch of sources; out come hypotheses, and by forced decoding what each
word of them cost and where the model looked for it. One batched implementation serves every model and every source. It
knows numbers; text is a matter of its door, the `Translator`, with what reads and what tells for it.
"""

from saccade.search.beam import Hypothesis, Sampling, beam_search
from saccade.search.force import Forced, force
from saccade.search.occlusion import occlude
from saccade.search.options import Options
from saccade.search.reading import AT_ONCE, Voice
from saccade.search.translator import GROWTH, PICTURED, ROOM, Translator

__all__ = [
    "AT_ONCE",
    "GROWTH",
    "PICTURED",
    "ROOM",
    "Forced",
    "Hypothesis",
    "Options",
    "Sampling",
    "Translator",
    "Voice",
    "beam_search",
    "force",
    "occlude",
]
