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
    LABEL = "label"
    """One row's outcome is another, and all else is public: scores, features, groups, weights,
    keys and the number of rows."""

    @classmethod
    def parse(cls, value: "str | Neighbours") -> "Neighbours":
        """Read a relation by its name.

        >>> Neighbours.parse("add-remove")
        <Neighbours.ADD_REMOVE: 'add-remove'>
        """
        try:
            return cls(value)
        except Exception:  # also for what cannot be compared with a name
            *names, last = (f"'{member}'" for member in cls)
            raise ArgumentError(
                f"neighbours must be {', '.join(names)} or {last}, got {shown(value)}. "
                "With replace-one the row count is public; add-remove hides it; label hides "
                "nothing but each row's outcome."
            ) from None


@dataclass(frozen=True, kw_only=True)
class Protection:
    """Protects one row, or all rows of one unit (a person), under a relation.

    Without a unit, replace-one neighbours differ in one row and have the same number of rows,
    and add-remove neighbours differ by one row more or less. With a unit of at most k rows,
    replace-one takes away 0 to k rows and brings 0 to k others (so the row count is private);
    add-remove takes away 0 to k rows or brings 0 to k, not both.

    Label neighbours have the same rows, of which one has another outcome, or up to k of one unit.
    Each is a row that leaves and one that arrives in its place, so they are replace-one neighbours
    too, and whatever protects those protects them (proofs/label-neighbours.md).

    >>> one = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=4)
    >>> one.rows_moved
    8
    """

    neighbours: Neighbours
    unit: bool = False
    rows_per_unit: int = 1
    unit_name: str | None = None
    outcome: tuple[str, ...] = ()
    """Under label neighbours the columns with the outcome: an account has one outcome."""
    row_count_is_public: bool = field(init=False, repr=False, compare=False)
    """True for replace-one without a unit column, and for label neighbours."""
    rows_moved: int = field(init=False, repr=False, compare=False)
    """How many rows, leaving and arriving together, tell two neighbours apart at most.

    Disjoint counts move by one per row, so this is their L1 sensitivity.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        if self.outcome and not self.only_labels:
            raise ArgumentError("outcome must go with neighbours='label'. Leave it out.")
        both = self.both_ways
        known = self.only_labels or (both and not self.unit)
        object.__setattr__(self, "row_count_is_public", known)
        advice = "Say how many rows one unit may keep."
        count = Whole(1, 2**62, advice)(self.rows_per_unit, "rows_per_unit")
        object.__setattr__(self, "rows_per_unit", count)
        if not self.unit and (count != 1 or self.unit_name is not None):
            raise ArgumentError(
                f"rows_per_unit must be 1 without a unit column, got {shown(count)}. "
                "Name the unit column, or leave rows_per_unit out."
            )
        object.__setattr__(self, "rows_moved", count * (2 if both else 1))

    @property
    def both_ways(self) -> bool:
        """Return whether rows may leave and arrive at once; a new outcome is both."""
        return self.neighbours is not Neighbours.ADD_REMOVE

    @property
    def only_labels(self) -> bool:
        """Return whether nothing but outcomes is secret."""
        return self.neighbours is Neighbours.LABEL

    def changes(self) -> Iterator[tuple[int, int]]:
        """Every (rows that leave, rows that arrive) that neighbours allow, for exhaustive tests.

        Under label neighbours the arriving rows are the leaving ones with other outcomes.

        >>> list(Protection(neighbours="add-remove", unit=True, rows_per_unit=2).changes())
        [(1, 0), (2, 0), (0, 1), (0, 2)]
        """
        most = self.rows_per_unit
        if self.only_labels:
            yield from ((count, count) for count in range(1, most + 1))
        elif self.both_ways and not self.unit:
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
        >>> Protection(neighbours=Neighbours.LABEL).describe()
        'label neighbours, protecting outcomes alone'
        """
        sentence = f"{self.neighbours} neighbours"
        if self.only_labels:
            sentence += ", protecting outcomes alone"
        if not self.unit:
            return sentence
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit} rows"
        who = f"{self.unit_name or 'unit'} with at most {rows}"
        return (
            f"{sentence}, of each {who}"
            if self.only_labels
            else f"{sentence}, protecting each {who}"
        )

    def terms(self, loss: Loss) -> str:
        """Return a price and who is protected, as the end of a sentence."""
        return f"{loss}, {self.describe()}"

    def as_dict(self) -> dict[str, str | int | bool | None]:
        """Return plain JSON; an account's must be equal to that of every table it pays for."""
        facts: dict[str, str | int | bool | None] = {
            "neighbours": str(self.neighbours),
            "unit": self.unit,
            "unit_name": self.unit_name,
            "rows_per_unit": self.rows_per_unit,
            "row_count_is_public": self.row_count_is_public,
        }
        return facts | {"outcome": ", ".join(self.outcome)} if self.only_labels else facts
