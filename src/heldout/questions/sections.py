"""A question's place in a report, and what whoever asks for a report may choose for all of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Choice", "Section", "shared"]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question's place in a report.

    Shares of a report's price go by weight among the sections that apply, so they are public and
    add up to the whole price exactly.
    """

    title: str
    """Its heading."""
    meaning: str
    """What a reader learns from it: two sentences at most."""
    weight: int
    place: int = 100
    """Where it stands in the report: lower is earlier."""
    always: bool = True
    """Whether a report has it unless others are named; if not, it is there only if it is named."""
    weight_with_curves: int | None = None
    """Its weight in a report with curves, where an area and the curves inform one another."""
    joined_by: str | None = None
    """The kind beside which `weight_with_curves` holds for all."""
    cards: tuple[str, ...] = ()
    """The measures that are shown large; the headline if there are none."""
    lower_is_better: bool = False
    leads: bool = False
    """Whether a report's headline is its headline, if nothing before it leads."""
    secondary: bool = False
    """Whether it only qualifies another section, such as ties on the grid."""
    asked_as: str | None = None
    """A second name to ask for it by, such as "auc" where rows have several classes."""
    old_name: str | None = None
    """Its name in reports before they went by kinds; None if it was the kind with underscores."""


@dataclass(frozen=True)
class Choice:
    """What may be chosen for all sections of a report. Public."""

    threshold: float
    scores: str | None = None
    """Whether "exact" scores or cells of the "grid" are ranked; None leaves it to the rows."""
    by: str | tuple[str, ...] | None = None
    """The declared groups, for a section by group."""
    inside: bool = True
    """Whether the threshold lies above the lowest score."""
    beside: frozenset[str] = frozenset()
    """The sections of the same report."""
    weighted: bool = False
    k: int = 10
    curves: bool = False


def shared(total: Fraction, weights: Mapping[str, int]) -> dict[str, Fraction]:
    """Divide a price by weight, exactly.

    >>> shared(Fraction(1), {"confusion": 2, "brier": 1})
    {'confusion': Fraction(2, 3), 'brier': Fraction(1, 3)}
    """
    whole = sum(weights.values())
    return {name: total * weight / whole for name, weight in weights.items()}
