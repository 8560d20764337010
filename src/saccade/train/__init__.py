"""The train room: from pairs to a run folder, in a number of steps that is fixed before the first.

In come pairs and a config; out comes a folder of plain files. From the same plan, on the same machine, with the same
number of threads, the weights are the same bits however often the run was killed and resumed.
"""

from saccade.train.loop import Progress, train
from saccade.train.plan import Plan
from saccade.train.run import Run

__all__ = ["Plan", "Progress", "Run", "train"]
