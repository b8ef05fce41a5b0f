"""Declared values of a row: their mean, shares and histogram, counted by hand and brute-forced."""

from inspect import signature
from typing import Any

import numpy as np
import pytest
from tests.small_tables import SmallTables, protections

import heldout as ho
from heldout import questions as q
from heldout.data.description import MeasuredRows
from heldout.errors import ArgumentError, DataError
from heldout.kernel import Protection
from heldout.kernel.statistic import Statistic
from heldout.questions.values import ValueCounts, ValueSums

KINDS = [
    (first, second, weight)
    for first, second in ((0.0, 0.0), (0.0, 1.0), (0.25, 0.5), (1.0, 0.0), (1.0, 1.0))
    for weight in (0.5, 1.0)
]
TABLES = SmallTables(
    KINDS,
    ("value_0", "value_1", "weight", "member"),
    cells=[(*kind, int(kind[1] > 0.6)) for kind in KINDS],
)


def statistics(protection: Protection) -> list[Statistic]:
    rest = not protection.row_count_is_public
    return [
        ValueSums(with_rest=rest),
        ValueSums(with_rest=rest, minus=1),
        ValueSums(with_rest=rest, at_least=0.5),
        ValueSums(weighted=True),
        ValueSums(groups=2),
        ValueCounts(edges=(0.5,)),
        ValueCounts(edges=(0.25, 0.5)),
        ValueCounts(edges=(0.5,), weighted=True),
        ValueCounts(edges=(0.5,), groups=2),
    ]


CASES = [
    pytest.param(each, protection, id=f"{each}-{protection.describe()}")
    for protection in protections(1, 2)
    for each in statistics(protection)
]


_KNOWN: dict[Statistic, Any] = {}


@pytest.mark.parametrize(("statistic", "protection"), CASES)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    statistic: Statistic, protection: Protection
) -> None:
    if statistic not in _KNOWN:
        _KNOWN[statistic] = TABLES.distances(statistic)
    largest = _KNOWN[statistic][TABLES.neighbours(protection)].max()
    assert largest <= statistic.sensitivity(protection), "the claim is too small: not private"
    assert largest == statistic.sensitivity(protection), "the claim is too large: noise for nothing"


# --- what answers mean ---------------------------------------------------------------------------

ROWS = {
    "a": [0.0, 0.5, 1.0, 0.5] * 100,
    "b": [0.0, 0.0, 1.0, 0.0] * 100,
    "winner": ["A", "tie", "B", "B"] * 100,
    "site": ["x", "x", "y", "y"] * 100,
    "w": [1.0, 1.0, 2.0, 0.0] * 100,
}
DECLARED: dict[str, Any] = {
    "values": {"a": (0, 1), "b": (0, 1), "winner": {"A": 0, "tie": 0.5, "B": 1}},
    "groups": {"site": ["x", "y"]},
    "weight": "w",
    "largest_weight": 2,
}


def session(neighbours: str = "replace-one", **options: Any) -> ho.Session:
    rows = ho.Dataset(ROWS, neighbours=neighbours, **{**DECLARED, **options})
    return ho.Session(rows, budget=ho.Budget(epsilon=10_000))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("question", "value"),
    [
        (q.Mean(epsilon=500, column="a"), 0.5),
        (q.Mean(epsilon=500, column="a", minus="b"), 0.25),
        (q.Mean(epsilon=500, column="b", minus="a"), -0.25),
        (q.Mean(epsilon=500, column="winner"), 0.625),
        (q.Mean(epsilon=500, column="a", weighted=True), 0.625),
        (q.Mean(epsilon=500, column="a", bounds=(0, 0.5)), 0.375),
        (q.ShareAbove(epsilon=500, column="a", at_least=0.5), 0.75),
        (q.ShareAbove(epsilon=500, column="a", at_least=0.6), 0.25),
        (q.ShareAbove(epsilon=500, column="winner", at_least=1), 0.5),
    ],
)
def test_an_answer_is_what_one_counts_by_hand(
    relation: str, question: q.Question, value: float
) -> None:
    release = session(relation).ask(question)
    assert release.value == pytest.approx(value, abs=0.003)
    low, high = release.interval()
    assert low <= value <= high


def test_a_mean_by_group_is_that_of_each_group() -> None:
    release = session().mean("a", epsilon=500, by="site")
    means = {name: each.value for name, each in release.groups.items()}
    assert means["x"] == pytest.approx(0.25, abs=0.01)
    assert means["y"] == pytest.approx(0.75, abs=0.01)
    assert release.worst == "x"


def test_a_value_on_an_edge_is_in_the_bin_above_it_and_tails_are_in_the_last_bins() -> None:
    found = session().ask(q.Histogram(epsilon=500, column="a", edges=[0.25, 0.5, 0.75]))
    shares = [found.share(place).value for place in range(found.bins)]
    assert shares == pytest.approx([0.25, 0, 0.5, 0.25], abs=0.003)
    assert found.share_below(0.5).value == pytest.approx(0.25, abs=0.003)
    low, high = found.quantile(0.5).interval()
    assert low <= 0.5 <= high
    with pytest.raises(ArgumentError, match="one of the edges"):
        found.share_below(0.3)


def test_a_smooth_quantile_ends_within_bins_and_holds_and_else_reaches_to_edges() -> None:
    values = np.random.default_rng(8).beta(4, 2, 4000)
    rows = ho.Dataset({"a": values}, values={"a": (0, 1)})
    found = ho.Session(rows, budget=100).ask(q.Histogram(epsilon=100, column="a", bins=10))
    for share, truth in ((0.5, 0.6862), (0.9, 0.8878)):
        (low, high), (first, last) = (
            found.quantile(share, smooth=smooth).interval() for smooth in (False, True)
        )
        assert low <= first < truth < last <= high
        assert last - first < 0.9 * (high - low)
        assert {round(low, 9), round(high, 9)} <= {round(edge, 9) for edge in found.edges}


@pytest.mark.parametrize("epsilon", [1, 100, 10**6])
def test_a_smooth_quantile_has_intervals_however_little_noise_there_is(epsilon: int) -> None:
    values = (np.arange(4000) + 0.5) / 4000
    rows = ho.Dataset({"a": values}, values={"a": (0, 1)})
    found = ho.Session(rows, budget=epsilon).ask(q.Histogram(epsilon=epsilon, column="a", bins=4))
    for share in (0.001, 0.3, 0.37, 0.5, 0.999):
        measure = found.quantile(share, smooth=True)
        (low, high), (first, last) = measure.interval(), measure.noise_interval()
        assert low <= first < measure.value < last <= high


@pytest.mark.chance(1e-7, "16 of 60 tables missed, each with a chance of one in twenty")
def test_the_noise_interval_of_a_smooth_quantile_holds_that_of_rows_which_are_not_even() -> None:
    generator, held = np.random.default_rng(9), 0
    for _ in range(60):
        values = generator.random(1000)
        rows = ho.Dataset({"a": values}, values={"a": (0, 1)})
        found = ho.Session(rows, budget=100).ask(q.Histogram(epsilon=100, column="a", bins=4))
        low, high = found.quantile(0.12, smooth=True).noise_interval()
        held += low <= np.quantile(values, 0.12) <= high
    assert held > 44


def test_a_smooth_quantile_reaches_nearly_to_edges_where_a_bin_holds_a_heap() -> None:
    heap = {"a": [0.55] * 3000 + [0.1, 0.9] * 500}
    rows = ho.Dataset(heap, values={"a": (0, 1)})
    found = ho.Session(rows, budget=100).ask(q.Histogram(epsilon=100, column="a", bins=10))
    low, high = found.quantile(0.5, smooth=True).interval()
    assert 0.5 <= low < 0.525
    assert 0.575 < high <= 0.6


def test_a_weighted_histogram_counts_weights() -> None:
    found = session().ask(q.Histogram(epsilon=500, column="a", bins=2, weighted=True))
    assert found.share(1).value == pytest.approx(0.75, abs=0.01)


def test_every_kind_is_a_method_of_a_session() -> None:
    door = session()
    assert str(signature(door.share_above)).startswith("(column, at_least, *, epsilon, weighted=")
    assert door.share_above("a", 0.5, epsilon=500).value == pytest.approx(0.75, abs=0.01)
    assert "share_above" in dir(door)
    with pytest.raises(TypeError, match="by place"):
        door.share_above("a", 0.5, 1, epsilon=1)
    with pytest.raises(AttributeError):
        door.no_such_kind  # noqa: B018


def test_the_description_declares_what_a_form_needs() -> None:
    about = session().dataset
    assert isinstance(about, MeasuredRows)
    assert [each.name for each in about.declares] == ["values"]
    assert about.as_dict()["values"]["a"] == [0, 1]
    assert q.Mean.suggested(about) == {"column": "a"}
    assert MeasuredRows.table_type().__name__ == "MeasuredDataset"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"a": (1, 0)}, "the lower first"),
        ({"a": (0, float("inf"))}, "finite"),
        ({}, "bounds by column"),
        ({"a": {"A": 1}}, "different words"),
        ({"a": {"A": 1, "B": 1}}, "the lower first"),
        ([1], "bounds by column"),
    ],
)
def test_values_that_cannot_be_declared_are_refused(values: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        ho.Dataset(ROWS, values=values)


def test_a_row_beyond_its_bounds_refuses_the_table_or_counts_as_the_end() -> None:
    with pytest.raises(DataError, match="declared bounds"):
        ho.Dataset({"a": [0.5, 2.0]}, values={"a": (0, 1)})
    with pytest.raises(DataError, match="must be a number"):
        ho.Dataset({"a": [0.5, None]}, values={"a": (0, 1)})
    with pytest.raises(DataError, match="declared words"):
        ho.Dataset({"a": ["A", "C"]}, values={"a": {"A": 0, "B": 1}})
    rows = ho.Dataset({"a": [0.5, 2.0] * 200}, values={"a": (0, 1)}, out_of_range="clip")
    release = ho.Session(rows, budget=ho.Budget(500)).mean("a", epsilon=500)
    assert release.value == pytest.approx(0.75, abs=0.01)


def test_a_question_that_the_rows_cannot_answer_says_why() -> None:
    door = session()
    with pytest.raises(ArgumentError, match="No declared column 'c'"):
        door.mean("c", epsilon=1)
    with pytest.raises(ArgumentError, match="must lie above 0"):
        door.share_above("a", 0, epsilon=1)
    scored = ho.Dataset({"y": [0, 1], "p": [0.1, 0.9]}, label="y", score="p")
    with pytest.raises(ArgumentError, match="declared values"):
        ho.Session(scored, budget=ho.Budget(1)).mean("p", epsilon=1)
    with pytest.raises(ArgumentError, match="when there is a label"):
        ho.Dataset({"y": [0, 1], "p": [0.1, 0.9]}, label="y", score="p", values={"p": (0, 1)})
    with pytest.raises(ArgumentError, match="Pass label="):
        ho.Dataset({"y": [0, 1], "p": [0.1, 0.9]}, score="p")


@pytest.mark.parametrize(
    "question", [q.Mean(epsilon=200, column="a"), q.Histogram(epsilon=200, column="a", bins=4)]
)
def test_answers_of_several_sites_are_pooled(question: q.Question) -> None:
    sites = []
    for start in range(3):
        part = {"a": ROWS["a"][start::3]}
        rows = ho.Dataset(part, values={"a": (0, 1)}, name=f"site {start}")
        sites.append(ho.Session(rows, budget=ho.Budget(200)).ask(question))
    pooled = ho.pool(sites)
    low, high = pooled.interval()
    assert low <= 0.5 <= high
    assert high - low < 0.6
    assert "pooled" in pooled.as_dict()


def test_weighted_answers_of_several_sites_are_not_pooled_as_unweighted() -> None:
    question = q.Histogram(epsilon=200, column="a", bins=2, weighted=True)
    sites = []
    for site in range(2):
        rows = ho.Dataset(
            {"a": ROWS["a"], "w": ROWS["w"]},
            values={"a": (0, 1)},
            weight="w",
            largest_weight=2,
            name=f"site {site}",
        )
        sites.append(ho.Session(rows, budget=ho.Budget(200)).ask(question))
    with pytest.raises(ArgumentError, match="weighted"):
        ho.pool(sites)


def test_extreme_bounds_never_overflow() -> None:
    values = [1e140, -1e140, 0.0, 1e-140] * 50
    rows = ho.Dataset({"a": values}, values={"a": (-1e140, 1e140)})
    door = ho.Session(rows, budget=ho.Budget(10))
    low, high = door.mean("a", epsilon=1, bounds=(0, 1e-140)).interval()
    assert 0 <= low <= high <= 1e-140


def test_shares_of_many_bins_do_not_keep_a_matrix_each() -> None:
    """A thousand bins took 8 GB: each share kept the unit matrix that its row was cut from."""
    rows = ho.Dataset({"a": [0.1, 0.5, 0.9]}, values={"a": (0, 1)})
    histogram = ho.Session(rows, budget=ho.Budget(epsilon=1)).histogram(column="a", epsilon=1)
    ratios: list[Any] = []
    histogram._share = lambda numerator, name: ratios.append(numerator)
    histogram.share(3)
    assert ratios[0].base is None
    assert ratios[0].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_as_many_bins_times_and_samples_as_a_form_allows_are_asked_of_every_engine() -> None:
    """Sums of a thousand terms were a thousand deep, which engines refuse: after the price."""
    from heldout.data.sql import assemble, transpile
    from heldout.questions.pass_at_k import PassSums
    from heldout.questions.survival import MOST_TIMES, SurvivalCounts

    rows = ho.Dataset({"a": [0.1, 0.5, 0.9]}, values={"a": (0, 1)})
    session = ho.Session(rows, budget=ho.Budget(epsilon=1))
    assert session.ask(q.Histogram(column="a", bins=1000, epsilon=1)).bins == 1000
    longest = (
        SurvivalCounts(times=tuple(map(float, range(1, MOST_TIMES + 1)))),
        PassSums(k=100, samples=1, least=100),
    )
    for statistic in longest:
        statement = assemble("SELECT * FROM rows", statistic.body())
        for dialect in ("postgres", "spark"):
            assert "CAST" in transpile(statement, dialect=dialect)
