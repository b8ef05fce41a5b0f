from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import ArgumentError
from heldout.kernel.loss import exact, round_up, show, stored


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.5", Fraction(1, 2)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-6", Fraction(1, 10**6)),
        (".25", Fraction(1, 4)),
        ("2.", Fraction(2)),
        (3, Fraction(3)),
        (np.int64(3), Fraction(3)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (5e-324, Fraction(5, 10**324)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(2, 6), Fraction(1, 3)),
        ("-1", Fraction(-1)),
    ],
)
def test_a_number_is_read_as_the_decimal_that_a_person_wrote(value, expected):
    assert exact(value) == expected


@pytest.mark.parametrize(
    "value",
    [True, False, None, float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("sNaN"),
     Decimal("Infinity"), "nan", "inf", "", "1/0", "1/2/3", "0x10", "1_000", "one", "１", "1 2",
     b"1", 1j, [1], np.bool_(True), "1/-2", "1e", "1e5e5"],
)  # fmt: skip
def test_anything_that_is_not_a_finite_number_is_refused(value):
    with pytest.raises(ArgumentError, match="rho must be a finite number"):
        exact(value, name="rho")


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e99999", "9" * 5000, "1/" + "7" * 700, 10**401, Decimal("1e-5000")]
)
def test_a_number_cannot_fill_the_memory(value):
    with pytest.raises(ArgumentError):
        exact(value)


def test_a_minimum_is_strict_unless_told_otherwise():
    with pytest.raises(ArgumentError, match="epsilon must be more than 0, got 0"):
        exact(0, minimum=Fraction(0))
    assert exact(0, minimum=Fraction(0), strict=False) == 0
    with pytest.raises(ArgumentError, match="delta must be at least 0, got -1/2"):
        exact("-1/2", name="delta", minimum=Fraction(0), strict=False)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_read_as_its_shortest_decimal(value):
    assert exact(value) == Fraction(repr(value))


@given(st.fractions())
def test_show_and_stored_are_inverse_and_a_float_is_never_below(number):
    assert stored(show(number)) == number
    rounded = round_up(number)
    assert Fraction(rounded) >= number
    assert Fraction(np.nextafter(rounded, -np.inf)) < number


def test_a_number_beyond_every_float_rounds_up_to_infinity():
    assert round_up(Fraction(10**400)) == float("inf")


@pytest.mark.parametrize("text", ["2/4", "0.5", "+1", " 1", "1/1"])
def test_a_stored_number_has_one_spelling(text):
    with pytest.raises(ValueError):
        stored(text)


def test_a_numpy_float_of_any_width_is_its_shortest_decimal() -> None:
    numpy = pytest.importorskip("numpy")
    assert exact(numpy.float32(0.1)) == exact(numpy.float64(0.1)) == Fraction(1, 10)
    assert exact(numpy.float16(0.5)) == Fraction(1, 2)
    with pytest.raises(ArgumentError):
        exact(numpy.float32("nan"))
