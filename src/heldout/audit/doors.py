"""How outcomes are drawn from a release: through the door each time, or replayed.

"public" opens a session and asks it again and again: every answer is booked, the rows are read
anew, noise is drawn. "replay" does that once for each request; after that only the last step is
done again, noise on the same sealed statistic. The steps that are left out give the same result
each time (the statistic has no randomness in it), so both doors have one law; a test compares
them. What tests a claim comes through the public door; replay, some four times faster, looks for
the events to test, and may be asked for.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arguments.rules import OneOf
from heldout.audit.subjects import Pair
from heldout.data import Dataset
from heldout.metrics.release import Release
from heldout.privacy import Budget
from heldout.privacy.loss import Loss
from heldout.questions import Question
from heldout.questions.quote import booked_together
from heldout.questions.session import Session
from heldout.release import Drawn, Request
from heldout.statistics.base import compute

__all__ = [
    "DOORS",
    "EVERYTHING",
    "ReplayedSession",
    "claimed",
    "no_postgres",
    "numbers",
    "postgres_session_on",
    "session_on",
]

DOORS = ("public", "replay")
Ask = Callable[[Session, Fraction], Any]
EVERYTHING = Budget(epsilon=10**9, delta="0.999")


class ReplayedSession(Session):
    """A session that goes through the door once a question and then only draws."""

    def ask(self, *questions: Question) -> Any:
        request = booked_together(questions, self._about)
        known: dict[str, Drawn] = self.__dict__.setdefault("_known", {})
        key = f"{request.name} {[replace(each, epsilon=1) for each in questions]}"
        if not isinstance(request, Request) or key not in known:
            answer = super().ask(*questions)
            if isinstance(answer, Release):
                known[key] = answer._drawn
            return answer
        return questions[0].read(replace(known[key], request=request, values=self._drawn(request)))

    def _drawn(self, request: Any) -> Any:
        sealed: dict[str, Any] = self.__dict__.setdefault("_sealed", {})
        name = f"{request.name} {request.statistic} {dict(request.parameters)}"
        if name not in sealed:
            rows = self._table if request.view is None else request.view(self._table)
            sealed[name] = compute(request.statistic, rows)
        return request.mechanism.sample(sealed[name])


def session_on(pair: Pair, side: int, door: str) -> Session:
    """A session on one of two neighbours, with a ledger in memory and plenty to spend."""
    OneOf(DOORS)(door, "door")
    options = {"label": "y", "score": "p", "name": "neighbour", **pair.options}
    kind = Session if door == "public" else ReplayedSession
    return kind(Dataset(pair.side(side), **options), budget=EVERYTHING)


POSTGRES = "HELDOUT_TEST_POSTGRES"


def no_postgres() -> str | None:
    """Why there is no database to audit, if there is none."""
    return None if os.environ.get(POSTGRES) else f"{POSTGRES} names no PostgreSQL server"


def postgres_session_on(pair: Pair, side: int, door: str) -> Session:
    """As `session_on`, on rows that a PostgreSQL server holds."""
    content = pair.side(side)
    both = enumerate(zip(content["y"], content["p"], strict=True))
    rows = ", ".join(f"({key}, {y}, {p!r}::float8)" for key, (y, p) in both)
    options = {"label": "y", "score": "p", "row_key": "k", "name": "neighbour", **pair.options}
    address = os.environ[POSTGRES].replace("postgresql+psycopg:", "postgresql:")
    query = f"SELECT * FROM (VALUES {rows}) AS neighbour(k, y, p)"
    kind = Session if door == "public" else ReplayedSession
    return kind(Dataset(address, query=query, **options), budget=EVERYTHING)


def claimed(ask: Ask, session: Session, epsilon: Fraction) -> Loss:
    """What the ledger charged for one answer."""
    ask(session, epsilon)
    return session.spent


def numbers(answer: Any) -> list[float]:
    """Every number of a release or of a report as drawn, before any arithmetic for people.

    >>> numbers({"a": [1, 2], "b": {"c": 0.5, "d": "text"}, "e": True})
    [1.0, 2.0, 0.5, 1.0]
    """
    if isinstance(answer, Release):
        return numbers(answer._noisy())
    releases = getattr(answer, "releases", None)
    if isinstance(releases, Mapping):
        return numbers(releases)
    return list(_leaves(answer))


def _leaves(content: Any) -> Iterator[float]:
    if isinstance(content, Release):
        yield from _leaves(content._noisy())
    elif isinstance(content, Mapping):
        for each in content.values():
            yield from _leaves(each)
    elif isinstance(content, list | tuple | np.ndarray):
        for each in content:
            yield from _leaves(each)
    elif isinstance(content, int | float | np.number) and content is not None:
        yield float(content)
