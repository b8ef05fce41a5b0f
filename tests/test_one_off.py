"""scikit-learn shaped functions: arrays in, a release out."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as reference

import heldout as ho
from heldout.errors import ArgumentError, DataError, MissingScore, ScoreOutOfRange, UnknownLabel
from heldout.intervals.measure import Release

GENERATOR = np.random.default_rng(3)
SCORES = GENERATOR.random(400)
LABELS = (GENERATOR.random(400) < SCORES).astype(int)
CALLED = (SCORES > 0.5).astype(int)
HUGE = 10**6


@pytest.mark.parametrize("holder", [list, tuple, np.array, pd.Series])
def test_arrays_of_any_kind_give_what_scikit_learn_gives(holder: type) -> None:
    matrix = ho.confusion_matrix(holder(LABELS), holder(CALLED), epsilon=HUGE)
    assert matrix.matrix() == reference.confusion_matrix(LABELS, CALLED).tolist()
    brier = ho.brier_score_loss(holder(LABELS), holder(SCORES), epsilon=HUGE)
    assert float(brier) == pytest.approx(reference.brier_score_loss(LABELS, SCORES), abs=1e-6)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_score_is_a_release_with_its_price(neighbours: str) -> None:
    for release in (
        ho.confusion_matrix(LABELS, CALLED, epsilon="1/3", neighbours=neighbours),
        ho.brier_score_loss(LABELS, SCORES, epsilon="1/3", neighbours=neighbours),
    ):
        assert isinstance(release, Release)
        assert release.loss == ho.Loss.pure("1/3")
        assert release.neighbours == neighbours
        assert release.interval()[0] <= release.value <= release.interval()[1]


def test_labels_may_be_named() -> None:
    words = np.where(LABELS == 1, "ill", "well")
    release = ho.confusion_matrix(words, CALLED, epsilon=HUGE, positive="ill", negative="well")
    assert release.matrix() == reference.confusion_matrix(LABELS, CALLED).tolist()
    with pytest.raises(UnknownLabel):
        ho.confusion_matrix(LABELS, CALLED, epsilon=1, positive="ill", negative="well")


@pytest.mark.parametrize(
    ("truth", "scores", "error"),
    [
        ([1, 0], [0.5], ArgumentError),
        ([[1, 0]], [[0.5, 0.5]], ArgumentError),
        (1, 0.5, ArgumentError),
        ([1, 0], [0.5, np.nan], MissingScore),
        ([1, 0], [0.5, None], MissingScore),
        ([1, 0], [0.5, 2], ScoreOutOfRange),
        ([1, 2], [0.5, 1], UnknownLabel),
        ([], [], DataError),
        ([1, object()], [0.5, 1], DataError),
    ],
)
def test_arrays_that_are_no_data_are_refused(
    truth: object, scores: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ho.brier_score_loss(truth, scores, epsilon=1)


@pytest.mark.parametrize("epsilon", [0, -1, "no", None, True, float("inf")])
def test_an_epsilon_that_is_none_is_refused(epsilon: object) -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        ho.confusion_matrix(LABELS, CALLED, epsilon=epsilon)  # type: ignore[arg-type]


def test_the_papers_laplace_takes_its_delta_in_one_call() -> None:
    y_true, y_score = [0, 1] * 200, [0.2, 0.7] * 200
    for score in (ho.roc_auc_score, ho.average_precision_score):
        release = score(y_true, y_score, epsilon="1", method="boyd-2015-laplace", delta="1e-6")
        assert str(release.loss) == "epsilon 1, delta 0.000001"


def test_a_curve_takes_labels_and_its_methods_own_options() -> None:
    release = ho.roc_curve(
        ["no", "yes"] * 200, [2.0, 7.0] * 200, epsilon="1", method="laplace", counts="wavelet",
        positive="yes", negative="no", score_range=(0, 10),
    )  # fmt: skip
    assert release.as_dict()["parameters"]["counts"] == "wavelet"
    with pytest.raises(ArgumentError, match="options of heldout must be among"):
        ho.roc_curve([0, 1] * 200, [0.2, 0.7] * 200, epsilon="1", bins=7)


def test_curves_are_unpacked_as_scikit_learns() -> None:
    words = {"epsilon": 50}
    fpr, tpr, thresholds = ho.roc_curve(LABELS, SCORES, **words)
    true = reference.roc_curve(LABELS, SCORES)
    places = np.linspace(0, 1, 11)
    assert np.interp(places, fpr, tpr) == pytest.approx(np.interp(places, *true[:2]), abs=0.1)
    assert np.all(np.diff(thresholds) <= 0)
    precision, recall, thresholds = ho.precision_recall_curve(LABELS, SCORES, **words)
    assert len(precision) == len(recall) == len(thresholds) + 1
    assert (precision[-1], recall[-1], recall[0]) == (1, 0, 1)
    assert np.all(np.diff(thresholds) >= 0)
    prob_true, prob_pred = ho.calibration_curve(LABELS, SCORES, **words)
    # One bin of few rows may stray by .3; all of them together do not.
    assert np.abs(np.subtract(prob_true, prob_pred)).mean() < 0.25


def test_each_curve_prints_what_its_name_says_and_keeps_the_others() -> None:
    for function, title, measure in (
        (ho.roc_curve, "ROC curve of", "AUC"),
        (ho.precision_recall_curve, "Precision-recall curve of", "average precision"),
        (ho.calibration_curve, "Reliability diagram of", "expected calibration error"),
    ):
        release = function(LABELS, SCORES, epsilon=5)
        assert str(release).startswith(title)
        assert measure in str(release)
        assert len(release.figures()) == 1
        assert 0 <= release.auc <= 1
        assert len(release.roc.fpr) == len(release.precision_recall.recall)
    with pytest.raises(ArgumentError, match="probabilities"):
        ho.calibration_curve(LABELS, SCORES, epsilon=1, score_range=(0, 2))


def test_a_confusion_matrix_is_an_array_of_predicted_labels() -> None:
    words, called = (np.where(each == 1, "ill", "well") for each in (LABELS, CALLED))
    true = reference.confusion_matrix(words, called, labels=["well", "ill"])
    for given in ({"labels": ["well", "ill"]}, {"labels": ["ill", "well"], "pos_label": "ill"}):
        release = ho.confusion_matrix(words, called, epsilon=HUGE, **given)
        assert np.asarray(release).tolist() == true.tolist()
        assert np.asarray(release).dtype == np.int64
    signs = [-1, 1]
    release = ho.confusion_matrix(2 * LABELS - 1, 2 * CALLED - 1, epsilon=HUGE, labels=signs)
    assert np.asarray(release).tolist() == true.tolist()
    with pytest.raises(UnknownLabel):
        ho.confusion_matrix(LABELS, SCORES, epsilon=1)


def test_more_than_two_labels_give_a_matrix_of_so_many() -> None:
    truth = GENERATOR.choice(["a", "b", "c"], 300)
    said = np.where(GENERATOR.random(300) < 0.7, truth, "b")
    release = ho.confusion_matrix(truth, said, labels=["c", "a", "b"], epsilon=HUGE)
    true = reference.confusion_matrix(truth, said, labels=["c", "a", "b"])
    assert np.asarray(release).tolist() == true.tolist()
    with pytest.raises(ArgumentError, match="nothing else"):
        ho.confusion_matrix(truth, said, labels=["c", "a", "b"], pos_label="a", epsilon=1)


def test_rows_may_have_weights_where_the_largest_is_declared() -> None:
    weight = GENERATOR.integers(1, 4, 400)
    words = {"sample_weight": weight, "largest_weight": 3, "epsilon": HUGE}
    matrix = np.asarray(ho.confusion_matrix(LABELS, CALLED, **words))
    true = reference.confusion_matrix(LABELS, CALLED, sample_weight=weight)
    assert matrix == pytest.approx(true, abs=2)
    brier = ho.brier_score_loss(LABELS, SCORES, **words)
    expected = reference.brier_score_loss(LABELS, SCORES, sample_weight=weight)
    assert float(brier) == pytest.approx(expected, abs=1e-3)
    for wrong in ({"sample_weight": weight}, {"largest_weight": 3}):
        with pytest.raises(ArgumentError, match="together"):
            ho.brier_score_loss(LABELS, SCORES, epsilon=1, **wrong)


@pytest.mark.parametrize("name", ["sample_weight", "average", "normalize", "n_bins", "max_fpr"])
def test_what_scikit_learn_takes_and_we_cannot_is_refused_by_name(name: str) -> None:
    for function in (ho.roc_auc_score, ho.roc_curve, ho.average_precision_score):
        with pytest.raises(ArgumentError, match=f"{name} is not supported"):
            function(LABELS, CALLED, epsilon=1, **{name: 1})


def test_an_answer_is_a_number_in_sums_and_comparisons() -> None:
    release = ho.brier_score_loss(LABELS, SCORES, epsilon=HUGE)
    value = float(release)
    assert (-1 * release, release + 1, 1 - release, release - 1) == (
        -value,
        value + 1,
        1 - value,
        value - 1,
    )
    assert 0 < release < 1
    assert f"{release:.3f}" == f"{value:.3f}" == str(round(release, 3))
    assert np.mean([release, release]) == value


def test_pictures_are_drawn_on_the_axes_that_are_given() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 2)
    curves = ho.roc_curve(LABELS, SCORES, epsilon=5)
    assert curves.plot(ax=axes[0, 0]).ax_ is axes[0, 0]
    assert axes[0, 0].get_title() == "ROC curve"
    curves.precision_recall.plot(axes[0, 1])
    curves.calibration.plot(axes[1, 0])
    matrix = ho.confusion_matrix(LABELS, CALLED, epsilon=5)
    matrix.plot(axes[1, 1])
    assert f"{matrix.true_positives.value:,.0f}" in [each.get_text() for each in axes[1, 1].texts]
    figure.canvas.draw()
    own = curves.plot()
    assert own.figure_ is not figure
    assert own.to_dict()["layer"], "what an Altair chart can do"
    pyplot.close("all")


def test_without_matplotlib_a_plot_is_an_altair_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heldout.drawing.chart.installed", lambda: False)
    assert ho.roc_curve(LABELS, SCORES, epsilon=5).plot().to_dict()["layer"]
