"""Say things in plain words, for pages and commands: arithmetic on public facts alone."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from heldout.kernel.loss import Loss, decimal
from heldout.kernel.neighbours import Neighbours, Protection

if TYPE_CHECKING:
    from heldout.arrays import Floats
    from heldout.intervals.measure import Measure

__all__ = [
    "around",
    "belief",
    "between",
    "by_width",
    "decimal",
    "digits",
    "few",
    "grid",
    "half_width",
    "never_zero",
    "number",
    "numbers",
    "protection_in_words",
    "show_held_end",
    "show_probability",
    "spread",
    "tested",
]

LOPSIDED: Final = 0.7
"""Where noise reaches less than this share as far to one side as to the other, ± misleads there:
an interval could look narrower than its own noise, or a gap that is seen reach below 0."""


def few(names: str) -> str:
    """Return the columns of a model for a heading, which has no room for one for each class.

    >>> few("risk_a"), few("p0, p1, p2, p3, p4"), few("forest 1, forest 2, forest 3")
    ('risk_a', 'p0, ..., p4', 'forest')
    """
    listed = names.split(", ")
    one = listed[0].removesuffix(" 1")
    if len(listed) > 1 and listed == [f"{one} {place}" for place in range(1, len(listed) + 1)]:
        return one  # a fitted model's columns, one for each class
    return names if len(listed) <= 3 else f"{listed[0]}, ..., {listed[-1]}"


def protection_in_words(protection: Protection, rows: int | None) -> str:
    """Say who is protected, in the words of a reader without the vocabulary.

    >>> print(protection_in_words(Protection(neighbours=Neighbours.REPLACE_ONE), 5000))
    Each of the 5,000 rows is protected: any one of them could be exchanged for another, and every
    number here would be nearly as likely. The number of rows is public.
    """
    if protection.only_labels:
        outcome = " and ".join(repr(name) for name in protection.outcome) or "outcome"
        whose = f"Only outcomes ({outcome}) are protected"
        if protection.unit:
            count = protection.rows_per_unit
            limit = "one row counts" if count == 1 else f"at most {count} rows count"
            whose += (
                f": those of all rows of each {protection.unit_name or 'unit'}, of which {limit},"
            )
        else:
            whose += ": that of any one row"
        return (
            f"{whose} could be another, and every number here would be nearly as likely. All else "
            "is taken to be public: scores, groups, weights, who is in the data and how many rows "
            "there are."
        )
    swap = protection.neighbours is Neighbours.REPLACE_ONE
    if protection.unit:
        count = protection.rows_per_unit
        limit = "one row counts" if count == 1 else f"at most {count} rows count"
        name = protection.unit_name or "unit"
        who = f"Each {name} is protected with all of its rows, of which {limit}"
        change = (
            "all rows of any one could be exchanged for others"
            if swap
            else "all rows of any one could be taken out or brought in"
        )
        return (
            f"{who}: {change}, and every number here would be nearly as likely. The number "
            "of rows is private too."
        )
    if swap:
        subject = "Each row" if rows is None else f"Each of the {rows:,} rows"
        return (
            f"{subject} is protected: any one of them could be exchanged for another, and every "
            "number here would be nearly as likely. The number of rows is public."
        )
    return (
        "Each row is protected: any one of them could be taken out or another brought in, and "
        "every number here would be nearly as likely. The number of rows is private too."
    )


def belief(price: Loss, protection: Protection) -> str:
    """Say how sure of a guess an answer can make anybody: the meaning of a pure epsilon.

    >>> print(belief(Loss.pure(1), Protection(neighbours=Neighbours.REPLACE_ONE)))
    Somebody who knows all other rows and is 50% sure of a guess about this one will be at most
    73.2% sure of it afterwards.
    """
    if price.epsilon is None or price.delta:
        return ""
    one = (protection.unit_name or "unit") if protection.unit else "row"
    others = "all other rows and is 50% sure of a guess about this one"
    if protection.unit:
        others = f"everything about all others and is 50% sure of a guess about one {one}"
    if protection.only_labels:
        whose = f"the outcomes of one {one}" if protection.unit else "the outcome of one row"
        others = f"everything else and is 50% sure of a guess about {whose}"
    most = 100 / (1 + math.exp(-min(float(price.epsilon), 700.0)))
    places = 1 if most < 99.9 else 4
    return (
        f"Somebody who knows {others} will be at most "
        f"{math.ceil(most * 10**places) / 10**places:.{places}f}% sure of it afterwards."
    )


def grid(down: Sequence[str], across: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Return cells as lines of text, with names beside and above them.

    >>> print(grid(["no", "yes"], ["called no", "called yes"], [["90", "3"], ["5", "12"]]))
         called no  called yes
    no          90           3
    yes          5          12
    """
    first = max(map(len, down))
    widths = [
        max(len(name), *(len(row[place]) for row in cells)) for place, name in enumerate(across)
    ]
    lines = [
        "  ".join([side.ljust(first), *map(str.rjust, row, widths)]).rstrip()
        for side, row in (("", across), *zip(down, cells, strict=True))
    ]
    return "\n".join(lines)


def numbers(values: "Sequence[float] | Floats") -> Callable[[float], str]:
    """Numbers as a person writes them: as many decimals as the width of the values asks for.

    >>> numbers([0, 52000])(1234.5), numbers([0, 52])(1.2345), numbers([8, 8.4])(8.12345)
    ('1,234', '1.2', '8.123')
    """
    width = float(max(values)) - float(min(values))
    if not 1e-6 < width < 1e12:
        return lambda value: f"{value:.4g}"
    places = max(0, 2 - math.floor(math.log10(width)))
    return lambda value: f"{value:,.{places}f}"


def digits(measure: "Measure", level: float) -> int:
    """Return the decimals that show a measure's interval: none for a count, three for a share."""
    if measure.whole:
        return 0
    low, high = measure.interval(level)
    width = high - low
    if not 0 < width < math.inf:
        return 3
    size = math.floor(math.log10(width))
    return max(0, 2 - size) if width > 1 else min(9, max(3, 1 - size))


def by_width(width: float) -> Callable[[float], str]:
    """Enough decimals to see an interval's width, three at least; powers of ten far from 1."""
    if width > 0 and not 1e-7 <= width <= 1e9:
        return lambda value: f"{value:.4g}"
    places = 3 if width <= 0 else max(3, 1 - math.floor(math.log10(width)))
    return lambda value: f"{value:.{places}f}"


def number(value: float, places: int) -> str:
    return f"{value:,.{places}f}"


def half_width(interval: tuple[float, float], value: float) -> float:
    return max(interval[1] - value, value - interval[0])


def show_held_end(least: float | None, show: Callable[[float], str]) -> Callable[[float], str]:
    """Numbers of a measure that is held to `least` say so where they reach it.

    >>> show_held_end(-1.0, "{:.3f}".format)(-1.0), show_held_end(None, "{:.3f}".format)(-1.0)
    ('-1 or less', '-1.000')
    """
    return lambda value: f"{least:g} or less" if value == least else show(value)


def show_probability(value: float) -> str:
    """Return a probability in three decimals, and near certainty on which side it is.

    >>> show_probability(0.9999979), show_probability(0.25), show_probability(0.0)
    ('above 0.999', '0.250', 'below 0.001')
    """
    if value > 0.999:
        return "above 0.999"
    return "below 0.001" if value < 0.001 else f"{value:.3f}"


def between(interval: tuple[float, float], show: Callable[[float], str]) -> str:
    """An interval as "low to high"; where both are held to the same end, that end.

    >>> between((0.25, 0.5), "{:.2f}".format), between((-math.inf, math.inf), "{:.2f}".format)
    ('0.25 to 0.50', 'anything')
    """
    if interval == (-math.inf, math.inf):
        return "anything"
    low, high = map(show, interval)
    at_an_end = low.endswith("or less") or low.startswith(("above ", "below "))
    return low if low == high and at_an_end else f"{low} to {high}"


def around(interval: tuple[float, float], value: float, show: Callable[[float], str]) -> str:
    """Noise as ± its larger side, or as a range where one side is much the smaller.

    >>> around((0.79, 0.84), 0.815, "{:.3f}".format), around((0.75, 0.82), 0.81, "{:.3f}".format)
    ('±0.025', '0.750 to 0.820')
    """
    sides = interval[1] - value, value - interval[0]
    if max(sides) == math.inf:
        return between(interval, show)
    low, high = map(show, interval)
    at_an_end = low.endswith("or less") or any(
        text.startswith(("above ", "below ")) for text in (low, high)
    )
    if at_an_end or (min(sides) < LOPSIDED * max(sides) and low != high):
        return between(interval, show)
    return f"±{never_zero(max(sides), show)}"


def spread(measure: "Measure", level: float) -> tuple[str, str, str]:
    """A measure as three texts: value, interval, and what noise alone leaves open."""
    places = digits(measure, level)
    show = show_held_end(measure.least, lambda value: number(value, places))
    if measure.is_probability:
        show = show_probability
    return (
        show(measure.value) if measure.informative else "no information at this price",
        between(measure.interval(level), show),
        around(measure.noise_interval(level), measure.value, show),
    )


def tested(name: str, measure: "Measure") -> str:
    """A measure's name, and the p-value of a gap that can be read."""
    chance = getattr(measure, "p_value", None)
    if chance is None or not measure.informative:
        return name
    return f"{name}, p-value {f'{chance:.2g}' if chance >= 1e-4 else 'below 0.0001'}"


def never_zero(half: float, show: Callable[[float], str]) -> str:
    """A half-width as the interval's digits show it, or in its own first digit if they show none.

    >>> never_zero(0.012, "{:.3f}".format), never_zero(0.0000031, "{:.3f}".format)
    ('0.012', '0.000003')
    """
    shown = show(half)
    if not 0 < half < 1 or any(digit in shown for digit in "123456789"):
        return shown
    return f"{half:.{-math.floor(math.log10(half))}f}" if half > 1e-9 else f"{half:.0e}"
