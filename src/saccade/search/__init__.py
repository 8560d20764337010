"""The search room: from a Memory to the best thing to write.

In come models and the memories they made of a batch of sources; out come hypotheses, and by forced decoding what each
word of them cost and where the model looked for it. One batched implementation serves every model and every source; it
knows numbers, not text.
"""

from saccade.search.beam import Hypothesis, beam_search
from saccade.search.force import Forced, force

__all__ = ["Forced", "Hypothesis", "beam_search", "force"]
