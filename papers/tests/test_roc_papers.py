"""The ROC figures of the two papers, in small and without their data."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chances import louder

from heldout.errors import ArgumentError
from heldout.kernel.curves.published import DawaLi2014
from heldout.kernel.statistic import Sealed
from heldout_papers import chen_2016_roc, registry, stoddard_2014_roc
from heldout_papers.chen_2016_price import SERIES, PublicDawa, varied
from heldout_papers.registry import Context
from heldout_papers.roc_pictures import corners, curves, in_order, lines
from heldout_papers.roc_study import DATA_THRESHOLDS, SMOOTH, Job, read, run, true_curves
from heldout_papers.scored_sets import ScoredSet


def _cell() -> ScoredSet:
    random = np.random.default_rng(6)
    labels = random.integers(0, 2, 400)
    return ScoredSet("small", labels, 1 / (1 + np.exp(-random.normal(2.0 * labels))))


METHODS = {
    "laplace": {},
    DATA_THRESHOLDS: {"thresholds": 10},
    "chen-2016-priroc-fix": {"thresholds": 32},
    "fixed-space": {"thresholds": 64},
    "recursive-medians": {"levels": 4, "counts": "dawa"},
    "hierarchical-quantile": {},
    SMOOTH: {},
}


def _job(name: str, epsilon: str, runs: int = 3) -> Job:
    return Job(_cell(), name, name, METHODS[name], epsilon, "add-remove", runs)


@pytest.mark.parametrize(
    ("paper", "kind", "numbers"),
    [
        ("stoddard-2014", "table", ["1"]),
        ("stoddard-2014", "figure", ["6", "7", "8"]),
        ("chen-2016", "figure", ["6", "7", "8", "9"]),
    ],
)
def test_tables_and_figures_are_registered(paper: str, kind: str, numbers: list[str]) -> None:
    found = [e.number for e in registry.discover() if (e.paper, e.kind) == (paper, kind)]
    assert set(numbers) <= set(found)


def test_a_figure_on_real_data_asks_for_it() -> None:
    entry = registry.find(paper="stoddard-2014", kind="table", number="1")
    with pytest.raises(ArgumentError, match="sms_spam"):
        entry.run(Context(data=Path("/nowhere")))


def test_the_true_curve_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    cell = _cell()
    assert true_curves(cell).auc == pytest.approx(roc_auc_score(cell.labels, cell.scores), abs=1e-4)


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize("name", METHODS)
def test_errors_vanish_with_much_budget_and_do_not_with_little(name: str) -> None:
    # At an epsilon of .05 three curves would be right by chance once in ten thousand times.
    much, little = run(_job(name, "50000")), run(_job(name, "0.005"))
    assert much.roc.mean() < 0.03
    assert much.auc.mean() < 0.02
    assert little.roc.mean() > much.roc.mean()


def test_synthetic_scores_have_the_area_that_was_asked_for() -> None:
    for area in (0.7, 0.85, 0.95):
        assert true_curves(chen_2016_roc.synthetic(area)).auc == pytest.approx(area, abs=1e-3)


def test_results_come_in_the_order_of_their_jobs_and_make_pictures() -> None:
    jobs = [_job(name, epsilon, 1) for name in ("laplace", SMOOTH) for epsilon in ("1", "0.1")]
    results = [run(job) for job in jobs]
    assert [r.job.label for r in in_order(results[::-1], jobs)] == [job.label for job in jobs]
    made = curves(Context(workers=1), jobs, "test", notes=["A note."])
    assert {row["curve"] for row in made.table} == {"true", "laplace", SMOOTH}
    assert len(made.charts[0].to_dict()["concat"]) == 2
    table = [{"data": "small", "method": "a", "epsilon": "0.5", "median error": 0.1}]
    assert lines(table, "epsilon", "Epsilon", y="median error").to_dict()


def _steep() -> ScoredSet:
    """Nearly perfect scores in few places, as of SMS: steps of no length beside every turn."""
    random = np.random.default_rng(7)
    labels = np.repeat([0, 1], [77, 481])
    scores = np.round(np.clip(random.normal(0.15 + 0.7 * labels, 0.15), 0, 1), 2)
    return ScoredSet("steep", labels, scores)


@pytest.mark.parametrize("name", METHODS)
def test_a_drawn_curve_has_the_area_that_its_table_says(name: str) -> None:
    job = Job(_steep(), name, name, METHODS[name], "2", "add-remove", 1)
    made = curves(Context(workers=1), [job], "test", notes=[])
    drawn = made.charts[0].to_dict()
    shown = [row for values in drawn["datasets"].values() for row in values]
    for label in ("true", name):
        (said,) = {row["area"] for row in made.table if row["curve"] == label}
        points = [(row["fpr"], row["tpr"]) for row in shown if row["curve"] == label]
        across, up = zip(*points, strict=True)
        assert np.trapezoid(up, across) == pytest.approx(said, abs=1e-6)
        assert points[0] == pytest.approx((0, 0), abs=1e-6)
        assert points[-1] == pytest.approx((1, 1), abs=1e-6)
    true = next(row["area"] for row in made.table if row["curve"] == "true")
    assert true == pytest.approx(true_curves(_steep()).auc, abs=1e-9)
    assert true > 0.98, "which the diagonal does not have"


@pytest.mark.parametrize("figure_6", [stoddard_2014_roc.figure_6, chen_2016_roc.figure_6])
def test_both_figures_6_draw_curves_with_the_areas_of_their_tables(
    figure_6: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stoddard_2014_roc, "_EPSILONS", ("1",))
    made = figure_6(Context(workers=1, shared={"text test sets": [_steep()]}))
    shown = [row for data in made.charts[0].to_dict()["datasets"].values() for row in data]
    said = {(r["epsilon"], r["curve"]): r["area"] for r in made.table}
    assert {curve for _, curve in said} > {"true", "heldout"}
    for (epsilon, curve), area in said.items():
        points = [
            (r["fpr"], r["tpr"]) for r in shown if (r["epsilon"], r["curve"]) == (epsilon, curve)
        ]
        across, up = zip(*points, strict=True)
        assert np.trapezoid(up, across) == pytest.approx(area, abs=1e-6)
        if curve == "true":
            assert area == pytest.approx(true_curves(_steep()).auc, abs=1e-9)


@pytest.mark.chance(louder(0, 14, 10))
@pytest.mark.parametrize("name", SERIES)
def test_every_part_of_the_price_can_be_replaced(name: str) -> None:
    cell = _steep()
    made = varied(SERIES[name], epsilon="400", rows=len(cell.labels))
    made = replace(made, edges=replace(made.edges, levels=5))
    found = read(made.sample(Sealed(cell.table())), corner=True)
    assert found.auc == pytest.approx(true_curves(cell).auc, abs=0.02)


def test_the_public_code_draws_less_noise_than_the_proof_needs() -> None:
    """Its first stage splits an even class into fewer buckets, so the areas are nearer."""
    even = np.full(256, 2)
    sizes = [
        np.mean([len(kind(bins=256, epsilon=Fraction(1), moved=2)._partition(even))
                 for _ in range(5)])
        for kind in (PublicDawa, DawaLi2014)
    ]  # fmt: skip
    assert sizes[0] < sizes[1] / 2


@settings(deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([0.0, 1e-4, 0.1, 1.0]), st.sampled_from([0.0, 1e-4, 0.1, 1.0])),
        min_size=1,
        max_size=30,
    )
)
def test_leaving_points_out_of_a_straight_piece_moves_no_area(
    steps: list[tuple[float, float]],
) -> None:
    points = np.concatenate([[[0.0, 0.0]], np.cumsum(steps, axis=0)])
    kept = np.array(corners(points[:, 0], points[:, 1]))
    assert len(kept) <= len(points)
    assert np.trapezoid(kept[:, 1], kept[:, 0]) == pytest.approx(
        np.trapezoid(points[:, 1], points[:, 0]), rel=1e-9, abs=1e-12
    )
