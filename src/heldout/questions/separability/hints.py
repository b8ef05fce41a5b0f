"""The usual causes by which privatized data gives itself away, in plain sentences."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from heldout.data.two_tables import Table

NAMED = 5


def hints(truth: Table, privatized: Table) -> Iterator[str]:
    """What a custodian can change upstream; nothing if no usual cause shows."""
    if truth.numbers:
        yield from _lost_zeros(truth, privatized)
        yield from _new_kinds_of_numbers(truth, privatized)
    yield from _new_categories(truth, privatized)
    yield from _missing(truth, privatized)


def _lost_zeros(truth: Table, privatized: Table) -> Iterator[str]:
    before, after = _zeros(truth), _zeros(privatized)
    if before >= 0.2 and before - after >= 0.1:
        yield (
            f"Lost zeros: {before:.0%} of the true numbers are zero, but {after:.0%} of the "
            "privatized ones. Noise on empty cells gives the data away. Use a mechanism that "
            "keeps zeros: draw counts from noisy totals, or drop noisy counts below a threshold "
            "(a high one gives itself away by lost small counts)."
        )
    elif after >= 0.2 and after - before >= 0.05:
        yield (
            f"New zeros: {before:.0%} of the true numbers are zero, but {after:.0%} of the "
            "privatized ones. Small counts were dropped. Lower the threshold."
        )


def _new_kinds_of_numbers(truth: Table, privatized: Table) -> Iterator[str]:
    negative = [
        name
        for name, values in truth.numbers.items()
        if np.nanmin(values, initial=0) >= 0 > np.nanmin(privatized.numbers[name], initial=0)
    ]
    if negative:
        yield (
            f"Negative numbers in {_listed(negative)}, where the truth has none. Hold them to 0 "
            "after the noise; that costs no privacy."
        )
    broken = [
        name
        for name, values in truth.numbers.items()
        if _whole(values) and not _whole(privatized.numbers[name])
    ]
    if broken:
        yield (
            f"Fractions in {_listed(broken)}, where the truth has whole numbers. Use discrete "
            "noise, or round afterwards."
        )


def _new_categories(truth: Table, privatized: Table) -> Iterator[str]:
    for name, values in truth.texts.items():
        known = {value for value in values if value is not None}
        invented = np.array([v is not None and v not in known for v in privatized.texts[name]])
        if invented.mean() >= 0.01:
            yield (
                f"Categories of {name} that the truth does not have, in {invented.mean():.0%} of "
                "the privatized rows."
            )
        left = {value for value in privatized.texts[name] if value is not None}
        lost = np.array([value is not None and value not in left for value in values])
        if lost.mean() >= 0.01:
            yield (
                f"Categories of {name} that the privatized data lost, in {lost.mean():.0%} of the "
                "true rows."
            )


def _missing(truth: Table, privatized: Table) -> Iterator[str]:
    for name in (*truth.numbers, *truth.texts):
        before, after = (_share_missing(table, name) for table in (truth, privatized))
        if abs(before - after) >= 0.05:
            yield (
                f"{name} is missing in {before:.0%} of the true rows and in {after:.0%} of the "
                "privatized ones."
            )


def _zeros(table: Table) -> float:
    cells = sum(len(values) for values in table.numbers.values())
    return sum(int((values == 0).sum()) for values in table.numbers.values()) / cells


def _whole(values: Any) -> bool:
    known = values[~np.isnan(values)]
    return bool(np.all(known == np.floor(known)))


def _share_missing(table: Table, name: str) -> float:
    if name in table.numbers:
        return float(np.isnan(table.numbers[name]).mean())
    return float(np.mean([value is None for value in table.texts[name]]))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more columns" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
