"""A ranking with noise of its own, or counts by score where a class is small."""

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.kernel import Budget, Protection, price
from heldout.kernel.accountant import charge, smaller
from heldout.kernel.events import Event
from heldout.kernel.ranking.statistic import RankingAndTable, RankingStatistic
from heldout.kernel.ranking.tuned import FIRST_SHARE, OUTRIGHT, SECOND_SHARE
from heldout.kernel.ranking.value_or_counts import ValueOrCounts
from heldout.kernel.statistic import Sealed
from heldout.questions.answers import Answered
from heldout.questions.ranking.release import AucRelease

PROTECTIONS = (
    Protection(neighbours="replace-one"),
    Protection(neighbours="add-remove"),
    Protection(neighbours="replace-one", unit=True, rows_per_unit=3),
    Protection(neighbours="add-remove", unit=True, rows_per_unit=3),
    Protection(neighbours="label"),
    Protection(neighbours="label", unit=True, rows_per_unit=3),
)
SIZES = (-200, 0, 1, 30, 100, 250, 1500, 10**9)


def mechanism(metric: str = "auc", protection: Any = PROTECTIONS[0], **more: Any) -> ValueOrCounts:
    rows = 4000 if protection.row_count_is_public else None
    asked = {"epsilon": Fraction(1), "rows": rows, "points": 65537, **more}
    return ValueOrCounts(metric=metric, protection=protection, **asked)


@pytest.mark.parametrize("kind", [q.Auc, q.AveragePrecision])
def test_what_was_read_off_counts_is_shown_as_it_was_printed(kind: Any) -> None:
    rows = {"y": [1, 0] * 60, "p": [0.8, 0.3] * 60, "g": ["a", "b", "b"] * 40}
    data = ho.Dataset(rows, label="y", score="p", groups={"g": ["a", "b"]})
    session = ho.Session(data, budget=Budget(epsilon=9))
    for question in (kind(epsilon=1), q.By(kind(epsilon=1), "g")):
        kept = json.loads(json.dumps(session.answer(question).as_dict()))
        [read] = kept["readings"]
        part = read if "value" in read else next(part for part in read.values() if part)
        part["value"] = printed = sum(part["noise_interval"]) / 2  # as another version read it
        [release] = Answered.from_dict(kept).releases
        shown = [release, *getattr(release, "groups", {}).values()]
        assert printed in [one.measures[name].value for one in shown for name in one.measures]
        assert release.stored_readings() == read


@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
def test_looks_have_the_noise_that_the_furthest_neighbours_need(protection: Any) -> None:
    """Class counts of rows that leave and arrive, all of one class or of the other."""
    furthest = 0
    for leave, arrive in protection.changes():
        for gone, come in itertools.product(range(leave + 1), range(arrive + 1)):
            positives, negatives = come - gone, (arrive - come) - (leave - gone)
            seen = (positives,) if protection.row_count_is_public else (positives, negatives)
            furthest = max(furthest, sum(map(abs, seen)))
    asked = mechanism(protection=protection)
    assert asked.first_look is not None
    assert asked.first_look.scale * FIRST_SHARE == furthest
    assert asked.second_look.scale * SECOND_SHARE == furthest


@pytest.mark.parametrize("metric", ["auc", "average-precision"])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
def test_whatever_the_looks_say_the_parts_cost_epsilon(metric: str, protection: Any) -> None:
    made = mechanism(metric, protection)
    budget = Budget(rho=10, delta="1/1000000")
    booked = charge(made.event(), budget=budget)
    assert price(made.event()).epsilon == 1
    assert made.first_look is not None
    branches = set()
    for size, again in itertools.product(SIZES, repeat=2):
        first = (size,) * made.dimension
        second = (again,) * made.dimension if made.looks_again(first) else ()
        looks = [made.first_look.event(), *([made.second_look.event()] if second else [])]
        for rest in (made.ranked(first, second), made.counted(first, second)):
            whole = Event.composed([*looks, rest.event()])
            assert price(whole).epsilon == 1
            assert smaller(charge(whole, budget=budget), booked) == charge(whole, budget=budget)
        branches.add((bool(second), made.is_small(first, second)))
    assert branches == {(True, True), (True, False), (False, False)}


def test_a_public_guess_takes_the_place_of_the_looks() -> None:
    few, many = mechanism(smaller_class=10), mechanism(smaller_class=1000)
    assert few.is_small((), ())
    assert not many.is_small((), ())
    for made in (few, many):
        assert made.first_look is None
        assert price(made.event()).epsilon == 1


@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
def test_few_public_rows_are_counted_for_all_of_epsilon_and_no_class_decides(
    protection: Any,
) -> None:
    for metric, visible in (("auc", 220), ("average-precision", 600)):
        bound = visible * protection.rows_per_unit
        few, enough = (
            mechanism(metric, protection, rows=rows, outright=True) for rows in (bound - 1, bound)
        )
        assert few.are_few == protection.row_count_is_public
        assert not enough.are_few
        assert price(few.event()).epsilon == price(enough.event()).epsilon == 1
        if few.are_few:
            assert few.first_look is None
            assert few.is_small((), ())
            assert few.event() == few.counted((), ()).event()
        assert not mechanism(metric, protection, rows=bound - 1).are_few  # by older rules


def test_the_crossing_goes_by_the_noise_of_counts() -> None:
    least = {protection: mechanism("auc", protection).least for protection in PROTECTIONS}
    assert [*least.values()] == [22, 44, 66, 132, 22, 66]
    assert mechanism("average-precision").least == 60
    assert mechanism(epsilon=Fraction(1, 2)).least == 44


@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
def test_every_data_set_gives_a_value_or_a_table(protection: Any) -> None:
    for n, m in ((0, 0), (1, 0), (0, 1), (3, 5), (2000, 2000)):
        table = np.zeros(2 * 65537, dtype=np.int64)
        table[100], table[65537 + 60_000] = m, n
        content = RankingAndTable(RankingStatistic(Fraction(1, 2), n, m), table)
        rows = n + m if protection.row_count_is_public else None
        for outright in (False, True):
            asked = mechanism("auc", protection, rows=rows, outright=outright)
            drawn = asked.sample(Sealed(content))
            assert drawn.is_whole
            assert (drawn.value is None) != (drawn.table is None)


@pytest.fixture(scope="module")
def session() -> ho.Session:
    random = np.random.default_rng(3)
    labels = (random.random(5000) < 0.4).astype(int)
    scores = 1 / (1 + np.exp(-random.normal(size=5000) - labels))
    group = np.where(np.arange(5000) < 4950, "large", "small")
    table = {"y": labels, "p": scores, "g": group}
    rows = ho.Dataset(
        table, label="y", score="p", groups={"g": ["large", "small"]}, neighbours="add-remove"
    )
    return ho.Session(rows, budget=ho.Budget(epsilon=100))


@pytest.mark.chance(1e-10, "ten draws, each missed with a chance below a tenth")
def test_small_groups_are_counted_and_large_ones_ranked(session: ho.Session) -> None:
    """Of 20 rows noise of scale 12 makes 44 with a chance below a tenth; the large are 1,980."""
    several = [session.auc(epsilon=1, by="g").groups for _ in range(10)]
    assert not any(groups["large"].is_counted for groups in several)
    assert any(groups["small"].is_counted for groups in several)


def test_a_counted_answer_is_stored_and_read_as_it_was(session: ho.Session) -> None:
    for question in (
        q.Auc(epsilon=1, by="g"),
        q.Auc(epsilon="1/100"),
        q.AveragePrecision(epsilon=1, smaller_class=3),
    ):
        answered = session.answer(question)
        content = json.loads(json.dumps(answered.as_dict()))
        [stored], [drawn] = Answered.from_dict(content).releases, answered.releases
        assert stored.as_dict() == drawn.as_dict()


def test_answers_of_few_public_rows_are_read_by_the_rules_they_were_drawn_by() -> None:
    rows = ho.Dataset({"y": [1, 0] * 50, "p": [0.8, 0.3] * 50}, label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(epsilon=4))
    for question, looks in ((q.Auc(epsilon=1), 0), (q.Auc(epsilon=1).under(4), 2)):
        answered = session.answer(question)
        content = json.loads(json.dumps(answered.as_dict()))
        [stored], [drawn] = Answered.from_dict(content).releases, answered.releases
        assert stored.as_dict() == drawn.as_dict()
        assert len(drawn._as_drawn.looks) == looks


def test_an_answer_whose_table_does_not_go_with_its_counts_is_refused(session: ho.Session) -> None:
    answered = session.answer(q.Auc(epsilon=1, smaller_class=3))
    content = json.loads(json.dumps(answered.as_dict()))
    content["values"]["ValueOrTable"]["table"] = None
    with pytest.raises(ArgumentError, match="cannot be read"):
        Answered.from_dict(content)


def test_counted_intervals_hold_the_value_and_the_noise_interval(session: ho.Session) -> None:
    for kind in (session.auc, session.average_precision):
        for guess in (2, 20):
            found = kind(epsilon="1/20", smaller_class=guess)
            assert found.is_counted
            assert found.draw is None
            low, high = found.interval()
            least, most = found.noise_interval()
            assert 0 <= low <= least <= found.value <= most <= high <= 1
            assert found.surprise(found.headline.name, found.value) > 0.5


def test_counted_areas_lie_midway_between_two_readings_and_intervals_hold_both() -> None:
    rows = ho.Dataset({"y": [1, 0] * 48, "p": [0.9, 0.1] * 48}, label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(epsilon=40))
    for one in (session.auc(epsilon=2), session.average_precision(epsilon=4)):
        assert one.is_counted
        curves = one._table
        read = curves.auc if isinstance(one, AucRelease) else curves.average_precision
        assert curves.roc.is_fitted
        assert one.value == pytest.approx((read.value + one._of_binormal()) / 2)
        for level in (0.8, 0.95):
            low, high = one.noise_interval(level)
            least, most = read.noise_interval(level)
            assert (low, high) == (min(least, one.value), max(most, one.value))


def test_average_precision_of_so_few_rows_that_luck_would_show_it_is_not_shown() -> None:
    """Of 96 rows at epsilon 2 no draw is shown, however far apart noise makes the classes look."""
    rows = ho.Dataset({"y": [1, 0] * 48, "p": [0.9, 0.1] * 48}, label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(epsilon=40))
    assert not any(session.average_precision(epsilon=2).headline.informative for _ in range(5))


def test_crowded_cells_are_read_with_the_bin_that_they_are_in() -> None:
    table = {"y": [1] * 10 + [0] * 4990, "p": np.linspace(1, 0, 5000)}
    session = ho.Session(ho.Dataset(table, label="y", score="p"), budget=ho.Budget(epsilon=1))
    one = session.auc(epsilon=1, smaller_class=5)
    fine, coarse = one._table.table, one._between_cuts
    assert fine.bins > coarse.bins
    assert coarse.positives.sum() == fine.positives.sum()
    assert coarse.negatives.sum() == fine.negatives.sum()
    assert coarse.noise.scale > fine.noise.scale


def test_a_quote_goes_by_what_would_be_drawn(session: ho.Session) -> None:
    few, many = (
        session.quote(q.Auc(epsilon=1), rows=rows).half_widths[0]["AUC"] for rows in (60, 4000)
    )
    assert few.noise > 5 * many.noise


@pytest.mark.slow
@pytest.mark.chance(1e-5, "a forecast of counts has a deviation of 5%; 3% to 10% wider than needed")
def test_from_counts_to_the_value_no_interval_widens() -> None:
    """Where average precision was counted below 400 the value's noise was a third more."""
    for kind in (q.Auc, q.AveragePrecision):
        bound = OUTRIGHT[kind.metric]
        widths = {}
        for rows, times in ((bound - 1, 2), (bound, 1)):
            about = ScoredRows(name="", protection=PROTECTIONS[0], rows=rows, label="y", score="p")
            quoted = [kind(epsilon=1).expected(about, q.Guess().about(rows)) for _ in range(times)]
            both = [[one.noise, one.whole] for several in quoted for one in several.values()]
            widths[rows] = np.mean(both, axis=0)
        assert (widths[bound] <= 1.12 * widths[bound - 1]).all()
