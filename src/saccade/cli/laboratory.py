"""What `saccade lab` does: one claim, or all of them as a book; what was measured before is not measured again."""

import time
from pathlib import Path

import torch

from saccade.cli.words import say
from saccade.errors import UsageError
from saccade.lab.bench import Bench
from saccade.lab.book import NAMES, claim_of, run_claim, write_index
from saccade.lab.dictionary import tour


def lab_command(
    name: str | None, every: bool, folder: Path, minutes: float | None, quick: bool, data: Path | None
) -> None:
    if name is not None and every:
        raise UsageError("--all: runs every claim; leave out the name")
    if name is None and not every:
        if quick or data is not None or minutes is not None:
            raise UsageError("say which claim, or --all")
        for known in NAMES:
            claim = claim_of(known)
            print(f"{known:12} {claim.minutes:4g} min  {claim.says.en}{' (--data)' if claim.pairs else ''}")
        say("saccade lab NAME runs one, saccade lab --all makes a book of them all")
        return
    if every and minutes is not None:
        raise UsageError("--minutes: for one claim; the book takes about "
                         f"{sum(claim_of(n).minutes for n in NAMES):.0f} minutes in all, or --quick")  # fmt: skip
    if every and data is not None:
        raise UsageError("--data: for one claim")
    if data is not None and not data.is_file():
        raise ValueError(f"{data}: {'is no file' if data.exists() else 'no such file'}")
    if quick and minutes is not None:
        raise UsageError("--minutes: --quick takes a minute or so; leave one of them out")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is no folder")
    folder = folder / "quick" if quick else folder  # what shows little does not take the place of what shows more
    folder = folder if data is None else folder / f"{data.stem}-{Bench(folder, data=data).given}"  # whatever its name
    workers = 1 if quick else torch.get_num_threads()  # as many cores as there are, each with a model of its own
    torch.set_num_threads(1)  # models this small are no quicker with two, and figures do not depend on the machine
    for known in NAMES if name is None else (name,):
        claim = claim_of(known)
        began = time.perf_counter()
        if known == "dictionary" and not every:
            tour()
        try:
            record = run_claim(claim, Bench(folder, quick, data=data, say=say, workers=workers), minutes)
        except KeyboardInterrupt:
            say("what was measured is kept: the same command goes on from there")
            raise
        write_index(folder)
        took = (time.perf_counter() - began) / 60
        print(f"{known}: {record['verdict']}", flush=True)
        say(f"{folder / known}.html ({took:.1f} min)")
    say(f"the book: {folder / 'index.html'}")
