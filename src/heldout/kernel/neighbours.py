"""Which data sets are neighbours: what one person may change.

The sensitivities of statistics are derived for these relations and no others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from heldout.arguments import Whole, shown
from heldout.errors import ArgumentError
from heldout.kernel.loss import Loss


class Neighbours(StrEnum):
    """The neighbouring relation."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: "str | Neighbours") -> "Neighbours":
        """Read a relation by its name.

        >>> Neighbours.parse("add-remove")
        <Neighbours.ADD_REMOVE: 'add-remove'>
        """
        try:
            return cls(value)
        except Exception:  # also for what cannot be compared with a name
            names = " or ".join(f"'{member}'" for member in cls)
            raise ArgumentError(
                f"neighbours must be {names}, got {shown(value)}. "
                "With replace-one the row count is public; add-remove hides it."
            ) from None


@dataclass(frozen=True, kw_only=True)
class Protection:
    """Protects one row, or all rows of one unit (a person), under a relation.

    Without a unit, replace-one neighbours differ in one row and have the same number of rows,
    and add-remove neighbours differ by one row more or less. With a unit of at most k rows,
    replace-one takes away 0 to k rows and brings 0 to k others (so the row count is private);
    add-remove takes away 0 to k rows or brings 0 to k, not both.

    >>> one = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=4)
    >>> one.rows_moved
    8
    """

    neighbours: Neighbours
    unit: bool = False
    rows_per_unit: int = 1
    unit_name: str | None = None
    row_count_is_public: bool = field(init=False, repr=False, compare=False)
    """True only for replace-one without a unit column."""
    rows_moved: int = field(init=False, repr=False, compare=False)
    """How many rows, leaving and arriving together, tell two neighbours apart at most.

    Disjoint counts move by one a row, so this is their L1 sensitivity.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        advice = "Say how many rows one unit may keep."
        count = Whole(1, 2**62, advice)(self.rows_per_unit, "rows_per_unit")
        object.__setattr__(self, "rows_per_unit", count)
        if not self.unit and (count != 1 or self.unit_name is not None):
            raise ArgumentError(
                f"rows_per_unit must be 1 without a unit column, got {shown(count)}. "
                "Name the unit column, or leave rows_per_unit out."
            )
        both = self.neighbours is Neighbours.REPLACE_ONE
        object.__setattr__(self, "row_count_is_public", both and not self.unit)
        object.__setattr__(self, "rows_moved", count * (2 if both else 1))

    @property
    def both_ways(self) -> bool:
        """Return whether rows may leave and arrive at once."""
        return self.neighbours is Neighbours.REPLACE_ONE

    def changes(self) -> Iterator[tuple[int, int]]:
        """Every (rows that leave, rows that arrive) that neighbours allow, for exhaustive tests.

        >>> list(Protection(neighbours="add-remove", unit=True, rows_per_unit=2).changes())
        [(1, 0), (2, 0), (0, 1), (0, 2)]
        """
        most = self.rows_per_unit
        if self.both_ways and not self.unit:
            yield 1, 1
        elif self.both_ways:
            yield from ((a, b) for a in range(most + 1) for b in range(most + 1) if a or b)
        else:
            yield from ((a, 0) for a in range(1, most + 1))
            yield from ((0, b) for b in range(1, most + 1))

    def describe(self) -> str:
        """Return the relation as the end of a sentence.

        >>> Protection(neighbours=Neighbours.ADD_REMOVE, unit=True, rows_per_unit=4,
        ...            unit_name="patient_id").describe()
        'add-remove neighbours, protecting each patient_id with at most 4 rows'
        """
        sentence = f"{self.neighbours} neighbours"
        if not self.unit:
            return sentence
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit} rows"
        return f"{sentence}, protecting each {self.unit_name or 'unit'} with at most {rows}"

    def terms(self, loss: Loss) -> str:
        """Return a price and who is protected, as the end of a sentence."""
        return f"{loss}, {self.describe()}"

    def as_dict(self) -> dict[str, str | int | bool | None]:
        """Return plain JSON."""
        return {
            "neighbours": str(self.neighbours),
            "unit": self.unit,
            "unit_name": self.unit_name,
            "rows_per_unit": self.rows_per_unit,
            "row_count_is_public": self.row_count_is_public,
        }
