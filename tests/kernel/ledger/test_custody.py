"""Tables that are made person by person of neighbouring worlds are equal or neighbours."""

import itertools
from collections import Counter

import pytest

from heldout.kernel import Protection

# What one version of a table can say of a row: nothing, or its label and its score.
CELLS = list(itertools.product((0, 1), (0, 1)))
MAPS = {
    "as it is": lambda row: [row],
    "a private column": lambda row: [row] if row[0] == 1 else [],
    "the other half": lambda row: [row] if row[0] == 0 else [],
    "another score": lambda row: [(row[0], 1 - row[1])],
    "re-encoded": lambda row: [(1 - row[0], row[1])],
    "nobody": lambda _: [],
}


def people(most_rows):
    """Every individual of at most this many rows."""
    for count in range(most_rows + 1):
        yield from itertools.combinations_with_replacement(CELLS, count)


def worlds(protection):
    """One individual's part in two neighbouring worlds; the others' parts are the same."""
    most = protection.rows_per_unit + 1 if protection.unit else 1
    listed = [each for each in people(most) if each or protection.unit]
    if protection.both_ways:
        yield from itertools.product(listed, repeat=2)
    else:
        yield from (pair for each in listed for pair in (((), each), (each, ())))


def table(person, made, protection):
    rows = [new for row in person for new in made(row)]
    return Counter(rows[: protection.rows_per_unit])  # which rows stay depends on the unit alone


def moved(first, second):
    return sum((first - second).values()), sum((second - first).values())


RELATIONS = [
    Protection(neighbours=neighbours, unit=unit is not None, rows_per_unit=unit or 1)
    for neighbours in ("replace-one", "add-remove")
    for unit in (None, 1, 2)
]


@pytest.mark.parametrize("protection", RELATIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("how", MAPS)
def test_versions_of_neighbouring_worlds_are_equal_or_neighbours(protection, how):
    allowed = {(0, 0), *protection.changes()}
    broken = 0
    for one, other in worlds(protection):
        versions = [table(each, MAPS[how], protection) for each in (one, other)]
        broken += moved(*versions) not in allowed
    if protection.row_count_is_public and how in ("a private column", "the other half"):
        assert broken, "the number of rows of such a subset tells the label"
    else:
        assert not broken


def test_a_public_number_of_rows_holds_for_who_is_in_the_same_versions():
    """Replace-one without a unit: another row with a row in the same versions."""
    protection = Protection(neighbours="replace-one")
    for one, other in worlds(protection):
        for how, made in MAPS.items():
            versions = [table(each, made, protection) for each in (one, other)]
            if len(set(map(Counter.total, versions))) == 1:
                assert moved(*versions) in ((0, 0), (1, 1)), how
