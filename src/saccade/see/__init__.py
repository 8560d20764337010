"""The see room: what was written, where it was looked at, and ways to show it.

In come plain strings, numbers and NumPy arrays, put together by the search; out come a `Prediction` and its views: a
record, a page, a picture, a heatmap in the terminal. It imports NumPy, and matplotlib when a picture is asked for; no
torch, so that a saved record can be looked at anywhere.
"""

from saccade.see.alignment import align, words
from saccade.see.interchange import from_links, read_soft, write_links, write_soft
from saccade.see.page import page
from saccade.see.prediction import VERSION, Branch, Prediction, Token
from saccade.see.terminal import heatmap

__all__ = [
    "VERSION",
    "Branch",
    "Prediction",
    "Token",
    "align",
    "from_links",
    "heatmap",
    "page",
    "read_soft",
    "words",
    "write_links",
    "write_soft",
]
