"""Logistic diagnostics are one curves release, read in three ways."""

import json

import numpy as np
import pytest

import heldout as ho
from heldout.regression import LogisticDiagnostics, logistic_diagnostics

GENERATOR = np.random.default_rng(13)
P = GENERATOR.uniform(0.05, 0.95, 4000)


@pytest.mark.chance(2e-8, "16 intervals at 1 - 1e-9; the wrong model shows in 15 of them")
def test_a_model_that_fits_has_residuals_around_zero_and_a_wrong_one_has_not() -> None:
    """Bins of 4,000 rows at epsilon 4; the wrong model is off by up to 0.47, and 8 bins show it."""
    right = (GENERATOR.random(4000) < P).astype(int)
    wrong = (GENERATOR.random(4000) < P**4).astype(int)
    misfits = []
    for outcome in (right, wrong):
        found = logistic_diagnostics({"y": outcome, "p": P}, observed="y", predicted="p", epsilon=4)
        low, high = found.binned_residuals.interval(1 - 1e-9)
        misfits.append(int(((low > 0) | (high < 0)).sum()))
        assert found.loss == ho.Loss.pure(4)
        assert len(found.roc.fpr) > 2
        json.dumps(found.as_dict(), allow_nan=False)
    assert misfits[0] == 0
    assert misfits[1] >= 1


def test_the_readings_cost_nothing_beyond_the_curves() -> None:
    outcome = (GENERATOR.random(4000) < P).astype(int)
    dataset = ho.Dataset({"y": outcome, "p": P}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    found = LogisticDiagnostics(session.curves(epsilon=1))
    assert "bins of residuals" in str(found)
    assert session.remaining == ho.Loss.pure(0)
