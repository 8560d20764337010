"""Tokenisers: text ↔ numbers, with the span of the raw text that each number stands for.

They are Hugging Face tokenizers, saved as JSON. Only their unknown symbol is known to them: PAD, START and STOP are
numbers before theirs, so no text can be mistaken for them.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from saccade.errors import unknown

PAD, START, STOP, UNKNOWN = range(4)
OWN = 3  # numbers of ours before those of the tokeniser, whose 0 is the unknown symbol

_UNK = "<unk>"
Kind = Literal["characters", "symbols", "words", "bpe", "unigram"]
Form = Literal["NFC", "NFD", "NFKC"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as numbers, and the span in the raw text, in code points, of each."""

    ids: list[int]
    spans: list[tuple[int, int]]


def _trainer(kind: Callable[..., trainers.Trainer], size: int, **options: str) -> trainers.Trainer:
    return kind(vocab_size=size, special_tokens=[_UNK], show_progress=False, **options)


class Tokeniser:
    """Text to numbers and back.

    >>> tokeniser = Tokeniser.train(["dog", "god"], "characters")
    >>> tokeniser.decode(tokeniser.encode("good").ids)
    'good'
    """

    def __init__(self, inner: Tokenizer) -> None:
        self._inner = inner

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        kind: Kind,
        *,
        size: int = 8000,
        form: Form = "NFC",
        lower: bool = False,
    ) -> "Tokeniser":
        """Learns its symbols from texts: at most `size` of them for words, bpe and unigram."""
        # Marks stand alone, or every word would be learned anew with each that may follow it: "shirt.", "l'homme".
        apart = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")])
        level, many = models.WordLevel(unk_token=_UNK), 100_000  # more symbols than any text has characters
        decoder: decoders.Decoder | None = decoders.Metaspace()
        match kind:
            case "characters":
                inner, trainer = Tokenizer(level), _trainer(trainers.WordLevelTrainer, many)
                inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
                decoder = decoders.Fuse()
            case "symbols":
                inner, trainer = Tokenizer(level), _trainer(trainers.WordLevelTrainer, many)
                inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
                decoder = None
            case "words":
                inner, trainer = Tokenizer(level), _trainer(trainers.WordLevelTrainer, size)
                inner.pre_tokenizer = apart
            case "bpe":
                inner, trainer = Tokenizer(models.BPE(unk_token=_UNK)), _trainer(trainers.BpeTrainer, size)
                inner.pre_tokenizer = apart
            case "unigram":
                inner, trainer = Tokenizer(models.Unigram()), _trainer(trainers.UnigramTrainer, size, unk_token=_UNK)
                inner.pre_tokenizer = apart
            case _:
                raise unknown("tokeniser", kind, get_args(Kind))
        steps = [getattr(normalizers, form)(), *([normalizers.Lowercase()] if lower else [])]
        inner.normalizer = normalizers.Sequence(steps)
        if decoder is not None:
            inner.decoder = decoder
        try:
            inner.train_from_iterator(texts, trainer)
        except Exception as error:  # tokenizers raises nothing finer
            raise ValueError(f"size: {size} symbols of kind {kind} cannot be learned ({error})") from None
        return cls(inner)

    @classmethod
    def load(cls, path: Path) -> "Tokeniser":
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # tokenizers raises nothing finer
            raise ValueError(f"{path}: not a tokeniser ({error})") from None

    def save(self, path: Path) -> None:
        path.write_text(self._inner.to_str(pretty=True), encoding="utf-8")  # its own way of saving raises no OSError

    def fingerprint(self) -> str:
        """Two tokenisers with the same one read every text alike."""
        return hashlib.sha256(self._inner.to_str().encode()).hexdigest()

    def __len__(self) -> int:
        """How many numbers there are; not how many symbols: a text that holds the word <unk> leaves a gap."""
        return max(self._inner.get_vocab().values()) + 1 + OWN

    def encode(self, text: str) -> Encoded:
        encoding = self._inner.encode(_whole(text), add_special_tokens=False)
        return Encoded([i + OWN for i in encoding.ids], encoding.offsets)

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """The numbers alone, many texts at once."""
        return [
            [i + OWN for i in e.ids]
            for e in self._inner.encode_batch_fast([_whole(t) for t in texts], add_special_tokens=False)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these numbers; what is decomposed is composed again, and PAD, START and STOP are left out."""
        text: str = self._inner.decode([i - OWN for i in ids if i >= OWN], skip_special_tokens=True)
        return normalizers.NFC().normalize_str(text)


def _whole(text: str) -> str:
    """Half a character (a lone surrogate) has no place in UTF-8: it is read as a question mark, one for one."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
