"""The metrics room: pure functions on strings and arrays. How good is what was written, and how sure is that?

In come outputs and, for each, one or several references; out come numbers, all in percent, with the signatures of
sacrebleu where it computed them. Words wrong (WER) and symbols wrong (PER, CER) are as the G2P shared tasks define
them: a word is right only if all of it is, and the nearest reference counts.
"""

from saccade.metrics.alignment import Agreement, Gold, Link, agreement, read_gold
from saccade.metrics.bootstrap import interval, paired, wilson
from saccade.metrics.captions import caption_scores, caption_signatures
from saccade.metrics.glances import absentminded_in, absentminded_out, ailments, coverage_deviation, entropy
from saccade.metrics.symbols import Edits, confusions, edits, plain
from saccade.metrics.text import BleuParts, Parts, Scored, bleu_of, bleu_parts, judged_by, text_parts, text_scores

__all__ = [
    "Agreement",
    "BleuParts",
    "Edits",
    "Gold",
    "Link",
    "Parts",
    "Scored",
    "absentminded_in",
    "absentminded_out",
    "agreement",
    "ailments",
    "bleu_of",
    "bleu_parts",
    "caption_scores",
    "caption_signatures",
    "confusions",
    "coverage_deviation",
    "edits",
    "entropy",
    "interval",
    "judged_by",
    "paired",
    "plain",
    "read_gold",
    "text_parts",
    "text_scores",
    "wilson",
]
