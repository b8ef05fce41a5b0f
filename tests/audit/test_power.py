"""Every planted violator is caught, and none of our own is flagged."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from tests.chances import louder

from heldout import questions as q
from heldout.audit import audit, auditor, registered
from heldout.audit.subjects import (
    MECHANISM,
    RELEASE,
    VIOLATOR,
    Pair,
    Subject,
    _with_delta,
    find,
    open_session,
    register,
)
from heldout.audit.violators import sparse_vector
from heldout.kernel import Ledger
from heldout.kernel.loss import Loss
from heldout.questions.worst_cases import WorstCase

VIOLATORS = [each.name for each in registered(VIOLATOR)]
OWN = [each.name for each in registered() if each.kind in (RELEASE, MECHANISM)]
# Asked of the public functions, 4 to 90 ms an answer, or like one that is here: `make audit`.
LONG_ONLY = {
    *(name for name in OWN if name.endswith(("-counts", "-clipped", "-mapped", "-of-persons"))),
    *(name for name in OWN if name.startswith(("curves-", "residual-plot", "auc-"))),
    *("separability", "regression-metrics", "report", "curves", "training-naive-bayes"),
    *("regression-metrics-by-group", "class-average-precision", "training-logistic"),
    *(
        "training-logistic-columns",
        "training-pipeline",
        "selection-cluster",
        "selection-score-perturbation",
        "selection-noisy-top-k",
    ),
    *("selection-sparse-vector", "selection-permute-and-flip"),
}
assert set(OWN) >= LONG_ONLY


@pytest.mark.chance(louder(0, 6, 20))
@pytest.mark.parametrize("name", VIOLATORS)
def test_a_planted_violator_is_caught(name: str) -> None:
    found = audit(name, samples=24_000, workers=1)
    assert found.violated, str(found)
    assert "NOT AS CLAIMED" in str(found)
    # The others live on a lattice: each is caught for its own fault.
    assert found.worst.event.startswith("lowest bit") == (name == "floating-point-laplace")


def test_the_papers_algorithms_are_among_them() -> None:
    assert {
        "private-threshold-testing",
        "noisy-cut",
        "cluster-selection-2014",
        "noisy-max-with-value",
        "local-sensitivity",
        "auc-2015-condition",
        "half-the-scale",
        "floating-point-laplace",
        "seeded",
    } <= set(VIOLATORS)
    assert sum(name.startswith("sparse-vector") for name in VIOLATORS) >= 4


@pytest.mark.chance(2e-7, "two audits at a confidence of 1 - 1e-7")
def test_the_correct_sparse_vector_is_not_flagged() -> None:
    def draw(pair, side, epsilon, count, door):
        half = float(epsilon) / 2
        return sparse_vector(
            pair.side(side),
            count,
            np.random.default_rng(),
            threshold_scale=1 / half,
            query_scale=2 * 4 / half,
            limit=4,
        )

    pair = Pair("0^c 1^c against 1^c 0^c", [0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    register(Subject("test-sparse-vector", "test", (pair,), Loss.pure, draw))
    for epsilon in ("1", "8"):
        found = audit(
            "test-sparse-vector", epsilon=epsilon, samples=24_000, workers=1, confidence=1 - 1e-7
        )
        assert not found.violated


# One of each way of drawing here; the others are asked by `make test-slow`, and may be asked here.
SHORT = ["confusion", "auc", "discrete-laplace"]
LONGER = [name for name in OWN if name not in {*LONG_ONLY, *SHORT}]
assert set(OWN) >= set(SHORT)


@pytest.mark.chance(1e-7, "the confidence that is asked for")
@pytest.mark.parametrize(
    "name", [*SHORT, *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)]
)
def test_none_of_ours_is_flagged(name: str) -> None:
    """Few samples here; `make audit` takes many. The chance of a false alarm is 1e-7."""
    subject = find(name)
    if subject.missing() is not None:
        pytest.skip(str(subject.missing()))
    few = 400 if subject.kind == RELEASE else 1200
    found = audit(
        name,
        samples=few,
        door="replay",
        workers=1,
        pairs=[subject.pairs[0].name],
        confidence=1 - 1e-7,
    )
    assert not found.violated, str(found)


@pytest.mark.chance(1e-7, "the confidence that is asked for")
def test_every_answer_that_tests_is_booked(monkeypatch: pytest.MonkeyPatch) -> None:
    booked = []
    book = Ledger.book

    def counted(self, *words, **more):
        booked.append(1)
        return book(self, *words, **more)

    monkeypatch.setattr(Ledger, "book", counted)
    monkeypatch.setattr(auditor, "LEAST", 100)  # a booking is a booking
    found = audit(
        "confusion", samples=100, workers=1, pairs=["a label changes"], confidence=1 - 1e-7
    )
    assert found.door == "public"
    assert not found.violated
    assert 2 * found.samples <= len(booked) <= 2 * found.samples + 10


# How long the transcripts of these two are is an answer itself.
@pytest.mark.parametrize("name", sorted({*LONG_ONLY, *LONGER} - {"board", "sparse-vector"}))
@pytest.mark.slow
def test_what_only_the_long_audit_asks_can_be_asked(name: str) -> None:
    """One answer on both neighbours of the pairs, as many numbers each, at the declared price.

    A price of rho is tested as the epsilon that it implies at a delta.
    """
    subject = find(name)
    if subject.missing() is not None:
        pytest.skip(str(subject.missing()))
    price = Fraction(subject.epsilon)
    claim = subject.claim(price)
    if "gaussian" in name:
        assert claim == _with_delta(Loss.zcdp(price**2 / 2))
    else:
        assert claim.epsilon == price
    for pair in subject.pairs[-2:]:
        first, second = (subject.draw(pair, side, price, 1, "replay") for side in (0, 1))
        assert first.shape == second.shape


def test_a_server_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELDOUT_TEST_POSTGRES", raising=False)
    assert "no PostgreSQL server" in str(find("confusion-postgres").missing())


def test_every_release_is_audited_on_at_least_two_pairs_of_neighbours() -> None:
    for subject in registered(RELEASE):
        assert len(subject.pairs) >= 2
        assert len({each.name for each in subject.pairs}) == len(subject.pairs)


@pytest.mark.parametrize("question", q.registered(), ids=lambda question: question.kind)
def test_every_kind_of_question_declares_its_worst_neighbours(question: type[q.Question]) -> None:
    cases = question.worst_cases()
    assert cases, f"{question.__name__}.worst_cases() must say where its answer moves most"
    names = {"-".join(filter(None, (question.kind, case.name))) for case in cases}
    assert len(names) == len(cases)
    assert names <= {subject.name for subject in registered(RELEASE)}


def test_subjects_are_also_known_by_what_they_were_called() -> None:
    assert find("auc-of-classes").name == "class-auc"
    assert find("naive_bayes").name == "training-naive-bayes"


def cases() -> Iterator[tuple[str, Pair]]:
    for subject in registered(RELEASE):
        for pair in subject.pairs:
            if not isinstance(pair.first, dict):
                continue  # arrays: one row is another
            yield subject.name, pair


@pytest.mark.parametrize(
    ("name", "pair"), list(cases()), ids=lambda each: getattr(each, "name", each)
)
def test_a_pair_is_a_pair_of_neighbours(name: str, pair: Pair) -> None:
    """As the data set's own protection defines them: counted on rows, by unit if there is one."""
    options = pair.options
    sides = []
    for side in (0, 1):
        columns = pair.side(side)
        # Whose row it is belongs to it only where the data set says so; "k" tells rows apart.
        names = [c for c in columns if c != "k" and (c != "u" or options.get("unit") == "u")]
        rows = list(zip(*(columns[c] for c in names), strict=True))
        sides.append(rows)
    gone, come = (_without(sides[i], sides[1 - i]) for i in (0, 1))
    if "unit" in options:
        units = {row[names.index(options["unit"])] for row in gone + come}
        assert len(units) == 1
        assert max(len(gone), len(come)) <= options["rows_per_unit"]
    elif options.get("neighbours") == "add-remove":
        assert sorted((len(gone), len(come))) == [0, 1]
    else:
        assert (len(gone), len(come)) == (1, 1)
        assert len(sides[0]) == len(sides[1])


def _without(rows: list, others: list) -> list:
    left = list(others)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found


@pytest.mark.slow
def test_both_doors_have_one_law() -> None:
    """The replayed statistic is that of the public door: same centre, same spread."""
    subject = find("confusion")
    pair = subject.pairs[0]
    replayed, public = (
        subject.draw(pair, 0, 4, count, door) for count, door in ((4000, "replay"), (400, "public"))
    )
    off = (replayed.mean(axis=0) - public.mean(axis=0)) / (replayed.std(axis=0) / 20)
    assert np.abs(off).max() < 6
    assert (public.std(axis=0) / replayed.std(axis=0)).min() > 0.7
    assert (public.std(axis=0) / replayed.std(axis=0)).max() < 1.4


def test_the_request_at_the_door_is_the_same_on_both_neighbours() -> None:
    """All that a release prints comes from its request and from what was drawn."""
    for name in ("confusion", "brier", "auc", "average-precision", "compare"):
        subject, asked = find(name), q.find(name).of_case(q.find(name).worst_cases()[0], 1)
        for pair in subject.pairs:
            seen = []
            for side in (0, 1):
                answer = open_session(WorstCase(pairs=()), pair, side, "public").ask(asked)
                request = answer._drawn.request
                told = [request.name, request.parameters, request.event().encode()]
                content = answer.as_dict()
                content = {k: content[k] for k in ("parameters", "mechanism", "loss", "rows")}
                seen.append((repr(told), repr(content), sorted(answer.measures)))
            assert seen[0] == seen[1], (name, pair.name)
