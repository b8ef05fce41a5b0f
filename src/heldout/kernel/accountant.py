"""Adds losses up in the kind of the budget, and never understates.

Nothing cleverer than addition: a bound that is chosen after the losses are seen is where adaptive
accounting goes wrong. docs/decisions/0002-composition.md says why; proofs/composition.md proves it.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from heldout.errors import ArgumentError, PrivacyError
from heldout.kernel.events import Event, leaves, price
from heldout.kernel.loss import Budget, Loss, Rational, exact, show

# Denominators multiply when they have nothing in common. Beyond this the sum is rounded up, so
# that an analyst who asks for 1/p with ever new primes p cannot make the ledger grow for ever.
_DENOMINATOR_BITS = 2048


def compose(losses: Iterable[Loss], *, budget: Budget) -> Loss:
    """Return the total of adaptively chosen losses, in the kind of the budget.

    Claim:       whoever sees all the releases, each chosen after the ones before, learns at most
                 the total.                                            [claim: composition]
    Neighbours:  any; all losses under the same relation (one account has one).
    Numerics:    exact; beyond denominators of 2,048 bits the sum is rounded up.
    Refuses:     a loss that the budget's kind cannot express.
    Reference:   Rogers et al. 2016; Feldman and Zrnic 2021; Whitehouse et al. 2023, theorem 1.

    >>> thirds = [Loss.pure("1/3")] * 3
    >>> compose(thirds, budget=Budget(epsilon=1)) == Loss.pure(1)
    True
    """
    spent = _nothing(budget)
    for loss in losses:
        spent = _add(spent, _convert(loss, budget))
    return spent


def charge(event: Event, *, budget: Budget) -> Loss:
    """Return what the event takes from the budget: its parts, one by one, in the budget's kind.

    Claim:       the event satisfies the loss that is returned.        [claim: composition]

    >>> print(charge(Event("exponential", {"epsilon": "1/2"}), budget=Budget(rho=1)))
    rho 0.125
    """
    return compose((price(part) for part in leaves(event)), budget=budget)


def fits(spent: Loss, loss: Loss, budget: Budget) -> bool:
    """Return whether the budget still holds once the loss is added; equality holds.

    Claim:       a sequence of losses that each fitted when it was added never exceeds the
                 budget, however adaptively it was chosen.              [claim: composition]

    >>> fits(Loss.pure("2/3"), Loss.pure("1/3"), Budget(epsilon=1))
    True
    """
    after = _sum(_convert(spent, budget), _convert(loss, budget))
    limit = _parts(budget)
    return after[0] <= limit[0] and after[1] <= limit[1]


def remaining(spent: Loss, budget: Budget) -> Loss:
    """Return what can still be taken.

    >>> print(remaining(Loss.pure("1/3"), Budget(epsilon=1)))
    epsilon 2/3
    """
    taken, limit = _parts(_convert(spent, budget)), _parts(budget)
    left = [max(most - gone, Fraction(0)) for most, gone in zip(limit, taken, strict=True)]
    return _loss(budget, *left)


def smaller(first: Loss, second: Loss) -> Loss:
    """Return the lesser of two losses of one kind, part by part.

    >>> print(smaller(Loss.pure(1), Loss.pure("1/2")))
    epsilon 0.5
    """
    main, delta = (min(pair) for pair in zip(_parts(first), _parts(second), strict=True))
    return Loss(None, main, delta) if first.rho is not None else Loss(main, None, delta)


def covers(budget: Budget, amount: Loss | Budget) -> bool:
    """Return whether a loss, or a smaller budget, of the same kind is within the budget."""
    return all(a >= b for a, b in zip(_parts(budget), _parts(amount), strict=True))


def total(losses: Iterable[Loss]) -> Loss:
    """Return the sum without a budget: zCDP if one of the losses is, else epsilon and delta."""
    listed = list(losses)
    zcdp = any(loss.rho is not None for loss in listed)
    # Only the kind of this budget matters: nothing is compared with its size.
    kind = Budget(rho=1, delta="1/2") if zcdp else Budget(epsilon=1, delta="1/2")
    return compose(listed, budget=kind)


def epsilon_of_zcdp(rho: Rational, delta: Rational) -> float:
    """Return an epsilon, rounded up, such that rho-zCDP implies (epsilon, delta)-DP.

    Claim:       rho-zCDP implies (epsilon, delta)-DP.                 [claim: composition]
    Numerics:    any order alpha gives a valid epsilon; a float search picks alpha, ball
                 arithmetic evaluates the bound there and its upper end is rounded up.
    Refuses:     rho < 0; delta outside (0, 1).
    Reference:   Canonne, Kamath and Steinke 2020, proposition 12.

    >>> 4.3 < epsilon_of_zcdp("1/2", "1e-5") < 4.8  # rho + 2 sqrt(rho ln(1/delta)) is 5.3
    True
    """
    spent = exact(rho, name="rho", minimum=0, strict=False)
    slack = exact(delta, name="delta", minimum=0)
    if slack >= 1:
        raise ArgumentError(f"delta must be less than 1, got {show(slack)}. Pass '1e-6', say.")
    if spent == 0:
        return 0.0
    return _bound_above(spent, slack, _best_order(spent, slack))


# --- how each kind of budget reads a loss --------------------------------------------------------


def _convert(loss: Loss, budget: Budget) -> Loss:
    if budget.rho is not None:
        if loss.rho is not None:
            converted = loss
        else:
            assert loss.epsilon is not None
            converted = Loss(None, loss.epsilon**2 / 2, loss.delta)
    elif loss.rho is not None:
        raise PrivacyError(
            f"A loss must be in epsilon for a budget of {budget}, got {loss}. "
            "Open the data set with Budget(rho=...), or use a mechanism that is priced in epsilon."
        )
    else:
        converted = loss
    if converted.delta and not budget.delta:
        raise PrivacyError(
            f"A loss must have delta 0 for a budget of {budget}, got {loss}. "
            "Open the data set with a budget that has a delta, or use a mechanism without one."
        )
    return converted


def _parts(amount: Loss | Budget) -> tuple[Fraction, Fraction]:
    main = amount.epsilon if amount.rho is None else amount.rho
    assert main is not None
    return main, amount.delta


def _sum(first: Loss, second: Loss) -> tuple[Fraction, Fraction]:
    (a, b), (c, d) = _parts(first), _parts(second)
    return _bounded(a + c), _bounded(b + d)


def _add(first: Loss, second: Loss) -> Loss:
    main, delta = _sum(first, second)
    if delta >= 1:
        raise PrivacyError(
            "The deltas must add up to less than 1, got 1 or more. Use a smaller delta."
        )
    return Loss(None, main, delta) if first.rho is not None else Loss(main, None, delta)


def _bounded(number: Fraction) -> Fraction:
    if number.denominator.bit_length() <= _DENOMINATOR_BITS + 1:
        return number
    grid = 1 << _DENOMINATOR_BITS
    return Fraction(-(-number.numerator * grid // number.denominator), grid)


def _nothing(budget: Budget) -> Loss:
    return _loss(budget, Fraction(0), Fraction(0))


def _loss(budget: Budget, main: Fraction, delta: Fraction) -> Loss:
    return Loss(None, main, delta) if budget.rho is not None else Loss(main, None, delta)


# --- zCDP to (epsilon, delta) --------------------------------------------------------------------


def _best_order(rho: Fraction, delta: Fraction) -> Fraction:
    """Minimise over ln(alpha - 1) by golden section; a poor alpha is loose, never wrong."""
    slope = float(min(rho, Fraction(10) ** 300))
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def epsilon(exponent: float) -> float:
        alpha = 1 + math.exp(exponent)
        return alpha * slope + math.log1p(-1 / alpha) - (log_delta + math.log(alpha)) / (alpha - 1)

    low, high = -12.0, 60.0
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(90):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if epsilon(left) <= epsilon(right):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp((low + high) / 2))


def _bound_above(rho: Fraction, delta: Fraction, alpha: Fraction) -> float:
    from flint import arb, ctx, fmpq

    def ball(number: Fraction) -> arb:
        return arb(fmpq(number.numerator, number.denominator))

    with ctx.workprec(256):
        order = ball(alpha)
        bound = (
            order * ball(rho)
            + (1 - 1 / order).log()
            - (ball(delta).log() + order.log()) / (order - 1)
        )
        result = max(float(bound.upper()), 0.0)
        while not arb(result) >= bound and math.isfinite(result):
            result = math.nextafter(result, math.inf)
    return result
