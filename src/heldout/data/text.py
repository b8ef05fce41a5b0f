"""From a text to features that were public before anybody looked at the texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from heldout.arguments import as_whole, shown
from heldout.arguments.rules import Flag, Whole
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
        Whole(2, 2**24)(self.size, "size")
        if as_whole(self.longest) not in (1, 2, 3):
            raise ArgumentError(f"longest must be 1, 2 or 3 words, got {shown(self.longest)}.")
        Flag()(self.stop_words, "stop_words")

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
        return vectorizer.transform(_texts(texts))

    def places(self, words: Iterable[str]) -> dict[str, int]:
        """Where public words go: what a selected feature may stand for.

        >>> sorted(HashedText(size=64).places(["cash", "lunch"]))
        ['cash', 'lunch']
        """
        known = _texts(words)
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
        words = tuple(each.lower() for each in _texts(self.words))
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
        return vectorizer.transform(_texts(texts))


def _texts(texts: Iterable[str]) -> list[str]:
    """Texts that have words in UTF-8; what is refused is not quoted, for it may be private."""
    try:
        found = [] if isinstance(texts, str | bytes) else list(texts)
    except Exception:
        found = []
    if not found or not all(isinstance(each, str) for each in found):
        raise ArgumentError("texts and words must be a list of texts.")
    # A lone surrogate has no place in UTF-8, and the hash of a word is that of its UTF-8.
    return [each.encode("utf-8", "replace").decode("utf-8") for each in found]
