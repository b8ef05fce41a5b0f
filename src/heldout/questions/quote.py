"""What questions will cost and how wide their answers will be, before anything is paid or read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from heldout.errors import ArgumentError
from heldout.intervals.measure import NO_INFORMATION, checked_level
from heldout.kernel import Event, Loss, price
from heldout.kernel.door import Priced, Together
from heldout.questions.base import Question
from heldout.questions.guess import Guess, HalfWidths

__all__ = ["Quote", "booked_together"]


def booked_together(questions: Sequence[Question[Any]], about: Any) -> Priced:
    """The one request that several questions make; that of a question alone is its own."""
    if not questions or not all(isinstance(each, Question) for each in questions):
        raise ArgumentError(
            "Pass one question or more, such as heldout.questions.Auc(epsilon='1/2')."
        )
    for question in questions:
        question.check(about)
    requests = [question.request(about) for question in questions]
    if len(requests) == 1:
        return requests[0]
    names = ", ".join(each.name for each in requests)
    return Together(names, {str(at): each for at, each in enumerate(requests)}, {})


@dataclass(frozen=True)
class Quote:
    """The exact price of some questions, and the half-widths to expect. Nothing was charged."""

    questions: tuple[Question[Any], ...]
    about: Any
    guess: Guess
    level: float = 0.95

    def __post_init__(self) -> None:
        checked_level(self.level)
        _ = self.event  # what cannot be asked is refused here

    @cached_property
    def event(self) -> Event:
        """What the ledger would book."""
        return booked_together(self.questions, self.about).event()

    @property
    def loss(self) -> Loss:
        """The price, exactly."""
        return price(self.event)

    @cached_property
    def half_widths(self) -> tuple[dict[str, HalfWidths], ...]:
        """For each question: how far its measures' intervals will reach, if the guess is right."""
        guess = self.guess.about(self.about.rows)
        return tuple(
            question.expected(self.about, guess, self.level) for question in self.questions
        )

    def __str__(self) -> str:
        lines = [f"{self.loss}, {self.about.protection.describe()}"]
        for question, widths in zip(self.questions, self.half_widths, strict=True):
            lines += [
                f"  {name}: ±{each.noise:.3g} from noise alone, ±{each.whole:.3g} in all"
                + ("" if each.informative else f" ({NO_INFORMATION})")
                for name, each in widths.items()
            ] or [f"  {question.kind}: half-widths depend on the rows"]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "questions": [question.as_dict() for question in self.questions],
            "loss": self.loss.as_dict(),
            "level": self.level,
            "half_widths": [
                {name: each.as_dict() for name, each in widths.items()}
                for widths in self.half_widths
            ],
        }
