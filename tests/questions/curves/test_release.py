"""What is read off one release: curves, numbers, decisions, pictures, JSON."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.chances import louder

import heldout as ho
from heldout.data.scores import GridTally, declared_values, grid_point
from heldout.errors import ArgumentError
from heldout.questions.curves.pictures import chart
from heldout.questions.curves.release import CurvesRelease

ROWS = 6_000


def rows(seed: int = 1) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    labels = (random.random(ROWS) < 0.3).astype(int)
    logits = random.normal(size=ROWS) + 1.5 * labels - 1
    return labels, 1 / (1 + np.exp(-logits))


LABELS, SCORES = rows()


@pytest.fixture(scope="module")
def exactly() -> CurvesRelease:
    """A release with next to no noise."""
    return ho.roc_curve(LABELS, SCORES, epsilon="200")


@pytest.fixture(scope="module")
def noisy() -> CurvesRelease:
    return ho.roc_curve(LABELS, SCORES, epsilon="1/2")


@pytest.mark.chance(louder(0, 14, 10))
def test_numbers_are_those_of_scikit_learn_when_there_is_no_noise(exactly: CurvesRelease) -> None:
    assert abs(exactly.auc - roc_auc_score(LABELS, SCORES)) < 1e-3
    expected = average_precision_score(LABELS, SCORES)
    assert abs(exactly.average_precision - expected) < 0.01
    assert abs(exactly.prevalence - LABELS.mean()) < 1e-3
    ks = max(
        (SCORES[LABELS == 1] >= t).mean() - (SCORES[LABELS == 0] >= t).mean()
        for t in np.linspace(0, 1, 500)
    )
    assert abs(exactly.ks - ks) < 0.02


@pytest.mark.parametrize("threshold", [0.0, 0.21, 0.5, 0.77])
def test_decisions_are_those_of_the_rows_when_there_is_no_noise(
    exactly: CurvesRelease, threshold: float
) -> None:
    at = exactly.confusion(threshold)
    called = threshold <= SCORES
    assert abs(at.true_positives - (called & (LABELS == 1)).sum()) < 25
    assert abs(at.false_positives - (called & (LABELS == 0)).sum()) < 60
    assert abs(at.accuracy - (called == (LABELS == 1)).mean()) < 0.01
    assert float(at.recall) == pytest.approx(called[LABELS == 1].mean(), abs=0.01)
    assert sum(map(sum, at.matrix())) == pytest.approx(ROWS, abs=3)


def test_calibration_is_that_of_the_rows_when_there_is_no_noise(exactly: CurvesRelease) -> None:
    found = exactly.calibration
    for low, high, predicted, observed in zip(
        found.edges[:-1], found.edges[1:], found.predicted, found.observed, strict=True
    ):
        inside = (low <= SCORES) & (high > SCORES)
        if inside.sum() > 50:
            assert abs(predicted - SCORES[inside].mean()) < 0.02
            assert abs(observed - LABELS[inside].mean()) < 0.05
    assert found.share.sum() == pytest.approx(1)
    assert exactly.expected_calibration_error == pytest.approx(found.error)
    assert found.expected_calibration_error == found.error


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize(
    ("asked", "attribute"),
    [({"recall": 0.9}, "recall"), ({"specificity": 0.8}, "specificity"),
     ({"precision": 0.7}, "precision")],
)  # fmt: skip
def test_a_threshold_reaches_what_was_asked(
    noisy: CurvesRelease, asked: dict[str, float], attribute: str
) -> None:
    threshold = noisy.threshold_for(**asked)
    reached = getattr(noisy.confusion(threshold), attribute)
    assert asked[attribute] - 0.005 <= reached <= asked[attribute] + 0.06


@pytest.mark.parametrize("bad", [{}, {"recall": 0.9, "precision": 0.5}, {"recall": 1.2}])
def test_a_threshold_for_anything_else_is_refused(
    noisy: CurvesRelease, bad: dict[str, float]
) -> None:
    with pytest.raises(ArgumentError):
        noisy.threshold_for(**bad)


@pytest.mark.chance(2e-7, "two intervals at 1 - 1e-7")
def test_intervals_hold_the_truth_and_the_noise_is_a_part_of_them(noisy: CurvesRelease) -> None:
    true = {
        "auc": roc_auc_score(LABELS, SCORES),
        "average_precision": average_precision_score(LABELS, SCORES),
    }
    for name, value in true.items():
        measure = getattr(noisy, name)
        low, high = measure.noise_interval(0.9999999)
        assert low <= value <= high
        wide = measure.interval(0.95)
        assert wide[1] - wide[0] >= (measure.noise_interval(0.95)[1] - low) * 0.2
    for measure in noisy.measures.values():
        assert measure.interval()[0] <= measure <= measure.interval()[1]


def test_bands_hold_the_released_curve(noisy: CurvesRelease) -> None:
    for reading, curve in ((noisy.roc, noisy.roc.tpr),
                           (noisy.precision_recall, noisy.precision_recall.precision),
                           (noisy.calibration, noisy.calibration.observed)):  # fmt: skip
        inner, outer = reading.band(0.8, noise_only=True), reading.band(0.99)
        for band in (inner, outer):
            assert ((band.low <= curve + 1e-12) & (curve <= band.high + 1e-12)).all()
        assert (outer.high - outer.low >= inner.high - inner.low - 1e-9).all()
    at = noisy.roc.band(at=[0.1, 0.2])
    assert at.low.shape == (2,)
    assert noisy.precision_recall.band(at=[0.5]).high.shape == (1,)


def test_the_normalised_area_lies_below_the_area(noisy: CurvesRelease) -> None:
    found = noisy.precision_recall.normalised_auc
    assert 0 <= found < noisy.average_precision
    least = ho.precision_recall.minimum_auc(prevalence=noisy.prevalence.value)
    assert found == pytest.approx((noisy.average_precision - least) / (1 - least))
    low, high = found.interval()
    assert 0 <= low <= found.noise_interval()[1] <= 1
    assert low <= high <= 1


def test_lift_begins_high_and_ends_at_one(noisy: CurvesRelease) -> None:
    assert noisy.lift.lift[-1] == pytest.approx(1)
    assert noisy.lift.lift[1] > 1.5
    assert noisy.lift.called[-1] == pytest.approx(1)


def test_the_json_is_complete_and_plain(noisy: CurvesRelease) -> None:
    found = json.loads(json.dumps(noisy.as_dict(), allow_nan=False))
    assert set(found["curves"]) == {"roc", "precision_recall", "calibration"}
    assert found["release"] == "curves"
    assert found["parameters"] == {"method": "heldout"}
    assert len(found["noisy"]["negatives"]) == len(found["noisy"]["edges"]) - 1
    at = noisy.confusion(0.4).as_dict()
    assert at["threshold"] == 0.4
    assert "recall" in at["measures"]


@pytest.mark.parametrize("kind", ["roc", "precision-recall", "calibration"])
def test_each_curve_is_a_chart_and_a_picture_that_reads_aloud(
    noisy: CurvesRelease, kind: str
) -> None:
    assert noisy.plot(kind).to_dict()["layer"]
    picture = noisy.svg(kind)
    assert picture.startswith("<svg")
    assert "aria-label" in picture


def test_a_drawn_precision_recall_curve_does_not_begin_at_the_conventional_1(
    noisy: CurvesRelease,
) -> None:
    reading = noisy.precision_recall
    assert reading.precision[0] == 1
    line = chart(reading, level=0.95).layers[-1].records
    assert line[0] == {"x": 0.0, "y": float(reading.precision[1])}


def test_a_caption_says_what_its_band_assumes() -> None:
    fitted, hidden = (ho.roc_curve(LABELS, SCORES, epsilon=each) for each in ("2", "1/1000"))
    plain = ho.roc_curve(LABELS, SCORES, epsilon="2", method="laplace")
    for release, smooth in ((fitted, True), (hidden, False), (plain, False)):
        assert release.roc.is_fitted is release.precision_recall.is_fitted is smooth
        caption = release.figures()[0].caption
        assert ("the share of positives changes smoothly" in caption) is smooth
        assert ("assumes only that the curve rises between them" in caption) is not smooth


def test_there_is_no_picture_of_anything_else(noisy: CurvesRelease) -> None:
    with pytest.raises(ArgumentError, match="kind"):
        noisy.plot("lift")


def test_scores_that_are_no_probabilities_have_no_reliability_diagram() -> None:
    release = ho.roc_curve(LABELS, SCORES * 6 - 3, epsilon="1", score_range=(-3, 3))
    assert "expected calibration error" not in release.measures
    assert "calibration" not in release.as_dict()["curves"]
    assert release.roc.thresholds[-1] == -3
    with pytest.raises(ArgumentError, match="probabilities"):
        release.calibration  # noqa: B018


def test_a_precision_that_no_threshold_reaches_is_said_to_be_so() -> None:
    labels, scores = [1] * 300 + [0] * 700, [0.005 + 0.01 * (i % 100) for i in range(1000)]
    curves = ho.roc_curve(labels, scores, epsilon="4")
    with pytest.raises(ArgumentError, match="no threshold of this curve reaches it"):
        curves.threshold_for(precision=0.999)


# --- tied scores ---------------------------------------------------------------------------------


def tenths(rows: int = 5_000, seed: int = 7) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.3).astype(int)
    return labels, np.clip(np.floor(5 + 2 * random.normal(1.5 * labels - 0.5)), 1, 10) / 10


def test_tied_scores_are_found_counted_and_named() -> None:
    labels, scores = tenths()
    release = ho.roc_curve(labels, scores, epsilon="2")
    assert set(np.round(release.heaps, 3)) <= set(np.round(np.arange(1, 11) / 10, 3))
    assert len(release.heaps) >= 7
    assert f"scores take few values: {len(release.heaps)} heaps found" in release.ties
    assert release.as_dict()["ties"]["heaps"] == list(release.heaps)
    for threshold in (0.3, 0.5, 0.7):
        at = release.confusion(threshold)
        true = float((scores[labels == 1] >= threshold).mean())
        assert abs(at.recall - true) < 0.03, "a fitted law was off by .05 on average"
        low, high = at.recall.noise_interval(0.9999)
        assert low <= true <= high
    assert ho.roc_curve(LABELS, SCORES, epsilon="2").ties == ""


def test_a_threshold_for_a_recall_calls_a_whole_heap() -> None:
    random = np.random.default_rng(8)
    labels = (random.random(4_000) < 0.3).astype(int)
    scores = np.where(random.random(4_000) < 0.9, 0.0, random.random(4_000))
    for _ in range(5):
        release = ho.roc_curve(labels, scores, epsilon="1")
        threshold = release.threshold_for(recall=0.9)
        assert (scores[labels == 1] >= threshold).mean() >= 0.9
        exact = release.threshold_for(specificity=0.5)
        assert (scores[labels == 0] < exact).mean() >= 0.5


def test_with_nothing_assumed_intervals_go_by_the_edges_and_are_wider(noisy: CurvesRelease) -> None:
    bare = noisy.nothing_assumed
    for name, measure in noisy.measures.items():
        if name in ("AUC of the curve", "average precision of the curve", "KS"):
            low, high = measure.noise_interval()
            least, most = bare.measures[name].noise_interval()
            assert most - least > high - low, name
    assert not bare.roc.is_fitted
    at, edges = noisy.confusion(0.41), noisy.confusion(0.41, assume="nothing")
    (low, high), (least, most) = at.recall.noise_interval(), edges.recall.noise_interval()
    assert most - least > high - low
    assert at.as_dict()["nothing_assumed"]["recall"]["noise_interval"] == pytest.approx(
        [least, most]
    )
    with pytest.raises(ArgumentError, match="assume"):
        noisy.confusion(0.4, assume="all")


def test_declared_scores_are_counted_by_value() -> None:
    labels, scores = tenths()
    values = [k / 10 for k in range(1, 11)]
    rows = ho.Dataset({"y": labels, "p": scores}, label="y", score="p", score_values=values)
    session = ho.Session(rows, budget=ho.Budget(epsilon="10"))
    release = session.curves(epsilon="2")
    assert release.table.bins == 10
    assert release.parameters["score_values"] == values
    found = ho.roc_curve(labels, scores, epsilon="2")

    def widths(one: CurvesRelease) -> float:
        return sum(
            high - low
            for low, high in (one.confusion(at).recall.noise_interval() for at in (0.3, 0.5, 0.8))
        )

    assert widths(release) < widths(found)
    for threshold in (0.2, 0.25, 0.7):
        true = float((scores[labels == 1] >= threshold).mean())
        assert abs(release.confusion(threshold).recall - true) < 0.02
    for bad in ([0.5], [0.2, 1.5], "x", [np.nan, 0.5], list(np.arange(100) / 100)):
        with pytest.raises(ArgumentError, match="score_values"):
            ho.Dataset({"y": labels, "p": scores}, label="y", score="p", score_values=bad)


def test_no_declared_score_is_nan_wherever_it_sorts() -> None:
    nans = [float("nan") for _ in range(100)]  # each with a hash of its own
    for nan in nans:
        with pytest.raises(ArgumentError, match="score_values"):
            declared_values([0.1, nan, 0.9], (0.0, 1.0))


def test_a_threshold_lies_where_rows_with_its_score_are_counted() -> None:
    ends = 1.0, 100.0
    scores = ends[0] + (ends[1] - ends[0]) * np.arange(2**17 + 1) / 2**17  # half of them halfway
    tally = GridTally(ends)
    tally.add({"label": np.zeros(len(scores), dtype=np.int64), "score": scores})
    counts = np.zeros(2**16 + 1, dtype=np.int64)
    counts[tally.columns()["point"]] = tally.columns()["n"]
    points = [grid_point(float(each), points=2**16 + 1, score_range=ends) for each in scores]
    assert np.bincount(points, minlength=2**16 + 1).tolist() == counts.tolist()
