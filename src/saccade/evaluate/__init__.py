"""The evaluate room: a run on a test set. How good is it, how sure is that, and for which lengths?

In come a translator and pairs; out comes a `Report` that prints itself or gives one JSON object. It imports every room
below it.
"""

from saccade.evaluate.report import Report, evaluate

__all__ = ["Report", "evaluate"]
