"""Tokenisers, batches and built-in tasks."""

import datetime
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data import PAD, START, STOP, TASKS, UNKNOWN, Batch, Examples, Tokeniser, batches

TEXTS = ["한국어 문장 하나.", "Hello, world (yes)!", "naïve café", "a <unk> <pad> b"]
KINDS = ["characters", "symbols", "words", "bpe", "unigram"]


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(tmp_path, kind):
    tokeniser = Tokeniser.train(TEXTS, kind, size=120)
    for text in TEXTS[:3]:
        encoded = tokeniser.encode(text)
        assert tokeniser.decode(encoded.ids) == text
        assert min(encoded.ids) > UNKNOWN
        assert tokeniser.encode_all([text]) == [encoded.ids]
        assert max(encoded.ids) < len(tokeniser)
    tokeniser.save(tmp_path / "t.json")
    assert Tokeniser.load(tmp_path / "t.json").encode(TEXTS[0]) == tokeniser.encode(TEXTS[0])


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_a_word_is_the_same_whatever_mark_follows_it(kind):
    texts = [f"{start}homme {verb}{end}" for start in ("l'", "d'", "un ") for verb in ("dort", "va") for end in ".,!"]
    tokeniser = Tokeniser.train(texts, kind, size=60)
    bare, marked = (tokeniser.encode(text).ids for text in ("un homme dort", "un homme dort."))
    assert marked[:-1] == bare
    assert tokeniser.decode(tokeniser.encode("l'homme va, d'homme!").ids) == "l'homme va, d'homme!"


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=30))
def test_any_text_has_spans_within_it_and_none_is_ours(kind, text):
    encoded = TRAINED[kind].encode(text)
    assert all(0 <= a <= b <= len(text) for a, b in encoded.spans)
    assert not {PAD, START, STOP} & set(encoded.ids)
    assert isinstance(TRAINED[kind].decode(encoded.ids), str)


TRAINED = {kind: Tokeniser.train(TEXTS, kind, size=120) for kind in KINDS}


def test_hangul_as_jamo_keeps_the_spans_of_its_syllables():
    tokeniser = Tokeniser.train(["한국", "국물"], "characters", form="NFD")
    encoded = tokeniser.encode("한국")
    assert len(encoded.ids) == 6
    assert encoded.spans == [(0, 1)] * 3 + [(1, 2)] * 3
    assert tokeniser.decode(encoded.ids) == "한국"


def test_what_is_unknown_is_told_apart():
    tokeniser = Tokeniser.train(["abc"], "characters")
    encoded = tokeniser.encode("axb")
    assert encoded.ids.count(UNKNOWN) == 1
    assert encoded.spans[encoded.ids.index(UNKNOWN)] == (1, 2)
    assert tokeniser.decode([START, *encoded.ids, STOP]) == "ab"


def test_bad_tokenisers(tmp_path):
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(ValueError, match=r"t.json: not a tokeniser"):
        Tokeniser.load(tmp_path / "t.json")
    with pytest.raises(ValueError, match="unknown tokeniser 'bp'; did you mean 'bpe'"):
        Tokeniser.train(["a"], "bp")


lengths = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=80)


@given(lengths, st.integers(8, 300), st.integers(0, 5))
def test_every_example_is_in_one_batch_and_no_batch_is_too_large(sizes, tokens, epoch):
    examples = Examples.of(([4] * s, [5] * t) for s, t in sizes)
    made = [b.tolist() for b in batches(examples, tokens, seed=1, epoch=epoch)]
    assert sorted(i for batch in made for i in batch) == list(range(len(examples)))
    for batch in made:
        source, target = (max(len(examples[i][side]) for i in batch) + 1 for side in (0, 1))
        assert len(batch) == 1 or len(batch) * (source + target) <= tokens
    assert made == [
        b.tolist() for b in batches(examples, tokens, seed=1, epoch=epoch)
    ]  # a pure function of (seed, epoch)


def test_a_batch_says_what_is_given_wanted_and_real():
    batch = Batch.of([([5, 6], [7]), ([8], [9, 10])])
    assert batch.source.tolist() == [[5, 6, STOP], [8, STOP, PAD]]
    assert batch.mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.given.tolist() == [[START, 7, PAD], [START, 9, 10]]
    assert batch.wanted.tolist() == [[7, STOP, PAD], [9, 10, STOP]]
    assert batch.real.tolist() == [[True, True, False], [True, True, True]]


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_pure_functions_of_their_seed_and_share_no_source(name):
    task = TASKS[name]
    assert task.pairs("train", seed=3, size=50) == task.pairs("train", seed=3, size=50)
    assert task.pairs("train", seed=3, size=50) != task.pairs("train", seed=4, size=50)
    parts = [{p.source for p in task.pairs(part, size=300)} for part in ("train", "dev", "test")]
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]
    with pytest.raises(ValueError, match="part: 'tset', expected one of train, dev, test"):
        task.pairs("tset")


@pytest.mark.parametrize(("name", "right"), [("copy", list), ("reverse", lambda s: s[::-1]), ("sort", sorted)])
def test_toys_are_right_and_know_their_alignment(name, right):
    for (source, target), alignment in TASKS[name].examples("train", size=100):
        assert target.split() == right(source.split())
        assert sorted(j for _, j in alignment) == list(range(len(target.split())))
        assert all(source.split()[i] == target.split()[j] for i, j in alignment)


def test_dates_are_read_in_many_languages_and_days_of_the_parts_are_apart():
    train, test = (TASKS["dates"].pairs(part, size=4000) for part in ("train", "test"))
    assert not {p.target for p in train} & {p.target for p in test}
    for _, target in train:
        assert 1900 <= datetime.date.fromisoformat(target).year < 2100
    assert any("년" in p.source for p in train)
    assert any("०" in p.source or "৭" in p.source or "٢" in p.source for p in train)  # native digits
    for source, _ in train:  # numbers alone come with their language
        assert source.startswith("[") or any(c.isalpha() for c in source)
    sample = random.Random(0).sample(train, 500)
    answers: dict[str, set[str]] = {}
    for source, target in sample:
        answers.setdefault(source, set()).add(target)
    assert all(len(a) == 1 for a in answers.values())  # nothing is ambiguous


def test_too_few_symbols_are_one_line():
    with pytest.raises(ValueError, match="size: 5 symbols of kind unigram cannot be learned"):
        Tokeniser.train(["the quick brown fox jumps over the lazy dog"], "unigram", size=5)
