"""`saccade demo`: the whole way, from no data at all to a model that shows where it looked."""

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from saccade.cli.evaluation import print_report, print_score
from saccade.cli.training import train_only
from saccade.cli.words import Meter, say
from saccade.data import TASKS
from saccade.errors import unknown
from saccade.evaluate import Report, evaluate
from saccade.files import write_whole
from saccade.see import page
from saccade.train import Run, load, start
from saccade.train.choices import Asked


class Demo(NamedTuple):
    """A built-in task, how it is trained, and what is shown of it."""

    says: str
    settings: Asked
    shown: tuple[str, ...]
    figure: str  # of the report
    lead: str  # with a place for that figure
    next: tuple[str, ...]  # commands, with places for the program and the run


DEMOS = {
    "dates": Demo(
        "A reader of dates: 73 languages, as people write them → ISO 8601. Nothing is downloaded.",
        {  # few, quick steps: a minute on two cores
            "model": {
                "family": "luong",
                "score": "additive",
                "feed": False,
                "width": 128,
                "embedding": 64,
                "dropout": 0.0,
            },
            "train": {
                "steps": 3000,
                "batch_tokens": 700,
                "learning_rate": 6e-3,
                "label_smoothing": 0.0,
                "evaluations": 6,
            },
        },
        ("2019년 5월 3일 금요일", "Friday, May 3, 2019", "٣ مايو ٢٠١٩"),
        "exact",
        "{:.1f}% of 1,000 dates on unseen days are exactly right. Rows: what was written.",
        (
            '{} translate {} "3 mai 2019" --show        a date of your own',
            "{} evaluate {} dates                       how good it is, by length",
        ),
    ),
    "scenes": Demo(
        "Pictures of coloured shapes → sentences that are true of them. Nothing is downloaded.",
        {"train": {"minutes": 12.0}},
        ("scenes:test:2", "scenes:test:5", "scenes:test:14"),
        "true",
        "{:.1f}% of 1,000 sentences about unseen pictures are true. Bright: where it looked for each word.",
        ("{} evaluate {} scenes                      true or not, and does it look at what it names",),
    ),
}


def demo_command(task: str, output: Path, colour: bool, began: float) -> None:
    if task not in DEMOS:
        raise unknown("demo", task, DEMOS)
    demo = DEMOS[task]
    asked = {"data": {"train": [task]}, **demo.settings}
    if output.exists():
        found = Run.open(output).config.settings()
        if not all(part.items() <= found[section].items() for section, part in asked.items()):
            raise ValueError(f"{output}: is a run of something else than this demo; choose another folder with -o")
    say(demo.says)
    if output.exists():
        say(f"{output}: the run of an earlier demo is replaced")
    run, material = start(output, asked, force=True, say=lambda _: None, watch=Meter("pictures"))
    train_only(run, material, began)
    translator = load(output)
    report = evaluate(translator, TASKS[task].pairs("test"))
    _print(report, task)
    predictions = translator(list(demo.shown))
    for prediction in predictions:
        print(f"\n{prediction.source} → {prediction.text}\n")
        print(prediction.drawn(colour=colour))
    file = output / "glances.html"
    lead = demo.lead.format(report.scores[demo.figure])
    write_whole(file, page(predictions, title="Where it looked", lead=lead).encode())
    sys.stdout.flush()
    say(f"\nThe same as a page: {file}")
    name = "saccade" if shutil.which("saccade") else sys.argv[0]
    name = "python -m saccade" if name.endswith("__main__.py") else name  # which is no program
    say("Next:")
    for line in demo.next:
        say(f"  {line.format(name, output)}")
    say(f"  {name} train pairs.tsv -o runs/mine --minutes 10     a model of your own pairs")


def _print(report: Report, task: str) -> None:
    if task == "dates":
        print_score(report, Console(stderr=True), "on calendar days that it never saw:")
    else:
        print_report(report, Console(stderr=True))
