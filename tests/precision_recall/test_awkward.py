"""Arguments of precision-recall space that are no numbers get one typed line."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from heldout import precision_recall as pr
from heldout.errors import ArgumentError

ODD = [None, "x", [], {}, 1j, 10**5000, math.nan, Decimal("sNaN"), np.array([]), object()]
DATA = {"y_true": [1, 0, 1, 0], "y_score": [0.9, 0.8, 0.3, 0.1]}


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_an_odd_number_is_refused_in_one_line(value: Any) -> None:
    for ask in (
        lambda: pr.f_score(recall=value, precision=0.5),
        lambda: pr.f_score(recall=0.5, precision=0.5, beta=value),
        lambda: pr.minimum_auc(prevalence=value),
        lambda: pr.minimum_auc(prevalence=0.5, recall=value),
        lambda: pr.minimum_average_precision(positives=value, negatives=3),
        lambda: pr.interpolated_area(start=value, stop=(0.5, 0.5)),
        lambda: pr.interval(0.5, positives=value),
        lambda: pr.interval(**DATA, confidence=value),
        lambda: pr.interval(**DATA, method="bootstrap", replicates=value),
        lambda: pr.interval(**DATA, method="cross-validation", folds=value),
        lambda: pr.auc([1, 0, 1], [0.5, value, 0.1]),
        lambda: pr.aggregate([0.5, value], prevalences=[0.1, 0.1]),
    ):
        with pytest.raises(ArgumentError) as caught:
            ask()
        assert str(caught.value).isprintable()


def test_labels_that_cannot_be_compared_are_more_than_two() -> None:
    with pytest.raises(ArgumentError, match="two different labels"):
        pr.auc(np.array([1, np.array([1, 2]), None], dtype=object), [0.1, 0.2, 0.3])


def test_a_band_is_refused_beyond_recall_one() -> None:
    with pytest.raises(ArgumentError, match="recall must lie"):
        pr.curve(**DATA).band([0.5, 1.5])
