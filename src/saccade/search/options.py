"""How to search, and what makes no sense to ask for."""

from dataclasses import dataclass

from saccade.errors import UsageError

LENGTH_PENALTY = {  # of texts, where the source says how long; of pictures, where a longer caption claims more
    False: 1.0,
    True: 0.0,
}
LEAST_TEMPERATURE = 0.001  # below, all but the likeliest word underflow; far above, all words are alike
MOST_PENALTY = 10  # powers of lengths above overflow, and mean nothing


@dataclass(frozen=True, slots=True)
class Options:
    """How to search."""

    beam: int = 5  # hypotheses kept while searching; 1 is greedy
    nbest: int = 1  # how many of them are returned
    length_penalty: float | None = None  # 0 favours short outputs, more favours long ones; None: LENGTH_PENALTY
    coverage_penalty: float = 0.0  # how much it matters that the whole source was looked at
    sample: bool = False  # draw by chance in place of searching
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    tree: bool = False  # also tell everything that the beam ever kept

    @property
    def hypotheses(self) -> int:
        """Of each source, that are written side by side."""
        return self.nbest if self.sample else self.beam

    def __post_init__(self) -> None:
        for name in ("beam", "nbest", "top_k", "seed"):
            if not isinstance(getattr(self, name), int):
                raise UsageError(f"{name}: {getattr(self, name)}, expected a whole number")
        if self.length_penalty is not None and not abs(self.length_penalty) <= MOST_PENALTY:
            raise UsageError(f"length_penalty: {self.length_penalty}, expected a number up to {MOST_PENALTY}")
        if not 0 <= self.coverage_penalty <= MOST_PENALTY:
            raise UsageError(f"coverage_penalty: {self.coverage_penalty}, expected a number from 0 to {MOST_PENALTY}")
        if self.beam < 1:
            raise UsageError(f"beam: {self.beam}, expected at least 1")
        if not self.sample and not 1 <= self.nbest <= self.beam:
            raise UsageError(f"nbest: {self.nbest}, expected a number from 1 to beam={self.beam}")
        if self.nbest < 1:
            raise UsageError(f"nbest: {self.nbest}, expected at least 1")
        if not LEAST_TEMPERATURE <= self.temperature <= 1 / LEAST_TEMPERATURE:
            between = f"{LEAST_TEMPERATURE} to {1 / LEAST_TEMPERATURE:g}"
            raise UsageError(f"temperature: {self.temperature}, expected a number from {between}")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p: {self.top_p}, expected a share, 0 < top_p ≤ 1")
        if self.top_k < 0:
            raise UsageError(f"top_k: {self.top_k}, expected 0 (all) or more")
        if not self.sample and (self.temperature, self.top_k, self.top_p, self.seed) != (1.0, 0, 1.0, 0):
            raise UsageError("temperature, top_k, top_p and seed are for sampling: add sample=True")
