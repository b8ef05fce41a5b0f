"""Sums where only outcomes are secret: noise by how far an outcome of these rows moves them."""

import functools
import itertools
import json
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import heldout as ho
from heldout.data import sql
from heldout.errors import ArgumentError
from heldout.kernel import Loss, Protection, price
from heldout.kernel.noise.tied import OutcomeLaplace
from heldout.kernel.ranking.mechanism import RankSumLaw, RankSums
from heldout.kernel.ranking.sensitivity import area
from heldout.kernel.ranking.statistic import RankDifferences
from heldout.kernel.statistic import BoundedSum, Sealed, Statistic
from heldout.pooling.answer import PooledReport
from heldout.questions import Brier, Compare
from heldout.questions.answers import Answered
from heldout.questions.ranking.paired import PairedCalls, PairedErrors

PROTECTIONS = [
    Protection(neighbours="label", unit=k > 0, rows_per_unit=max(k, 1))  # type: ignore[arg-type]
    for k in range(4)
]
# (score, rival) of the rows of a table; at the ends of the range, tied, and near each other.
TABLES = [
    [(0.1, 0.9), (0.4, 0.4), (0.4, 0.5), (0.8, 0.2)],
    [(0.5, 0.5), (0.5, 0.55), (0.6, 0.5), (0.45, 0.5)],
    [(0.0, 1.0), (1.0, 0.0), (0.3, 0.3), (0.7, 0.7)],
    [(0.2, 0.2), (0.3, 0.3), (0.3, 0.3), (0.9, 0.9)],
]
OUTCOMES = list(itertools.product((0, 1), repeat=4))


@functools.cache
def read(statistic: Statistic[Any], which: int) -> list[Any]:
    """The statistic of a table with every outcome, by its own statement."""
    values = ", ".join(
        f"({outcome}, {label}, CAST({score} AS DOUBLE), CAST({rival} AS DOUBLE))"
        for outcome, labels in enumerate(OUTCOMES)
        for label, (score, rival) in zip(labels, TABLES[which], strict=True)
    )
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE every AS SELECT * FROM (VALUES {values}) AS t(outcome, label, score, rival)"
    )
    return [
        statistic.read(
            connection.execute(
                sql.assemble(f"SELECT * FROM every WHERE outcome = {outcome}", statistic.body())
            ).fetchnumpy()
        )
        for outcome in range(len(OUTCOMES))
    ]


def largest_loss(statistic: Statistic[Any], table: int, protection: Protection) -> Fraction:
    """Of epsilon, by the sums' distances over their scales."""
    found = [vector.reshape(2, -1) for vector in read(statistic, table)]
    worst = Fraction(0)
    for (one, first), (two, second) in itertools.combinations(zip(OUTCOMES, found, strict=True), 2):
        changed = sum(a != b for a, b in zip(one, two, strict=True))
        if changed > protection.rows_per_unit:
            continue
        assert (first[1] == second[1]).all(), "reaches are public"
        moved = np.abs(first[0] - second[0]).tolist()
        scales = (protection.rows_per_unit * reach for reach in first[1].tolist())
        loss = sum(
            (Fraction(far, scale) if scale else Fraction(far) * 10**9)
            for far, scale in zip(moved, scales, strict=True)
        )
        worst = max(worst, Fraction(loss))
    return worst


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_no_outcome_moves_ranks_by_more_than_their_reaches(protection: Protection) -> None:
    losses = [largest_loss(RankDifferences(), table, protection) for table in range(len(TABLES))]
    assert max(losses) <= 1
    if protection.rows_per_unit == 1:
        assert losses[2] > Fraction(9, 10), "some lose nearly all of it"
    assert losses[3] == Fraction(1, 10), "models that rank alike: only positives are secret"


SUMS = [
    *(
        BoundedSum(error=error, score_range=(0, 1), with_rest=False, by_outcome=True)
        for error in ("squared", "absolute", "log")
    ),
    *(
        PairedErrors(error=error, score_range=(0, 1), with_rest=False, by_outcome=True)
        for error in ("brier", "log-loss")
    ),
]


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("statistic", SUMS, ids=lambda each: f"{type(each).__name__}-{each.error}")
def test_no_outcome_moves_errors_by_more_than_their_reach(
    statistic: BoundedSum, protection: Protection
) -> None:
    for table in range(len(TABLES)):
        worst = largest_loss(statistic, table, protection)
        moves = any(vector[2] for vector in read(statistic, table))
        assert worst <= 1
        if protection.rows_per_unit == 1:
            assert worst == (1 if moves else 0), "a reach is no larger than it must be"
        # The sums are those of rows whose reach nobody asked for.
        plain = type(statistic)(error=statistic.error, score_range=(0, 1), with_rest=False)
        for with_reach, without in zip(read(statistic, table), read(plain, table), strict=True):
            assert with_reach[:2].tolist() == without.tolist()
            assert 0 <= with_reach[2] <= statistic.resolution


def test_calls_of_two_models_are_tied_by_cell() -> None:
    for table in range(len(TABLES)):
        found = [vector.reshape(2, 4) for vector in read(PairedCalls(0.5, 0.5), table)]
        totals = {tuple(vector.sum(axis=0).tolist()) for vector in found}
        assert len(totals) == 1
        for (one, first), (two, second) in itertools.combinations(
            zip(OUTCOMES, found, strict=True), 2
        ):
            changed = sum(a != b for a, b in zip(one, two, strict=True))
            assert np.abs(first[1] - second[1]).sum() <= changed


def test_the_sum_of_ranks_is_the_difference_of_two_areas() -> None:
    for which, table in enumerate(TABLES):
        scores = np.array(table)
        for labels, (n, total, *_) in zip(OUTCOMES, read(RankDifferences(), which), strict=True):
            positive = np.array(labels) == 1
            first, second = (area(s[positive], s[~positive]) for s in scores.T)
            if 0 < n < 4:
                assert Fraction(int(total), int(2 * n * (4 - n))) == second - first


def test_reaches_are_released_as_they_are_and_other_neighbours_refused() -> None:
    labels = PROTECTIONS[2]
    sums = OutcomeLaplace(Fraction(1, 2), 2, 100, labels)
    assert price(sums.event()) == Loss.pure("1/2")
    assert sums.noise(7).scale == 7 * 2 * 2
    drawn = np.array([sums.sample(Sealed([5, 40, 7, 0])) for _ in range(50)])
    assert (drawn[:, 1:] == [40, 7, 0]).all()
    assert len(np.unique(drawn[:, 0])) > 3
    with pytest.raises(ArgumentError, match="dimension"):
        sums.sample(Sealed([5, 40]))
    for relation in ("replace-one", "add-remove"):
        with pytest.raises(ArgumentError, match="label"):
            OutcomeLaplace(Fraction(1), 2, 9, Protection(neighbours=relation))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="scale"):
        RankSums(epsilon=Fraction(1), protection=labels, rows=2**60)
    with pytest.raises(ArgumentError, match="by_outcome"):
        BoundedSum(error="squared", score_range=(0, 1), with_rest=True, by_outcome=True)


def test_the_law_of_a_quotient_is_that_of_two_noises() -> None:
    generator = np.random.default_rng(0)
    law = RankSumLaw(rows=1000, rows_per_unit=2, scale=900.0, count_scale=5.0, away=0.1)
    for rung in (50.0, 100.0, 250.0):
        n, m = 2 * rung, 1000 - 2 * rung
        noise = generator.laplace(0, 900 / (4 * n * m), 10**5)
        noise += generator.laplace(0, 5 * 0.1 * abs(1 / n - 1 / m), 10**5)
        for distance in (0.001, 0.003, 0.01):
            seen = (np.abs(noise) > distance).mean()
            assert float(law.survival(np.array([rung]), distance)[0]) == pytest.approx(
                seen, abs=0.01
            )


def rows(size: int = 2000) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    p = generator.random(size)
    y = (generator.random(size) < p).astype(int)
    return {"y": y, "p": p, "q": np.clip(p + generator.normal(0, 0.1, size), 0, 1)}


def test_comparisons_have_less_noise_where_only_outcomes_are_secret() -> None:
    content = rows()
    doors = [
        ho.Session(
            ho.Dataset(
                content, label="y", score="p", rivals=["q"], score_range=(0, 1), neighbours=relation
            ),
            budget=ho.Budget(epsilon=1000),
        )
        for relation in ("replace-one", "label")
    ]
    for measure in ("auc", "brier", "log-loss", "accuracy", "recall"):
        asked = Compare(score="q", measure=measure, epsilon=90)
        (usual,), (tied,) = (door.answer(asked).releases for door in doors)
        assert usual.value == pytest.approx(tied.value, abs=0.02)
        low, high = tied.noise_interval()
        assert tied.interval()[0] <= low < high <= tied.interval()[1]
        if measure in ("accuracy", "recall"):
            scales = [Fraction(each.as_dict()["mechanism"]["scale"]) for each in (usual, tied)]
            assert scales == [Fraction(2, 90), Fraction(1, 90)]
        else:
            widths = [np.subtract(*each.noise_interval()[::-1]) for each in (usual, tied)]
            assert widths[1] < widths[0] * 0.8
    assert doors[1].spent == Loss.pure(450)


def test_answers_about_outcomes_are_stored_and_read_again() -> None:
    table = ho.Dataset(rows(), label="y", score="p", rivals=["q"], neighbours="label")
    door = ho.Session(table, budget=ho.Budget(epsilon=10))
    for asked in (
        Compare(score="q", epsilon=1),
        Compare(score="q", measure="brier", epsilon=1),
        Compare(score="q", measure="recall", epsilon=1),
        Brier(epsilon=1),
    ):
        answered = door.answer(asked)
        kept = Answered.from_dict(json.loads(json.dumps(answered.as_dict())))
        assert kept.releases[0].as_dict() == answered.releases[0].as_dict()
        assert door.quote(asked).loss == Loss.pure(1)


def test_means_of_several_sites_are_pooled_where_only_outcomes_are_secret() -> None:
    content = rows()
    half = [{name: column[at::2] for name, column in content.items()} for at in (0, 1)]
    releases = [
        ho.Session(
            ho.Dataset(site, label="y", score="p", neighbours="label", name=f"site {at}"),
            budget=ho.Budget(epsilon=90),
        ).brier(epsilon=90)
        for at, site in enumerate(half)
    ]
    pooled = ho.pool([release.as_dict() for release in releases])
    assert not isinstance(pooled, PooledReport)
    truth = float(np.mean((content["p"] - content["y"]) ** 2))
    assert pooled.headline.value == pytest.approx(truth, abs=0.01)
