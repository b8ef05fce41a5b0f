"""Twins: tables and scores brute-forced, and made-up rows that look like the private ones."""

import csv
import itertools
from fractions import Fraction
from html import unescape
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.data.description import ValueRange
from heldout.drawing.words import spread
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection, price
from heldout.kernel.noise.additive import laplace
from heldout.questions.answers import Answered
from heldout.questions.report import answers_page
from heldout.questions.twin import Cells, LinkScores, Tables, drawn_to, nearest_table

COLUMNS = tuple(
    Cells.of(name, at, ValueRange(0.0, 1.0), bins, whole=False)
    for at, (name, bins) in enumerate([("a", 2), ("b", 3), ("c", 2)])
)
ONES = Tables(COLUMNS, ((0,), (1,), (2,)))
PAIRS = Tables(COLUMNS, ((0, 1), (1, 2)))
SCORES = LinkScores(COLUMNS, ((0, 1), (0, 2)), ((1, 0, 2, 1, 1, 0), (2, 0, 1, 1)))
PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]
KINDS = list(itertools.product(range(2), range(3), range(2)))
OTHERS = [(0, 0, 0), (1, 2, 1), (1, 1, 0), (0, 2, 1)]


def vector(statistic: Any, rows: list[tuple[int, ...]]) -> Any:
    cells = np.array(rows, dtype=np.int64).reshape(-1, 3)
    columns = {f"c_{at}": cells[:, at] for at in range(3)}
    return statistic.read({**columns, "n": np.ones(len(cells), dtype=np.int64)})


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("statistic", [ONES, PAIRS, SCORES], ids=["ones", "pairs", "LinkScores"])
def test_no_neighbours_move_tables_and_scores_further_than_claimed_and_some_do_as_far(
    statistic: Any, protection: Protection
) -> None:
    largest = 0
    for leave, arrive in protection.changes():
        for gone in itertools.combinations_with_replacement(KINDS, leave):
            before = vector(statistic, [*OTHERS, *gone])
            for come in itertools.combinations_with_replacement(KINDS, arrive):
                moved = np.abs(before - vector(statistic, [*OTHERS, *come]))
                own = moved.max() if statistic is SCORES else moved.sum()
                largest = max(largest, int(own))
    assert largest == statistic.sensitivity(protection)


RANDOM = np.random.default_rng(9)


def people(count: int = 3000) -> dict[str, Any]:
    age = RANDOM.integers(18, 66, count)
    sex = np.where(RANDOM.random(count) < 0.3, "F", "M")
    pay = np.clip(15_000 + 800 * age - 9000 * (sex == "F") + RANDOM.normal(0, 5000, count), 0, 9e4)
    return {"age": age, "sex": sex, "pay": pay, "luck": RANDOM.random(count)}


VALUES: dict[str, Any] = {
    "age": (18, 65),
    "sex": {"M": 0, "F": 1},
    "pay": (0, 90_000),
    "luck": (0, 1),
}


def session(rows: Any, **options: Any) -> ho.Session:
    return ho.Session(ho.Dataset(rows, values=VALUES, **options), budget=ho.Budget(epsilon=10**5))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_at_a_high_price_a_twin_has_the_tables_of_its_rows(relation: str) -> None:
    rows = people()
    twin = session(rows, neighbours=relation).private_twin(epsilon=1000, whole=["age"])
    made = twin.rows()
    assert len(made["age"]) == pytest.approx(3000, abs=3)
    assert all(isinstance(age, int) and 18 <= age <= 65 for age in made["age"])
    assert set(made["sex"]) == {"F", "M"}
    assert np.mean(made["age"]) == pytest.approx(rows["age"].mean(), abs=1)
    assert np.mean(np.array(made["sex"]) == "F") == pytest.approx(0.3, abs=0.03)
    assert np.corrcoef(made["age"], made["pay"])[0, 1] > 0.8
    assert abs(np.corrcoef(made["luck"], made["pay"])[0, 1]) < 0.1
    assert {frozenset(link) for link in twin.links} >= {frozenset(("age", "pay"))}
    assert len(twin.links) == 3
    assert twin.rows() == made, "the same rows each time"
    again = list(csv.reader(twin.to_csv(5).splitlines()))
    assert again[0] == list(VALUES)
    assert len(again) == 6
    assert any("three columns" in sentence for sentence in twin.answers_badly)
    assert twin.as_dict()["links"] == [list(link) for link in twin.links]


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "rows_per_unit": 2}])
def test_the_ledger_takes_exactly_epsilon_for_a_twin(unit: dict[str, Any]) -> None:
    rows = {**people(200), "who": np.arange(200) // 2}
    door = session(rows, **unit)
    release = door.private_twin(epsilon="1/3")
    assert price(release._drawn.request.event()) == ho.Loss.pure(Fraction(1, 3))
    assert door.spent == ho.Loss.pure(Fraction(1, 3))
    assert len(release.rows(7)["pay"]) == 7


def test_whole_numbers_have_bins_of_whole_numbers() -> None:
    flag = Cells.of("flag", 0, ValueRange(0.0, 1.0), 10, whole=True)
    assert flag.size == 2
    assert [flag.value(cell, 0.99) for cell in range(2)] == [0, 1]
    ages = Cells.of("age", 0, ValueRange(18.0, 65.0), 10, whole=True)
    assert ages.size == 10
    values = [ages.value(cell, share) for cell in range(10) for share in (0.0, 0.5, 0.999)]
    assert min(values) == 18
    assert max(values) == 65


def test_what_cannot_be_made_is_refused_before_it_is_paid() -> None:
    door = session(people(50))
    with pytest.raises(ArgumentError, match="No declared column"):
        door.private_twin(epsilon=1, whole=["height"])
    one = ho.Session(ho.Dataset({"a": [0.1]}, values={"a": (0, 1)}), budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="2 to 30 declared columns"):
        one.ask(q.PrivateTwin(epsilon=1))
    assert door.spent == ho.Loss.pure(0)


def test_a_separability_is_booked_with_its_twin_and_stands_on_its_page() -> None:
    door = session(people(1000))
    twin = door.private_twin(epsilon=8, whole=["age"], separability="1/4")
    assert price(twin._drawn.request.event()) == door.spent == ho.Loss.pure(8)
    assert len(door.history()) == 1
    tables = laplace(twin._plan.ones, Fraction(8) * 3 / 4 / 4, twin.protection)
    assert twin._plan._noise(Fraction(1, 4), twin._plan.ones) == tables
    release = twin.separability
    assert release is not None
    assert release.loss == ho.Loss.pure(2)
    content = twin.as_dict()["separability"]
    assert (content["lower_bound"], content["sees"]) == (True, release.sees)
    assert content["value"] == release.value == twin.measures["separability"].value
    assert set(content["noisy"]) == {"columns", "pairs"}
    links = {f"link {step}" for step in range(3)}
    assert set(twin.as_dict()["noisy"]) == {"ones", "pairs"} | links
    answered = ho.Session(
        ho.Dataset(people(1000), values=VALUES), budget=ho.Budget(epsilon=9)
    ).answer(q.PrivateTwin(epsilon=8, separability="1/4"))
    again = Answered.from_dict(answered.as_dict()).releases[0]
    assert again.separability.measures.keys() == release.measures.keys()
    assert again.finding() == answered.releases[0].finding()
    page = unescape(answers_page(answered))
    value, interval, _ = spread(again.separability.headline, 0.95)
    assert f"Separability {value} ({interval}): how much better than chance" in page
    assert again.separability.sees in page
    assert "<li>What three columns or more do together" in page
    assert "separability" not in session(people(50)).private_twin(epsilon=8).as_dict()


def test_a_separability_is_that_of_the_twins_rows_and_sees_a_bad_twin() -> None:
    rows = people(2000)
    alone = ho.private_separability
    good = session(rows).private_twin(epsilon=4000, bins=40, whole=["age"], separability="1/2")
    bad = session(rows).private_twin(epsilon="1/2", bins=40, separability="1/4")
    for twin in (good, bad):
        assert twin.separability is not None
        price = twin.separability.loss.epsilon
        assert price is not None
        other = alone(rows, twin.rows(), epsilon=price).interval(0.999)
        own = twin.separability.interval(0.999)
        assert max(own[0], other[0]) <= min(own[1], other[1])
    exact = alone(rows, good.rows(), epsilon=2000).measures
    assert good.measures["separability by columns"].value == pytest.approx(
        exact["separability by columns"].value, abs=0.02
    )
    uniform = {name: np.full(2000, 0.5) for name in ("a", "b")}
    uniform["c"] = RANDOM.random(2000)
    ends = dict.fromkeys(uniform, (0, 1))
    door = ho.Session(ho.Dataset(uniform, values=ends), budget=ho.Budget(epsilon=1))
    spread_out = door.private_twin(epsilon=1, bins=2, separability="3/4")  # 0.5 becomes .5 to 1
    assert spread_out.measures["separability"].interval(0.95)[0] > 0.3


def test_a_row_is_read_by_a_separator_as_by_itself_whatever_the_others_are() -> None:
    rows = {"sex": ["F", "M", "X"], "age": [20, 65, 30], "key": ["7", "x", "y"]}
    values = {"sex": {"X": 1, "F": 1, "M": 0}, "age": (18, 60)}

    def read(content: dict[str, list[Any]]) -> list[list[Any]]:
        dataset = ho.Dataset(content, values=values, row_key="key", out_of_range="clip")
        columns = dataset.beside_copy()._fetch("SELECT c0, c1, split_key\nFROM evaluated")
        return sorted([list(row) for row in zip(*map(list, columns.values()), strict=True)])

    one_by_one = [
        row for at in range(3) for row in read({name: [cells[at]] for name, cells in rows.items()})
    ]
    assert read(rows) == sorted(one_by_one)
    assert read(rows) == [[20.0, "F", "7"], [30.0, "F", "y"], [60.0, "M", "x"]]


def test_a_twin_without_pairs_pays_what_was_booked_and_sees_columns_alone() -> None:
    same = {name: ["x"] * 50 for name in ("a", "b")}
    words = {name: {"x": 0, "y": 1} for name in same}
    door = ho.Session(ho.Dataset(same, values=words), budget=ho.Budget(epsilon=4000))
    twin = door.private_twin(epsilon=4000, separability="1/2")
    assert door.spent == ho.Loss.pure(4000)
    assert twin.separability is not None
    assert "cannot see" in twin.separability.sees
    assert twin.separability.loss == ho.Loss.pure(1000)
    assert twin.as_dict()["separability"]["lower_bound"] is True


@pytest.mark.parametrize(
    ("options", "share", "message"),
    [
        ({}, 1, "a share of epsilon, less than 1"),
        ({}, "3/2", "Try 1/4"),
        ({}, "1/100000", "at least epsilon 1/1000"),
        ({}, 0, "more than 0"),
        ({"neighbours": "add-remove"}, "1/4", "public number of rows"),
        ({"unit": "who", "rows_per_unit": 2}, "1/4", "public number of rows"),
    ],
)
def test_a_separability_that_cannot_be_had_is_refused_before_it_is_paid(
    options: dict[str, Any], share: Any, message: str
) -> None:
    door = session({**people(50), "who": np.arange(50) // 2}, **options)
    with pytest.raises(ArgumentError, match=message):
        door.private_twin(epsilon=1, separability=share)
    assert door.spent == ho.Loss.pure(0)
    assert door.history() == []


def test_empty_cells_of_a_sparse_table_stay_empty_and_the_others_come_nearer() -> None:
    """Noise on every cell fills them: the paper on separability asks for what keeps them."""
    random = np.random.default_rng(3)
    rates = 2000.0 / np.outer(np.arange(1, 61), np.arange(1, 41)) ** 1.5
    counts = random.poisson(rates * random.gamma(2, 0.5, rates.shape)).astype(float)
    noisy = counts + random.laplace(0, 2, rates.shape)
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    table = nearest_table(drawn_to(expected, noisy, variance=8.0), total)
    assert table.sum() == pytest.approx(total)
    assert table.min() >= 0
    drawn = random.poisson(table)
    clipped = np.maximum(np.rint(noisy), 0)
    empty = (counts == 0).mean()
    assert abs((drawn == 0).mean() - empty) < 0.05 < abs((clipped == 0).mean() - empty) / 3
    assert np.abs(table - counts).mean() < 0.6 * np.abs(clipped - counts).mean()
    assert np.allclose(drawn_to(expected, noisy, variance=1e-9), noisy)
    assert np.allclose(drawn_to(expected, expected, variance=8.0), expected)
