"""How pages say amounts, times, sizes and states."""

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

from heldout.drawing.words import amount, decimal
from heldout.kernel import Loss

__all__ = ["allowance", "date_input", "kilobytes", "moment", "price", "state_words"]

STATES: Final = {
    "checking": "being checked",
    "open": "open",
    "closed": "closed",
    "ready": "ready",
    "refused": "refused",
    "waiting": "waiting",
    "answered": "answered",
    "lost": "answer lost",
    "cancelled": "cancelled",
    "opening": "opening",
    "over": "over",
}


def price(told: Any) -> str:
    """An amount of privacy as people read it, from JSON or from a loss."""
    return amount(Loss.from_dict(told) if isinstance(told, Mapping) else told)


def _number(told: Mapping[str, str]) -> Fraction:
    loss = Loss.from_dict(told)
    found = loss.rho if loss.epsilon is None else loss.epsilon
    assert found is not None
    return found


def allowance(standing: Mapping[str, Any], more: Fraction | None = None) -> dict[str, Any]:
    """A bar: what is spent, what a purchase would take and what is left, as shares of the whole.

    >>> bar = allowance({name: {"epsilon": each, "delta": "0"} for name, each in
    ...                  {"budget": "4", "spent": "1", "remaining": "2"}.items()}, Fraction(1))
    >>> bar["spent_share"], bar["more_share"], bar["left"], bar["after"], bar["limited"]
    (25.0, 25.0, 'epsilon 2', 'epsilon 1', True)
    """
    budget, spent, left = (_number(standing[name]) for name in ("budget", "spent", "remaining"))
    plain = "epsilon" in standing["remaining"]
    after = None
    if more is not None and plain and more <= left:
        after = f"epsilon {decimal(left - more)}"
    taken = min(spent / budget, Fraction(1))
    wanted = Fraction(0) if more is None or not plain else min(more / budget, 1 - taken)
    return {
        "budget": price(standing["budget"]),
        "spent": price(standing["spent"]),
        "left": price(standing["remaining"]),
        "after": after,
        "spent_share": round(100 * float(taken), 2),
        "more_share": round(100 * float(wanted), 2),
        "limited": left < budget - spent,
    }


def moment(time: float | str) -> str:
    """A time of UTC.

    >>> moment(0), moment("2026-02-03T04:05:06+00:00")
    ('1 Jan 1970, 00:00', '3 Feb 2026, 04:05')
    """
    if isinstance(time, str):
        found = datetime.fromisoformat(time)
    else:
        found = datetime.fromtimestamp(time, UTC)
    return f"{found.day} {found:%b %Y, %H:%M}"


def date_input(time: float | None) -> str:
    """A day as a form has it."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")


def kilobytes(size: int) -> str:
    """
    >>> kilobytes(90), kilobytes(2500), kilobytes(3_000_000)
    ('90 bytes', '2.5 kB', '3.0 MB')
    """
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 10**6 else f"{size / 10**6:.1f} MB"


def state_words(state: str) -> str:
    return STATES.get(state, state)
