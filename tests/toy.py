"""A kind of question from elsewhere, for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from heldout.data.description import ScoredRows
from heldout.intervals.confusion import ConfusionRelease
from heldout.questions import Confusion, Question
from heldout.questions.base import KINDS, Flag, Number, OneOf

KIND = "alarm-counts"


@contextmanager
def toy_question() -> Iterator[type[Question[ConfusionRelease]]]:
    """Register a third-party kind, and forget it afterwards."""

    @dataclass(frozen=True, kw_only=True)
    class AlarmCounts(Question[ConfusionRelease]):
        """The counts at a threshold, from another package."""

        kind = KIND
        title = "alarm counts"
        asks = "How many alarms does it raise?"
        tells = "The rows with at least this score, by their label."
        of = (ScoredRows,)
        alarm_at: Annotated[float, Number(0, 1), "Scores from here on raise an alarm."] = 0.5
        sort: Annotated[str, OneOf(("loud", "silent")), "What sort of alarm."] = "loud"
        urgent: Annotated[bool, Flag(), "Whether it is urgent."] = False

        def _counted(self) -> Confusion:
            return Confusion(epsilon=self.epsilon, threshold=self.alarm_at)

        def request(self, about: Any) -> Any:
            return self._counted().request(about)

        def read(self, drawn: Any) -> ConfusionRelease:
            return ConfusionRelease(drawn)

        def typical(self, about: Any, guess: Any) -> Any:
            return self._counted().typical(about, guess)

    try:
        yield AlarmCounts
    finally:
        del KINDS[KIND]
