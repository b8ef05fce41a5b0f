"""The symmetric binormal curve has the area that it was made from."""

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.questions.ranking.release import binormal_curve, binormal_roc


@pytest.mark.parametrize("auc", [0.0, 0.3, 0.5, 0.85, 0.99, 1.0])
def test_the_curve_has_the_area_it_was_made_from(auc: float) -> None:
    fpr = np.concatenate([[0], np.geomspace(1e-9, 0.5, 3000), 1 - np.geomspace(0.5, 1e-9, 3000)])
    fpr = np.unique(np.append(fpr, 1.0))
    assert np.trapezoid(binormal_roc(auc, fpr), fpr) == pytest.approx(auc, abs=1e-3)


def test_the_curve_is_its_own_mirror_image() -> None:
    fpr = np.linspace(0.01, 0.99, 50)
    tpr = binormal_roc(0.8, fpr)
    assert binormal_roc(0.8, 1 - tpr) == pytest.approx(1 - fpr, abs=1e-9)


def test_the_band_holds_the_curve() -> None:
    curve = binormal_curve(0.8, interval=(0.7, 0.9))
    assert np.all(curve.low <= curve.tpr)
    assert np.all(curve.tpr <= curve.high)


def test_values_outside_are_refused() -> None:
    with pytest.raises(ArgumentError, match="auc must lie"):
        binormal_roc(1.2, [0.5])
    with pytest.raises(ArgumentError, match="fpr must lie"):
        binormal_roc(0.8, [1.5])
