"""From a folder of pictures to captions with their glances, by the command line alone."""

import json
import subprocess
import sys

import pytest
from PIL import Image

import saccade

COLOURS = {"red": (220, 30, 30), "green": (30, 160, 60), "blue": (30, 60, 220), "yellow": (240, 210, 40)}


def run(*arguments, **options):
    command = [sys.executable, "-m", "saccade", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


def draw(colour: str, place: int, shade: int) -> Image.Image:
    """A square of a colour at one of four places."""
    picture = Image.new("RGB", (32, 32), (200 + shade, 210, 220))
    x, y = 16 * (place % 2) + 3, 16 * (place // 2) + 3
    picture.paste(COLOURS[colour], (x, y, x + 10, y + 10))
    return picture


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    folder = tmp_path_factory.mktemp("album")
    lines = []
    for colour in COLOURS:
        for place in range(4):
            for shade in range(0, 50, 5):
                name = f"{colour}-{place}-{shade}.png"
                draw(colour, place, shade).save(folder / name)
                where = ("top left", "top right", "bottom left", "bottom right")[place]
                lines.append(f"{name}\ta {colour} square at the {where}")
    (folder / "broken.jpg").write_text("no picture")
    (folder / "captions.tsv").write_text("\n".join([*lines, "broken.jpg\ta broken one", "gone.png\tnot there"]) + "\n")
    return folder


@pytest.fixture(scope="module")
def trained(album, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "squares"
    settings = ["--set", "train.steps=250", "--set", "model.width=64", "--set", "image.channels=32"]
    settings += [
        "--set",
        "train.batch_tokens=400",
        "--set",
        "train.evaluations=2",
        "--set",
        "train.learning_rate=0.004",
    ]
    settings += ["--set", "model.dropout=0.0"]
    ran = run("train", album, "-o", path, *settings)
    assert ran.returncode == 0, ran.stderr
    assert "skipped 1 line: no such picture (" in ran.stderr
    assert " gone.png)" in ran.stderr
    assert "skipped 1 picture: is no picture" in ran.stderr
    assert "saccade caption" in ran.stderr
    assert "are few to learn to see from" in ran.stderr
    assert "alignment" not in ran.stderr  # of a picture there is none to show
    assert "the model does not know" not in ran.stderr
    return path


def test_it_learned_to_say_what_is_there(trained, album, tmp_path):
    fresh = [(c, p) for c in COLOURS for p in range(4)]
    for colour, place in fresh:
        draw(colour, place, 27).save(tmp_path / f"{colour}{place}.png")
    ran = run("caption", trained, *(tmp_path / f"{c}{p}.png" for c, p in fresh))
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    where = ("top left", "top right", "bottom left", "bottom right")
    right = sum(line == f"a {c} square at the {where[p]}" for line, (c, p) in zip(lines, fresh, strict=True))
    assert right >= 15


def test_glances_as_json_in_the_terminal_and_as_files(trained, album, tmp_path):
    picture = album / "red-1-0.png"
    record = json.loads(run("caption", trained, picture, "--json").stdout)
    assert record["grid"] == [4, 4]
    assert [len(row) for row in record["attention"]["cross"][0][0]] == [16] * len(record["target_tokens"])
    shown = run("caption", trained, picture, "--show").stdout
    assert "square" in shown
    assert "█" in shown
    for ending in ("png", "svg", "html", "csv", "json"):
        assert run("caption", trained, picture, "--save", tmp_path / f"a.{ending}").returncode == 0
        assert (tmp_path / f"a.{ending}").stat().st_size > 200
    assert "data:image/png;base64," in (tmp_path / "a.html").read_text()


def test_a_folder_with_a_broken_picture_goes_on(trained, album, tmp_path):
    for name in ("red-0-0.png", "blue-3-5.png"):
        (tmp_path / name).write_bytes((album / name).read_bytes())
    (tmp_path / "bad.jpg").write_text("no picture")
    (tmp_path / "IMG_1.HEIC").write_bytes(b"of another kind")
    ran = run("caption", trained, "--input", tmp_path)
    assert "left out 1 of kinds that are not read (IMG_1.HEIC)" in ran.stderr
    assert ran.returncode == 1
    names, said = zip(*(line.split("\t") for line in ran.stdout.splitlines()), strict=True)
    assert names == ("bad.jpg", "blue-3-5.png", "red-0-0.png")
    assert [bool(s) for s in said] == [False, True, True]
    assert "bad.jpg: is no picture" in ran.stderr
    assert "1 of 3 pictures could not be read" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_picture_that_cannot_be_read_costs_its_own_line_alone(trained, album):
    both = [album / "red-0-0.png", album / "broken.jpg"]
    ran = run("caption", trained, *both, "--json")
    good, bad = map(json.loads, ran.stdout.splitlines())
    assert "red" in good["text"]
    assert (bad["source"], bad["text"], bad["score"]) == (str(both[1]), "", None)
    assert "broken.jpg: is no picture" in bad["error"]
    assert run("caption", trained, both[1], "--force", "a red square").stdout == "\n"
    ranked = run("caption", trained, *both, "--nbest", "2").stdout.splitlines()
    assert [line.split("\t")[0] for line in ranked] == ["1", "1", "2"]
    assert ranked[2] == "2\t\t"
    model = saccade.load(trained)
    good, bad = model(both)
    assert "red" in good.text
    assert saccade.Prediction.read(bad.record()).wrong == bad.wrong != ""
    with pytest.raises(ValueError, match=r"broken.jpg: is no picture"):
        model(both[1])


def test_a_folder_is_captioned_in_the_order_of_its_captions(trained, album, tmp_path):
    names = ["red-0-0.png", "blue-3-5.png", "green-1-10.png"]
    for name in names:
        (tmp_path / name).write_bytes((album / name).read_bytes())
    (tmp_path / "captions.tsv").write_text("".join(f"{name}\ta square\n" for name in names))
    said = run("caption", trained, "--input", tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in said] == names  # what comes out is itself a file of captions
    assert [line.split()[2] for line in said] == ["red", "blue", "green"]
    bare = run("caption", trained, "--input", tmp_path, "--no-names").stdout.splitlines()
    assert bare == [line.split("\t")[1] for line in said]
    ranked = run("caption", trained, tmp_path / names[0], "--names", "--nbest", "2").stdout.splitlines()
    assert [line.split("\t")[0] for line in ranked] == [str(tmp_path / names[0])] * 2
    assert ranked[0].split("\t")[2] == bare[0]


def test_a_file_of_captions_is_measured_on_like_its_folder(trained, album, tmp_path):
    lines = (album / "captions.tsv").read_text().splitlines()[:6]
    (album / "few.csv").write_text("image,caption\n" + "".join(line.replace("\t", ",") + "\n" for line in lines))
    ran = run("evaluate", trained, album / "few.csv", "--json")
    assert json.loads(ran.stdout)["counts"]["sources"] == 6, ran.stderr
    assert "flatter" not in ran.stderr
    assert "flatter" in run("evaluate", trained, album / "captions.tsv", "--json").stderr


def test_evaluate_says_what_caption_metrics_say(trained, album):
    ran = run("evaluate", trained, album, "--json")
    assert "the run was trained on these, so the figures flatter it" in ran.stderr
    record = json.loads(ran.stdout)
    for name in ("bleu1", "bleu4", "rouge_l", "cider"):
        assert record[name] > 50
    assert record["by_length"] == []
    assert record["signatures"]["bleu4"] == "nrefs:1|case:lc|tok:words|punct:no|smooth:none"
    assert record["signatures"]["cider"].endswith("|n:4|sigma:6|idf:these references")


def test_info_says_that_it_reads_pictures(trained):
    assert "pictures of 32×32" in run("info", trained).stdout


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("translate", "RUN", "a text"), "reads pictures: saccade caption", 1),
        (("caption", "RUN"), "give pictures or a folder", 2),
        (("caption", "RUN", "gone.png"), "gone.png: No such file", 1),
        (("caption", "RUN", "--input", "gone"), "gone: is no folder", 1),
        (("caption", "RUN", "gone.png", "--save", "x.soft"), ".soft holds texts, not pictures", 2),
        (("caption", "RUN", "gone.png", "--save", "x.pharaoh"), ".pharaoh holds texts, not pictures", 2),
        (("train", "ALBUM", "-o", "x", "--set", "source.kind=bpe"), "source: is for text", 2),
        (("train", "copy", "-o", "x", "--set", "image.height=32"), "image: is for pictures", 2),
        (("train", "ALBUM", "-o", "x", "--dev", "copy"), "pictures and text do not go together", 1),
        (("train", "ALBUM", "-o", "x", "--langs", "a-b"), "no columns or languages", 2),
    ],
)
def test_what_does_not_go(trained, album, tmp_path, arguments, says, code):
    ran = run(*(str(trained) if a == "RUN" else str(album) if a == "ALBUM" else a for a in arguments), cwd=tmp_path)
    assert ran.returncode == code, ran.stderr
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "x").exists()


def test_a_model_of_text_does_not_read_pictures(album, tmp_path):
    path = tmp_path / "text"
    assert run("train", "copy", "-o", path, "--set", "train.steps=1", "--set", "model.width=8").returncode == 0
    ran = run("caption", path, album / "red-0-0.png")
    assert ran.returncode == 1
    assert "reads text: saccade translate" in ran.stderr
    ran = run("translate", path, "a b", album / "red-0-0.png", "c")  # the rest goes on
    assert ran.returncode == 1
    lines = ran.stdout.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    assert "red-0-0.png: is a picture, but the model reads text" in ran.stderr
    assert "1 of 3 texts are pictures" in ran.stderr
    ran = run("translate", path, "-", input="a b\nred-0-0.png\nc\n", cwd=album)  # a line is text, whatever it names
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.split("\n")) == 4
    assert "text 2: unknown symbols" in ran.stderr
    ran = run("translate", path, "--input", album / "red-0-0.png")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "red-0-0.png: is a binary file, expected text" in ran.stderr


def test_a_run_of_pictures_resumes(trained, album):
    ran = run("train", "--resume", trained)
    assert ran.returncode == 0
    assert "is finished" in ran.stderr
