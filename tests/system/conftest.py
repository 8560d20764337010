"""What several system tests need."""

import pytest
from PIL import Image

import saccade

LEARNING = {"steps": 150, "batch_tokens": 400, "evaluations": 1, "learning_rate": 1e-2}
TINY = {"model": {"width": 32, "family": "luong", "dropout": 0.0}, "train": LEARNING}


@pytest.fixture(scope="session")
def letters(tmp_path_factory):
    """A model that has learned very little: what it says matters less than that it says something."""
    folder = tmp_path_factory.mktemp("runs") / "letters"
    soft = {**TINY["model"], "walk": False}  # a walk over hundreds of letters, which tests send, takes long
    saccade.train("copy", folder, settings={**TINY, "model": soft}, quiet=True)
    return folder


@pytest.fixture(scope="session")
def more_letters(tmp_path_factory):
    """Another one, for what compares."""
    folder = tmp_path_factory.mktemp("runs") / "more"
    saccade.train("copy", folder, settings={**TINY, "model": {**TINY["model"], "family": "transformer"}}, quiet=True)
    return folder


@pytest.fixture(scope="session")
def colours(tmp_path_factory):
    """A model of pictures that has seen a few coloured squares; and the folder of the squares."""
    pictures = tmp_path_factory.mktemp("squares")
    names = ("red", "green", "blue", "yellow")
    for i in range(24):
        Image.new("RGB", (40 + i, 32), names[i % 4]).save(pictures / f"{i}.png")
    lines = [f"{i}.png\ta {names[i % 4]} square" for i in range(24)]
    (pictures / "captions.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    folder = tmp_path_factory.mktemp("runs") / "colours"
    image = {"height": 32, "width": 64, "channels": 16}
    settings = {"model": TINY["model"], "train": {**LEARNING, "steps": 30}, "image": image}
    saccade.train(pictures, folder, settings=settings, quiet=True)
    return folder, pictures
