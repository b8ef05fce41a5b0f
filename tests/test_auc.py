"""AUC, average precision and comparison as an analyst meets them; more in test_compare.py."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as reference
from tests.chances import louder

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError, HeldoutError, PrivacyError
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.mechanism import METHODS
from heldout.kernel.ranking.statistic import RankingAndTable, RankingStatistic
from heldout.kernel.statistic import compute
from heldout.questions.ranking.questions import LEAST_EPSILON
from heldout.questions.ranking.release import AucRelease, CompareRelease, RankingRelease

RANDOM = np.random.default_rng(2015)
SIZE = 3000
LABELS = (RANDOM.random(SIZE) < 0.4).astype(int)
GOOD = np.clip(RANDOM.normal(0.4 + 0.15 * LABELS, 0.12), 0, 1)
WORSE = np.clip(RANDOM.normal(0.4 + 0.02 * LABELS, 0.12), 0, 1)
COARSE = np.round(GOOD * 16) / 16  # many ties, and every one a point of the public grid
TABLE = {
    "y": LABELS,
    "good": GOOD,
    "worse": WORSE,
    "coarse": COARSE,
    "who": np.arange(SIZE) // 3,
}
HUGE = "100"
RELATIONS = [
    {"neighbours": neighbours, **unit}
    for neighbours in ("replace-one", "add-remove")
    for unit in ({}, {"unit": "who"}, {"unit": "who", "rows_per_unit": 3})
]
ASKS: dict[str, Callable[..., RankingRelease]] = {
    "auc": lambda door, **options: door.auc(**options),
    "average-precision": lambda door, **options: door.average_precision(**options),
    "auc-difference": lambda door, **options: door.compare(score="worse", **options),
}
each_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
each_relation = pytest.mark.parametrize(
    "relation", RELATIONS, ids=lambda each: " ".join(map(str, each.values()))
)


def session(
    table: Any = None, *, score: str = "good", budget: Any = None, **options: Any
) -> ho.Session:
    rows = TABLE if table is None else table
    rivals = [name for name in ("worse",) if name in rows and name != score]
    dataset = ho.Dataset(rows, label="y", score=score, rivals=rivals, **options)
    return ho.Session(dataset, budget=budget or ho.Budget(epsilon=10**6))


def exact_value(metric: str, dataset: ho.Dataset, **options: Any) -> RankingStatistic:
    """The un-noised statistic, which only a test may look at."""
    kind = q.Auc if metric == "auc" else q.AveragePrecision
    statistic = kind(epsilon="1", **options)._statistic(dataset.description)
    found = unseal(compute(statistic, dataset))
    ranking = found.ranking if isinstance(found, RankingAndTable) else found
    assert isinstance(ranking, RankingStatistic)
    return ranking


def precision_by_hand(labels: Any, scores: Any) -> float:
    """Ranks by falling score, within a tie the negatives first; the mean precision at positives."""
    ranked = sorted(zip(-np.asarray(scores), labels, strict=True))
    found = [label for _, label in ranked]
    hits = [sum(found[: i + 1]) / (i + 1) for i, label in enumerate(found) if label]
    return sum(hits) / len(hits)


# --- what is released ----------------------------------------------------------------------------


@each_ask
@each_relation
def test_the_charge_is_the_price_and_all_of_it_is_json(
    ask: Callable[..., RankingRelease], relation: dict[str, Any]
) -> None:
    door = session(**relation)
    for times, epsilon in enumerate(("1/3", "1/3"), start=1):
        release = ask(door, epsilon=epsilon)
        assert release.loss == release.receipt.charge == ho.Loss.pure("1/3")
        assert door.spent == ho.Loss.pure(Fraction(times, 3))
    assert release.neighbours == relation["neighbours"]
    least = -1 if isinstance(release, CompareRelease) else 0
    for low, high in (release.interval(), release.noise_interval(), release.interval(0.5)):
        assert least <= low <= release.value <= high <= 1
    told = json.loads(json.dumps(release.as_dict()))
    assert told["value"] == float(release) == release.value
    assert told["loss"] == {"epsilon": "1/3", "delta": "0"}
    assert (told["rows"] is None) == ("unit" in relation or release.neighbours == "add-remove")
    assert str(release)
    assert "<table" in release._repr_html_()


@pytest.mark.chance(louder(0, 40, 6))
@each_relation
def test_with_a_huge_epsilon_it_is_what_scikit_learn_says(relation: dict[str, Any]) -> None:
    kept = np.ones(SIZE, dtype=bool)
    if relation.get("unit") and "rows_per_unit" not in relation:
        kept[:] = False
        kept[::3] = True  # as many as are kept; which ones is the hash's business
    slack = 1e-3 if kept.all() else 0.06
    door = session(score="coarse", **relation)
    truth = reference.roc_auc_score(LABELS[kept], COARSE[kept])
    assert float(door.auc(epsilon=HUGE)) == pytest.approx(truth, abs=slack)
    for ties, by_hand in (
        ("grouped", reference.average_precision_score),
        ("negatives-first", precision_by_hand),
    ):
        found = float(door.average_precision(epsilon=HUGE, ties=ties))
        precision = by_hand(LABELS[kept], COARSE[kept])
        assert found == pytest.approx(precision, abs=max(slack, 8e-3))


@pytest.mark.chance(louder(0, 6, 20))
def test_without_ties_average_precision_is_scikit_learns() -> None:
    truth = reference.average_precision_score(LABELS, GOOD)
    assert float(session().average_precision(epsilon=HUGE)) == pytest.approx(truth, abs=2e-3)
    exact = exact_value("average-precision", ho.Dataset(TABLE, label="y", score="good"))
    assert float(exact.value) == pytest.approx(truth, abs=1e-9)


def test_ties_count_as_in_scikit_learn_or_negatives_first_in_average_precision() -> None:
    dataset = ho.Dataset(TABLE, label="y", score="coarse")
    area, precision = (exact_value(name, dataset) for name in ("auc", "average-precision"))
    paper = exact_value("average-precision", dataset, ties="negatives-first")
    assert (area.positives, area.negatives) == (LABELS.sum(), SIZE - LABELS.sum())
    assert float(area.value) == pytest.approx(reference.roc_auc_score(LABELS, COARSE), abs=1e-12)
    assert float(paper.value) == pytest.approx(precision_by_hand(LABELS, COARSE), abs=1e-9)
    expected = reference.average_precision_score(LABELS, COARSE)
    assert float(precision.value) == pytest.approx(expected, abs=1e-9)
    assert paper.value < precision.value


@pytest.mark.chance(louder(0, 3, 40))
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_on_scores_of_the_grid_the_grid_is_exact(metric: str) -> None:
    dataset = ho.Dataset(TABLE, label="y", score="coarse")
    assert exact_value(metric, dataset, scores="grid") == exact_value(
        metric, dataset, scores="exact"
    )
    release = ASKS[metric](session(score="coarse"), epsilon=HUGE, scores="grid")
    assert release.as_dict()["parameters"]["scores"] == "grid"
    assert release.value == pytest.approx(float(exact_value(metric, dataset).value), abs=2e-3)


@each_ask
def test_a_release_names_the_claim_that_it_rests_on(ask: Callable[..., RankingRelease]) -> None:
    claims = {
        "auc": "value-or-counts",
        "average-precision": "value-or-counts",
        "auc-difference": "auc-difference",
    }
    release = ask(session(), epsilon="1")
    assert release.as_dict()["claim"] == claims[release.name]


# --- data that is hardly any ---------------------------------------------------------------------

DEGENERATE = {
    "one positive row": ([1], [0.5]),
    "one negative row": ([0], [0.5]),
    "no positives": ([0] * 12, list(np.linspace(0, 1, 12))),
    "no negatives": ([1] * 12, list(np.linspace(0, 1, 12))),
    "one of each": ([0, 1], [0.2, 0.8]),
    "all tied": ([0, 1] * 6, [0.5] * 12),
    "one positive": ([1] + [0] * 30, [1.0] + [0.0] * 30),
}


@each_ask
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_hardly_any_data_is_no_exception(
    ask: Callable[..., RankingRelease], name: str, neighbours: str
) -> None:
    labels, scores = DEGENERATE[name]
    table = {"y": labels, "good": scores, "worse": scores[::-1]}
    door = session(table, neighbours=neighbours)
    for epsilon in ("0.01", "1"):
        release = ask(door, epsilon=epsilon)
        least = -1 if isinstance(release, CompareRelease) else 0
        for low, high in (release.interval(), release.noise_interval()):
            assert least <= low <= release.value <= high <= 1
        assert json.dumps(release.as_dict())
    assert door.spent == ho.Loss.pure("1.01")


@pytest.mark.parametrize(
    ("name", "metric", "value"),
    [
        ("one positive row", "auc", Fraction(1, 2)),
        ("no positives", "auc", Fraction(1, 2)),
        ("no negatives", "auc", Fraction(1, 2)),
        ("all tied", "auc", Fraction(1, 2)),
        ("one positive", "auc", Fraction(1)),
        ("no positives", "average-precision", Fraction(0)),
        ("no negatives", "average-precision", Fraction(1)),
        ("all tied", "average-precision", Fraction(1, 2)),
    ],
)
def test_hardly_any_data_has_a_value(name: str, metric: str, value: Fraction) -> None:
    labels, scores = DEGENERATE[name]
    dataset = ho.Dataset({"y": labels, "p": scores}, label="y", score="p")
    found = exact_value(metric, dataset).value
    assert abs(found - value) < Fraction(1, 2**60)


@pytest.mark.chance(1e-7, "half of 60 draws below 0.2: a binomial tail of 2e-8")
def test_the_noise_is_as_wide_as_a_small_class_needs() -> None:
    """With one positive row that row decides everything: noise of 1/epsilon at the least."""

    def noise(positives: int) -> float:
        labels = [1] * positives + [0] * (600 - positives)
        door = session({"y": labels, "good": [0.5] * 600})
        # A guess that is wrong on purpose: the value is drawn, and not counts by score.
        drawn = [door.auc(epsilon="1", smaller_class=300)._draw.unclamped for _ in range(60)]
        return float(np.median(np.abs(np.array(drawn) - 0.5)))

    assert noise(1) > 0.2  # half of 60 draws of Laplace noise below it have a chance of 2e-8
    assert noise(300) < 0.02


@pytest.mark.slow
@pytest.mark.chance(4e-9, "43 of 60 intervals of 95 percent hold: a binomial tail")
def test_noise_intervals_hold_where_the_noise_is_larger_than_the_range() -> None:
    labels = [1, 0] * 10
    scores = list(RANDOM.random(20))
    truth = reference.roc_auc_score(labels, scores)
    door = session({"y": labels, "good": scores})
    intervals = [door.auc(epsilon="0.2").noise_interval() for _ in range(60)]
    assert sum(low <= truth <= high for low, high in intervals) >= 44  # 57 are expected


# --- methods by name -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_every_method_has_its_own_price(metric: str, method: str) -> None:
    delta = "1e-6" if method == "boyd-2015-laplace" else None
    door = session(budget=ho.Budget(epsilon=1000, delta="1e-5"))
    epsilon = "2" if delta else HUGE
    release = ASKS[metric](door, epsilon=epsilon, method=method, delta=delta)
    price = ho.Loss.pure(epsilon) if delta is None else ho.Loss.approximate(epsilon, delta)
    assert release.loss == price
    assert door.spent.epsilon == Fraction(epsilon)
    assert door.spent.delta == Fraction(delta or 0)
    assert release.as_dict()["parameters"]["method"] == method
    json.dumps(release.as_dict())


@pytest.mark.slow
@pytest.mark.chance(3e-7)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_every_method_finds_the_value_most_of_the_time(metric: str, method: str) -> None:
    """Cauchy noise strays far now and then, and an interval misses now and then."""
    delta = "1e-6" if method == "boyd-2015-laplace" else None
    epsilon = "2" if delta else HUGE
    truth = float(exact_value(metric, ho.Dataset(TABLE, label="y", score="good")).value)
    rich = session(budget=ho.Budget(epsilon=100_000, delta="1e-3"))
    many = [ASKS[metric](rich, epsilon=epsilon, method=method, delta=delta) for _ in range(15)]
    assert np.median([each.value for each in many]) == pytest.approx(truth, abs=0.1)
    assert sum(low <= truth <= high for low, high in (each.interval() for each in many)) >= 8


@pytest.mark.parametrize("guess", [1, 10, 1200, 2**50])
def test_a_guess_of_the_smaller_class_is_public_and_changes_no_price(guess: int) -> None:
    for method in ("piecewise-laplace", "polynomial-tail"):
        release = session().auc(epsilon="1", method=method, smaller_class=guess)
        assert release.loss == ho.Loss.pure(1)
        assert release.as_dict()["parameters"]["smaller_class"] == guess


REFUSED: dict[str, Callable[[ho.Session], object]] = {
    "a method nobody knows": lambda door: door.auc(epsilon=1, method="guess"),
    "Laplace without delta": lambda door: door.auc(epsilon=1, method="boyd-2015-laplace"),
    "delta for a pure method": lambda door: door.auc(epsilon=1, delta="1e-6"),
    "delta for their Cauchy": lambda door: door.average_precision(
        epsilon=1, method="boyd-2015-cauchy", delta="1e-6"
    ),
    "delta 1": lambda door: door.auc(epsilon=1, method="boyd-2015-laplace", delta=1),
    "delta 0": lambda door: door.auc(epsilon=1, method="boyd-2015-laplace", delta=0),
    "delta below 0": lambda door: door.auc(epsilon=1, method="boyd-2015-laplace", delta=-1),
    "delta beyond the budget": lambda door: door.auc(
        epsilon=1, method="boyd-2015-laplace", delta="1e-6"
    ),
    "no smaller class": lambda door: door.auc(epsilon=1, smaller_class=0),
    "a ladder too high": lambda door: door.auc(epsilon=1, smaller_class=2**50 + 1),
    "half a smaller class": lambda door: door.auc(epsilon=1, smaller_class=1.5),  # type: ignore[arg-type]
    "a true smaller class": lambda door: door.compare(score="worse", epsilon=1, smaller_class=True),
    "a text for a class": lambda door: door.average_precision(
        epsilon=1,
        smaller_class="few",  # type: ignore[arg-type]
    ),
    "scores of another kind": lambda door: door.auc(epsilon=1, scores="rough"),
    "no epsilon": lambda door: door.auc(epsilon=0),
    "too little epsilon": lambda door: door.auc(epsilon=LEAST_EPSILON * Fraction(99, 100)),
    "what a second look would leave": lambda door: door.average_precision(epsilon="0.00012"),
    "too much epsilon": lambda door: door.auc(epsilon="100.01"),
    "more than is left": lambda door: door.compare(score="worse", epsilon="99"),
    "a rival that is not there": lambda door: door.compare(score="best", epsilon=1),
    "a rival without a name": lambda door: door.compare(score=None, epsilon=1),  # type: ignore[arg-type]
    "a rival by its values": lambda door: door.compare(score=WORSE, epsilon=1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_not_charged(ask: Callable[[ho.Session], object]) -> None:
    door = session(budget=ho.Budget(epsilon=50))
    before = [entry.as_dict() for entry in door._ledger.history()]
    with pytest.raises((ArgumentError, PrivacyError)) as caught:
        ask(door)
    assert "\n" not in str(caught.value)
    assert door.spent == ho.Loss.pure(0)
    assert [entry.as_dict() for entry in door._ledger.history()] == before


def test_the_papers_precision_bound_does_not_speak_of_units() -> None:
    door = session(unit="who", rows_per_unit=3)
    for method, delta in (("boyd-2015-cauchy", None), ("boyd-2015-laplace", "1e-6")):
        with pytest.raises(ArgumentError, match="rows_per_unit"):
            door.average_precision(epsilon=1, method=method, delta=delta)
    assert door.spent == ho.Loss.pure(0)


def test_the_least_epsilon_is_answered_whatever_the_counts_say() -> None:
    for neighbours in ("replace-one", "add-remove"):
        door = session({"y": [1, 0], "good": [0.5, 0.5]}, neighbours=neighbours)
        for _ in range(5):
            assert 0 <= float(door.auc(epsilon=LEAST_EPSILON)) <= 1
        assert door.spent == ho.Loss.pure(5 * LEAST_EPSILON)


# --- the curve and the functions -----------------------------------------------------------------


def test_an_area_becomes_a_curve_with_a_band() -> None:
    release = session().auc(epsilon="1")
    assert isinstance(release, AucRelease)
    curve = release.binormal_roc(points=21)
    assert len(curve.fpr) == 21
    for ends in (curve.tpr, curve.low, curve.high):
        assert (ends[0], ends[-1]) == (0, 1)
        assert np.all(np.diff(ends) >= 0)
    assert np.all(curve.low <= curve.tpr + 1e-12)
    assert np.all(curve.tpr <= curve.high + 1e-12)
    assert float(np.trapezoid(release.binormal_roc(points=2001).tpr, dx=1 / 2000)) == pytest.approx(
        release.value, abs=2e-3
    )
    narrow = release.binormal_roc(level=0.5, points=21)
    assert np.all(narrow.high - narrow.low <= curve.high - curve.low + 1e-12)
    with pytest.raises(ArgumentError, match="points"):
        release.binormal_roc(points=1)


@pytest.mark.chance(louder(0, 14, 10))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_functions_shaped_as_in_scikit_learn(neighbours: str) -> None:
    area = ho.roc_auc_score(LABELS, GOOD, epsilon=HUGE, neighbours=neighbours)
    assert float(area) == pytest.approx(reference.roc_auc_score(LABELS, GOOD), abs=1e-3)
    precision = ho.average_precision_score(LABELS, GOOD, epsilon=HUGE, neighbours=neighbours)
    expected = reference.average_precision_score(LABELS, GOOD)
    assert float(precision) == pytest.approx(expected, abs=2e-3)
    for release in (area, precision):
        assert release.loss == ho.Loss.pure(HUGE)
        assert release.neighbours == neighbours


def test_functions_take_labels_methods_and_guesses() -> None:
    words = np.where(LABELS == 1, "ill", "well")
    named: dict[str, Any] = {"positive": "ill", "negative": "well", "score_range": (-1, 2)}
    for method in ("polynomial-tail", "boyd-2015-cauchy"):
        release = ho.roc_auc_score(
            words, GOOD, epsilon="2", method=method, smaller_class=1000, **named
        )
        assert release.loss == ho.Loss.pure(2)
    with pytest.raises(ArgumentError, match="delta"):
        ho.average_precision_score(LABELS, GOOD, epsilon=1, method="boyd-2015-laplace")
    with pytest.raises(HeldoutError):
        ho.roc_auc_score(LABELS, GOOD[:-1], epsilon=1)
