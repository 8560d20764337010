"""Joint n-grams, one pair and one piece at a time: every way to cut a pair is listed, every group is counted in a dict."""

import math
from collections import Counter, defaultdict

SHAPES = ((1, 1), (1, 0), (1, 2), (2, 1))
START, END = "start", "end"


def ways(source, target):
    """Every way to cut a pair into pieces, each (symbols of the source, symbols of the target)."""
    if not source and not target:
        yield []
    for a, b in SHAPES:
        if len(source) >= a and len(target) >= b:
            for rest in ways(source[a:], target[b:]):
                yield [(tuple(source[:a]), tuple(target[:b])), *rest]


def expected(pairs, chances):
    """How often each piece stands in the pairs, over all ways to cut them."""
    found = defaultdict(float)
    for source, target in pairs:
        weighed = [(math.prod(chances[piece] for piece in way), way) for way in ways(source, target)]
        total = sum(weight for weight, _ in weighed)
        for weight, way in weighed:
            for piece in way:
                found[piece] += weight / total
    return found


def likeliest(source, target, chances):
    return max(ways(source, target), key=lambda way: math.prod(chances[piece] for piece in way))


class KneserNey:
    """p_k(w | u) = max(c(u w) − d, 0) / c(u) + d kinds(u) / c(u) p_{k−1}(w | u without its first)."""

    def __init__(self, rows, order, least, most, unmet):
        self.order, self.unmet = order, unmet
        padded = [[START] * order + row + [END] for row in rows]
        grams = {
            k: [tuple(row[i - k + 1 : i + 1]) for row in padded for i in range(order, len(row))]
            for k in range(1, order + 1)
        }
        self.tables = {}
        for k in range(1, order + 1):
            longer = set(grams[k + 1]) if k < order else grams[k]
            count = Counter(gram[-k:] for gram in longer)
            once, twice = (sum(c == n for c in count.values()) for n in (1, 2))
            less = min(max(once / max(1, once + 2 * twice), least), most)
            total, kinds = Counter(), Counter()
            for gram, c in count.items():
                total[gram[:-1]] += c
                kinds[gram[:-1]] += 1
            self.tables[k] = (count, less, total, kinds)

    def chance(self, piece, before):
        found = self.unmet
        for k in range(1, self.order + 1):
            count, less, total, kinds = self.tables[k]
            context = tuple(before[len(before) - k + 1 :])
            if context in total:
                seen = count.get((*context, piece), 0)
                found = max(seen - less, 0) / total[context] + less * kinds[context] / total[context] * found
        return found

    def log(self, row):
        padded = [START] * self.order + row + [END]
        return sum(math.log(self.chance(padded[i], padded[:i])) for i in range(self.order, len(padded)))
