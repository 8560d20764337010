"""The train room: from pairs to a run folder, in a number of steps that is fixed before the first.

In come pairs and settings; out comes a folder of plain files. From the same plan, on the same machine, with the same
number of threads, the weights are the same bits however often the run was killed and resumed.
"""

import sys
from types import ModuleType
from typing import Any

from saccade.search import Translator
from saccade.train.loop import Progress, Stopped, train
from saccade.train.plan import Plan
from saccade.train.run import Run, load
from saccade.train.start import start

__all__ = ["Plan", "Progress", "Run", "Stopped", "load", "start", "train"]


class _Room(ModuleType):
    """`saccade.train` is this room and, called, what the room is for: a module found by name is in the way of a
    function of that name, so it answers for it.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Translator:
        from saccade.train.api import train  # noqa: PLC0415

        return train(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
