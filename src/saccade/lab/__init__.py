"""The lab: the lecture notes' claims as things that anyone re-runs. It imports every room below it, and only those."""
