"""Privacy losses and budgets as exact rationals."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

from heldout.arguments import shown
from heldout.errors import ArgumentError, PrivacyError
from heldout.kernel.rational import Rational, exact, round_up, show, stored

__all__ = ["Budget", "Kind", "Loss"]

Kind = Literal["pure", "approximate", "zcdp"]


@dataclass(frozen=True, repr=False)
class _Amount:
    """Either epsilon or rho, and delta. The kind follows from which of them is there."""

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction

    @property
    def kind(self) -> Kind:
        """pure: delta is 0; approximate: delta is more; zcdp: rho instead of epsilon."""
        if self.rho is not None:
            return "zcdp"
        return "approximate" if self.delta else "pure"

    def __str__(self) -> str:
        main = f"rho {show(self.rho)}" if self.rho is not None else f"epsilon {self.epsilon}"
        return f"{main}, delta {show(self.delta)}" if self.delta else main

    def __repr__(self) -> str:
        given = [(name, text) for name, text in self.as_dict().items() if text != "0"]
        words = ", ".join(f"{name}={text!r}" for name, text in given or [("epsilon", "0")])
        return f"{type(self).__name__}({words})"

    def as_dict(self) -> dict[str, str]:
        """Exact text, such as {"epsilon": "1/2", "delta": "0"}."""
        if self.rho is not None:
            return {"rho": show(self.rho), "delta": show(self.delta)}
        assert self.epsilon is not None
        return {"epsilon": show(self.epsilon), "delta": show(self.delta)}


@dataclass(frozen=True, repr=False)
class Loss(_Amount):
    """What a release costs, or what was spent.

    >>> str(Loss.pure("0.5")), str(Loss.approximate(1, "1e-6")), str(Loss.zcdp("1/8"))
    ('epsilon 1/2', 'epsilon 1, delta 1/1000000', 'rho 1/8')
    """

    @classmethod
    def pure(cls, epsilon: Rational) -> Self:
        """epsilon-DP."""
        return cls(_amount(epsilon, "epsilon"), None, Fraction(0))

    @classmethod
    def approximate(cls, epsilon: Rational, delta: Rational) -> Self:
        """(epsilon, delta)-DP; with delta 0 it is the pure loss."""
        return cls(_amount(epsilon, "epsilon"), None, _delta(delta))

    @classmethod
    def zcdp(cls, rho: Rational, delta: Rational = 0) -> Self:
        """rho-zCDP; with delta, delta-approximate rho-zCDP (Bun and Steinke 2016, section 8)."""
        return cls(None, _amount(rho, "rho"), _delta(delta))

    @classmethod
    def from_dict(cls, content: Mapping[str, str]) -> Self:
        """Read what `as_dict` wrote (a sum may have more digits than an argument may)."""
        try:
            main = "rho" if "rho" in content else "epsilon"
            if set(content) != {main, "delta"}:
                raise ValueError
            amount, delta = stored(content[main]), stored(content["delta"])
            if amount < 0 or not 0 <= delta < 1:
                raise ValueError
        except Exception:
            raise ArgumentError(
                "A loss must be exact text under delta and epsilon, or delta and rho, "
                f"got {_keys(content)}. Pass what as_dict() gives."
            ) from None
        return cls(None, amount, delta) if main == "rho" else cls(amount, None, delta)

    def float_epsilon(self) -> float:
        """epsilon as a float, rounded up."""
        if self.epsilon is None:
            raise PrivacyError(
                f"A loss must have an epsilon, got {self}. "
                "Choose a delta and convert with epsilon_of_zcdp(rho, delta)."
            )
        return round_up(self.epsilon)


@dataclass(frozen=True, init=False, repr=False)
class Budget(_Amount):
    """What may be spent on one data set in all: epsilon, or epsilon and delta, or rho.

    >>> Budget(3), Budget(rho="1/8", delta="1e-6")
    (Budget(epsilon='3'), Budget(rho='1/8', delta='1/1000000'))
    >>> print(Budget("1/2"))
    epsilon 1/2
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        *,
        rho: Rational | None = None,
        delta: Rational = 0,
    ) -> None:
        if (epsilon is None) == (rho is None):
            got = "neither" if epsilon is None else "both"
            raise ArgumentError(
                f"A budget must have either epsilon or rho, got {got}. "
                "Pass Budget(epsilon='1') or Budget(rho='1/8')."
            )
        for name, value in (("epsilon", epsilon), ("rho", rho)):
            amount = None if value is None else exact(value, name=name, minimum=0)
            object.__setattr__(self, name, amount)
        object.__setattr__(self, "delta", _delta(delta))

    @classmethod
    def from_dict(cls, content: Mapping[str, str]) -> Self:
        """Read what `as_dict` wrote."""
        keys = ({"epsilon", "delta"}, {"rho", "delta"})
        if not isinstance(content, Mapping) or set(content) not in keys:
            raise ArgumentError(
                "A budget must have the keys delta and epsilon, or delta and rho, "
                f"got {_keys(content)}. Pass what as_dict() gives."
            )
        return cls(**content)


def _keys(content: object) -> str:
    if isinstance(content, Mapping):
        return f"the keys {shown(sorted(map(str, content)))}"
    return f"a {type(content).__name__}"


def _amount(value: Rational, name: str) -> Fraction:
    return exact(value, name=name, minimum=0, strict=False)


def _delta(value: Rational) -> Fraction:
    delta = exact(value, name="delta", minimum=0, strict=False)
    if delta >= 1:
        raise ArgumentError(
            f"delta must be less than 1, got {show(delta)}. Pass a small number such as '1e-6'."
        )
    return delta
