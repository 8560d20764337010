"""Does it look at what it says? The pointing score, on scenes whose content is known."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from saccade.data.scenes import Box, Scene, Thing, scene
from saccade.evaluate.scenes import cells_in, pointing, scene_scores
from saccade.see import Prediction, Token

GRID = (8, 8)
Look = Callable[[Thing | None], NDArray[np.float32]]  # where a word looks [8, 8] that names this thing, or none


def written(what: Scene, look: Look | None, caption: str | None = None) -> Prediction:
    """A caption of a scene, a true one unless another is given, with these looks."""
    caption = what.captions(1)[0] if caption is None else caption
    words = [Token(m[0], m.span()) for m in re.finditer(r"\S+", caption)]
    named = what.mentions(caption) or []

    def thing(word: Token) -> Thing | None:
        return next((m.thing for m in named if m.start <= word.span[0] < m.end), None)

    ended = (*words, Token("∎", (len(caption), len(caption))))
    cross = None if look is None else np.stack([look(thing(w)).ravel() for w in ended])[None, None]  # [1, 1, T, N]
    return Prediction(what.name, caption, 0.0, target_tokens=ended, cross=cross, grid=GRID)


def at(thing: Thing | None) -> NDArray[np.float32]:
    """All of it on the cell in the middle of a thing; of what names nothing, in a corner."""
    weights = np.zeros(GRID, np.float32)
    across, down = (0.0, 0.0) if thing is None else thing.centre
    weights[int(down * GRID[0]), int(across * GRID[1])] = 1
    return weights


def everywhere(_thing: Thing | None) -> NDArray[np.float32]:
    return np.full(GRID, 1 / 64, np.float32)


def scenes(count: int, part: str = "dev") -> list[Scene]:
    return [scene(f"scenes:{part}:{i}") for i in range(count)]


def test_who_looks_at_each_thing_while_naming_it_points_always():
    found = scene_scores([written(s, at) for s in scenes(30)])
    assert found["true"] == found["pointing"] == 100
    assert found["mass"] > 90  # of some cells a part lies beside the thing
    assert found["pointing_chance"] == found["mass_chance"] < 15


def test_words_that_name_nothing_are_not_counted():
    what = scenes(1)[0]
    told = written(what, at)
    names = [told.text[m.start : m.end] for m in what.mentions(told.text)]
    assert len(pointing(what, told)) == len(" ".join(names).split()) < len(told.target_tokens)


def test_who_looks_at_another_thing_does_not_point():
    for what in scenes(10):

        def elsewhere(thing: Thing | None, what: Scene = what) -> NDArray[np.float32]:
            return at(next(t for t in what.things if t != thing))

        found = scene_scores([written(what, elsewhere)])
        assert found["true"] == 100
        assert found["pointing"] == found["mass"] == 0


def test_who_looks_everywhere_alike_has_as_much_mass_as_chance_gives():
    found = scene_scores([written(s, everywhere) for s in scenes(30)])
    assert found["mass"] == pytest.approx(found["mass_chance"], abs=1e-4)


def test_who_looks_anywhere_points_as_often_as_chance_does():
    """A bound, over some 2,500 words: three deviations are 1.5 of a hundred."""
    chance = np.random.default_rng(0)

    def anywhere(_thing: Thing | None) -> NDArray[np.float32]:
        return np.eye(64, dtype=np.float32)[chance.integers(64)].reshape(GRID)

    found = scene_scores([written(s, anywhere) for s in scenes(400)])
    assert abs(found["pointing"] - found["pointing_chance"]) < 2


def test_what_is_not_true_points_at_nothing():
    what = scenes(1)[0]
    for caption in ("a red dog is left of a blue cat", ""):
        found = scene_scores([written(what, at, caption)])
        assert found["true"] == found["pointing"] == found["mass"] == 0
        assert 0 < found["pointing_chance"] < 100


def test_pairs_that_training_never_showed_are_also_told_apart():
    some = scenes(40, "test")
    new = [s.unseen for s in some]
    assert 5 < sum(new) < 35
    found = scene_scores([written(s, at, "nonsense" if s.unseen else None) for s in some])
    assert found["true_unseen"] == found["named_unseen"] == 0
    assert found["true"] == pytest.approx(100 * (40 - sum(new)) / 40)
    assert "true_unseen" not in scene_scores([written(s, at) for s in scenes(10)])
    said = [(s, c) for s in some if s.unseen for c in s.captions(5)]
    for names in (True, False):  # both are true, but only who names the pair shows that it was seen
        chosen = [(s, c) for s, c in said if any(m.thing.unseen for m in s.mentions(c)) is names]
        found = scene_scores([written(s, at, c) for s, c in chosen])
        assert (found["true_unseen"], found["named_unseen"]) == (100, 100 if names else 0)


def test_a_model_that_looks_nowhere_has_no_such_figures():
    assert set(scene_scores([written(s, None) for s in scenes(5)])) == {"true"}


def test_a_cell_counts_by_its_share_in_the_box():
    inside = cells_in(Box(0.25, 0.0, 0.75, 0.5), (2, 2))
    assert inside.tolist() == [[0.5, 0.0], [0.5, 0.0]]
    assert cells_in(Box(0.1, 0.2, 0.6, 0.9), GRID).sum() / 64 == pytest.approx(0.5 * 0.7)
