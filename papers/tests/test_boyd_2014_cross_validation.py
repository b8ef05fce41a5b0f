"""Private cross-validation: every method books the same price for the dearest row."""

from fractions import Fraction

import numpy as np
import pytest

from heldout_papers import boyd_2014_cross_validation as study
from heldout_papers.altair_svg import specification
from heldout_papers.registry import Context


@pytest.mark.parametrize("method", study.METHODS, ids=lambda method: method.name)
def test_no_row_pays_more_than_epsilon_and_no_model_is_tested_on_its_own_rows(
    method: study.Method,
) -> None:
    fits = method.fits(2_003, Fraction(4))
    assert study.price(fits, 2_003) == 4
    assert not any(np.intersect1d(fit.train, fit.test).size for fit in fits)


@pytest.mark.parametrize("method", study.METHODS, ids=lambda method: method.name)
def test_every_row_trains_and_tests_as_often_as_its_method_says(method: study.Method) -> None:
    fits = method.fits(50, Fraction(1))
    trains = np.bincount(np.concatenate([fit.train for fit in fits]), minlength=50)
    tests = np.bincount(np.concatenate([fit.test for fit in fits]), minlength=50)
    expected = {"split": {(1, 0), (0, 1)}, "folds": {(4, 1)}, "chunks": {(1, 1)}}
    assert set(zip(trains.tolist(), tests.tolist(), strict=True)) == expected[method.kind]


def test_what_is_booked_is_what_was_planned() -> None:
    found = study.compared(study._Job(1, Fraction(1), 500, study.METHODS[:2]))
    assert {row["price"] for row in found} == {Fraction(1)}
    assert all(row["area"] <= row["best"] + 0.01 for row in found)


def test_the_figure_has_a_row_a_method_and_its_claims_can_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made_up(job: study._Job) -> list[dict[str, object]]:
        return [
            {"method": method.name, "epsilon": int(job.epsilon), "area": 0.7, "error": 0.01,
             "without noise": 0.005, "price": job.epsilon, "best": 0.77}
            for method in study.METHODS
        ]  # fmt: skip

    monkeypatch.setattr(study, "compared", made_up)
    made = study.cross_validation(Context(repetitions=2, workers=1))
    assert [row["price of a row"] for row in made.table] == [1] * 5 + [4] * 5
    assert len(specification(made.charts[0])["hconcat"]) == 2
    assert {claim.verdict for claim in made.claims} == {"ours / open question"}
    assert all("epsilon 4: " in claim.here for claim in made.claims)
