"""Questions by group: as data, at their price, refused where nothing was declared."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn import metrics as reference

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError, HeldoutError

RANDOM = np.random.default_rng(11)
ROWS = 900
LABELS = RANDOM.integers(0, 2, ROWS)
SCORES = np.round(np.clip(RANDOM.normal(0.4 + 0.2 * LABELS, 0.2), 0, 1), 3)
SEX = RANDOM.choice(["F", "M", "X"], ROWS, p=[0.5, 0.4, 0.1])
TABLE = {
    "y": LABELS.tolist(),
    "p": SCORES.tolist(),
    "sex": SEX.tolist(),
    "ward": (LABELS + 1).tolist(),
}
EVERY = [
    q.Auc(epsilon="1", by="sex"),
    q.AveragePrecision(epsilon="1", by="sex"),
    q.Brier(epsilon="1", by=["sex"]),
    q.Confusion(epsilon="1", threshold=0.4, by=("sex", "ward")),
    q.MeanAbsoluteError(epsilon="1", by="ward"),
    q.MeanSquaredError(epsilon="1", by="ward"),
    q.Report(epsilon="2", by="sex"),
]
each_question = pytest.mark.parametrize("question", EVERY, ids=lambda each: each.kind)


def session(**declared: Any) -> ho.Session:
    dataset = ho.Dataset(
        TABLE, label="y", score="p", groups={"sex": ["F", "M"], "ward": [1, 2]}, **declared
    )
    return ho.Session(dataset, budget=ho.Budget(epsilon=10**9))


@each_question
def test_a_question_by_group_goes_to_json_and_back(question: q.Question) -> None:
    assert q.from_dict(json.loads(json.dumps(question.as_dict()))) == question


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@each_question
def test_a_quote_by_group_is_what_the_ledger_charges(question: q.Question, neighbours: str) -> None:
    door = session(neighbours=neighbours)
    quote = door.quote(question, rows=ROWS)
    assert any(" in " in name for widths in quote.half_widths for name in widths)
    release = door.ask(question)
    [entry] = door._ledger.entries(door._account)
    assert entry.loss == quote.loss == ho.Loss.pure(question.price)
    assert json.dumps(release.as_dict(), allow_nan=False)


def test_with_a_huge_epsilon_every_group_has_the_numbers_of_scikit_learn() -> None:
    door = session()
    found = door.confusion(threshold=0.4, epsilon="1000000", by="sex")
    called = SCORES >= 0.4
    recalls = {}
    for name, values in (("F", ["F"]), ("M", ["M"]), ("other", ["X"])):
        mine = np.isin(SEX, values)
        recalls[name] = reference.recall_score(LABELS[mine], called[mine])
        matrix = reference.confusion_matrix(LABELS[mine], called[mine]).tolist()
        assert found.groups[name].matrix() == matrix
        assert found.groups[name].recall == pytest.approx(recalls[name])
    assert found.equal_opportunity == pytest.approx(max(recalls.values()) - min(recalls.values()))
    areas = door.auc(epsilon="100", by="sex")
    brier = door.brier(epsilon="1000000", by="sex")
    for name in ("F", "M"):
        mine = name == SEX
        expected = reference.roc_auc_score(LABELS[mine], SCORES[mine])
        assert areas.groups[name].value == pytest.approx(expected, abs=0.01)
        expected = reference.brier_score_loss(LABELS[mine], SCORES[mine])
        assert brier.groups[name].value == pytest.approx(expected, abs=1e-4)
    assert found.worst == min(found.groups, key=lambda name: found.groups[name].value)
    assert brier.worst == max(brier.groups, key=lambda name: brier.groups[name].value)


def test_five_groups_have_the_noise_of_none() -> None:
    about = session().dataset
    whole, parts = (q.Confusion(epsilon="1", by=by).request(about) for by in (None, "sex"))
    assert whole.mechanism.scale == parts.mechanism.scale == Fraction(2)  # type: ignore[attr-defined]
    assert parts.mechanism.dimension == 3 * whole.mechanism.dimension  # type: ignore[attr-defined]


def test_groups_cross_and_every_row_is_in_one_of_them() -> None:
    found = session().confusion(epsilon="1000000", by=["sex", "ward"])
    assert list(found.groups)[:3] == ["F and 1", "F and 2", "F and other"]
    assert sum(sum(map(sum, each.matrix())) for each in found.groups.values()) == ROWS


def test_crossed_groups_that_would_have_one_name_are_refused() -> None:
    rows = {"y": [0, 1], "p": [0.2, 0.8], "a": ["x", "x and y"], "b": ["y and z", "z"]}
    groups = {"a": ["x", "x and y"], "b": ["y and z", "z"]}
    session = ho.Session(ho.Dataset(rows, label="y", score="p", groups=groups), budget=ho.Budget(1))
    with pytest.raises(ArgumentError, match="the same name"):
        session.confusion(epsilon=1, by=["a", "b"])
    assert session.spent.epsilon == 0


def test_a_group_that_noise_drowned_is_no_number() -> None:
    found = session().confusion(epsilon="10", by="ward")  # no row of another ward, and no chance
    assert found.drowned == ("other",)
    assert "no information at this price" in str(found)
    content = found.as_dict()
    assert content["groups"]["other"]["accuracy"]["informative"] is False
    assert content["groups"]["1"]["accuracy"]["informative"] is True
    assert "other" not in found.gap.between


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sex": "F"}, "must be a list"),
        ({"sex": []}, "must be a list"),
        ({"sex": ["F", "F"]}, "must be different"),
        ({"sex": ["F", "other"]}, "must be different"),
        ({"sex": [1.5]}, "must be a list"),
        ({"nobody": ["a"]}, "column"),
        (["sex"], "values by column"),
    ],
)
def test_groups_that_are_none_are_refused(wrong: Any, words: str) -> None:
    with pytest.raises(HeldoutError, match=words):
        ho.Dataset(TABLE, label="y", score="p", groups=wrong)


def test_an_undeclared_group_is_refused_and_nothing_is_charged() -> None:
    door = session()
    for by in ("p", "nobody", ["sex", "sex"], ["sex", "p"]):
        with pytest.raises(ArgumentError, match="by must"):
            door.confusion(epsilon="1", by=by)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="price without delta"):
        door.auc(epsilon="1", by="sex", method="boyd-2015-laplace", delta="1e-6")
    with pytest.raises(ArgumentError, match="exact scores"):
        door.auc(epsilon="1", by="sex", scores="grid")
    with pytest.raises(ArgumentError, match="at least"):
        door.auc(epsilon="1/4000", by="sex")
    for by in (7, [], [3]):
        with pytest.raises(ArgumentError, match="by must"):
            q.Confusion(epsilon="1", by=by)
    assert door.spent == ho.Loss.pure(0)


def typed(groups: dict[str, Any]) -> ho.Dataset:
    frame = pandas.DataFrame(
        {
            "y": [0, 1, 0, 1],
            "p": [0.2, 0.8, 0.4, 0.6],
            "day": pandas.to_datetime(["2025-01-01", "2025-01-02"] * 2),
            "flag": [0.0, 1.0] * 2,
            "b": [True, False] * 2,
        }
    )
    return ho.Dataset(frame, label="y", score="p", groups=groups)


@pytest.mark.parametrize(
    "groups",
    [
        {"day": ["2025-01-01", "2025-01-02"]},
        {"flag": ["0", "1"]},
        {"b": ["True", "False"]},
        {"b": [True, False]},
        {"b": [0, 1]},
    ],
    ids=str,
)
def test_declared_values_are_read_as_the_column_holds_them(groups: dict[str, Any]) -> None:
    [name] = groups
    found = typed(groups).with_groups(name)._fetch("SELECT member FROM evaluated")
    assert sorted(found["member"].tolist()) == [0, 0, 1, 1]  # none in "other"


@pytest.mark.parametrize(
    ("groups", "advice"),
    [
        ({"day": ["January"]}, "Declare days such as"),
        ({"day": [2025]}, "Declare days such as"),
        ({"flag": ["no", "yes"]}, "Declare numbers"),
        ({"b": ["yes", "no"]}, "Declare true and false"),
        ({"b": ["true", "1"]}, "must be different values"),
    ],
    ids=str,
)
def test_values_that_no_cell_of_the_type_can_equal_are_refused(
    groups: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ArgumentError, match=advice):
        typed(groups)
