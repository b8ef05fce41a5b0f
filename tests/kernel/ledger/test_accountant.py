import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.errors import ArgumentError, PrivacyError
from heldout.kernel import accountant
from heldout.kernel.accountant import charge, compose, epsilon_of_zcdp, fits, remaining
from heldout.kernel.events import Event, price
from heldout.kernel.loss import Budget, Loss

PURE = Budget(epsilon=1)
APPROXIMATE = Budget(epsilon=1, delta="1e-6")
ZCDP = Budget(rho=1)


def test_three_thirds_are_one_and_not_a_hair_more():
    third = Loss.pure("1/3")
    spent = compose([third, third], budget=PURE)
    assert fits(spent, third, PURE)
    spent = compose([third] * 3, budget=PURE)
    assert spent == Loss.pure(1)
    assert not fits(spent, Loss.pure(Fraction(1, 10**30)), PURE)
    assert remaining(spent, PURE) == Loss.pure(0)


def test_delta_is_a_budget_of_its_own():
    spent = compose([Loss.approximate("1/2", "1e-6")], budget=APPROXIMATE)
    assert fits(spent, Loss.pure("1/2"), APPROXIMATE)
    assert not fits(spent, Loss.approximate("1/4", "1e-30"), APPROXIMATE)
    assert remaining(spent, APPROXIMATE) == Loss.pure("1/2")


@pytest.mark.parametrize(
    ("loss", "budget"),
    [
        (Loss.approximate(1, "1e-9"), PURE),
        (Loss.zcdp("1/8"), PURE),
        (Loss.zcdp("1/8"), APPROXIMATE),
        (Loss.approximate(1, "1e-9"), ZCDP),
        (Loss.zcdp("1/8", "1e-9"), ZCDP),
    ],
)
def test_a_loss_that_the_budget_cannot_express_is_refused(loss, budget):
    with pytest.raises(PrivacyError, match="Open the data set with"):
        compose([loss], budget=budget)
    with pytest.raises(PrivacyError):
        fits(compose([], budget=budget), loss, budget)


def test_a_rho_budget_takes_pure_and_approximate_losses_at_half_their_square():
    budget = Budget(rho=1, delta="1e-5")
    losses = [Loss.pure("1/2"), Loss.approximate(1, "1e-6"), Loss.zcdp("1/8", "1e-6")]
    assert compose(losses, budget=budget) == Loss.zcdp("3/4", "2e-6")


def test_the_parts_of_a_composition_are_charged_in_the_budgets_own_kind():
    part = Event("exponential", {"epsilon": "1/2"})
    both = Event.composed([part, Event.composed([part])])
    assert charge(both, budget=PURE) == Loss.pure(1) == price(both)
    assert charge(both, budget=ZCDP) == Loss.zcdp("1/4")


def test_denominators_stop_growing_and_the_sum_is_never_understated():
    budget = Budget(epsilon=100)
    losses = [Loss.pure(Fraction(1, 10**300 + 2 * k + 1)) for k in range(40)]
    spent = compose(losses, budget=budget)
    exactly = sum(loss.epsilon for loss in losses)
    assert spent.epsilon.denominator.bit_length() <= 2049
    assert exactly <= spent.epsilon <= exactly + Fraction(40, 2**2048)
    assert Loss.from_dict(spent.as_dict()) == spent


amounts = st.fractions(min_value=Fraction(1, 1000), max_value=2, max_denominator=10**6)


@given(st.lists(amounts, max_size=20), amounts)
def test_what_fitted_one_by_one_never_exceeds_the_budget(wanted, limit):
    budget = Budget(epsilon=limit)
    spent = compose([], budget=budget)
    granted = []
    for amount in wanted:
        if fits(spent, Loss.pure(amount), budget):
            spent = compose([spent, Loss.pure(amount)], budget=budget)
            granted.append(amount)
    assert sum(granted) == spent.epsilon <= limit
    left = remaining(spent, budget)
    assert left.epsilon == limit - spent.epsilon
    assert fits(spent, left, budget)


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=50),
    st.sampled_from(["1e-12", "1e-6", "1e-3", "0.2"]),
)
def test_the_conversion_of_zcdp_is_valid_and_tighter_than_the_textbook(rho, delta):
    epsilon = epsilon_of_zcdp(rho, delta)
    logarithm = math.log(1 / float(delta))
    assert 0 <= epsilon <= float(rho) + 2 * math.sqrt(float(rho) * logarithm) + 1e-9
    # The Gaussian mechanism with this rho is a witness: its true delta at epsilon must be below.
    mu = math.sqrt(2 * float(rho))

    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    true = normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)
    assert true <= float(delta) * (1 + 1e-9) + 1e-15


def test_the_conversion_at_its_edges():
    assert epsilon_of_zcdp(0, "1e-6") == 0
    assert epsilon_of_zcdp("1e-300", "1e-6") == 0
    assert epsilon_of_zcdp("1e350", "1e-6") == math.inf
    for delta in (0, 1, -1):
        with pytest.raises(ArgumentError):
            epsilon_of_zcdp(1, delta)


def test_the_conversion_falls_with_delta_and_grows_with_rho():
    by_delta = [epsilon_of_zcdp("1/2", Fraction(1, 10**k)) for k in range(1, 12)]
    by_rho = [epsilon_of_zcdp(Fraction(k, 10), "1e-6") for k in range(1, 12)]
    assert by_delta == sorted(by_delta)
    assert by_rho == sorted(by_rho)


histories = st.lists(
    st.tuples(
        st.sampled_from(["discrete-laplace", "discrete-gaussian"]),
        st.fractions(min_value=Fraction(1, 4), max_value=20, max_denominator=8),
    ),
    min_size=1,
    max_size=6,
)


def _events(history):
    for kind, noise in history:
        if kind == "discrete-laplace":
            yield Event(kind, {"l1_sensitivity": 1, "scale": noise, "dimension": 1})
        else:
            squared = {"l2_sensitivity_squared": 1, "sigma_squared": noise**2, "dimension": 1}
            yield Event(kind, squared)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(histories, st.sampled_from(["1e-9", "1e-6", "1e-3"]))
def test_our_total_is_never_below_the_privacy_loss_distribution(history, delta):
    import dp_accounting
    from dp_accounting import pld

    interval = 1e-3
    reference = pld.PLDAccountant(value_discretization_interval=interval)
    for kind, noise in history:
        continuous = dp_accounting.LaplaceDpEvent, dp_accounting.GaussianDpEvent
        reference.compose(continuous[kind == "discrete-gaussian"](float(noise)))
    theirs = reference.get_epsilon(float(delta))
    # The reference rounds each loss up to its own grid.
    slack = interval * (len(history) + 1)
    losses = [price(event) for event in _events(history)]

    total = compose(losses, budget=Budget(rho=10**6))
    assert epsilon_of_zcdp(total.rho, delta) >= theirs - slack
    if all(loss.kind == "pure" for loss in losses):
        assert compose(losses, budget=PURE).float_epsilon() >= theirs - slack


def test_the_comparison_with_the_reference_can_fail():
    """A quarter of the square instead of half of it would be noticed."""
    from dp_accounting import GaussianDpEvent, pld

    reference = pld.PLDAccountant().compose(GaussianDpEvent(2.0), 6)
    honest = accountant.epsilon_of_zcdp(Fraction(6, 8), "1e-6")
    wrong = accountant.epsilon_of_zcdp(Fraction(6, 16), "1e-6")
    assert wrong < reference.get_epsilon(1e-6) <= honest
