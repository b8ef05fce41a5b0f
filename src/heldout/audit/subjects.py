"""The subjects of an audit, by name, and how outcomes are drawn from them.

A subject has pairs of neighbours that are the worst we know for it, a loss that it claims, and a
way to draw many outcomes on either neighbour. Kinds of questions declare theirs
(`Question.worst_cases`); nothing is listed here. Modules of this package that register more are
named in `MODULES`.

Outcomes of a release come through one of two doors. "public" opens a session and asks it again and
again: every answer is booked, the rows are read anew, noise is drawn. "replay" does that once for
each request; after that only the last step is done again, noise on the same sealed statistic. The
steps that are left out give the same result each time (the statistic has no randomness in it), so
both doors have one law; a test compares them. What tests a claim comes through the public door;
replay, some four times faster, looks for the events to test, and may be asked for.
"""

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, Final

from heldout import questions as q
from heldout.arguments import shown
from heldout.arguments.rules import OneOf
from heldout.audit.result import Floats
from heldout.data import Dataset
from heldout.errors import ArgumentError
from heldout.intervals.release import Release
from heldout.kernel import Budget
from heldout.kernel.door import Drawn, Request
from heldout.kernel.loss import Loss
from heldout.kernel.statistic import Sealed, compute
from heldout.questions.quote import booked_together
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import Pair, WorstCase

__all__ = [
    "DOORS",
    "EVERYTHING",
    "Pair",
    "ReplayedSession",
    "Subject",
    "find",
    "open_session",
    "register",
    "registered",
]

MODULES: Final = ("mechanisms", "violators")
RELEASE, MECHANISM, VIOLATOR = "release", "mechanism", "planted violator"
DOORS: Final = ("public", "replay")
EVERYTHING: Final = Budget(epsilon=10**9, delta="0.999")
POSTGRES: Final = "HELDOUT_TEST_POSTGRES"
Draw = Callable[[Pair, int, Fraction, int, str], Floats]
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
    both_doors: bool = False
    """Whether the long audit draws it through the replayed door as well."""

    def pair(self, name: str) -> Pair:
        """Return a pair by its name."""
        for pair in self.pairs:
            if pair.name == name:
                return pair
        known = ", ".join(repr(pair.name) for pair in self.pairs)
        raise ArgumentError(f"pair must be one of {known}, got {shown(name)}.")


_SUBJECTS: dict[str, Subject] = {}


def register(subject: Subject) -> Subject:
    """Make a subject known; a later one of the same name takes its place."""
    _SUBJECTS[subject.name] = subject
    return subject


def registered(kind: str | None = None) -> list[Subject]:
    """Return every subject, or those of one kind, in the order of their registration."""
    _register_releases()
    for module in MODULES:
        importlib.import_module(f"heldout.audit.{module}")
    return [subject for subject in _SUBJECTS.values() if kind is None or subject.kind == kind]


def find(name: str) -> Subject:
    """Return a subject by name.

    >>> find("confusion").kind
    'release'
    """
    known = {subject.name: subject for subject in registered()}
    former = {subject.formerly: subject for subject in known.values() if subject.formerly}
    spelt = name.replace("_", "-") if isinstance(name, str) else ""
    if spelt not in known | former:
        raise ArgumentError(f"subject must be one of {', '.join(known)}, got {shown(name)}.")
    return (former | known)[spelt]


# --- releases ------------------------------------------------------------------------------------


@cache
def _register_releases() -> None:
    for question in q.registered():
        for case in question.worst_cases():
            register(_subject_of(question, case))


def _subject_of(question: type[q.Question[Any]], case: WorstCase) -> Subject:
    """Return one way to ask a question as a subject of the audit."""
    from heldout.audit.events import stack

    def claim(epsilon: Fraction) -> Loss:
        session = open_session(case, case.pairs[0], 0, "public")
        session.ask(question.of_case(case, epsilon))
        return session.spent

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
        asked, outcomes = question.of_case(case, epsilon), []
        for start in range(0, count, case.answers_each):
            session = open_session(case, pair, side, door)
            for _ in range(min(case.answers_each, count - start)):
                outcomes.append(case.read(pair, session.ask(asked)))
        return stack(outcomes)

    return Subject(
        name="-".join(part for part in (question.kind, case.name) if part),
        kind=RELEASE,
        pairs=case.pairs,
        claim=claim,
        draw=draw,
        missing=_missing_postgres if case.on == "postgres" else lambda: None,
        note=case.note,
        epsilon=case.epsilon,
        why=case.why,
        formerly=case.formerly,
        both_doors=case.both_doors,
    )


class ReplayedSession(PrivateSession):
    """A session that goes through the door once per question and then only draws."""

    def ask(self, *questions: q.Question[Any]) -> Any:
        request = booked_together(questions, self._about)
        known: dict[str, Drawn] = self.__dict__.setdefault("_known", {})
        key = f"{request.name} {[question.at(1) for question in questions]}"
        if not isinstance(request, Request) or key not in known:
            answer = super().ask(*questions)
            if isinstance(answer, Release):
                known[key] = answer._drawn
            return answer
        drawn = replace(known[key], request=request, values=self._draw(request))
        return questions[0].release(drawn)

    def _draw(self, request: Request) -> object:
        sealed: dict[str, Sealed[Any]] = self.__dict__.setdefault("_sealed", {})
        name = f"{request.name} {request.statistic} {dict(request.parameters)}"
        if name not in sealed:
            rows = self._table if request.view is None else request.view(self._table)
            sealed[name] = compute(request.statistic, rows)
        return request.mechanism.sample(sealed[name])


def open_session(case: WorstCase, pair: Pair, side: int, door: str) -> PrivateSession:
    """Return a session on one of two neighbours, with a ledger in memory and plenty to spend."""
    OneOf(DOORS)(door, "door")
    make = _store_in_postgres if case.on == "postgres" else case.make
    kind = PrivateSession if door == "public" else ReplayedSession
    return kind(make(pair.side(side), pair.options), budget=EVERYTHING)


def _missing_postgres() -> str | None:
    """Return why there is no database to audit, if there is none."""
    return None if os.environ.get(POSTGRES) else f"{POSTGRES} names no PostgreSQL server"


def _store_in_postgres(content: Mapping[str, list[float]], options: Mapping[str, Any]) -> Dataset:
    """Return rows that a PostgreSQL server has."""
    both = enumerate(zip(content["y"], content["p"], strict=True))
    rows = ", ".join(f"({key}, {y}, {p!r}::float8)" for key, (y, p) in both)
    declared = {"label": "y", "score": "p", "row_key": "k", "name": "neighbour", **options}
    address = os.environ[POSTGRES].replace("postgresql+psycopg:", "postgresql:")
    query = f"SELECT * FROM (VALUES {rows}) AS neighbour(k, y, p)"
    return Dataset(address, query=query, **declared)
