"""What the report says in words is what the protection is."""

import math
import re

import pytest

from heldout.drawing.words import belief, protection_in_words, spread
from heldout.intervals.measure import Measure
from heldout.kernel import Loss, Neighbours, Protection

ROWS = Protection(neighbours=Neighbours.REPLACE_ONE)
PEOPLE = Protection(
    neighbours=Neighbours.ADD_REMOVE, unit=True, rows_per_unit=4, unit_name="patient"
)


def test_the_row_count_is_called_public_only_where_it_is():
    assert "is public" in protection_in_words(ROWS, 100)
    hidden = Protection(neighbours=Neighbours.ADD_REMOVE)
    assert "is private" in protection_in_words(hidden, None)
    words = protection_in_words(PEOPLE, None)
    assert "is private" in words
    assert "Each patient is protected with all of its rows, of which at most 4 rows count" in words


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "10", "100", "1000"])
def test_the_bet_is_never_understated(epsilon):
    said = float(re.search(r"at most ([\d.]+)%", belief(Loss.pure(epsilon), ROWS))[1])
    exact = 100 / (1 + math.exp(-float(epsilon)))
    assert exact <= said <= exact + 0.11


def test_no_bet_is_offered_where_it_would_not_hold():
    assert belief(Loss.zcdp("1"), ROWS) == ""
    assert belief(Loss.approximate("1", "1e-6"), ROWS) == ""


def test_prices_are_short_decimals_or_exact_fractions():
    assert str(Loss.pure("1/3")) == "epsilon 1/3"
    assert str(Loss.pure("0.25")) == "epsilon 0.25"
    assert str(Loss.zcdp("1/8")) == "rho 0.125"


def test_counts_have_no_decimals_and_narrow_intervals_have_more():
    count = Measure(
        12, name="n", terms="", noise_interval=_plain(3), interval=_plain(3), whole=True
    )
    assert spread(count, 0.95) == ("12", "9 to 15", "±3")
    narrow = Measure(0.5, name="p", terms="", noise_interval=_plain(1e-5), interval=_plain(1e-4))
    assert spread(narrow, 0.95) == ("0.50000", "0.49990 to 0.50010", "±0.00001")


def _plain(half):
    centre = 12 if half == 3 else 0.5
    return lambda level: (centre - half, centre + half)


def test_lopsided_noise_is_a_range():
    area = Measure(
        0.817,
        name="AUC of the curve",
        terms="",
        noise_interval=lambda level: (0.758, 0.828),
        interval=lambda level: (0.753, 0.833),
    )
    assert spread(area, 0.95) == ("0.817", "0.753 to 0.833", "0.758 to 0.828")
    assert "(privacy noise alone: 0.758 to 0.828)" in str(area)
