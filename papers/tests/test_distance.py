"""The area between two curves against a fine sum, and where it is known."""

import numpy as np
import pytest

from heldout_papers.distance import area_between


def test_a_curve_is_at_no_distance_from_itself() -> None:
    curve = ([0, 0, 0.3, 1], [0, 0.5, 0.7, 1])
    assert area_between(curve, curve) == 0


def test_curves_that_cross_do_not_cancel() -> None:
    assert area_between(([0, 1], [0, 1]), ([0, 1], [1, 0])) == pytest.approx(0.5)


def test_steps_and_slopes_are_integrated_exactly() -> None:
    step = ([0, 0, 0.5, 0.5, 1], [0, 0.25, 0.25, 0.75, 0.75])
    assert area_between(step, ([0, 1], [0, 0])) == pytest.approx(0.5)


def test_the_area_is_that_of_a_fine_sum() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        one, two = (
            tuple(np.concatenate([[0.0], np.sort(generator.random(9)), [1.0]]) for _ in range(2))
            for _ in range(2)
        )
        fine = (np.arange(200_000) + 0.5) / 200_000
        expected = np.abs(np.interp(fine, *one) - np.interp(fine, *two)).mean()
        assert area_between(one, two) == pytest.approx(expected, abs=1e-5)
        assert area_between(two, one) == pytest.approx(area_between(one, two))
