"""scikit-learn shaped functions: arrays in, a release out."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as reference

import heldout as ho
from heldout.errors import ArgumentError, DataError, MissingScore, ScoreOutOfRange, UnknownLabel
from heldout.metrics.release import Release

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
        assert str(release.loss) == "epsilon 1, delta 1/1000000"


def test_a_curve_takes_labels_and_its_methods_own_options() -> None:
    release = ho.roc_curve(
        ["no", "yes"] * 200, [2.0, 7.0] * 200, epsilon="1", method="laplace", counts="wavelet",
        positive="yes", negative="no", score_range=(0, 10),
    )  # fmt: skip
    assert release.as_dict()["parameters"]["counts"] == "wavelet"
    with pytest.raises(ArgumentError, match="options of heldout must be among"):
        ho.roc_curve([0, 1] * 200, [0.2, 0.7] * 200, epsilon="1", bins=7)
