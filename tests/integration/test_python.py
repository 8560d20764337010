"""The Python interface: train, load, predictions."""

import io

import numpy as np
import pytest

import saccade
from saccade.data import TASKS
from saccade.search import Options

QUICK = {
    "model": {"width": 32, "dropout": 0.0},
    "train": {"steps": 30, "batch_tokens": 800, "evaluations": 2},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("python")


@pytest.fixture(scope="module")
def model(runs):
    rows = "".join(f"{s}\t{t}\n" for s, t in TASKS["reverse"].pairs("train", size=300))
    (runs / "pairs.tsv").write_text(rows)
    return saccade.train(runs / "pairs.tsv", runs / "run", model="luong", settings=QUICK, quiet=True)


def test_one_text_gives_one_prediction_and_a_list_gives_a_list(model):
    one = model("a b c")
    assert isinstance(one, saccade.Prediction)
    many = model(["a b c", "", "c b"])
    assert [p.source for p in many] == ["a b c", "", "c b"]
    assert many[0].text == one.text
    assert many[0].score == pytest.approx(one.score, abs=1e-4)
    assert (many[1].text, many[1].score) == ("", 0.0)


def test_weights_have_a_row_for_every_token_and_a_column_for_every_source_token(model):
    seen = model("a b c d")
    assert seen.weights.shape == (len(seen.target_tokens), 5)
    assert seen.attention["cross"].shape == (1, 1, *seen.weights.shape)
    assert np.allclose(seen.weights.sum(1), 1, atol=1e-5)
    assert [t.text for t in seen.source_tokens][:4] == ["a", "b", "c", "d"]
    assert sum(seen.log_probabilities) == pytest.approx(seen.score, abs=1e-4)


def test_an_option_that_is_misspelt_names_the_nearest(model):
    with pytest.raises(ValueError, match="unknown option 'beem'; did you mean 'beam'"):
        model("a b c", beem=3)


def test_what_might_have_stood_there_is_something_else(model):
    seen = model("a b c d")
    assert len(seen.runners_up) == len(seen.target_tokens)
    for token, others in zip(seen.target_tokens, seen.runners_up, strict=True):
        assert others
        assert token.text.strip() not in [text.strip() for text, _ in others]


def test_looking_never_changes_the_answer(model):
    texts = [p.source for p in TASKS["reverse"].pairs("test", size=30)]
    blind, seeing = model(texts, look=False), model(texts)
    assert [(p.text, p.score) for p in blind] == [(p.text, p.score) for p in seeing]
    assert blind[0].weights is None


def test_company_and_order_are_invisible(model):
    texts = [p.source for p in TASKS["reverse"].pairs("test", size=20)]
    together, turned = model(texts), model(texts[::-1])[::-1]
    assert [p.text for p in together] == [p.text for p in turned] == [model(t).text for t in texts]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_watches_is_told_of_every_batch_and_changes_nothing(model):
    texts = ["", *(p.source for p in TASKS["reverse"].pairs("test", size=100)), " "]
    told = []
    watched = model.translate(texts, Options(beam=2), watch=lambda *how_far: told.append(how_far))
    assert [p.text for p in watched] == [p.text for p in model.translate(texts, Options(beam=2))]
    assert told == [(0, 102), (66, 102), (102, 102)]  # what is empty is done at once
    model.score_all([(text, "a b") for text in texts[1:4]], watch=lambda *how_far: told.append(how_far))
    assert told[3:] == [(0, 3), (3, 3)]


def test_long_work_tells_how_far_it_is_in_a_terminal_alone(model, runs, tmp_path, monkeypatch, capsys):
    from saccade.cli import app, translation, words

    monkeypatch.setattr(words, "SOON", -1.0)
    monkeypatch.setattr(words, "OFTEN", -1.0)
    monkeypatch.setattr(translation, "CHUNK", 70)
    pairs = TASKS["reverse"].pairs("test", size=150)
    count = len({p.source for p in pairs})
    (tmp_path / "test.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    (tmp_path / "texts").write_text("".join(f"{s}\n" for s, _ in pairs))
    written = []
    for words_of, told in (
        (
            ["translate", str(runs / "run"), "--input", str(tmp_path / "texts")],
            ["texts: 64 of 150", "texts: 134 of 150"],
        ),
        (["evaluate", str(runs / "run"), str(tmp_path / "test.tsv")], [f"sources: 64 of {count}"]),
        (["compare", str(runs / "run"), str(tmp_path / "test.tsv"), "--json"], [f"sources: 64 of {count}"]),
    ):
        for screen in (io.StringIO(), Terminal()):
            monkeypatch.setattr("sys.stderr", screen)
            app([*words_of, "--beam", "1"], standalone_mode=False)
            written.append(capsys.readouterr().out)
            for line in told:
                assert (line in screen.getvalue()) == screen.isatty()
            assert "to go" not in screen.getvalue() or screen.getvalue().count("\r\033[K") > 1
        assert written[-1] == written[-2] != ""


def test_a_given_target_is_scored(model):
    best = model("a b c")
    again = model.score("a b c", best.text)
    assert again.score == pytest.approx(best.score, abs=1e-4)
    assert np.allclose(again.weights, best.weights, atol=1e-5)
    assert model.score("a b c", "z z z z z z z").score < best.score


def test_samples_are_seeded_and_depend_on_nothing_else(model):
    draw = {"sample": True, "nbest": 4, "seed": 5}
    one, again = model("a b c", **draw), model(["x y", "a b c", "q"], **draw)[1]
    assert one.text == again.text
    assert [a.text for a in one.alternatives] == [a.text for a in again.alternatives]
    other = model("a b c", sample=True, nbest=4, seed=6)
    assert {one.text, *(a.text for a in one.alternatives)} != {other.text, *(a.text for a in other.alternatives)}


def test_a_prefix_is_kept(model):
    assert model("a b c", prefix="q r").text.startswith("q r")
    with pytest.raises(ValueError, match="prefix q Ж: the model cannot write 'Ж'"):
        model("a b c", prefix="q Ж")


def test_a_given_target_that_is_too_long_is_said_to_be_cut(model):
    whole, cut = (model.score("a b", " ".join(["c"] * many)) for many in (model.most, model.most + 1))
    assert (whole.cut_output, cut.cut_output) == (False, True)
    assert len(cut.target_tokens) == len(whole.target_tokens) == model.most + 1


def test_every_alternative_shows_its_own_glances(model, tmp_path):
    """Law 2 for each hypothesis that is returned, whatever its rank."""
    for best in model(["a b c", "d", "c b a d"], nbest=4):
        for other in best.alternatives:
            forced = model.score(best.source, other.text)
            assert [t.text.strip() for t in other.target_tokens] == [t.text for t in forced.target_tokens]
            assert np.allclose(other.weights, forced.weights, atol=1e-5)
            assert sum(other.log_probabilities) == pytest.approx(other.score, abs=1e-4)
    other.save(tmp_path / "other.png")
    assert model("a b c", nbest=2, look=False).alternatives[0].weights is None


def test_nbest_are_ordered(model):
    best = model("a b c", nbest=4)
    scores = [p.score / (len(p.text.split()) + 1) for p in (best, *best.alternatives)]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"beam": 0}, "beam: 0"),
        ({"nbest": 9}, "nbest: 9, expected a number from 1 to beam=5"),
        ({"temperature": 0.5}, "add sample=True"),
        ({"sample": True, "temperature": 0}, "temperature: 0"),
        ({"sample": True, "top_p": 2}, "top_p: 2"),
    ],
)
def test_options_that_make_no_sense(model, options, says):
    with pytest.raises(ValueError, match=says):
        model("a", **options)


def test_runs_that_read_other_pieces_write_as_one(tmp_path):
    rows = "".join(f"{s}\t{t}\n" for s, t in TASKS["reverse"].pairs("train", size=300))
    (tmp_path / "pairs.tsv").write_text(rows)
    folders = []
    for kind in ("symbols", "characters"):
        folders.append(tmp_path / kind)
        settings = {**QUICK, "source": {"kind": kind}, "target": {"kind": "symbols"}}
        saccade.train(tmp_path / "pairs.tsv", folders[-1], model="luong", settings=settings, quiet=True)
    alone = [saccade.load(folder) for folder in folders]
    together = saccade.load(*folders)
    texts = ["a b c d", "x y", "", "q w e r t y"]
    for found in together(texts):
        if not found.source:
            assert found.text == ""
            continue
        assert [t.text for t in found.source_tokens] == [*found.source.split(), "∎"]
        assert found.weights.shape == (len(found.target_tokens), len(found.source_tokens))
        assert np.allclose(found.weights.sum(1), 1, atol=1e-5)
        forced = [model.score(found.source, found.text) for model in alone]
        by_symbol, by_character = (f.weights for f in forced)
        on_symbols = np.zeros_like(by_symbol)
        for n, token in enumerate(forced[1].source_tokens):  # blanks share no character with a symbol: to the end
            start = token.span[0]
            onto = -1 if start >= len(found.source) or found.source[start] == " " else start // 2
            on_symbols[:, onto] += by_character[:, n]
        assert np.allclose(found.weights, (by_symbol + on_symbols) / 2, atol=1e-4)
        chances = np.exp([f.log_probabilities for f in forced]).mean(0)
        assert found.score == pytest.approx(np.log(chances).sum(), abs=1e-3)
    thrice = saccade.load(*folders, folders[0])
    assert [voice.reader is thrice.source for voice in thrice.voices] == [True, False, True]
    both = np.exp([alone[i].score("a b c d", "d c b a").log_probabilities for i in (0, 1, 0)]).mean(0)
    assert thrice.score("a b c d", "d c b a").log_probabilities == pytest.approx(np.log(both), abs=1e-3)
    with pytest.raises(ValueError, match="coverage_penalty: these runs cut the source"):
        together("a b", coverage_penalty=1.0)
