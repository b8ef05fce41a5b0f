"""What a discrete Laplace mechanism says about itself is exact."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heldout.errors import ArgumentError
from heldout.kernel import price
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.statistic import Sealed

positive = st.fractions(min_value=Fraction(1, 10**12), max_value=2**52).filter(bool)


def mechanism(scale: Fraction, dimension: int = 1) -> DiscreteLaplace:
    return DiscreteLaplace(scale=scale, l1_sensitivity=1, dimension=dimension)


@given(positive)
@example(Fraction(1, 10))
@example(Fraction(2**52) - Fraction(1, 3))
@example(Fraction(1, 10**400))
def test_the_drawn_scale_is_never_below_the_exact_one_and_within_one_step(scale: Fraction) -> None:
    drawn = Fraction(mechanism(scale).float_scale)
    assert drawn >= scale
    assert Fraction(float(np.nextafter(float(drawn), -np.inf))) < scale


@given(positive, st.integers(1, 10**6))
def test_the_price_of_the_event_is_the_claim(scale: Fraction, sensitivity: int) -> None:
    each = DiscreteLaplace(scale=scale, l1_sensitivity=sensitivity, dimension=3)
    assert price(each.event()).epsilon == sensitivity / scale


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), st.integers(1, 2**22))
def test_a_mechanism_for_epsilon_spends_epsilon(epsilon: Fraction, sensitivity: int) -> None:
    each = DiscreteLaplace.for_epsilon(epsilon, l1_sensitivity=sensitivity, dimension=2)
    assert price(each.event()).epsilon == epsilon


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=2**40),
    st.floats(min_value=0.001, max_value=0.999999),
)
@example(Fraction(4), 0.95)
@example(Fraction(2**45), 0.95)
@example(Fraction(1, 100), 0.5)
def test_the_error_quantile_is_the_least_that_holds_the_level(
    scale: Fraction, level: float
) -> None:
    each = mechanism(scale)
    found = each.error_quantile(level)
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(each.float_scale)
        p = (-1 / exact).exp()

        def within(t: int) -> Decimal:
            return 1 - 2 * (-(t + 1) / exact).exp() / (1 + p)

        slack = Decimal("1e-11")  # of a double's arithmetic
        assert within(found) >= Decimal(level) - slack
        assert found == 0 or within(found - 1) < Decimal(level) + slack


@pytest.mark.parametrize("level", [0, 1, -0.1, 2, float("nan")])
def test_an_error_quantile_at_no_level_is_refused(level: float) -> None:
    with pytest.raises(ArgumentError):
        mechanism(Fraction(1)).error_quantile(level)


@pytest.mark.parametrize("edge", [2**63 - 1, -(2**63)])
def test_entries_saturate_at_64_bits_and_never_wrap_round(edge: int) -> None:
    sample = mechanism(Fraction(2**52), 2000).sample(Sealed(np.full(2000, edge, dtype=np.int64)))
    inwards = np.sign(sample) == np.sign(edge)
    assert inwards.all()
    assert (sample == edge).mean() > 0.3, "half of the draws would lie beyond"


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(1, 10**30)])
def test_an_epsilon_without_a_scale_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        DiscreteLaplace.for_epsilon(epsilon, l1_sensitivity=2, dimension=4)


@pytest.mark.parametrize(
    ("scale", "sensitivity", "dimension"),
    [(Fraction(0), 1, 1), (Fraction(-1), 1, 1), (Fraction(1), 0, 1), (Fraction(1), 1, 0)],
)
def test_parameters_that_are_not_positive_are_refused(
    scale: Fraction, sensitivity: int, dimension: int
) -> None:
    with pytest.raises(ArgumentError):
        DiscreteLaplace(scale=scale, l1_sensitivity=sensitivity, dimension=dimension)


def test_a_statistic_of_another_length_is_refused_without_a_value() -> None:
    with pytest.raises(ArgumentError) as caught:
        mechanism(Fraction(1), 3).sample(Sealed(np.array([987654321, 1])))
    assert "987654321" not in str(caught.value)


def test_an_epsilon_beyond_all_doubles_still_draws() -> None:
    """No noise to speak of, and no failure after the price was booked."""
    each = DiscreteLaplace.for_epsilon(Fraction(10**390), l1_sensitivity=2, dimension=4)
    assert each.sample(Sealed(np.arange(4))).tolist() == [0, 1, 2, 3]
    assert each.error_quantile(0.95) == 0
