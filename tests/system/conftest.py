"""What several system tests need."""

import pytest

import saccade

TINY = {"model": {"width": 16, "family": "luong"}, "train": {"steps": 30, "batch_tokens": 400, "evaluations": 1}}


@pytest.fixture(scope="session")
def letters(tmp_path_factory):
    """A model that has learned next to nothing: what it says matters less than that it says it."""
    folder = tmp_path_factory.mktemp("runs") / "letters"
    saccade.train("copy", folder, settings=TINY, quiet=True)
    return folder
