"""The data room: from files and generators to batches of numbers.

In come paths or the names of built-in tasks; out come pairs of strings, tokenisers that keep character spans, and
batches of equal work. A line that cannot be used is skipped, counted and reported with its file and number, never in
silence. This room imports the errors and configs; its tensors begin where batches do.
"""

from saccade.data.batches import Batch, batches
from saccade.data.choose import Choice, choose_tokenisers
from saccade.data.corpus import Material, Source, gather, numbered, readable
from saccade.data.examples import MOST_TOKENS, Examples, Numbers, cached, tokenise
from saccade.data.pairs import Corpus, Pair, Skipped, split, spread, swapped
from saccade.data.pictures import Fitted, Frame, Pictures, Watch, unwatched
from saccade.data.readers import read_pairs, stream_pairs
from saccade.data.tasks import TASKS, Example, PictureTask, Task, load_source, measure
from saccade.data.tokenisers import PAD, START, STOP, UNKNOWN, Encoded, Tokeniser

__all__ = [
    "MOST_TOKENS",
    "PAD",
    "START",
    "STOP",
    "TASKS",
    "UNKNOWN",
    "Batch",
    "Choice",
    "Corpus",
    "Encoded",
    "Example",
    "Examples",
    "Fitted",
    "Frame",
    "Material",
    "Numbers",
    "Pair",
    "PictureTask",
    "Pictures",
    "Skipped",
    "Source",
    "Task",
    "Tokeniser",
    "Watch",
    "batches",
    "cached",
    "choose_tokenisers",
    "gather",
    "load_source",
    "measure",
    "numbered",
    "read_pairs",
    "readable",
    "split",
    "spread",
    "stream_pairs",
    "swapped",
    "tokenise",
    "unwatched",
]
