"""The same noise on neighbours: nothing differs but what noise hides, by no more than is paid."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.audit import log_ratios
from heldout.audit.replay import DOORS, Connections, compare_with, record, replay_all
from heldout.audit.replay_page import Cell, Replay, read_page, source_digest
from heldout.audit.tables import ENTRANCES, draw_neighbours, pairs_needed
from heldout.errors import ArgumentError, PrivacyError
from heldout.kernel.curves.thresholds import Rows, SmoothMedian
from heldout.kernel.door import Request
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise import DiscreteLaplace, source
from heldout.kernel.noise.dawa import Dawa, scaled_costs
from heldout.kernel.noise.disjoint import SummedParts
from heldout.kernel.noise.selection import NoisyTopK, PermuteAndFlip, SparseVector
from heldout.kernel.ranking.ladder import PiecewiseLaplace
from heldout.kernel.ranking.sensitivity import AreaSensitivity
from heldout.kernel.statistic import compute
from heldout.questions.counts import ThresholdCounts
from heldout.questions.twin import Tables
from heldout.questions.worst_cases import MADE_UP, Column

FIRST = {"y": [1, 0, 1, 0, 1, 0, 0, 1], "p": [0.9, 0.2, 0.6, 0.4, 0.7, 0.5, 0.1, 0.3]}
SECOND = {"y": [1, 0, 1, 0, 1, 0, 0, 0], "p": [0.9, 0.2, 0.6, 0.4, 0.7, 0.5, 0.1, 0.8]}


def asking(rows: Any, question: q.Question, **declared: Any) -> Any:
    session = ho.Session(
        ho.Dataset(rows, label="y", score="p", name="rows", **declared), budget=ho.Budget(epsilon=9)
    )
    return lambda: (session.ask(question), ho.Loss.pure(question.price))


def pair(question: q.Question) -> Any:
    return compare_with(record(asking(FIRST, question)), asking(SECOND, question))


# --- every kind ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_kind_loses_more_than_its_price_whatever_the_relation_and_the_unit() -> None:
    """A few pairs a cell; `make audit` takes hundreds, through every entrance."""
    found = replay_all(pairs=1, through=("Arrow",), mixed=0.0, seed=7)
    assert found.bad == [], found.markdown()
    assert {place[0] for place in found.cells} == set(q.kinds())
    asked = [place for place, cell in found.cells.items() if cell.pairs]
    by_kind = {kind: [place for place in asked if place[0] == kind] for kind in q.kinds()}
    lists = {"ndcg", "precision-at-k"}  # of a unit's rows

    def cells(kind: str) -> int:
        relations = 2 + any(MADE_UP[of].outcome for of in q.find(kind).of if of in MADE_UP)
        return relations if kind in lists else 2 * relations

    assert {kind: len(places) for kind, places in by_kind.items()} == {
        kind: cells(kind) for kind in q.kinds()
    }


@pytest.mark.parametrize("entrance", [name for name in ENTRANCES if name != "Arrow"])
@pytest.mark.slow
def test_no_entrance_lets_more_through(entrance: str) -> None:
    """PostgreSQL and Spark where there is one."""
    found = replay_all(pairs=2, through=(entrance,), kinds=("confusion", "selection"), seed=8)
    assert found.bad == [], found.markdown()
    if not found.cells:
        pytest.skip(f"no {entrance} here")
    assert min(cell.pairs for cell in found.cells.values()) >= (1 if entrance == "Spark" else 2)


def test_a_kind_has_as_many_pairs_as_were_asked_for_although_tables_are_refused() -> None:
    found = replay_all(pairs=2, through=("list",), kinds=("confusion",), seed=9)
    assert found.refused
    assert {cell.pairs for cell in found.cells.values()} == {2}


def test_a_kind_without_rows_is_an_error_that_says_where_to_declare_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from heldout.audit import replay

    monkeypatch.setattr(replay, "MADE_UP", {})
    with pytest.raises(ArgumentError, match=r"'auc'.*declare_rows"):
        replay_all(pairs=1)


def test_one_kind_can_be_replayed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from heldout.audit import replay
    from heldout.audit.replay import replay_everywhere

    monkeypatch.setattr(replay, "ENTRANCES", ("list", "Arrow", "Spark"))
    found = replay_everywhere(pairs=1, kinds=("histogram",), workers=1)
    assert {place[0] for place in found.cells} == {"histogram"}
    assert {place[3] for place in found.cells} == {"list", "Arrow"}
    with pytest.raises(ArgumentError, match="histogramme"):
        replay_everywhere(pairs=1, kinds=("histogramme",), workers=1)


def test_every_question_that_is_replayed_is_of_its_kind() -> None:
    for question in q.registered():
        assert {own.kind for own in question.to_replay()} == {question.kind}


def draws_of(question: q.Question[Any], table: dict[str, Any], **declared: Any) -> list[str]:
    private = ho.Dataset(table, **declared)
    session = ho.Session(private, budget=ho.Budget(epsilon=1000))
    tape = record(lambda: (str(session.ask(question)), session.spent)).tape
    return [draw.kind for draw in tape.draws]


def test_few_rows_are_replayed_on_every_way_that_a_ranking_takes() -> None:
    """At epsilon 1 tables of a hundred rows are counted by score, whatever is in them."""
    rows = {"y": [0, 1] * 60, "p": [place / 120 for place in range(120)]}
    taken = {
        tuple(draws_of(question, rows, label="y", score="p"))
        for question in q.Auc.to_replay()
        if not isinstance(question, q.By) and question.method == "piecewise-laplace"
    }
    assert any(draws[0] == "discrete Laplace" and "smooth noise" in draws for draws in taken)
    assert ("discrete Laplace",) in taken


def test_regressions_by_column_and_twins_with_a_separability_are_replayed() -> None:
    assert any(getattr(question, "sizes", None) for question in q.find("training").to_replay())
    ways = q.find("private-twin").to_replay()
    assert any(getattr(question, "separability", None) for question in ways)


def test_noise_by_groups_is_compared_by_the_largest_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum over all groups would be several times what is paid."""
    monkeypatch.setattr(
        q.find("training"), "replayed", ({"classifier": "logistic", "sizes": (3, 2)},)
    )
    found = replay_all(
        pairs=4, kinds=("training",), relations=("replace-one",), units=("none",),
        through=("list",), mixed=0, seed=7,
    )  # fmt: skip
    [cell] = found.cells.values()
    assert cell.pairs == 4
    assert 0.1 < cell.worst <= 1


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.slow
def test_boards_searches_and_shares_lose_no_more_than_their_price(door: Any) -> None:
    from random import Random

    found = Replay()
    door(found, Random(3), Connections())
    assert found.bad == []
    assert all(cell.pairs for cell in found.cells.values())


# --- neighbours ----------------------------------------------------------------------------------


def test_neighbours_by_row_differ_in_one_row_and_by_unit_in_one_person() -> None:
    from random import Random

    random = Random(1)
    columns = {"x": Column((1, 2, None))}
    for relation, most, mixed in itertools.product(
        ("replace-one", "add-remove"), (None, 2), (0, 1)
    ):
        around = draw_neighbours(
            columns,
            random,
            relation=relation,
            rows_per_unit=most,
            count=20,
            mixed=bool(mixed),
            keyed=True,
        )
        assert len(around.pairs) == 20
        for before, after in around.pairs:
            first, other = around.tables[before], around.tables[after]
            gone = [row for row in first if row not in other]
            come = [row for row in other if row not in first]
            if most is None:
                assert len(gone) <= 1
                assert len(come) <= 1
                assert relation == "add-remove" or len(other) == len(first)
                assert relation == "replace-one" or abs(len(other) - len(first)) == 1
            else:
                assert len({str(row.cells["who"]) for row in gone}) <= 1
                assert len({str(row.cells["who"]) for row in come}) <= 1
            assert relation == "replace-one" or not (gone and come)


def test_people_have_more_rows_than_count_and_others_between_theirs() -> None:
    from random import Random

    around = draw_neighbours(
        {"x": Column((1,))},
        Random(2),
        relation="replace-one",
        rows_per_unit=2,
        count=40,
        mixed=False,
        keyed=True,
    )
    who = [row.cells["who"] for row in around.tables[0]]
    assert max(map(who.count, who)) == 4
    assert any(who[i] != who[i + 1] and who[i] in who[i + 2 :] for i in range(len(who) - 2))


# --- planted faults ------------------------------------------------------------------------------


def test_half_of_a_sensitivity_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pair(q.Confusion(epsilon=1)).ratio == 1
    whole = ThresholdCounts.sensitivity
    monkeypatch.setattr(
        ThresholdCounts, "sensitivity", lambda self, protection: whole(self, protection) // 2
    )
    found = pair(q.Confusion(epsilon=1))
    assert found.ratio == 2
    assert not found.holds


def one_cell(kind: str, pairs: int) -> Cell:
    found = replay_all(
        pairs=pairs, kinds=(kind,), relations=("replace-one",), units=("none",),
        through=("list",), mixed=0, seed=7,
    )  # fmt: skip
    [cell] = found.cells.values()
    return cell


def test_a_step_that_loses_more_than_it_says_is_caught_where_the_others_lose_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No pair is the worst for all steps, so that the loss of all together stays below the price:
    0.96 with half the noise on a regression's influences, which cost a tenth.
    """
    ways = [own for own in q.find("linear-regression").replayed if "epsilon" in own]
    monkeypatch.setattr(q.find("linear-regression"), "replayed", ways)
    assert 0.5 < one_cell("linear-regression", 40).worst <= 1
    whole = DiscreteLaplace.for_epsilon

    def halved(epsilon: Fraction, *, l1_sensitivity: int, dimension: int) -> DiscreteLaplace:
        return whole(epsilon, l1_sensitivity=l1_sensitivity // 2, dimension=dimension)

    monkeypatch.setattr("heldout.questions.linear.fit.DiscreteLaplace.for_epsilon", halved)
    assert one_cell("linear-regression", 40).worst > 1.5


def test_tables_of_single_columns_at_half_their_noise_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 0.5 < one_cell("private-twin", 40).worst <= 1
    whole = Tables.sensitivity
    monkeypatch.setattr(
        Tables, "sensitivity", lambda self, protection: whole(self, protection) // 2
    )
    assert one_cell("private-twin", 40).worst == 2


def test_a_scale_that_depends_on_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: Request, rows: Any) -> Any:
        sealed = compute(self.statistic, rows)
        assert isinstance(self.mechanism, DiscreteLaplace)
        positives = int(sealed._content[-1])
        return replace(self.mechanism, scale=self.mechanism.scale + positives).sample(sealed)

    monkeypatch.setattr(Request, "draw", draw)
    found = pair(q.Confusion(epsilon=1, threshold=0.25))
    assert found.ratio == math.inf
    assert "scale" in found.differences[0]


def test_a_draw_that_one_table_skips_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: Request, rows: Any) -> Any:
        sealed = compute(self.statistic, rows)
        exact = sealed._content
        return exact if exact[-1] == 3 else self.mechanism.sample(sealed)

    for first, second, words in ((3, 4, "once more"), (4, 3, "does not draw")):
        counts = {3: SECOND, 4: FIRST}
        monkeypatch.setattr(Request, "draw", draw)
        question = q.Confusion(epsilon=1, threshold=0.25)
        one = record(asking(counts[first], question))
        found = compare_with(one, asking(counts[second], question))
        assert found.ratio == math.inf
        assert words in found.differences[0]


def test_a_draw_that_nobody_watches_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: Request, rows: Any) -> Any:
        source.below(10)
        return self.mechanism.sample(compute(self.statistic, rows))

    monkeypatch.setattr(Request, "draw", draw)
    found = pair(q.Confusion(epsilon=1))
    assert "no tape watches" in found.differences[0]


def test_a_text_that_shows_a_row_is_caught() -> None:
    question = q.Confusion(epsilon=1)

    def telling(rows: dict[str, Any]) -> Any:
        ask = asking(rows, question)
        return lambda: ({"release": ask()[0], "note": sum(rows["y"])}, ho.Loss.pure(1))

    found = compare_with(record(telling(FIRST)), telling(SECOND))
    assert found.differences == ("note text: ...'4' and ...'3'",)


def test_a_column_whose_type_a_single_row_changes_is_caught() -> None:
    """The replay's reason to be: an inferred type that shows in what may be kept."""
    one = {"y": [1, 0, 1], "p": [0.5, 0.25, 1.0]}
    question = q.Confusion(epsilon=1)

    def described(rows: dict[str, Any], kind: str) -> Any:
        ask = asking(rows, question)
        return lambda: ({"release": ask()[0], "type": kind}, ho.Loss.pure(1))

    found = compare_with(record(described(one, "DOUBLE")), described(one, "VARCHAR"))
    assert found.ratio == math.inf


def test_two_people_whom_a_strangers_float_makes_one_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stranger called 17.5 makes all keys doubles, and 2^53 + 1 is 2^53 then: the replay once
    showed 1.25 and 1.34 because a key of 2^53 was let through. Such keys are refused.
    """
    import pyarrow as pa

    from heldout.data import validation

    people, question = [2**53, 2**53 + 1, 2**53, 2**53 + 2], q.Confusion(epsilon=1)
    first = pa.table({"y": [1, 1, 1, 1], "p": [0.9, 0.8, 0.6, 0.7], "who": people})
    stranger = pa.array([*map(float, people[:3]), 17.5])
    second = pa.table({"y": [1, 1, 1, 0], "p": [0.9, 0.8, 0.6, 0.3], "who": stranger})

    def ratio() -> float:
        recording = record(asking(first, question, unit="who"))
        return compare_with(recording, asking(second, question, unit="who")).ratio

    with pytest.raises(ho.errors.DataError, match="2\\^53"):
        ratio()
    monkeypatch.setitem(validation.EXACT_BITS, "DOUBLE", 54)
    assert ratio() == 1.5


# --- exact ratios --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NoisyTopK, PermuteAndFlip])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_chances_of_all_orders_of_winners_sum_to_one(kind: Any, k: int) -> None:
    mechanism = kind(Fraction(1), 1, k)
    law = log_ratios._flips if kind is PermuteAndFlip else log_ratios._noisy_top_k
    scores = [3, 5, 5, 0]
    total = sum(
        math.exp(law(mechanism, scores, given)) for given in itertools.permutations(range(4), k)
    )
    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("limit", [1, 2])
def test_chances_of_all_answers_of_a_sparse_vector_sum_to_one(limit: int) -> None:
    test = SparseVector(Fraction(1), sensitivity=1, limit=limit)
    queries = ([2, -1, 4], [1, 1, 1])
    bars = log_ratios._bars(test, queries, queries)
    above, below = log_ratios._answers(test, queries, bars)
    whole = np.logaddexp.reduce(bars[1])
    total = 0.0
    for given in itertools.product((True, False), repeat=3):
        logs = sum(above[i] if said else below[i] for i, said in enumerate(given))
        total += math.exp(np.logaddexp.reduce(bars[1] + logs) - whole)
    assert total == pytest.approx(1, abs=1e-9)


def test_a_sparse_vector_is_as_private_as_it_claims_and_hardly_more() -> None:
    test = SparseVector(Fraction(1), sensitivity=1, limit=1)
    first, second = ([0] * 12, [3] * 12), ([1] * 11 + [-1], [3] * 12)
    found = log_ratios.sparse(test, first, second, None)
    assert 0.5 < found <= 1 + 1e-9


def test_the_corners_of_a_ladder_are_where_its_ratio_is_largest() -> None:
    protection = Protection(neighbours=Neighbours.REPLACE_ONE)
    law = PiecewiseLaplace(
        epsilon=Fraction(1), local=AreaSensitivity(protection=protection), top=256
    )
    first, second = (Fraction(1, 2), 5), (Fraction(1, 3), 4)
    found = log_ratios.smooth(law, first, second)
    at = np.linspace(-40, 40, 400_001)
    both = [
        law.ladder.log_density(np.full(at.shape, rung), np.abs(at - float(value)))
        for value, rung in (first, second)
    ]
    assert found == pytest.approx(np.abs(both[0] - both[1]).max(), abs=1e-3)
    assert found >= np.abs(both[0] - both[1]).max() - 1e-9


def test_the_ratio_of_two_medians_is_largest_where_its_derivative_is_0() -> None:
    median = SmoothMedian(a=Fraction(1), beta=Fraction(1, 2))
    tables = [np.array([3, 0, 2, 0, 0, 4]), np.array([3, 0, 3, 0, 0, 4])]
    exact = []
    for counts in tables:
        rows = Rows(np.append(0, np.cumsum(counts)), left=-1, right=6)
        place = int(rows.order_statistic((rows.count + 1) // 2))
        exact.append((place, median.candidates(rows)))
    found = log_ratios.medians(median, *exact)
    widths = [max(gap * math.exp(-k / 2) for gap, k in each[1]) for each in exact]
    at = np.linspace(-500, 500, 1_000_001)
    logs = [
        np.log(s) - np.log((at - place) ** 2 + s * s)
        for s, (place, _) in zip(widths, exact, strict=True)
    ]
    assert found == pytest.approx(np.abs(logs[0] - logs[1]).max(), rel=1e-4)
    assert found <= 1.5


def test_the_shift_of_a_partition_is_at_most_that_of_the_proof() -> None:
    dawa = Dawa(bins=4, epsilon=Fraction(1), moved=1)
    first, second = (
        scaled_costs(np.array(each), multiple=dawa.multiple)
        for each in ([3, 1, 1, 0], [3, 2, 1, 0])
    )
    for edges in ([0, 4], [0, 1, 2, 3, 4], [0, 2, 4], [0, 1, 3, 4]):
        found = log_ratios.partitions(dawa, first, second, np.array(edges))
        assert 0 <= found <= 4 * dawa.multiple / float(dawa.cost_scale) + 1e-9
    assert log_ratios.partitions(dawa, first, first, np.array([0, 4])) == 0


# --- the page ------------------------------------------------------------------------------------


def test_the_page_names_what_broke() -> None:
    good, bad = Cell(pairs=3, worst=0.5), Cell(pairs=2, worst=math.inf, broken=1, first="auc: a")
    found = Replay(
        {("auc", "replace-one", "none", "list"): bad, ("brier", "add-remove", "none", "CSV"): good}
    )
    page = found.markdown()
    assert found.bad == ["auc x replace-one x none x list"]
    assert "| auc | replace-one | none | ∞ (2) |  |" in page
    assert "| brier | add-remove | none |  | 0.500 (3) |" in page
    assert "1 of 2 cells broken" in page
    assert "`auc: a`" in page


PLACES = (
    ("auc", "replace-one", "none", "list"),
    ("brier", "add-remove", "none", "CSV"),
    ("ndcg", "add-remove", "none", "Spark"),
)


def page_of_three() -> str:
    cells = [Cell(pairs=3, mixed=2, worst=0.5), Cell(pairs=2, worst=math.inf, broken=1), Cell()]
    return Replay(dict(zip(PLACES, cells, strict=True))).markdown()


def test_a_page_is_read_as_it_was_written() -> None:
    page = page_of_three()
    found = read_page(page)
    assert found.cells[PLACES[0]] == Cell(pairs=3, mixed=2, worst=0.5)
    assert found.cells[PLACES[2]].pairs == 0, "refused there"
    assert found.bad == ["brier x add-remove x none x CSV"]
    assert found.stale == []
    again = found.markdown()
    assert again.split("## What broke")[0] == page.split("## What broke")[0]
    assert read_page("# Another page").cells == read_page("| kind |\n|---|\n| auc |").cells == {}


def test_what_was_replayed_now_joins_what_was_before() -> None:
    found = read_page(page_of_three())
    found.merge(Replay({PLACES[0]: Cell(pairs=9, worst=0.75)}))
    page = found.markdown()
    assert "| auc | replace-one | none | 0.750 (12) |" in page
    assert "| brier | add-remove | none |  | ∞ (2) |" in page
    assert "1 of 2 cells broken" in page


def test_cells_of_other_sources_are_named_and_replaced() -> None:
    page = page_of_three().replace(source_digest("auc"), "0123456789ab")
    found = read_page(page)
    assert found.stale == [PLACES[0][:3]]
    assert "On older sources than those of this version: 0 of 1 cells broken" in found.markdown()
    assert "`0123456789ab`" in found.markdown()
    elsewhere = (*PLACES[0][:3], "CSV")
    found.merge(Replay({elsewhere: Cell(pairs=1, worst=0.25)}))
    assert found.stale == []
    assert found.older == {PLACES[0]: Cell(pairs=3, mixed=2, worst=0.5)}
    page = found.markdown()
    assert "| auc | replace-one | none | 0.500 (3)* | 0.250 (1) |" in page
    assert "On older sources than those of this version: 0 of 1 cells broken" in page
    assert read_page(page).older.keys() == found.older.keys()
    found.merge(Replay({PLACES[0]: Cell(pairs=1, worst=0.25)}))
    assert found.cells[PLACES[0]].pairs == 1
    assert found.older == {}


def test_a_digest_is_of_the_code_that_a_kind_needs() -> None:
    from heldout.audit import replay_page

    assert source_digest("linear-regression") != source_digest("confusion")
    assert source_digest("mean-squared-error") == source_digest("confusion"), "of one module"
    assert source_digest("gone") == ""
    needed = replay_page._imported("heldout.questions.counts")
    assert "heldout.kernel.statistic" in needed


def test_the_code_of_a_module_is_what_is_neither_a_comment_nor_a_docstring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from heldout.audit import replay_page

    def digest(text: str) -> str:
        (tmp_path / "some.py").write_text(text)
        replay_page._parsed.cache_clear()
        return replay_page._code_digest.__wrapped__("heldout.some")

    monkeypatch.setattr(replay_page, "_ROOT", tmp_path)
    first = digest('"""Words."""\n\ndef f():\n    """More."""\n    return 1  \n')
    assert first == digest("# why\ndef f():\n    return 1\n")
    assert first != digest("def f():\n    return 2\n")
    replay_page._parsed.cache_clear()


def test_a_run_goes_on_from_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from heldout.audit import replay as replaying
    from heldout.audit.replay import replay_everywhere

    asked: list[str] = []
    ask = replaying._Corner.replay

    def counted(corner: Any, *others: Any) -> None:
        asked.extend(ways[0].kind for ways in corner.questions)
        ask(corner, *others)

    monkeypatch.setattr(replaying._Corner, "replay", counted)

    terms = {"pairs": 1, "kinds": ("histogram", "ndcg"), "through": ("list",), "workers": 1}
    saved: list[str] = []
    first = replay_everywhere(**terms, save=lambda found: saved.append(found.markdown()))
    assert len(saved) == 6, "as often as something is done"
    assert first.cells["ndcg", "add-remove", "none", "list"].pairs == 0, "refused without a unit"
    before = read_page(saved[-1])
    assert before.cells.keys() == first.cells.keys()
    pairs = {place: cell.pairs for place, cell in before.cells.items()}
    assert set(asked) == {"histogram", "ndcg"}
    asked.clear()
    replay_everywhere(**terms, before=before)
    assert asked == [], "nothing is missing"
    assert {place: cell.pairs for place, cell in before.cells.items()} == pairs
    stale = read_page(saved[-1].replace(source_digest("histogram"), "0" * 12))
    again = replay_everywhere(**terms, before=stale)
    assert again.stale == []
    assert set(asked) == {"histogram"}


def test_the_page_in_the_docs_holds_and_names_what_is_of_older_sources() -> None:
    """What is missing or has changed is no fault: it is named, and `make audit` replays it."""
    page = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")
    found = read_page(page)
    assert found.cells
    assert found.bad == []
    few = [
        place
        for place, cell in found.cells.items()
        if 0 < cell.pairs < pairs_needed(place[3], 200) and place[:3] not in found.stale
    ]
    missing = set(q.kinds()) - {place[0] for place in found.cells} | {place[0] for place in few}
    if missing or found.stale or found.older:
        older = sorted({kind for kind, *_ in (*found.stale, *found.older)})
        pytest.xfail(f"to be replayed: {sorted(missing)}; on new sources: {older}. Run: make audit")


def test_the_command_fails_where_a_cell_is_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from heldout.audit import replay as replaying
    from heldout.cli.audit import audit

    found = Replay({("auc", "replace-one", "none", "list"): Cell(pairs=1, worst=0.25)})
    named = []

    def replay(**terms: Any) -> Replay:
        named.append(terms["kinds"])
        terms["save"](found)
        return found

    monkeypatch.setattr(replaying, "replay_everywhere", replay)
    audit("auc", replay=True, pairs=1, as_json=True)
    assert named == [("auc",)]
    capsys.readouterr()
    audit(replay=True, pairs=1, out=tmp_path / "page.md", as_json=True)
    assert '"worst ratio": "0.250"' in capsys.readouterr().out
    assert "0 of 1 cells broken" in (tmp_path / "page.md").read_text()
    found.cells["brier", "replace-one", "none", "list"] = Cell(
        pairs=1, worst=math.inf, broken=1, first="brier: x"
    )
    with pytest.raises(PrivacyError, match="brier x replace-one"):
        audit(replay=True, pairs=1, as_json=True)


class SignedRows:
    """Rows whose parts score 100, or -100 with a number below 0 among them."""

    def __init__(self, *numbers: int) -> None:
        self.rows = np.array(numbers)[:, None]
        self.unit = np.arange(len(numbers))
        self.units = len(numbers)

    def scores(self, parts: np.ndarray, count: int) -> np.ndarray:
        own = [self.rows[np.asarray(parts) == part, 0] for part in range(count)]
        return np.array([[0 if not one.size else 100 if one.min() > 0 else -100] for one in own])


def test_a_row_that_becomes_equal_to_another_moves_one_part() -> None:
    """The coupling must put the two equal rows where the one was, and the new one instead."""
    noise = SummedParts(epsilon=Fraction(1), parts=50, most=100)
    before, after = SignedRows(90, -90, 5), SignedRows(90, 90, 5)
    assert log_ratios.parts(noise, before, after) == 1
    assert log_ratios.parts(noise, after, before) == 1
