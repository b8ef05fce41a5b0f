"""The subjects of an audit, by name. Kinds of questions declare theirs; see `releases.py`.

A subject has pairs of neighbours that are the worst we know for it, a loss that it claims, and a
way to draw many outcomes on either neighbour. Modules of this package that register subjects are
named in `MODULES`; a subject whose code is not there yet says so instead of being left out.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.kernel.loss import Loss
from heldout.questions.worst_cases import Pair

__all__ = ["Pair", "Subject", "find", "register", "registered"]

MODULES = (
    "releases",
    "laws",
    "violators",
    "sparse_vectors",
    "boards",
)
RELEASE, MECHANISM, VIOLATOR = "release", "mechanism", "planted violator"


Draw = Callable[[Pair, int, Fraction, int, str], Any]
"""draw(pair, side, epsilon, count, door): outcomes as rows of numbers."""


@dataclass(frozen=True)
class Subject:
    """Something that claims to be private."""

    name: str
    kind: str
    pairs: tuple[Pair, ...]
    claim: Callable[[Fraction], Loss]
    draw: Draw
    missing: Callable[[], str | None] = lambda: None
    note: str = ""
    epsilon: str = "1"
    """What it is audited at unless another is asked for: where its fault shows soonest."""
    why: str = ""
    """Why a bound stays well below the claim, where it does."""
    least: int = 0
    """A quick subject whose fault is rare is audited with at least so many."""
    formerly: str = ""
    """What it was called before subjects of releases went by the kind of their question."""

    def pair(self, name: str) -> Pair:
        for each in self.pairs:
            if each.name == name:
                return each
        known = ", ".join(repr(each.name) for each in self.pairs)
        raise ArgumentError(f"pair must be one of {known}, got {shown(name)}.")


_SUBJECTS: dict[str, Subject] = {}


def register(subject: Subject) -> Subject:
    """Make a subject known; a later one of the same name takes its place."""
    _SUBJECTS[subject.name] = subject
    return subject


def registered(kind: str | None = None) -> list[Subject]:
    """Every subject, or those of one kind, in the order of their registration."""
    for module in MODULES:
        importlib.import_module(f"heldout.audit.{module}")
    return [each for each in _SUBJECTS.values() if kind is None or each.kind == kind]


def find(name: str) -> Subject:
    """A subject by name.

    >>> find("confusion").kind
    'release'
    """
    known = {each.name: each for each in registered()}
    former = {each.formerly: each for each in known.values() if each.formerly}
    spelt = name.replace("_", "-") if isinstance(name, str) else ""
    if spelt not in known | former:
        raise ArgumentError(f"subject must be one of {', '.join(known)}, got {shown(name)}.")
    return (former | known)[spelt]
