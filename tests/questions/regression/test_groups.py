"""Residual plots and error measures by group."""

import itertools
import json
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.regression import Axis, GridCounts, PowerSums, RowCount
from heldout.kernel.statistic import Statistic, compute
from heldout.questions.answers import Answered
from heldout.regression import RegressionSession, RegressionTable

GENERATOR = np.random.default_rng(6)
ROWS = 6_000
SEX = GENERATOR.choice(["F", "M", "X"], ROWS, p=[0.5, 0.49, 0.01])
OLD = GENERATOR.integers(0, 2, ROWS)
PREDICTED = GENERATOR.uniform(0, 10, ROWS)
RESIDUAL = GENERATOR.normal(np.where(SEX == "F", 1.0, 0.0), np.where(SEX == "F", 2.0, 1.0), ROWS)
TABLE = {"y": PREDICTED + RESIDUAL, "p": PREDICTED, "sex": SEX, "old": OLD}
BOUNDS = {"residual": 8, "observed": (-8, 18)}
PLOT = {"residual": 8, "predicted": (0, 10)}
GROUPS = {"sex": ["F", "M"], "old": [0, 1]}
MINE = {"F": SEX == "F", "M": SEX == "M", "other": SEX == "X"}


def session(budget: Any = "100000000", **options: Any) -> RegressionSession:
    rows = RegressionTable(TABLE, observed="y", predicted="p", groups=GROUPS, **options)
    return RegressionSession(rows, budget=ho.Budget(epsilon=budget))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_each_groups_measures_are_those_of_its_rows_alone(neighbours: str) -> None:
    found = session(neighbours=neighbours).metrics(epsilon="1000000", by="sex", bounds=BOUNDS)
    for name, mine in MINE.items():
        group, own, y = found.groups[name], RESIDUAL[mine], TABLE["y"][mine]
        assert group.rows == mine.sum()
        assert group.mae == pytest.approx(np.abs(own).mean(), abs=1e-3)
        assert group.rmse == pytest.approx(np.sqrt((own**2).mean()), abs=1e-3)
        assert group.mean_residual == pytest.approx(own.mean(), abs=1e-3)
        assert group.r_squared == pytest.approx(1 - (own**2).mean() / y.var(), abs=1e-3)
        assert group.quantile(0.5) == pytest.approx(np.median(own), abs=0.2)
    assert found.worst == "F"
    assert found.gap_in("root mean squared error").p_value < 1e-6


@pytest.mark.parametrize("declared", [True, False])
def test_a_mean_residual_is_held_against_residuals_where_bounds_were_searched(
    declared: bool,
) -> None:
    words: dict[str, Any] = {"bounds": BOUNDS} if declared else {"scale": 1}
    found = session().metrics(epsilon="2", by="sex", r_squared=False, **words)
    for group in found.groups.values():
        measure, most = group.mean_residual, group.residual_bound
        if not declared:
            most = min(most, group.mae.noise_interval()[1])
        assert [measure.share(each) for each in (-1e9, -most / 2, 0, most, 1e9)] == pytest.approx(
            [0, 0.25, 0.5, 1, 1]
        )
        low, high = (float(np.clip(end, -most, most)) for end in measure.noise_interval())
        assert measure.informative == (high - low <= most)


def test_each_groups_table_is_that_of_its_rows_alone() -> None:
    found = session().residual_plot(epsilon="1000000", by="sex", bounds=PLOT, grid=(8, 5))
    for name, mine in MINE.items():
        group = found.groups[name]
        edges = [group.residual_edges, group.predicted_edges]
        exact, *_ = np.histogram2d(RESIDUAL[mine], PREDICTED[mine], bins=edges)
        assert (group.noisy == exact).all()
        assert group.table.outside == mine.sum() - exact.sum()
        assert group.rows == mine.sum()
    assert found.worst == "F"
    assert found.gap == pytest.approx(1.0, abs=0.15)
    covered = found.covered(2)
    assert covered["M"] == pytest.approx(np.mean(np.abs(RESIDUAL[MINE["M"]]) < 2), abs=0.03)
    assert found.coverage_gap(2) == pytest.approx(max(covered.values()) - covered["F"])
    assert found.coverage_gap(2).p_value < 1e-6
    with pytest.raises(ArgumentError, match="no test"):
        found.gap_in("trend")


def test_crossed_groups_divide_every_row_once() -> None:
    found = session().residual_plot(epsilon="1000000", by=["sex", "old"], bounds=PLOT)
    assert list(found.groups)[:3] == ["F and 0", "F and 1", "F and other"]
    assert sum(int(each.noisy.sum() + each.table.outside) for each in found.groups.values()) == ROWS
    assert found.groups["M and 1"].noisy.sum() == ((SEX == "M") & (OLD == 1)).sum()
    assert found.drowned == ("F and other", "M and other", "other and other")


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", [None, "old"])
def test_the_ledger_takes_exactly_epsilon_for_all_groups(relation: str, unit: str | None) -> None:
    options: dict[str, Any] = {"unit": unit, "rows_per_unit": 3} if unit else {}
    asked = session("3", neighbours=relation, **options)
    asked.residual_plot(epsilon="1/3", by="sex")
    asked.metrics(epsilon="2/3", by=["sex", "old"])
    asked.metrics(epsilon="1", by="sex", bounds=BOUNDS, r_squared=False)
    assert asked.remaining == ho.Loss.pure(1)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_cells_of_groups_have_the_noise_of_one_table(relation: str) -> None:
    """But for the twentieth that counts the rows, where they need no counting without groups."""
    about = session(neighbours=relation).dataset
    question = q.ResidualPlot(epsilon=1, bounds=PLOT)
    plans = [question.plan(about), q.By(question, "sex").request(about).reading]
    whole, divided = (each.mechanism(30).float_scale * float(each.table_epsilon) for each in plans)
    assert whole == pytest.approx(divided)
    assert float(plans[1].table_epsilon) == pytest.approx(0.95)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_person_with_rows_in_several_groups_moves_each_statistic_no_further_than_claimed(
    relation: str, most: int
) -> None:
    """Rows are bounded before they are divided: k rows in all, not k in each group."""
    sums: dict[str, Any] = {"column": "residual", "bounds": (-1.0, 1.0), "with_rest": True}
    statistics: list[Statistic] = [
        RowCount(3),
        GridCounts(axes=(Axis("residual", (-1.0, 0.0, 1.0)),), groups=3),
        PowerSums(**sums, powers=1, groups=3),
        PowerSums(**sums, powers=3, absolute=True, centres=(0.0, -0.5, 1.0), groups=3),
    ]
    others = [("q", 0.2, "a"), ("r", -0.9, "b"), ("q", 5.0, "c")]
    own = list(itertools.product((-1.0, 0.0, 1.0), ("a", "b", None)))
    generator = np.random.default_rng([most, len(relation)])
    vectors: list[list[Any]] = []
    for size in (0, 2, 6, 6):
        mine = [("p", *own[int(i)]) for i in generator.integers(0, len(own), size)]
        person, residual, group = zip(*others, *mine, strict=True)
        rows = RegressionTable(
            {"who": person, "y": residual, "p": [0.0] * len(person), "g": group},
            observed="y",
            predicted="p",
            groups={"g": ["a", "b"]},
            unit="who",
            rows_per_unit=most,
            neighbours=relation,
        )
        vectors.append([unseal(compute(each, rows.with_groups("g"))) for each in statistics])
        assert vectors[-1][0].sum() == min(size, most) + min(most, 2) + 1
    first = vectors[:1] if relation == "add-remove" else vectors
    for place, statistic in enumerate(statistics):
        claimed = statistic.sensitivity(rows.protection)
        apart = [np.abs(a[place] - b[place]).sum() for a in first for b in vectors]
        assert claimed / 2 <= max(apart) <= claimed


@pytest.fixture
def _noise_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise looks like rows in 1 of 250 releases below: so what is drawn of it is 0."""
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda _, sealed: np.array(unseal(sealed)))


@pytest.mark.usefixtures("_noise_of_0")
def test_a_small_group_is_said_to_be_drowned_and_takes_no_part() -> None:
    found = session().residual_plot(epsilon="1/10", by="sex", bounds=PLOT)
    assert found.drowned == ("other",)
    assert "other" not in found.gap.between
    assert "no information at this price" in str(found)
    content = json.loads(json.dumps(found.as_dict()))
    assert not content["groups"]["other"][found.metric]["informative"]
    assert content["groups"]["F"][found.metric]["informative"]
    assert set(found.against_rest()) == {"F", "M"}


def test_groups_that_drowned_take_no_part_in_gaps_of_errors() -> None:
    found = session().metrics(epsilon="2", by="sex", bounds=BOUNDS)
    shown = set(found.groups) - set(found.drowned)
    assert shown >= {"F", "M"}
    assert set(found.against_rest()) == set(found.gap.between) == shown
    content = json.loads(json.dumps(found.as_dict()))["groups"]
    assert {name for name in content if content[name][found.metric]["informative"]} == shown


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_group_without_rows_has_nothing_to_read_at_any_price(neighbours: str) -> None:
    declared = {"old": [0, 1, 2]}
    rows = RegressionTable(
        TABLE, observed="y", predicted="p", groups=declared, neighbours=neighbours
    )
    asked = RegressionSession(rows, budget=ho.Budget(epsilon=10**13))
    errors = asked.metrics(epsilon=10**12, by="old", bounds=BOUNDS)
    plots = asked.residual_plot(epsilon=10**6, by="old", bounds=PLOT)
    assert not any(each.informative for each in errors.groups["2"].measures.values())
    assert all(each.informative for each in errors.groups["1"].measures.values())
    for found in (errors, plots):
        assert found.drowned == ("2", "other")
        assert found.gap.between == ("0", "1")


@pytest.mark.usefixtures("_noise_of_0")
def test_pictures_have_the_same_axes_and_grey_out_what_drowned() -> None:
    asked = session()
    plots = asked.residual_plot(epsilon="1/10", by="sex", bounds=PLOT)
    assert len({each.bounds for each in plots.groups.values()}) == 1
    assert plots.svg().count("no information at this price") >= 1
    errors = asked.metrics(epsilon="1/100", by="sex", bounds=BOUNDS)
    assert all("no information" in each.svg for each in errors.figures())
    page = plots.html(metrics=errors, labels={"sex": "Gender"}, title="For <whom>?")
    for said in ("For &lt;whom&gt;?", "Gender", "Gap in mean residual", "F minus the others"):
        assert said in page
    alone = plots.groups["F"].html()
    assert "(noisy)" in alone


def test_one_call_answers_by_group_too() -> None:
    declared: dict[str, Any] = {"observed": "y", "predicted": "p", "groups": GROUPS}
    asked: dict[str, Any] = {"epsilon": "1000000", "by": "sex"}
    errors = ho.regression.metrics(TABLE, bounds=BOUNDS, **declared, **asked)
    plots = ho.regression.residual_plot(TABLE, bounds=PLOT, **declared, **asked)
    assert set(errors.groups) == set(plots.groups) == {"F", "M", "other"}
    assert errors.worst == plots.worst == "F"


def test_questions_by_group_are_data_and_their_answers_can_be_kept() -> None:
    asked = session()
    for question in (
        q.ResidualPlot(epsilon="1", by="sex", bounds=PLOT),
        q.RegressionMetrics(epsilon="1", by=("sex", "old"), bounds=BOUNDS),
    ):
        assert q.from_dict(json.loads(json.dumps(question.as_dict()))) == question
        answered = asked.answer(question)
        kept = Answered.from_dict(json.loads(json.dumps(answered.as_dict())))
        assert kept.releases[0].as_dict() == answered.releases[0].as_dict()


def test_a_quote_tells_the_half_widths_of_groups() -> None:
    question = q.ResidualPlot(epsilon="1", by="sex", bounds=PLOT)
    [expected] = session().quote(question).half_widths
    assert {"gap in mean residual", "mean residual, F", "mean residual, other"} <= set(expected)


def test_what_cannot_be_divided_is_refused_before_anything_is_paid() -> None:
    asked = session("1")
    for words in ({"by": "height"}, {"by": "sex", "method": "dawa"}, {"by": ["sex", "sex"]}):
        with pytest.raises(ArgumentError, match=r"by|group"):
            asked.residual_plot(epsilon="1", **words)
    many = RegressionTable(TABLE, observed="y", predicted="p", groups={"old": list(range(400))})
    with pytest.raises(ArgumentError, match="fewer"):
        RegressionSession(many, budget=ho.Budget(epsilon=1)).residual_plot(epsilon=1, by="old")
    assert asked.remaining == ho.Loss.pure(1)
