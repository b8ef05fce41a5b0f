"""All small data sets, and all data sets that one more row, or a few, can make of them.

A data set is a tuple of tie groups, lowest score first, each (negatives, positives). Two data sets
are neighbours under replace-one exactly if they are made from one core by adding a row each, so a
sensitivity is the spread of the values over one core's supersets.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

Groups = tuple[tuple[int, int], ...]
Counts = tuple[int, int]


def data_sets(rows: int) -> Iterator[Groups]:
    """Every data set of so many rows, up to a monotone change of the scores."""
    if rows == 0:
        yield ()
        return
    for size in range(1, rows + 1):
        for positives in range(size + 1):
            for rest in data_sets(rows - size):
                yield ((size - positives, positives), *rest)


def with_a_row(groups: Groups) -> set[Groups]:
    """The data sets that one more row makes: in a tie group or between two, of either label."""
    found = set()
    for label in ((1, 0), (0, 1)):
        for place in range(len(groups) + 1):
            found.add((*groups[:place], label, *groups[place:]))
        for place, (negatives, positives) in enumerate(groups):
            grown = (negatives + label[0], positives + label[1])
            found.add((*groups[:place], grown, *groups[place + 1 :]))
    return found


def counts(groups: Groups) -> Counts:
    """(positives, negatives)."""
    return sum(group[1] for group in groups), sum(group[0] for group in groups)


@cache
def area(groups: Groups) -> Fraction:
    """The definition, pair by pair."""
    n, m = counts(groups)
    if not n or not m:
        return Fraction(1, 2)
    below, twice = 0, 0
    for negatives, positives in groups:
        twice += positives * (2 * below + negatives)
        below += negatives
    return Fraction(twice, 2 * n * m)


@cache
def grouped_precision(groups: Groups) -> Fraction:
    """The definition, tie by tie: the precision of all rows that score at least as much."""
    n, _ = counts(groups)
    right = called = 0
    total = Fraction(0)
    for negatives, positives in reversed(groups):
        right, called = right + positives, called + negatives + positives
        total += positives * Fraction(right, called)
    return total / n if n else Fraction(0)


@cache
def precision(groups: Groups) -> Fraction:
    """The definition, rank by rank; within a tie negatives come first."""
    n, _ = counts(groups)
    rank = seen = 0
    total = Fraction(0)
    for negatives, positives in reversed(groups):
        rank += negatives
        for _ in range(positives):
            rank, seen = rank + 1, seen + 1
            total += Fraction(seen, rank)
    return total / n if n else Fraction(0)


def spread_by_counts(
    value: Callable[[Groups], Fraction],
    cores: Iterator[Groups],
    *,
    most_rows: int,
    both_ways: bool,
    equal_sizes: bool,
) -> dict[tuple[Counts, Counts], Fraction]:
    """The largest move of the value between neighbours, by the class counts of both.

    `most_rows` may be added to a core; with `both_ways` any two of the results are neighbours (of
    equal sizes if the row count is public), otherwise only the core and each of the results.
    """
    largest: dict[tuple[Counts, Counts], Fraction] = defaultdict(Fraction)
    for core in cores:
        layers = [{core}]
        for _ in range(most_rows):
            layers.append(set().union(*(with_a_row(each) for each in layers[-1])))
        ranges: dict[Counts, tuple[Fraction, Fraction]] = {}
        for layer in layers[1:] if equal_sizes else layers:
            for each in layer:
                key, here = counts(each), value(each)
                low, high = ranges.get(key, (here, here))
                ranges[key] = (min(low, here), max(high, here))
        if not both_ways:
            base, here = counts(core), value(core)
            pairs = [((base, base), (here, here), key, ends) for key, ends in ranges.items()]
            for _, ends, key, others in pairs:
                move = max(abs(ends[0] - others[0]), abs(ends[1] - others[1]))
                largest[base, key] = max(largest[base, key], move)
                largest[key, base] = max(largest[key, base], move)
            continue
        for key, (low, high) in ranges.items():
            for other, (other_low, other_high) in ranges.items():
                if equal_sizes and sum(key) != sum(other):
                    continue
                move = max(high - other_low, other_high - low)
                largest[key, other] = max(largest[key, other], move)
    return largest
