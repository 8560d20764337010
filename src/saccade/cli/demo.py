"""`saccade demo`: the whole way in about a minute, from no data at all to a model that shows where it looked."""

import shutil
import sys
from pathlib import Path

from rich.console import Console

from saccade.cli.evaluation import print_score
from saccade.cli.training import train_only
from saccade.cli.words import say
from saccade.data import TASKS
from saccade.evaluate import evaluate
from saccade.see import page
from saccade.train import Run, load, start
from saccade.train.start import Asked

SETTINGS: Asked = {  # few, quick steps: a minute on two cores
    "data": {"train": ["dates"]},
    "model": {"family": "luong", "score": "additive", "feed": False, "width": 128, "embedding": 64, "dropout": 0.0},
    "train": {"steps": 3000, "batch_tokens": 700, "learning_rate": 6e-3, "label_smoothing": 0.0, "evaluations": 6},
}
SHOWN = ("2019년 5월 3일 금요일", "Friday, May 3, 2019", "٣ مايو ٢٠١٩")


def demo_command(output: Path, colour: bool, began: float) -> None:
    if output.exists() and Run.open(output).config.data.train != ["dates"]:
        raise ValueError(f"{output}: is a run of something else; choose another folder with -o")
    say("A reader of dates: 73 languages, as people write them → ISO 8601. Nothing is downloaded.")
    if output.exists():
        say(f"{output}: the run of an earlier demo is replaced")
    run, material = start(output, SETTINGS, force=True, say=lambda _: None)
    train_only(run, material, began)
    translator = load(output)
    report = evaluate(translator, TASKS["dates"].pairs("test"))
    print_score(report, Console(stderr=True), "on calendar days that it never saw:")
    predictions = translator(list(SHOWN))
    for prediction in predictions:
        print(f"\n{prediction.source} → {prediction.text}\n")
        print(prediction.show(colour=colour))
    file = output / "glances.html"
    lead = f"{report.scores['exact']:.1f}% of 1,000 dates on unseen days are exactly right. Rows: what was written."
    file.write_text(page(predictions, title="Where it looked", lead=lead), encoding="utf-8")
    sys.stdout.flush()
    say(f"\nThe same as a page: {file}")
    name = "saccade" if shutil.which("saccade") else sys.argv[0]
    say("Next:")
    say(f'  {name} translate {output} "3 mai 2019" --show        a date of your own')
    say(f"  {name} evaluate {output} dates                       how good it is, by length")
    say(f"  {name} train pairs.tsv -o runs/mine --minutes 10     a model of your own pairs")
