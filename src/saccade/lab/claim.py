"""What a claim is: what the notes say, how it is tested, and the rule by which the figures decide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from saccade.lab.bench import Bench

Figure = dict[str, Any]  # one measurement: its arm, its seed, what was varied, what came out


class Words(NamedTuple):
    """The same in both languages."""

    en: str
    ko: str


NOTHING = Words("", "")


class Verdict(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    NOISE = "within noise"


class Chart(NamedTuple):
    """One chart: for every arm a curve of `up` over `across`, with the range over the seeds; or a bar."""

    up: str
    says: Words  # what is drawn upwards
    across: str | None = None  # None: a bar for each arm
    along: Words = NOTHING  # what is drawn across
    log: bool = False  # whether every doubling of it is as wide as any other


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the lecture notes as an experiment."""

    name: str
    notes: tuple[str, ...]  # which of the notes say it
    title: Words
    says: Words
    setup: Words
    rule: Words
    minutes: float  # about how long it takes on two cores
    charts: tuple[Chart, ...]
    measure: Callable[["Bench"], list[Figure]]
    judge: Callable[[Sequence[Figure]], Verdict]
    pairs: bool = False  # whether somebody's own pairs can take the place of the built-in task
    live: Callable[[str], None] | None = None  # prints, in a language, what can be watched
    tried: Words = NOTHING  # where it does not hold, or did not at first: what was tried, and why it may be so
    fixed: bool = False  # takes as long as it takes: there is nothing to learn longer


def values(figures: Sequence[Figure], name: str, **where: Any) -> list[float]:
    """One measure of the figures that agree with what is asked, a value for each seed.

    >>> values([{"arm": "a", "seed": 0, "right": 9.0}, {"arm": "b", "seed": 0, "right": 1.0}], "right", arm="b")
    [1.0]
    """
    return [f[name] for f in figures if name in f and all(f.get(key) == value for key, value in where.items())]


def above(high: Sequence[float], low: Sequence[float], by: float = 0.0) -> Verdict:
    """Whether all of the one are above all of the other, by so much.

    >>> str(above([9, 8], [5, 6])), str(above([9, 5], [6])), str(above([9, 8], [5, 6], by=3)), str(above([1], [2]))
    ('holds', 'within noise', 'within noise', 'does not hold')
    >>> str(above([0, 0], [0, 0]))  # who is equal is not the other way round
    'within noise'
    """
    if not high or not low:
        raise ValueError("nothing was measured")
    if min(high) - max(low) > by:
        return Verdict.HOLDS
    return Verdict.FAILS if max(high) < min(low) else Verdict.NOISE


def every(*verdicts: Verdict) -> Verdict:
    """A claim of several parts holds if all of them do.

    >>> str(every(Verdict.HOLDS, Verdict.NOISE))
    'within noise'
    """
    for worse in (Verdict.FAILS, Verdict.NOISE):
        if worse in verdicts:
            return worse
    return Verdict.HOLDS
