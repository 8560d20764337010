"""Systems side by side, from the command line, and what cannot be compared."""

import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import saccade
from saccade.data import TASKS, Pair
from saccade.evaluate import System, against, comparison_page, of_outputs
from saccade.evaluate.report import report
from saccade.metrics import bleu_of, bleu_parts, paired
from saccade.see import Prediction
from saccade.see.chart import COLOURS, Series, bars, chart, picture_file


def run(*arguments, **options):
    command = [sys.executable, "-m", "saccade", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs that read the same, one trained longer, and a test set."""
    folder = tmp_path_factory.mktemp("compare")
    pairs = TASKS["copy"].pairs("train", size=600)
    (folder / "train.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    test = TASKS["copy"].pairs("test", size=200)
    (folder / "test.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in test))
    (folder / "perfect.txt").write_text("".join(f"{t}\n" for _, t in test))
    for name, steps in (("short", 5), ("long", 250)):
        settings = {
            "model": {
                "family": "luong",
                "width": 64,
                "dropout": 0.0,
                "feed": False,
                "score": "additive",
                "walk": False,
            },
            "train": {"steps": steps, "batch_tokens": 600, "learning_rate": 5e-3, "evaluations": 3},
        }
        saccade.train(folder / "train.tsv", folder / name, settings=settings, quiet=True)
    return folder


def test_runs_and_outputs_of_others_side_by_side(folder):
    ran = run("compare", "perfect.txt", "short", "long", "test.tsv", "-o", "out.html", "--json", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("test.tsv: read as TSV, 2 columns\n") == 1
    found = json.loads(ran.stdout)
    exact = {s["name"]: s["exact"] for s in found["systems"]}
    assert exact["perfect.txt"] == 100 > exact["long"] > exact["short"]
    ranks = [(a["better"], a["worse"]) for a in found["against"]]  # every pair
    assert ranks == [("perfect.txt", "long"), ("perfect.txt", "short"), ("long", "short")]
    assert found["against"][1]["chance"] == 0
    assert [(s["one"], s["other"]) for s in found["shared_attention"]] == [("short", "long")]
    page = (folder / "out.html").read_text()
    assert page.count("<svg") == 4  # BLEU and exact by length; score and losses while learning
    assert page.count('<li class="c1">short</li>') == 4  # in one colour everywhere
    assert "share least" in page
    assert "Where they differ most" in page
    assert not list(folder.glob("*.part"))


def test_a_test_is_read_by_the_names_that_the_run_knows(tmp_path):
    rows = [(f"가{n}", f"a{n % 7}") for n in range(60)]  # fewer targets than sources
    (tmp_path / "train.csv").write_text("Korean,English\n" + "".join(f"{s},{t}\n" for s, t in rows))
    (tmp_path / "test.csv").write_text("English,Korean\n" + "".join(f"{t},{s}\n" for s, t in rows))
    settings = {"model": {"family": "luong", "width": 16}, "train": {"steps": 2, "evaluations": 1}}
    saccade.train(tmp_path / "train.csv", tmp_path / "run", settings=settings, quiet=True)
    ran = run("evaluate", "run", "test.csv", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["counts"]["sources"] == 60
    (tmp_path / "outputs.txt").write_text("".join(f"{t}\n" for _, t in rows))
    ran = run("compare", "run", "outputs.txt", "test.csv", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["systems"][1]["exact"] == 100


def test_two_systems_of_others_need_no_run(folder):
    (folder / "worse.txt").write_text("x\n" * 200)
    ran = run("compare", "perfect.txt", "worse.txt", "test.tsv", "--json", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert [(a["better"], a["worse"]) for a in found["against"]] == [("perfect.txt", "worse.txt")]


def test_a_report_of_one_run(folder):
    ran = run("evaluate", "long", "test.tsv", "--report", "one.html", "--attention", "--json", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert 0 < found["attention"]["entropy"] < 3
    assert found["attention"]["by_class"]
    page = (folder / "one.html").read_text()
    assert "best and the" in page
    assert "among the best, chrF 100; wanted:" in page
    assert '<li class="c1">last batch</li>' in page
    for bucket in found["by_length"]:  # the figures of the curves can be read too
        assert f"<td><bdi>{bucket['sources']}</bdi></td><td><bdi>{bucket['bleu']:.1f} (" in page
    assert "What its attention tells" in page


def test_gold_links_from_the_command_line(folder):
    pairs = [line.split("\t") for line in (folder / "test.tsv").read_text().splitlines()]
    links = "".join(" ".join(f"{i}-{i}" for i in range(len(s.split()))) + "\n" for s, _ in pairs)
    (folder / "gold.txt").write_text(links)
    ran = run("evaluate", "long", "test.tsv", "--gold", "gold.txt", "--json", "--report", "gold.html", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)["gold"]
    assert found[0]["aer"] < 30  # it learned to copy, so it looks at what it copies
    assert f">{found[0]['aer']:.1f}<" in (folder / "gold.html").read_text()
    (folder / "few.txt").write_text("0-0\n")
    ran = run("evaluate", "long", "test.tsv", "--gold", "few.txt", cwd=folder)
    assert ran.returncode == 1
    said = [
        "few.txt: words count from 0, as a link has a 0",
        "test.tsv: read as TSV, 2 columns",
        "error: 200 pairs, but gold for 1; expected as many",
    ]
    assert ran.stderr.splitlines() == said


def test_whether_a_glance_mattered(folder):
    ran = run("translate", "long", "a b c d", "--occlude", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    lines = [line.split("\t") for line in ran.stdout.splitlines()]
    assert lines[1] == ["word", "places hidden", "probability", "without them", "without others"]
    drop = np.mean([float(row[2]) - float(row[3]) for row in lines[2:]])
    by_chance = np.mean([float(row[2]) - float(row[4]) for row in lines[2:]])
    assert drop > by_chance
    ran = run("translate", "long", "a b c d", "--occlude", "--json", cwd=folder)
    assert [o["places"] for o in json.loads(ran.stdout)["occluded"]] == [int(row[1]) for row in lines[2:]]


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["long", "test.tsv"], "say where to: -o report.html, or --json", 2),
        (["test.tsv"], "give the systems to compare, and then the test", 2),
        (["long", "long", "test.tsv", "--json"], "a system stands there twice", 2),
        (["perfect.txt", "scenes", "--json"], "perfect.txt: is no run of saccade; of pictures, one of those", 1),
        (["long", "short.txt", "test.tsv", "--json"], "short.txt: 1 lines, expected one for each of 200 sources", 1),
        (["long", "none.txt", "test.tsv", "--json"], "none.txt: neither a run nor a file of outputs", 1),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(folder, arguments, says, code):
    (folder / "short.txt").write_text("one line\n")
    ran = run("compare", *arguments, cwd=folder)
    assert ran.returncode == code
    assert says in ran.stderr.strip().splitlines()[-1]
    assert "Traceback" not in ran.stderr


def test_the_same_sentences_are_drawn_for_both():
    references = [[f"the cat {i} sat on the mat"] for i in range(40)]
    good = bleu_parts([r[0] for r in references], references)
    fair = bleu_parts([r[0].replace("cat", "dog") for r in references], references)
    assert paired(good, fair, bleu_of, samples=100) == 0
    assert paired(good, good, bleu_of, samples=100) == 1


def test_other_systems_may_write_a_line_for_each_pair():
    from saccade.data import Pair

    pairs = [Pair("a", "x"), Pair("a", "y"), Pair("b", "z")]
    for outputs in (["y", "z"], ["y", "ignored", "z"]):
        assert of_outputs("other", outputs, pairs, True).report.scores["exact"] == 100
    best = against([of_outputs("one", ["y", "z"], pairs, True), of_outputs("two", ["y", "y"], pairs, True)])
    assert (best[0].better, best[0].difference) == ("one", 50)


def test_a_run_that_was_stopped_on_its_way_is_said_to_be(folder):
    shutil.copytree(folder / "short", folder / "stopped")
    max((folder / "stopped" / "checkpoints").iterdir()).unlink()
    for words in (["evaluate", "stopped", "test.tsv"], ["compare", "stopped", "long", "test.tsv", "--json"]):
        ran = run(*words, cwd=folder)
        assert ran.returncode == 0, ran.stderr
        assert "stopped: its training is not finished" in ran.stderr
        assert "long: its" not in ran.stderr


def test_a_chart_of_nothing_and_of_one_point():
    assert chart([], "x", "y") == ""
    assert "1e−16" in bars([Series("tiny", [0], [3e-16], [1e-16], [4e-16])], "x")  # the unit of its axis
    assert 'aria-label="y (x). a: 1 → 2"' in chart([Series("a", [1], [2], [1], [3])], "x", "y")


def test_a_chart_by_matplotlib_fits_into_a_page_of_ours():
    """No style of its own, which the page's policy forbids; no black, which a dark page hides; the same bytes again."""
    low, high = [1.0, 2.0], [3.0, 4.0]
    several = [Series(f"어텐션 <{i}> $x$", [8, 64], [2.0, 3.0], low, high) for i in range(8)]
    drawn = chart(several, "길이", "맞은 기호, %", log=True), bars([s._replace(x=[0], y=[2.0]) for s in several], "x")
    for svg in drawn:
        assert "style" not in svg
        assert not re.search("#0{3,6}\\b|black", svg)
    assert drawn[0].count('fill-opacity="0.2"') == 8  # a band for each
    assert {">8<", ">64<", ">길이<"} <= set(
        re.findall(">[^<]+<", drawn[0])
    )  # text stays text; what was measured is marked
    assert "어텐션 &lt;0&gt; $x$" in drawn[1]
    assert chart(several, "길이", "맞은 기호, %", log=True) == drawn[0]
    ids = re.findall(' id="([^"]+)"', drawn[0] + drawn[1])
    assert len(set(ids)) == len(ids)  # of several charts on a page
    alone = ElementTree.fromstring(picture_file(several, "길이", "맞은 기호, %"))  # a file of its own
    assert alone.attrib["role"] == "img"


def test_a_series_without_points_keeps_its_colour_from_others():
    drawn = chart([Series("absent", [], []), Series("some", [1, 2], [3, 4])], "x", "y")
    assert "absent" not in drawn
    assert 'class="c1"' in drawn  # of the legend
    assert COLOURS[1] in drawn
    assert COLOURS[0] not in drawn.partition("<figcaption")[0]


def test_what_others_wrote_of_pictures_stands_beside_it_in_any_order():
    """Pictures have no length, whoever wrote of them."""
    pairs = [Pair(f"{i}.png", "a red square") for i in range(60)]
    texts = [p.target for p in pairs]
    ours = System(
        "ours", report([Prediction(p.source, p.target, 0.0) for p in pairs], [[t] for t in texts], False, True)
    )
    theirs = of_outputs("theirs", ["x"] * 60, pairs, False, True)
    assert ours.report.scores["rouge_l"] == 100 > theirs.report.scores["rouge_l"]
    for systems in ([theirs, ours], [ours, theirs]):
        page = comparison_page(systems, pairs, "pictures")
        assert "CIDEr-D" in page
        assert "By length" not in page


def test_sentences_are_ranked_by_how_near_they_are_also_where_no_word_is_whole():
    pairs = [Pair(f"source {i}", "2019-05-03") for i in range(4)]
    near = of_outputs("near", ["2019-05-04", "2019-05-03", "x", "2019-05-13"], pairs, True)
    far = of_outputs("far", ["2019-05-04", "2019-05-03", "x", "7"], pairs, True)
    page = comparison_page([near, far], pairs, "dates")
    first = page.partition("Where they differ most, by the chrF of each</h2>")[2]
    assert first.index("2019-05-13") < first.index("2019-05-04")
    assert "near, chrF 100; wanted: 2019-05-03" in page


def test_a_run_of_words_is_compared_with_one_of_symbols(folder):
    """What each takes for the figure that says most does not matter: the test decides."""
    settings = {"target": {"kind": "words"}, "model": {"width": 16}, "train": {"steps": 3, "evaluations": 1}}
    saccade.train(folder / "train.tsv", folder / "words", settings=settings, quiet=True)
    ran = run("compare", "words", "short", "test.tsv", "--json", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert len(json.loads(ran.stdout)["against"]) == 1
