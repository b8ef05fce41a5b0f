"""The same noise on two neighbours: everything but the un-noised numbers must be equal.

A question is asked of a table through the public interface while a tape records every draw. It is
asked of a neighbour with the outputs of those draws forced, so that adaptive steps take the same
path. Kinds, scales, shapes, order and number of the draws, what the ledger booked, and the released
JSON and text must then be equal; and the loss of all draws together must be at most the price.

Where a proof assumes that something is public which is not (the type of a column, the order of
rows), this is the test that finds it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from heldout.audit import log_ratios
from heldout.audit.tape import Draw, PathsPart, Tape
from heldout.errors import HeldoutError
from heldout.kernel.loss import Loss

__all__ = ["Asked", "Replayed", "asked", "loss_of", "replayed"]

TOLERANCE: Final = 1e-6
"""Of the claim: ratios of ladders and comparisons are computed in doubles."""
OWN: Final = ("receipt", "time", "account", "ledger", "hash", "previous", "sequence", "signature")
"""What two bookings of the same question never share."""


@dataclass(frozen=True)
class Asked:
    """Draws, everything that was shown, and what was charged."""

    tape: Tape
    shown: Mapping[str, str]
    price: Fraction


@dataclass(frozen=True)
class Replayed:
    """A question on two neighbours, with the same noise."""

    claim: Fraction
    loss: Fraction | float
    differences: tuple[str, ...] = ()
    """What should be equal and is not; a word and the beginning of both."""

    @property
    def ratio(self) -> float:
        """Realised loss over claim; infinite where the neighbours can be told apart for sure."""
        return float("inf") if self.differences else float(self.loss / self.claim)

    @property
    def holds(self) -> bool:
        return self.ratio <= 1 + TOLERANCE


def asked(ask: Callable[[], tuple[Any, Loss]], forced: Tape | None = None) -> Asked:
    """Ask while a tape runs. `ask` returns what was released and the loss that was charged."""
    tape = Tape(forced=forced)
    with tape.running():
        released, loss = ask()
        shown = shown_of(released)
    assert loss.kind == "pure", "only pure losses have a largest ratio"
    assert loss.epsilon is not None
    return Asked(tape, shown, loss.epsilon)


def replayed(one: Asked, ask: Callable[[], tuple[Any, Loss]]) -> Replayed:
    """Ask a neighbour with the noise of what was asked before, and compare."""
    try:
        two = asked(ask, forced=one.tape)
    except PathsPart as parted:
        return Replayed(one.price, float("inf"), (f"the draws: {parted}",))
    except HeldoutError as error:
        return Replayed(one.price, float("inf"), (f"the neighbour is refused: {error}",))
    different = [
        f"{name}: {_apart(one.shown[name], two.shown.get(name, ''))}"
        for name in one.shown
        if one.shown[name] != two.shown.get(name)
    ]
    if one.price != two.price:
        different.append(f"the price: {one.price} and {two.price}")
    return Replayed(one.price, loss_of(one.tape, two.tape), tuple(different))


def _apart(one: str, two: str) -> str:
    """Where two texts begin to differ."""
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    start = max(at - 30, 0)
    return f"...{one[start : at + 50]!r} and ...{two[start : at + 50]!r}"


def shown_of(released: Any) -> dict[str, str]:
    """All that a release shows, as text: its JSON, its sentence, and what was given beside it."""
    if isinstance(released, Mapping):
        return {
            f"{name} {part}".strip(): text
            for name, inner in released.items()
            for part, text in shown_of(inner).items()
        }
    shown = {"text": str(released)}
    if hasattr(released, "as_dict"):
        shown["JSON"] = json.dumps(_without_own(released.as_dict()), sort_keys=True, default=str)
    return shown


def _without_own(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _without_own(inner) for name, inner in content.items() if name not in OWN}
    if isinstance(content, list | tuple):
        return [_without_own(inner) for inner in content]
    return content


# --- the loss ------------------------------------------------------------------------------------


def loss_of(first: Tape, second: Tape) -> Fraction | float:
    """The loss of all draws together; exact where every draw has Laplace noise."""
    total: Fraction | float = Fraction(0)
    bars: dict[int, list[tuple[Draw, Draw]]] = {}
    for one, two in zip(first.draws, second.draws, strict=True):
        if one.kind == "bar":  # all queries of one bar are one draw
            bars.setdefault(one.mechanism.paid, []).append((one, two))
        else:
            total += LOSSES[one.kind](one, two)
    for queries in bars.values():
        total += _bar(queries)
    return total


def _vector(one: Draw, two: Draw) -> Fraction:
    return log_ratios.laplace(one.exact, two.exact, one.mechanism.scale)


def _sparse(one: Draw, two: Draw) -> float:
    first, second = ((draw.exact[0], [draw.exact[1]] * len(draw.exact[0])) for draw in (one, two))
    return log_ratios.sparse(one.mechanism, first, second, one.output)


def _bar(queries: list[tuple[Draw, Draw]]) -> float:
    """The booking of the bar pays for all of its answers."""
    first, second = (
        ([draw.exact for draw in side], [draw.mechanism.threshold for draw in side])
        for side in zip(*queries, strict=True)
    )
    given = [one.output for one, _ in queries]
    return log_ratios.realised_sparse(queries[0][0].mechanism.test, first, second, given)


LOSSES: Final[Mapping[str, Callable[[Draw, Draw], Any]]] = {
    "discrete Laplace": _vector,
    "class counts": _vector,
    "share of noise": _vector,
    "order": lambda one, two: 0,
    "choice": lambda one, two: log_ratios.choice(one.exact, two.exact),
    "smooth noise": lambda one, two: log_ratios.smooth(one.mechanism, one.exact, two.exact),
    "median": lambda one, two: log_ratios.medians(one.mechanism, one.exact, two.exact),
    "sparse vector": _sparse,
    "top k": lambda one, two: log_ratios.top_k(one.mechanism, one.exact, two.exact, one.output),
    "objective": lambda one, two: log_ratios.objective(
        one.mechanism, one.exact, two.exact, one.output
    ),
    "partition": lambda one, two: log_ratios.partitions(
        one.mechanism, one.exact, two.exact, one.output
    ),
}
"""The loss of a draw by its kind."""
