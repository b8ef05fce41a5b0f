"""Curve methods by name."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from heldout.arguments import OneOf
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tables import NoisyTable
from heldout.kernel.statistic import Sealed

__all__ = ["METHODS", "CurveMethod", "Terms", "method"]

METHODS: dict[str, str] = {
    "heldout": "counted:build",
    "laplace": "published:laplace",
    "fixed-space": "published:fixed_space",
    "recursive-medians": "published:recursive_medians",
    "hierarchical-quantile": "published:build",
    "stoddard-2014-laplace": "published:laplace_2014",
    "stoddard-2014-priroc": "published:priroc_2014",
    "chen-2016-priroc": "published:priroc_2016",
    "chen-2016-priroc-fix": "published:priroc_fix_2016",
}
"""Name -> module of this package and the function in it that builds the method."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Hold the public facts of a score table, and its price."""

    epsilon: Fraction
    protection: Protection
    points: int
    rows: int | None = None


class CurveMethod(Protocol):
    """A mechanism whose statistic is the score table and whose answer is a `NoisyTable`."""

    def event(self) -> Event:
        """Return what the ledger books; its price is epsilon."""

    def sample(self, sealed: Sealed[Any]) -> NoisyTable:
        """Draw, with randomness from the operating system."""

    def describe(self) -> dict[str, object]:
        """Name and public parameters."""


def method(
    name: str,
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    named: tuple[int, ...] = (),
    **options: Any,
) -> CurveMethod:
    """The method of this name for a score table of `points` grid points; all of it is public.

    `named` are grid points whose counts are wanted. `options` are the method's own, such as
    counts="dawa"; see the functions in `METHODS`.

    >>> from heldout.kernel import price
    >>> one = method("fixed-space", epsilon=Fraction(1), points=65537,
    ...              protection=Protection(neighbours="replace-one"), counts="dawa")
    >>> print(price(one.event()))
    epsilon 1
    """
    OneOf(METHODS)(name, "method")
    if epsilon <= 0:
        raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
    build = _builder(name)
    known = set(inspect.signature(build).parameters)
    own = sorted(known - {"terms", "named"})
    if not set(options) <= set(own):
        raise ArgumentError(
            f"options of {name} must be among {', '.join(own)}, got {', '.join(sorted(options))}."
        )
    if named and "named" not in known:
        raise ArgumentError(f"thresholds do not go with method={name!r}. Leave one of them out.")
    wanted = {"named": named} if named else {}
    terms = Terms(epsilon=epsilon, protection=protection, points=points, rows=rows)
    return build(terms, **wanted, **options)


def _builder(name: str) -> Callable[..., CurveMethod]:
    module, function = METHODS[name].split(":")
    builder: Callable[..., CurveMethod] = getattr(
        importlib.import_module(f"heldout.kernel.curves.{module}"), function
    )
    return builder
