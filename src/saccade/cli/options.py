"""Options that several commands have, by the names that their functions give them."""

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; standard output if not given."),
]
Beam = Annotated[
    int | None,
    typer.Option(min=1, max=100, help="Hypotheses kept while searching; 1 is greedy.", show_default="5, or --nbest"),
]
NBest = Annotated[
    int, typer.Option(min=1, max=100, help="How many outputs for each, best first, as lines of number, score and text.")
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON, a record a line.")]
Show = Annotated[bool, typer.Option(help="Draw where each word looked.")]
View = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which glances to draw: words, pieces, mean, LAYER, LAYER.HEAD, or words:… encoder:… decoder:… of these.",
    ),
]
Inside = Annotated[bool, typer.Option(help="Also where encoder and decoder looked at themselves: --json, --save.")]
Occlude = Annotated[
    bool, typer.Option(help="Also tell whether each glance mattered: hide what a word looked at, and ask again.")
]
Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also as .html .png .svg .pdf .json .csv .txt .soft .pharaoh.")
]
Sample = Annotated[bool, typer.Option(help="Draw outputs by chance instead of searching for the best.")]
Temperature = Annotated[float, typer.Option(help="Sampling: below 1 is more careful, above more daring.")]
TopK = Annotated[int, typer.Option(help="Sampling: only among so many words; 0 is all.")]
TopP = Annotated[float, typer.Option(help="Sampling: only among the likeliest words of this share.")]
Seed = Annotated[int, typer.Option(help="Sampling: another seed, other outputs.")]
Prefix = Annotated[str, typer.Option(help="What every output must begin with.")]
Force = Annotated[
    str | None,
    typer.Option(metavar="TARGET", help="Score this target, and show its glances, instead of searching."),
]
With = Annotated[
    list[Path] | None, typer.Option("--with", metavar="RUN", help="More runs to decode with as one; repeatable.")
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(help="0 favours short outputs; more, long ones.", show_default="1 for texts, 0 for pictures"),
]
CoveragePenalty = Annotated[float, typer.Option(help="How much it counts to have looked at everything.")]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="I,J", help="Where source and target stand in a table, from 1; 1+3,2 joins two columns of a side."
    ),
]
Languages = Annotated[str | None, typer.Option(metavar="KO-EN", help="Languages by name.")]
Part = Annotated[
    str | None,
    typer.Option(
        metavar="train|dev|test",
        help="Which part, of a built-in task or of captions that name parts.",
        show_default="test",
    ),
]
Strict = Annotated[bool, typer.Option(help="A line that cannot be used is an error.")]
Width = Annotated[int, typer.Option(min=1, max=100, help="Hypotheses kept while searching; 1 is greedy.")]
Whole = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]
