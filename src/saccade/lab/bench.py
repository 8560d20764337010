"""Where claims are tested: data, repeated runs, and figures that are kept, so that an interrupted book goes on."""

import hashlib
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import saccade
from saccade.data import Pair, read_pairs
from saccade.evaluate import Report, evaluate
from saccade.lab.claim import Figure
from saccade.search import Options, Translator

Settings = dict[str, dict[str, Any]]
SEEDS = (0, 1, 2)
TOY: Settings = {  # what the small models of the lab have in common
    "model": {"dropout": 0.0},
    "train": {"batch_tokens": 2000, "learning_rate": 4e-3, "label_smoothing": 0.0, "evaluations": 2, "average": 0.9},
    "source": {"kind": "symbols"},
    "target": {"kind": "symbols"},
}
FEW_TOKENS = 600  # of a batch, where it is only to be seen which way a claim points
TEST = 0.05  # share of somebody's own pairs that is kept for the test, and as much again to choose the weights
LETTERS = "abcdefghijklmnopqrstuvwxyz"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Three files of pairs that share nothing."""

    train: Path
    dev: Path
    test: Path
    toy: bool  # made here, of symbols between blanks

    def tests(self) -> list[Pair]:
        return list(read_pairs(self.test).pairs)


@dataclass(frozen=True)
class Bench:
    """A place to work: a folder, and how much may be spent."""

    folder: Path
    quick: bool = False  # toy sizes, to see that a claim still runs and still points the same way
    share: float = 1.0  # of the usual steps
    data: Path | None = None  # somebody's own pairs
    mark: str = ""  # tells figures of another version of a claim apart
    say: Callable[[str], None] = lambda _: None

    @property
    def seeds(self) -> tuple[int, ...]:
        return SEEDS[:1] if self.quick else SEEDS

    def pick(self, full: T, quick: T) -> T:
        return quick if self.quick else full

    def steps(self, full: int, quick: int) -> int:
        return quick if self.quick else max(1, round(full * self.share))

    def once(self, name: str, measure: Callable[..., list[Figure]], *given: Any) -> list[Figure]:
        """What `measure` finds; if that was done before, what was found then."""
        key = repr((name, self.quick, self.share, self.data, self.mark))
        file = self.folder / "figures" / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"
        if file.exists():
            known: list[Figure] = json.loads(file.read_text(encoding="utf-8"))
            return known
        self.say(name)
        found = measure(*given)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(".part")
        beside.write_text(json.dumps(found), encoding="utf-8")
        beside.replace(file)
        return found

    def made(self, name: str, make: Callable[[random.Random], tuple[str, str]], train: int, test: int = 200) -> Pairs:
        """Pairs of a toy task, or those that were given in its place."""
        folder = self.folder / "data" / (name if self.data is None else "given")
        names = [folder / f"{part}.tsv" for part in ("train", "dev", "test")]
        if self.data is not None:
            rows = [(_line(pair.source), _line(pair.target)) for pair in read_pairs(self.data).pairs]
            sources = sorted({source for source, _ in rows})
            random.Random(0).shuffle(sources)
            kept = max(1, round(TEST * len(sources)))
            dev, held = set(sources[:kept]), set(sources[kept : 2 * kept])
            parts = [
                [row for row in rows if row[0] not in dev | held],
                [row for row in rows if row[0] in dev],
                [row for row in rows if row[0] in held],
            ]
        else:
            chance = random.Random(name)
            parts = [[make(chance) for _ in range(count)] for count in (train, min(test, 200), test)]
        folder.mkdir(parents=True, exist_ok=True)
        for file, part in zip(names, parts, strict=True):
            file.write_text("".join(f"{source}\t{target}\n" for source, target in part), encoding="utf-8")
        return Pairs(names[0], names[1], names[2], toy=self.data is None)

    def learn(self, pairs: Pairs, settings: Settings, seed: int, steps: int) -> Translator:
        """A trained model; nothing of it stays on the disk."""
        toy = TOY if pairs.toy else {}
        merged = {part: {**toy.get(part, {}), **settings.get(part, {})} for part in {*toy, *settings, "train"}}
        merged["train"] |= {"seed": seed, "steps": steps}
        if self.quick and "batch_tokens" in merged["train"]:
            merged["train"]["batch_tokens"] = min(FEW_TOKENS, merged["train"]["batch_tokens"])
        with tempfile.TemporaryDirectory() as folder:
            return saccade.train(pairs.train, f"{folder}/run", dev=pairs.dev, settings=merged, quiet=True)

    def score(self, translator: Translator, pairs: Sequence[Pair]) -> Report:
        """Greedily: the same search for all."""
        return evaluate(translator, pairs, Options(beam=1))

    def right(self, translator: Translator, pairs: Sequence[Pair]) -> float:
        """Percent of the symbols that are right or, of sentences, BLEU."""
        report = self.score(translator, pairs)
        return max(0.0, 100 - report.scores["per"]) if report.symbols else report.scores["bleu"]

    def within(self, minutes: float, usual: float) -> "Bench":
        """The same with another budget."""
        return replace(self, share=minutes / usual)


def _line(text: str) -> str:
    """Without the tabs and breaks that would end a field of a table."""
    return " ".join(text.split())


def letters(chance: random.Random, least: int, most: int, kinds: int = 26) -> list[str]:
    """So many letters, by chance."""
    return chance.choices(LETTERS[:kinds], k=chance.randint(least, most))
