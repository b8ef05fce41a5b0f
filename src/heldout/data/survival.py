"""Private rows with a time and whether an event came then: time to event, censored or not."""

from typing import Any, ClassVar, Unpack

from heldout.data import sql, validation
from heldout.data.description import SurvivalRows
from heldout.data.groups import kind_declared
from heldout.data.measured import MeasuredDataset
from heldout.data.scores import FURTHEST
from heldout.data.table import Custody
from heldout.data.validation import other_label


class SurvivalDataset(MeasuredDataset):
    """A `Dataset` with `time` and `event`. Statements see `time`, `event` and, if named, `score`.

    A time is a finite number from 0, in any unit. `event` has two values: `positive` where the
    event came at that time, `negative` where the row was last seen then without it.

    >>> rows = {"days": [3.0, 9.0], "died": [1, 0]}
    >>> SurvivalDataset(rows, time="days", event="died")
    Dataset(time='days', event='died', replace-one neighbours, 2 rows)
    """

    required: ClassVar[bool] = False

    def __init__(
        self,
        rows: Any,
        /,
        *,
        time: str,
        event: str,
        score: str | None = None,
        positive: object = 1,
        negative: object = None,
        values: Any = None,
        groups: Any = None,
        weight: str | None = None,
        largest_weight: float | None = None,
        out_of_range: str = "refuse",
        table: str | None = None,
        query: str | None = None,
        **custody: Unpack[Custody],
    ) -> None:
        self.time, self.event, self.score = time, event, score or ""
        self._values = validation.LabelValues(positive, other_label(positive, negative))
        super().__init__(
            rows,
            values=values,
            groups=groups,
            weight=weight,
            largest_weight=largest_weight,
            out_of_range=out_of_range,
            table=table,
            query=query,
            **custody,
        )

    of_outcome: ClassVar[tuple[str, ...]] = ("time", "event")

    def _outcome(self) -> tuple[str, ...]:
        # Values, such as a predicted share of survivors, are public then.
        return (self.time, self.event)

    @property
    def _own(self) -> list[str]:
        return [self.time, self.event, *([self.score] if self.score else [])]

    def _exposed(self) -> dict[str, str]:
        self._require(*self._own)
        self._require_plain(self.event)
        types, values = self._engine.columns, self._values
        event = sql.as_label(
            sql.column(self.event),
            types[self.event],
            positive=values.positive,
            negative=values.negative,
        )
        own = {"time": self._number(self.time, 0.0), "event": event}
        if self.score:
            own["score"] = self._number(self.score, -FURTHEST)
        return own | super()._exposed()

    def _number(self, name: str, low: float) -> str:
        number = sql.as_double(sql.column(name), self._engine.columns[name])
        return sql.held_to(number, low, FURTHEST)

    def _rules(self) -> list[validation.Rule]:
        types, ends = self._engine.columns, (0.0, FURTHEST)
        declared = "what times can be"
        rules = validation.range_rules(
            "time", self.time, types[self.time], ends=ends, declared=declared
        )
        rules += validation.label_rules(self.event, types[self.event], self._values)
        if self.score:
            rules += validation.number_rules("score", self.score, types[self.score])
        return rules + super()._rules()

    def _shown(self) -> dict[str, str]:
        kind = kind_declared(self._values.positive, self._values.negative)
        numbers = [self.time, *([self.score] if self.score else [])]
        return {self.event: kind} | dict.fromkeys(numbers, "number") | super()._shown()

    def _described(self) -> SurvivalRows:  # type: ignore[override]
        return SurvivalRows(
            **self._measured_facts(), time=self.time, event=self.event, score=self.score or None
        )

    def __repr__(self) -> str:
        score = f", score={self.score!r}" if self.score else ""
        return f"Dataset(time={self.time!r}, event={self.event!r}{score}, {self._about()})"
