"""What a release costs is what it claims, what its event is priced at, and what the ledger took."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.errors import AnswerLost, ArgumentError, HeldoutError
from heldout.intervals.measure import Release
from heldout.kernel import Budget, price
from heldout.questions.session import PrivateSession

RELEASES: dict[str, Callable[[ho.Session, Any], Release]] = {
    "confusion": lambda session, epsilon: session.confusion(threshold=0.5, epsilon=epsilon),
    "brier": lambda session, epsilon: session.brier(epsilon=epsilon),
    "mean absolute error": lambda session, epsilon: session.mean_absolute_error(epsilon=epsilon),
    "mean squared error": lambda session, epsilon: session.mean_squared_error(epsilon=epsilon),
}
RANKINGS: dict[str, Callable[[ho.Session, Any], Release]] = {
    "auc": lambda session, epsilon: session.auc(epsilon=epsilon),
    "auc on the grid": lambda session, epsilon: session.auc(epsilon=epsilon, scores="grid"),
    "auc with a guess": lambda session, epsilon: session.auc(epsilon=epsilon, smaller_class=9),
    "auc, Cauchy": lambda session, epsilon: session.auc(epsilon=epsilon, method="cauchy"),
    "average precision": lambda session, epsilon: session.average_precision(epsilon=epsilon),
    "compare": lambda session, epsilon: session.compare(score="q", epsilon=epsilon),
}
PROTECTIONS = [
    {"neighbours": relation} | unit
    for relation in ("replace-one", "add-remove")
    for unit in ({}, {"unit": "who", "rows_per_unit": 1}, {"unit": "who", "rows_per_unit": 7})
]
ALL = RELEASES | RANKINGS
each_release = pytest.mark.parametrize("ask", ALL.values(), ids=ALL)
each_vector_release = pytest.mark.parametrize("ask", RELEASES.values(), ids=RELEASES)
each_protection = pytest.mark.parametrize("protection", PROTECTIONS, ids=str)


def data(protection: dict[str, Any], rows: int = 60) -> ho.Dataset:
    table = {
        "who": [row // 9 for row in range(rows)],
        "y": [row % 3 == 0 for row in range(rows)],
        "p": [row / rows for row in range(rows)],
        "q": [row * 7 % rows / rows for row in range(rows)],
    }
    return ho.Dataset(table, label="y", score="p", rivals=["q"], positive=True, **protection)


@each_protection
@each_release
def test_the_ledger_takes_exactly_what_the_release_claims(
    ask: Callable[[ho.Session, Any], Release], protection: dict[str, Any]
) -> None:
    session = ho.Session(data(protection), budget=ho.Budget(epsilon=10))
    spent = Fraction(0)
    for count, epsilon in enumerate(["1/3", 0.1, "0.0078125", 2, Fraction(22, 7)], start=1):
        asked = Fraction(str(epsilon))
        release = ask(session, epsilon)
        spent += asked
        *_, entry = entries = session._ledger.entries(session._account)
        assert entry.event is not None
        assert len(entries) == count
        assert release.loss == ho.Loss.pure(asked)
        assert price(entry.event) == release.loss
        assert entry.event == release._drawn.request.event()
        assert entry.loss == entry.charge == release.receipt.loss == release.loss
        assert session.spent == ho.Loss.pure(spent)
        assert session.remaining == ho.Loss.pure(10 - spent)
        assert (entry.sequence, entry.hash) == (release.receipt.sequence, release.receipt.hash)


@each_protection
@each_vector_release
def test_the_mechanism_is_built_for_the_sensitivity_of_its_statistic(
    ask: Callable[[ho.Session, Any], Release], protection: dict[str, Any]
) -> None:
    """The door does not look whether the two belong together, so we do."""
    dataset = data(protection)
    release = ask(ho.Session(dataset, budget=ho.Budget(epsilon=1)), "1/2")
    request = release._drawn.request
    sensitivity = request.statistic.sensitivity(dataset.protection)
    assert request.mechanism.l1_sensitivity == sensitivity  # type: ignore[attr-defined]
    assert request.mechanism.scale == 2 * sensitivity  # type: ignore[attr-defined]
    assert len(release.as_dict()["noisy"]) == request.mechanism.dimension  # type: ignore[attr-defined]


def test_what_is_charged_does_not_depend_on_the_rows() -> None:
    """Neighbours and strangers alike: the same request leaves the same entry, but for the time."""
    contents = []
    for rows in (5, 60, 61):
        for ask in ALL.values():
            session = ho.Session(
                data({"neighbours": "add-remove"}, rows), budget=ho.Budget(epsilon=1)
            )
            ask(session, "1/4")
            [entry] = session._ledger.entries(session._account)
            content = entry.content
            for changing in ("time", "account", "ledger"):
                del content[changing]
            contents.append(json.dumps(content, sort_keys=True))
    assert len(set(contents)) == len(ALL)


def test_a_million_rows_cost_what_sixty_do() -> None:
    generator = np.random.default_rng(7)
    scores = generator.random(10**6)
    labels = (generator.random(10**6) < scores).astype(np.int8)
    dataset = ho.Dataset({"y": labels, "p": scores}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=2))
    confusion, brier = session.confusion(epsilon=1), session.brier(epsilon=1)
    assert session.remaining == ho.Loss.pure(0)
    called = scores >= 0.5
    exact = [
        (called & (labels == 1)).sum(),
        (called & (labels == 0)).sum(),
        (~called & (labels == 1)).sum(),
        (~called & (labels == 0)).sum(),
    ]
    noisy = [
        confusion.true_positives,
        confusion.false_positives,
        confusion.false_negatives,
        confusion.true_negatives,
    ]
    # Scale 2: the chance of noise beyond 100 is exp(-50).
    assert np.abs(np.array(noisy, dtype=float) - exact).max() < 150
    assert abs(float(brier) - ((scores - labels) ** 2).mean()) < 1e-4


EDGES = ("1e380", "1e308", "1e30", "1e12", "1e6", "1e-6", "1e-12", "1e-13", "1e-30", "1e-380")


@pytest.mark.parametrize("kind", q.kinds())
def test_a_price_is_refused_before_it_is_booked_or_answered(kind: str) -> None:
    """Whatever its size: what a mechanism cannot draw, or nobody can read, is never paid for."""
    for epsilon in EDGES:
        try:
            question, rows = q.find(kind).with_rows(epsilon)
        except ArgumentError:
            continue
        session = PrivateSession(rows, budget=Budget(epsilon=10**390))
        before = len(session._ledger.entries(session._account))
        try:
            answer = session.answer(question)
        except AnswerLost:
            raise
        except HeldoutError:
            assert len(session._ledger.entries(session._account)) == before, epsilon
            continue
        assert answer.as_dict(), epsilon
        assert str(answer.releases[0]), epsilon
