"""From a text to features that were public before anybody looked at the texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from heldout.errors import ArgumentError

__all__ = ["HashedText", "Space", "Vocabulary"]

_WORD = r"(?u)\b\w\w+\b|[£$€]|\d+"


class Space(Protocol):
    """A public set of features, and how a text sets some of them. Row by row."""

    @property
    def size(self) -> int: ...
    def names(self) -> tuple[str, ...] | None:
        """What each feature is called, where that is known."""

    def matrix(self, texts: Sequence[str]) -> Any:
        """A sparse row of 0 and 1 for each text; it depends on that text alone."""


@dataclass(frozen=True)
class HashedText:
    """Words, or runs of up to `longest` words, by their place in a table of public size.

    Nothing is learnt: the hash of a word says where it goes, so any text has features, and no
    feature tells that somebody used a certain word. Two words may share a place; a larger table
    makes that rarer, and lets more places in by chance. `stop_words` leaves out the commonest
    English words, which say more than one would think: keep them unless you know better.

    >>> HashedText(size=1024).matrix(["cash prize tomorrow"]).nnz
    3
    """

    size: int = 2**12
    longest: int = 1
    stop_words: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int):
            raise ArgumentError(f"size must be a whole number, got {self.size!r}.")
        if not 2 <= self.size <= 2**24:
            raise ArgumentError(f"size must be 2 to 16,777,216, got {self.size}.")
        if self.longest not in (1, 2, 3):
            raise ArgumentError(f"longest must be 1, 2 or 3 words, got {self.longest!r}.")

    def names(self) -> None:
        return None

    def matrix(self, texts: Sequence[str]) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer

        vectorizer = HashingVectorizer(
            n_features=self.size,
            ngram_range=(1, self.longest),
            stop_words="english" if self.stop_words else None,
            token_pattern=_WORD,
            binary=True,
            norm=None,
            alternate_sign=False,
        )
        return vectorizer.transform(texts)

    def places(self, words: Iterable[str]) -> dict[str, int]:
        """Where public words go: what a selected feature may stand for.

        >>> sorted(HashedText(size=64).places(["cash", "lunch"]))
        ['cash', 'lunch']
        """
        known = list(words)
        rows = self.matrix([*known, ""])
        starts, sizes = rows.indptr[:-1], rows.indptr[1:] - rows.indptr[:-1]
        return {
            word: int(rows.indices[start])
            for word, start, size in zip(known, starts, sizes, strict=False)
            if size == 1
        }


@dataclass(frozen=True)
class Vocabulary:
    """A declared list of words. It must come from outside the private texts.

    >>> Vocabulary(("cash", "prize")).matrix(["Cash now!"]).toarray().tolist()
    [[1, 0]]
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        words = tuple(str(each).lower() for each in self.words)
        if not words or len(set(words)) < len(words):
            raise ArgumentError("words must be one or more, each named once.")
        object.__setattr__(self, "words", words)

    @property
    def size(self) -> int:
        return len(self.words)

    def names(self) -> tuple[str, ...]:
        return self.words

    def matrix(self, texts: Sequence[str]) -> Any:
        from sklearn.feature_extraction.text import CountVectorizer

        longest = max(len(word.split()) for word in self.words)
        vectorizer = CountVectorizer(
            vocabulary=self.words, ngram_range=(1, longest), token_pattern=_WORD, binary=True
        )
        return vectorizer.transform(texts)
