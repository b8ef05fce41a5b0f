"""Private rows with declared values: a number each within public bounds, or a word for one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from heldout.arguments.rules import OneOf, Values
from heldout.data import sql, validation
from heldout.data.dataset import Dataset
from heldout.data.description import MeasuredRows, ValueRange
from heldout.data.groups import Groups, declared_groups, kind_declared
from heldout.data.postgres import PostgresTable
from heldout.data.table import Custody, PrivateTable
from heldout.data.validation import checked_weight


class MeasuredDataset(Dataset):
    """A `Dataset` with `values` and no label. Statements see them as `value_0`, `value_1`, ...

    A number beyond its bounds refuses the table, or counts as the nearer end with
    `out_of_range="clip"`. A word that is not declared always refuses it.

    >>> MeasuredDataset({"dice": [0.5, 0.75]}, values={"dice": (0, 1)})
    Dataset(values={'dice': (0, 1)}, replace-one neighbours, 2 rows)
    """

    required: ClassVar[bool] = True
    """Whether some value must be declared."""

    def __init__(
        self,
        rows: Any,
        /,
        *,
        values: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        weight: str | None = None,
        largest_weight: float | None = None,
        out_of_range: str = "refuse",
        table: str | None = None,
        query: str | None = None,
        **custody: Unpack[Custody],
    ) -> None:
        if table is not None or query is not None:
            rows = PostgresTable(rows, table=table, query=query)
        self.values = declared_value_ranges(values, required=self.required)
        self.groups = declared_groups(groups)
        self.weight, self.largest_weight = weight, checked_weight(weight, largest_weight)
        self.out_of_range = OneOf(("refuse", "clip"))(out_of_range, "out_of_range")
        PrivateTable.__init__(self, rows, **custody)

    _validate, _fetch = PrivateTable._validate, PrivateTable._fetch
    of_outcome: ClassVar[tuple[str, ...]] = ()

    def _outcome(self) -> tuple[str, ...]:
        return ()

    def _exposed(self) -> dict[str, str]:
        self._require(*self.values)
        self._require_plain(*self.groups)
        columns = {f"value_{place}": self._value(name) for place, name in enumerate(self.values)}
        return columns | self._weights()

    def _value(self, name: str) -> str:
        """Return a row's value, which lies within the bounds whatever the cell is."""
        declared = self.values[name]
        if declared.words:
            numbers = map(sql.double, declared.words.values())
            cases = zip(self._tests(name), numbers, strict=True)
            chosen = " ".join(f"WHEN {test} THEN {number}" for test, number in cases)
            return f"CASE {chosen} ELSE {sql.double(declared.low)} END"
        number = sql.as_double(sql.column(name), self._engine.columns[name])
        return sql.held_to(number, *declared.ends)

    def _tests(self, name: str) -> list[str]:
        cell, kind = sql.column(name), self._engine.columns[name]
        words = Groups(name, tuple(self.values[name].words)).cells(kind)
        return [sql.equals(cell, kind, word) for word in words]

    def _rules(self) -> list[validation.Rule]:
        several = (self._value_rules(place, name) for place, name in enumerate(self.values))
        required = [rule for rules in several for rule in rules]
        return required + self._weight_rules() + self._group_rules()

    def _value_rules(self, place: int, name: str) -> list[validation.Rule]:
        declared, kind = self.values[name], self._engine.columns[name]
        if declared.words:
            self._require_plain(name)
            advice = "one of the declared words. Declare the others too."
            rules = validation.value_rules("value", name, self._tests(name), advice)
        elif self.out_of_range == "clip":
            rules = validation.number_rules("value", name, kind)[:1]
        else:
            bounds = "its declared bounds. out_of_range='clip' (--clip) counts what lies beyond as"
            rules = validation.range_rules(
                "value", name, kind, ends=declared.ends, declared=f"{bounds} the nearer end."
            )
        return [replace(rule, name=f"{rule.name}_{place}") for rule in rules]

    def _shown(self) -> dict[str, str]:
        kinds = {name: kind_declared(*value.words) for name, value in self.values.items()}
        own = {name: "number" for name in (self.weight,) if name}
        return kinds | own | PrivateTable._shown(self)

    def _described(self) -> MeasuredRows:  # type: ignore[override]
        return MeasuredRows(**self._measured_facts())

    def _measured_facts(self) -> dict[str, Any]:
        return {
            **self._public_facts(),
            "values": dict(self.values),
            "weight": self.weight,
            "largest_weight": self.largest_weight,
        }

    def __repr__(self) -> str:
        return f"Dataset(values={_shown(self.values)}, {self._about()})"


def declared_value_ranges(
    values: Mapping[str, Any] | None, *, required: bool
) -> dict[str, ValueRange]:
    """Return the declared values with their bounds, checked."""
    if values is None and not required:
        return {}
    declared = Values()(values, "values")
    return {
        name: ValueRange(min(value.values()), max(value.values()), value)
        if isinstance(value, dict)
        else ValueRange(*value)
        for name, value in declared.items()
    }


def _shown(values: Mapping[str, ValueRange]) -> str:
    parts = (
        f"{name!r}: {sorted(value.words) if value.words else f'({value.low:g}, {value.high:g})'}"
        for name, value in values.items()
    )
    return "{" + ", ".join(parts) + "}"
