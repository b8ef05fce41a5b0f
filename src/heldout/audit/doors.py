"""How outcomes are drawn from a release: through the door each time, or replayed.

"public" opens a session and asks it again and again: every answer is booked, the rows are read
anew, noise is drawn. "replay" does that once for each request; after that only the last step is
done again, noise on the same sealed statistic. The steps that are left out give the same result
each time (the statistic has no randomness in it), so both doors have one law; a test compares
them. What tests a claim comes through the public door; replay, some four times faster, looks for
the events to test, and may be asked for.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heldout.arguments.rules import OneOf
from heldout.data import Dataset
from heldout.intervals.release import Release
from heldout.kernel import Budget
from heldout.kernel.door import Drawn, Request
from heldout.kernel.loss import Loss
from heldout.kernel.statistic import compute
from heldout.questions import Question
from heldout.questions.quote import booked_together
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import Pair, WorstCase

__all__ = [
    "DOORS",
    "EVERYTHING",
    "ReplayedSession",
    "claimed",
    "no_postgres",
    "session_on",
]

DOORS = ("public", "replay")
EVERYTHING = Budget(epsilon=10**9, delta="0.999")


class ReplayedSession(PrivateSession):
    """A session that goes through the door once per question and then only draws."""

    def ask(self, *questions: Question[Any]) -> Any:
        request = booked_together(questions, self._about)
        known: dict[str, Drawn] = self.__dict__.setdefault("_known", {})
        key = f"{request.name} {[question.at(1) for question in questions]}"
        if not isinstance(request, Request) or key not in known:
            answer = super().ask(*questions)
            if isinstance(answer, Release):
                known[key] = answer._drawn
            return answer
        drawn = replace(known[key], request=request, values=self._drawn(request))
        return questions[0].release(drawn)

    def _drawn(self, request: Any) -> Any:
        sealed: dict[str, Any] = self.__dict__.setdefault("_sealed", {})
        name = f"{request.name} {request.statistic} {dict(request.parameters)}"
        if name not in sealed:
            rows = self._table if request.view is None else request.view(self._table)
            sealed[name] = compute(request.statistic, rows)
        return request.mechanism.sample(sealed[name])


POSTGRES = "HELDOUT_TEST_POSTGRES"


def session_on(case: WorstCase, pair: Pair, side: int, door: str) -> PrivateSession:
    """Return a session on one of two neighbours, with a ledger in memory and plenty to spend."""
    OneOf(DOORS)(door, "door")
    make = _postgres_table if case.on == "postgres" else case.make
    kind = PrivateSession if door == "public" else ReplayedSession
    return kind(make(pair.side(side), pair.options), budget=EVERYTHING)


def no_postgres() -> str | None:
    """Return why there is no database to audit, if there is none."""
    return None if os.environ.get(POSTGRES) else f"{POSTGRES} names no PostgreSQL server"


def _postgres_table(content: Any, options: Mapping[str, Any]) -> Dataset:
    """Return rows that a PostgreSQL server holds."""
    both = enumerate(zip(content["y"], content["p"], strict=True))
    rows = ", ".join(f"({key}, {y}, {p!r}::float8)" for key, (y, p) in both)
    declared = {"label": "y", "score": "p", "row_key": "k", "name": "neighbour", **options}
    address = os.environ[POSTGRES].replace("postgresql+psycopg:", "postgresql:")
    query = f"SELECT * FROM (VALUES {rows}) AS neighbour(k, y, p)"
    return Dataset(address, query=query, **declared)


def claimed(question: Question[Any], session: PrivateSession) -> Loss:
    """Return what the ledger charges for one answer."""
    session.ask(question)
    return session.spent
