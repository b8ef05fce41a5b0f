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
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np

from heldout import questions as q
from heldout.arguments import OneOf, no_such, shown
from heldout.audit.events import Floats, stack
from heldout.data import Dataset
from heldout.errors import ArgumentError
from heldout.intervals.measure import Release
from heldout.kernel import Budget, price
from heldout.kernel.accountant import epsilon_of_zcdp
from heldout.kernel.door import Drawn, Request
from heldout.kernel.loss import Loss
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import DiscreteGaussian, NoiseShare
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.noise.selection import AboveBar, SparseVector, secret_of
from heldout.kernel.ranking.mechanism import METHODS, choose, sensitivity_for
from heldout.kernel.statistic import Sealed, compute
from heldout.questions.quote import booked_together
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import Pair, WorstCase

__all__ = [
    "ANYTHING",
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

MODULES: Final = ("violators",)
RELEASE, MECHANISM, VIOLATOR = "release", "mechanism", "planted violator"
DOORS: Final = ("public", "replay")
EVERYTHING: Final = Budget(epsilon=10**9, delta="0.999")
ANYTHING: Final = Budget(rho=10**18, delta="0.999")
"""Takes what is priced in epsilon as well as what is priced in rho."""
POSTGRES: Final = "HELDOUT_TEST_POSTGRES"
_DELTA: Final = Fraction(1, 100)
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
        listed = no_such("subject", name, list(known), most=8)
        raise ArgumentError(f"{listed} See: heldout audit --list.")
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
        return _with_delta(session.spent)

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


def _with_delta(loss: Loss) -> Loss:
    """Return what an event can be tested against: a loss in rho implies epsilon at any delta."""
    if loss.rho is None:
        return loss
    epsilon = epsilon_of_zcdp(loss.rho, _DELTA)
    return Loss.approximate(Fraction(math.ceil(epsilon * 1000), 1000), _DELTA)


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
    budget = ANYTHING if case.in_rho else EVERYTHING
    return kind(make(pair.side(side), pair.options), budget=budget)


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


# The mechanisms themselves, without rows: noise on the worst pair of statistics.
_REPLACE = Protection(neighbours="replace-one")  # type: ignore[arg-type]


def _counts(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    exact = list(pair.side(side))
    mechanism = DiscreteLaplace.for_epsilon(
        epsilon, l1_sensitivity=pair.options["l1"], dimension=len(exact) * count
    )
    # The entries of one draw are independent, so many short vectors are one long one.
    drawn = mechanism.sample(Sealed(np.tile(exact, count)))
    return np.asarray(drawn, dtype=np.float64).reshape(count, len(exact))


register(
    Subject(
        name="discrete-laplace",
        kind=MECHANISM,
        pairs=(
            Pair("one entry by one", [0], [1], {"l1": 1}),
            Pair("two entries, opposite ways", [5, 5], [4, 6], {"l1": 2}),
            Pair("one entry by all", [0, 0, 0], [3, 0, 0], {"l1": 3}),
            Pair("a scale below one", [0], [1000], {"l1": 1000}),
        ),
        claim=Loss.pure,
        draw=_counts,
    )
)


def _gaussian(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    exact = list(pair.side(side))
    mechanism = DiscreteGaussian.for_rho(
        epsilon**2 / 2, l2_sensitivity_squared=pair.options["l2"], dimension=len(exact) * count
    )
    drawn = mechanism.sample(Sealed(np.tile(exact, count)))
    return np.asarray(drawn, dtype=np.float64).reshape(count, len(exact))


register(
    Subject(
        name="discrete-gaussian",
        kind=MECHANISM,
        pairs=(
            Pair("one entry by one", [0], [1], {"l2": 1}),
            Pair("two entries, opposite ways", [5, 5], [4, 6], {"l2": 2}),
            Pair("a sigma below one", [0], [1000], {"l2": 1000**2}),
        ),
        claim=lambda epsilon: _with_delta(Loss.zcdp(epsilon**2 / 2)),
        draw=_gaussian,
        note="rho = epsilon^2/2, tested as the epsilon that it implies at delta 0.01",
        why="every event is tested against the one delta, whose epsilon is a bound",
    )
)


def _shares(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    """Return what a secure sum shows: one site's vector and the shares that must be honest."""
    exact, honest = list(pair.side(side)), pair.options["honest"]
    total = np.zeros(len(exact) * count, dtype=np.int64)
    for site in range(honest):
        handed: list[Any] = []
        mechanism = NoiseShare(
            scale=pair.options["l1"] / epsilon,
            l1_sensitivity=pair.options["l1"],
            dimension=len(total),
            honest=honest,
            hand_in=handed.append,
        )
        mechanism.sample(Sealed(np.tile(exact, count) if site == 0 else np.zeros_like(total)))
        total += np.array(handed[0])
    return total.astype(np.float64).reshape(count, len(exact))


register(
    Subject(
        name="noise-share",
        kind=MECHANISM,
        pairs=(
            Pair("three shares, one entry by one", [0], [1], {"l1": 1, "honest": 3}),
            Pair("two shares, opposite ways", [5, 5], [4, 6], {"l1": 2, "honest": 2}),
        ),
        claim=Loss.pure,
        draw=_shares,
    )
)


def _tests(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    queries = Sealed(pair.side(side))
    mechanism = SparseVector(epsilon, sensitivity=1, **pair.options)
    return stack([[float(answer) for answer in mechanism.sample(queries)] for _ in range(count)])


def _opposite(half: int) -> Pair:
    """The answers are as unlike as they can be where all above come first, or all come last."""
    queries = [0] * half + [1] * half
    name = f"0^{half} 1^{half} against 1^{half} 0^{half}"
    return Pair(name, queries, queries[::-1], {"limit": half})


register(
    Subject(
        name="sparse-vector",
        kind=MECHANISM,
        pairs=(
            _opposite(1),
            _opposite(4),
            Pair(
                "0^6 1^6 against 1^6 0^6, the first above",
                [0] * 6 + [1] * 6,
                [1] * 6 + [0] * 6,
                {"limit": 1, "threshold": 1},
            ),
            Pair("all below, by one", [0] * 12, [-1] * 12, {"limit": 1, "monotone": True}),
            Pair("all above, by one", [0] * 4, [1] * 4, {"limit": 4, "monotone": True}),
        ),
        claim=Loss.pure,
        draw=_tests,
        epsilon="4",
        note="the answers in order; Lyu, Su and Li 2017, Algorithm 1",
    )
)


def _smooth(method: str, metric: str) -> None:
    """value and rung of either neighbour; the values are as far apart as the rungs allow."""
    local = sensitivity_for(metric, protection=_REPLACE, method=method)
    delta = _DELTA if method == "boyd-2015-laplace" else None

    def far(rung: int) -> Fraction:
        return Fraction(local.upper(rung))

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
        law = choose(method, epsilon=epsilon, local=local, rows=2000, delta=delta)
        value, rung = pair.side(side)
        units = [law.sample(value, rung=rung) for _ in range(count)]
        return np.array(units, dtype=np.float64) * float(LATTICE)

    def claim(epsilon: Fraction) -> Loss:
        return price(choose(method, epsilon=epsilon, local=local, rows=2000, delta=delta).event())

    register(
        Subject(
            name=f"{method}-{metric}",
            kind=MECHANISM,
            pairs=(
                Pair("rung 1", (Fraction(0), 1), (far(1), 1)),
                Pair("from rung 1 to 2", (Fraction(0), 1), (far(2), 2)),
                Pair("rung 30", (Fraction(0), 30), (far(30), 30)),
                Pair("from rung 30 to 31, the value stays", (far(1), 30), (far(1), 31)),
            ),
            claim=claim,
            draw=draw,
            epsilon=_PRICES.get(method, "1"),
            why=_WHY.get(method, ""),
        )
    )


_PRICES = {"cauchy": "4", "boyd-2015-cauchy": "6", "boyd-2015-laplace": "3"}
_WHY = {
    "cauchy": "tails wider than privacy needs: a value that moves shows a quarter at most",
    "boyd-2015-cauchy": "six times the noise that a value needs: it shows a sixth at most",
    "boyd-2015-laplace": "half is for the change of scale, and delta is taken off",
}
for _method in METHODS:
    _smooth(_method, "auc")
_smooth("piecewise-laplace", "average-precision")


def _board(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    """Return whether each submission improved, until the last improvement that may be shown."""
    test = SparseVector(epsilon, sensitivity=1, limit=pair.options["limit"])
    totals = [Sealed(np.array([total])) for total in pair.side(side)]
    outcomes = []
    for _ in range(count):
        mechanism = AboveBar(test, pair.options["bar"], 1, secret_of(test))
        answers: list[float] = []
        for total in totals:
            if sum(answers) < test.limit:
                answers.append(float(mechanism.sample(total)))
        outcomes.append(answers)
    return stack(outcomes)


register(
    Subject(
        name="board",
        kind=MECHANISM,
        pairs=(
            Pair(
                "every submission right about one row more",
                [0] * 8,
                [1] * 8,
                {"limit": 1, "bar": 2},
            ),
            Pair(
                "half of them right, half wrong", [0, 0, 1, 1], [1, 1, 0, 0], {"limit": 2, "bar": 1}
            ),
        ),
        claim=Loss.pure,
        draw=_board,
        epsilon="4",
        note="which submissions improved, for a bar that is kept",
    )
)
