"""The evaluate room: a run on a test set. How good is it, how sure is that, for which lengths, and how does it look?

In come a translator and pairs; out comes a `Report` that prints itself or gives one JSON object. It imports every room
below it.
"""

from saccade.evaluate.attention import Health, Judged, health, judge
from saccade.evaluate.compare import (
    System,
    against,
    comparison_record,
    likely,
    of_outputs,
    of_run,
    read_outputs,
)
from saccade.evaluate.pages import comparison_page, report_page
from saccade.evaluate.report import NAMES, TEXT, Report, counted, evaluate

__all__ = [
    "NAMES",
    "TEXT",
    "Health",
    "Judged",
    "Report",
    "System",
    "against",
    "comparison_page",
    "comparison_record",
    "counted",
    "evaluate",
    "health",
    "judge",
    "likely",
    "of_outputs",
    "of_run",
    "read_outputs",
    "report_page",
]
