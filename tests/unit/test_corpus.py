"""What a run learns from: nothing leaks, large corpora read like small ones, and the cache is whole or absent."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import saccade.data.corpus as corpus_module
import saccade.data.order as order_module
from saccade.data import TASKS, Examples, Pair, Source, Tokeniser, choose_tokenisers, gather, read_pairs, tokenise
from saccade.data.examples import cached
from saccade.data.order import order
from saccade.files import part

PAIRS = [Pair(f"word {i} {i * 7 % 13}", f"target {i * 3 % 17}") for i in range(400)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS) + "one column\n")
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tokenisers():
    return Tokeniser.train([p.source for p in PAIRS], "characters"), Tokeniser.train([p.target for p in PAIRS], "words")


def as_lists(examples):
    return [examples[i] for i in range(len(examples))]


@given(st.lists(st.tuples(st.lists(st.integers(0, 2**31 - 1), max_size=5), st.lists(st.integers(0, 9), max_size=5))))
def test_examples_come_back_as_they_went(numbers):
    examples = Examples.of(numbers)
    assert [tuple(e) for e in as_lists(examples)] == numbers
    assert [n.tolist() for n in examples.lengths()] == [[len(s) for s, _ in numbers], [len(t) for _, t in numbers]]


def test_a_corpus_too_large_for_memory_reads_like_a_small_one(file, cache, monkeypatch):
    monkeypatch.setattr("saccade.data.corpus.SAMPLE", 50)
    monkeypatch.setattr("saccade.data.corpus.DEV_SHARE", 0.1)
    small, large = gather(Source([str(file)]), None), gather(Source([str(file)]), None, large=0)
    assert len(large.sample) < 50 < large.count == small.count
    assert list(large) == list(small)
    assert large.dev == small.dev
    assert not {p.source for p in large} & {p.source for p in large.dev}
    assert [s.line for s in large.skipped.skipped] == [401]
    both = tokenisers()
    assert as_lists(large.examples(*both)) == as_lists(small.examples(*both))
    assert len(list(cache.iterdir())) == 1
    assert isinstance(large.examples(*both).source, np.memmap)
    assert len(list(cache.iterdir())) == 1  # made once
    file.write_text(file.read_text() + "new\tpair\n")
    changed = gather(Source([str(file)]), None, large=0)
    changed.examples(*both)
    assert len(list(cache.iterdir())) == 2  # another content, another cache


def test_what_was_left_out_of_a_cache_is_said_whenever_it_is_read(file, cache, tmp_path, monkeypatch):
    monkeypatch.setattr("saccade.data.corpus.SAMPLE", 50)
    file.write_text(file.read_text() + f"{'long' * 300}\ttarget\n")
    (tmp_path / "dev.tsv").write_text(f"word 1\ttarget 1\n{'dev' * 400}\ttarget\n")
    dev, both = Source([str(tmp_path / "dev.tsv")]), tokenisers()
    for path in (file, file, tmp_path / "moved.tsv"):
        if path != file:
            file.rename(path)
        material = gather(Source([str(path)]), dev, large=0)
        material.untold()
        assert len(material.examples(*both)) == len(material.examples(*both)) == 400
        (said,) = material.untold()
        assert said.startswith(f"skipped 2 pairs: more than 1,024 symbols ({tmp_path / 'dev.tsv'} devdev")
        assert f", {path} longlong" in said
    assert len(list(cache.iterdir())) == 1
    material.source.strict = True
    material.skipped.skipped.clear()
    with pytest.raises(ValueError, match=r"moved.tsv: more than 1,024 symbols: longlong.*leave out --strict"):
        material.examples(*both)


def test_a_cache_that_fails_leaves_nothing_behind(cache):
    def broken():
        yield from PAIRS[:3]
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cached(broken(), *tokenisers(), "key")
    assert list(cache.iterdir()) == []


def test_what_a_killed_process_left_in_the_cache_is_removed(cache):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    dead, living = str(done.pid), str(os.getppid())
    left, recent, alive = (
        cache / part(name).replace(f".{os.getpid()}.", f".{process}.")
        for name, process in (("a", dead), ("b", dead), ("c", living))
    )
    for folder in (left, recent, alive):
        folder.mkdir(parents=True)
        (folder / "source").write_text("half")
        for path in (folder / "source", folder):
            os.utime(path, (0, 0))
    os.utime(recent / "source")  # perhaps by a process of another machine
    cached(PAIRS, *tokenisers(), "key")
    assert [p for p in (left, recent, alive) if p.exists()] == [recent, alive]


def test_a_dev_file_that_repeats_train_is_noticed(file, tmp_path):
    (tmp_path / "dev.tsv").write_text("word 1 7\tx\nword 1 7\ty\nnew\tz\n")
    material = gather(Source([str(file)]), Source([str(tmp_path / "dev.tsv")]))
    assert material.leaked == 1
    assert len(material.dev) == 3


def test_one_source_is_too_few(tmp_path):
    (tmp_path / "one.tsv").write_text("a\tb\na\tc\n")
    with pytest.raises(ValueError, match="only one source"):
        gather(Source([str(tmp_path / "one.tsv")]), None)


def test_a_task_that_is_misspelt_is_no_missing_file_alone(tmp_path):
    with pytest.raises(ValueError, match="date: no such file; did you mean the built-in task 'dates'"):
        Source([str(tmp_path / "date")]).stream()


def titled(first, second):
    return f"{first},{second}\n" + "".join(f"{first} {i},{second} {i}\n" for i in range(3))


def records(first, second):
    return "".join(json.dumps({first: f"{first} {i}", second: f"{second} {i}"}) + "\n" for i in range(3))


def units(first, second):
    sides = ("".join(f'<tuv xml:lang="{s}"><seg>{s} {i}</seg></tuv>' for s in (first, second)) for i in range(3))
    return "<tmx><body>" + "".join(f"<tu>{both}</tu>" for both in sides) + "</body></tmx>"


@pytest.mark.parametrize("kind", [titled, records, units])
@pytest.mark.parametrize("other", [titled, records, units])
def test_names_decide_which_side_is_which_and_not_their_order(tmp_path, kind, other):
    train, dev = tmp_path / "train", tmp_path / "dev"
    train.write_text(kind("ko", "en"))
    dev.write_text(other("en", "ko"))
    found = gather(Source([str(train)]), Source([str(dev)]))
    assert found.source.names == ("ko", "en")
    assert [p.source for p in found.dev] == [p.source for p in found.sample] == ["ko 0", "ko 1", "ko 2"]
    langs = gather(Source([str(train)]), Source([str(dev)], langs=("en", "ko")))  # who says so knows better
    assert langs.dev[0] == ("en 0", "ko 0")
    dev.write_text(other("de", "ko"))
    assert gather(Source([str(train)]), Source([str(dev)])).dev[0] == ("de 0", "ko 0")  # not those names


def test_names_choose_among_more(tmp_path):
    train, dev = tmp_path / "train", tmp_path / "dev"
    train.write_text(titled("Korean", "English"))
    dev.write_text("id\tenglish\tkorean\n1\ta\tb\n")
    assert gather(Source([str(train)]), Source([str(dev)])).dev == [("b", "a")]
    train.write_text("word\tword\na\tb\nc\td\n")  # two names that are one name nothing
    found = gather(Source([str(train)]), Source([str(train)]))
    assert (found.source.names, found.dev[0]) == (None, ("a", "b"))


def test_columns_and_languages_by_name(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("id\tko\ten\n1\t하나\tone\n2\t둘\ttwo\n")
    expected = [Pair("하나", "one"), Pair("둘", "two")]
    assert read_pairs(table, langs=("ko", "en")).pairs == expected
    assert read_pairs(table, columns=(2, 3)).pairs == expected
    with pytest.raises(ValueError, match="no column is named 'fr'"):
        read_pairs(table, langs=("ko", "fr"))
    lines = tmp_path / "t.jsonl"
    lines.write_text("".join(json.dumps({"ko": s, "en": t, "n": 1}) + "\n" for s, t in expected))
    assert read_pairs(lines, langs=("ko", "en")).pairs == expected
    with pytest.raises(ValueError, match="columns are for TSV and CSV, but this is JSON Lines"):
        read_pairs(lines, columns=(1, 2))
    tmx = tmp_path / "t.tmx"
    unit = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="fr"><seg>un</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'
    units = "".join(unit.format("ko-KR", s, "en", t) for s, t in expected)
    tmx.write_text(f"<tmx><body>{units}</body></tmx>")
    assert read_pairs(tmx, langs=("ko", "en")).pairs == expected
    with pytest.raises(ValueError, match="expected 2 languages, found 3: choose with --langs"):
        read_pairs(tmx)
    with pytest.raises(ValueError, match="only for one file"):
        read_pairs(table, lines, columns=(1, 2))


def test_languages_say_what_stands_there_where_there_is_nothing_to_choose(tmp_path):
    expected = [Pair("하나", "one"), Pair("둘", "two")]
    plain, named, ko, en = (tmp_path / name for name in ("plain.tsv", "named.tsv", "t.ko", "t.en"))
    plain.write_text("하나\tone\n둘\ttwo\n")
    ko.write_text("하나\n둘\n")
    en.write_text("one\ntwo\n")
    assert read_pairs(plain, langs=("ko", "en")).pairs == expected
    assert read_pairs(ko, en, langs=("ko", "en")).pairs == expected
    named.write_text("en\tko\none\t하나\ntwo\t둘\n")
    assert read_pairs(named, langs=("ko", "en")).pairs == expected
    with pytest.raises(ValueError, match="no column is named 'fr'"):  # a header that knows one of them
        read_pairs(named, langs=("en", "fr"))


def test_symbols_are_chosen_for_the_pair():
    def kinds(*pairs):
        choices = choose_tokenisers([s for s, _ in pairs], [t for _, t in pairs])
        return [c.config.kind for c in choices]

    assert kinds(("국물", "k u ŋ m u l"), ("물", "m u l")) == ["characters", "symbols"]
    assert kinds(("the cat sat on the mat", "die Katze saß auf der Matte")) == ["bpe", "bpe"]
    assert kinds(("I am here.", "나는 여기 있다."), ("Who are you?", "당신은 누구 입니까?")) == ["bpe", "bpe"]
    assert kinds(("a b c d", "d c b a")) == ["symbols", "symbols"]
    for text in ("私は毎朝学校に行きます。", "我每天早上去学校。", "ฉันไปโรงเรียนทุกเช้า"):  # sentences without blanks
        assert kinds((text, "I go to school every morning.")) == ["bpe", "bpe"]
        assert kinds(("나는 매일 아침 학교에 간다.", text)) == ["bpe", "bpe"]
    assert kinds(("ありがとう", "a ɾʲ i ɡ a t o ɯ")) == ["characters", "symbols"]  # and words without blanks
    assert kinds(("自動車", "자동차"), ("映画館", "영화관")) == ["characters", "characters"]
    assert kinds(("2019年5月3日星期五", "2019-05-03")) == ["characters", "characters"]
    korean = choose_tokenisers(["국물", "한국"], ["k u", "h a"])[0]
    assert korean.config.form == "NFD"
    assert "jamo" in korean.why


SENTENCES = ["Two men stand at the stove.", "A little girl climbs into a wooden house.", "Who is there?"]


def test_corrections_are_spelt():
    mended = choose_tokenisers([s[:7] + s[8:] for s in SENTENCES], SENTENCES)
    assert [c.config.kind for c in mended] == ["characters", "characters"]
    assert all("corrections" in c.why for c in mended)
    korean = choose_tokenisers(["나는 매일 아침 학교에 갔다."], ["나는 매일 아침 학교에 간다."])
    assert {c.config.form for c in korean} == {"NFD"}
    longer = [" ".join(SENTENCES * 5)]
    for sides in (
        ([s.upper() for s in SENTENCES], SENTENCES),  # nothing to copy
        (longer, longer),
        (None, SENTENCES),  # captions, which are equal to nothing
    ):
        assert [c.config.kind for c in choose_tokenisers(*sides)] == ["bpe", "bpe"]
    assert {c.config.kind for c in choose_tokenisers(SENTENCES, SENTENCES[1:] + SENTENCES[:1], shared=True)} == {"bpe"}


def test_numbers_are_spelt_unless_they_are_moved_and_tones_are_symbols():
    sums = [(f"{a} + {b}", str(a + b)) for a in range(50) for b in range(9)]
    tones = [("妈马", f"m a {tone} m a {other}") for tone in (55, 35, 214, 51) for other in (55, 35, 214, 51)]
    moved = [(f"{a} {b}", f"{b} {a}") for a in range(50) for b in range(9)]
    read = [(f"{a} + {b}", f"add the number {a} to {b}") for a in range(50) for b in range(9)]
    found = [[c.config.kind for c in choose_tokenisers(*zip(*p, strict=True))] for p in (sums, tones, moved, read)]
    spelt = ["characters", "characters"]
    assert found == [spelt, ["characters", "symbols"], ["symbols", "symbols"], spelt]


DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason=f"real data is not here: {DATA}")
def test_batches_of_multi30k_are_full_of_real_tokens():
    from saccade.config import TrainConfig
    from saccade.data import batches

    pairs = read_pairs(DATA / "multi30k/train.de", DATA / "multi30k/train.en").pairs
    sides = [p.source for p in pairs], [p.target for p in pairs]
    both = [
        Tokeniser.train(s, "bpe", size=c.config.size) for s, c in zip(sides, choose_tokenisers(*sides), strict=True)
    ]
    examples = Examples.of(tokenise(pairs, *both))
    source, target = (n + 1 for n in examples.lengths())
    made = batches(examples, TrainConfig().batch_tokens, seed=0, epoch=0)
    room = sum(len(m) * (source[m].max() + target[m].max()) for m in made)
    assert (source.sum() + target.sum()) / room >= 0.95


@pytest.mark.skipif(not DATA.exists(), reason=f"real data is not here: {DATA}")
@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        (["multi30k/train.de", "multi30k/train.en"], ["bpe", "bpe"]),
        (["multi30k/train.en", "multi30k/train.fr"], ["bpe", "bpe"]),
        (["koen-bible/train.tsv"], ["bpe", "bpe"]),
        (["koen-tatoeba/train.tsv"], ["bpe", "bpe"]),
        (["g2p/low/ita/train.tsv"], ["characters", "symbols"]),  # of all these, sounds are nearest to their letters
    ],
)
def test_no_translation_is_taken_for_a_correction(files, kinds):
    pairs = read_pairs(*(DATA / name for name in files)).pairs
    choices = choose_tokenisers([p.source for p in pairs], [p.target for p in pairs])
    assert [c.config.kind for c in choices] == kinds


@given(st.integers(0, 10**6), st.sampled_from(["copy", "reverse", "sort", "dates"]))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whether_the_target_keeps_step_is_found_out_from_the_pairs(seed, task):
    pairs = TASKS[task].pairs("train", seed=seed, size=300)
    kind = "characters" if task == "dates" else "symbols"
    sides = [Tokeniser.train([p[i] for p in pairs], kind) for i in range(2)]
    found = order(list(tokenise(pairs, *sides)))
    low, high = {"copy": (0.95, 1), "reverse": (-1, -0.95), "sort": (-0.3, 0.3), "dates": (-1, 0.2)}[task]
    assert low <= found <= high + 1e-9


def test_of_a_corpus_larger_than_memory_what_is_at_hand_has_no_pair_that_is_too_long(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(corpus_module, "SAMPLE", 50)
    rows = [f"{'ab' * 40 if i % 10 == 3 else 'ab'}{i}\t{i}\n" for i in range(200)]
    (tmp_path / "large.tsv").write_text("".join(rows))
    material = gather(Source([str(tmp_path / "large.tsv")]), Source([str(tmp_path / "large.tsv")]), large=0)
    source, target = (Tokeniser.train([r.split("\t")[i] for r in rows], "characters") for i in (0, 1))
    material.shorten(source, target, 30)
    assert max(len(p.source) for p in material.sample) < 30
    assert (len(material.sample), material.count) == (45, 200)
    assert len(material.examples(source, target, 30)) == 180
    assert material.untold()[-1].startswith("skipped 20 pairs: more than 30 symbols")


def test_order_is_told_by_as_many_pairs_as_are_needed(monkeypatch):
    monkeypatch.setattr(order_module, "CELLS", 20_000)
    texts = [random.Random(i).choices(range(4, 34), k=8) for i in range(1000)]  # three times as many
    assert order([(text, text) for text in texts]) > 0.9
    assert order([(text, text[::-1]) for text in texts]) < -0.9


def test_order_is_not_asked_of_a_pair_that_is_more_than_enough_alone(monkeypatch):
    texts = [random.Random(i).sample(range(4, 504), k=50) for i in range(200)]
    assert order([(text, text) for text in texts]) > 0.9
    monkeypatch.setattr(order_module, "CELLS", 2_000)  # of one pair there are 2,500
    assert order([(text, text) for text in texts]) == 0


def test_order_of_nothing():
    assert order([]) == 0
    assert order([([4], [5])] * 3) == 0
    assert order([([], [5]), ([4], [])]) == 0
