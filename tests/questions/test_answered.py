"""Answers go to JSON and come back as the same releases, without rows or a ledger."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.data.feature_matrix import FeatureMatrix
from heldout.data.two_tables import Truth
from heldout.errors import ArgumentError, LedgerError
from heldout.kernel import Ledger
from heldout.questions.answers import Answered, from_plain, plain, stored_classes
from heldout.questions.report import Report
from heldout.questions.session import PrivateSession
from heldout.regression import RegressionSession, RegressionTable

RANDOM = np.random.default_rng(7)
LABELS = (RANDOM.random(3_000) < 0.4).astype(int)
SCORES = np.clip(RANDOM.normal(0.4 + 0.2 * LABELS, 0.15), 0, 1)
TABLE = {
    "y": LABELS,
    "p": SCORES,
    "q": RANDOM.random(3_000),
    "sex": RANDOM.choice(["F", "M", "?"], 3_000),
    "id": np.arange(3_000) // 2,
}
ALL = ho.Budget(epsilon=1000, delta="1/10")
PUBLIC = {"numbers": {"a": [0.1, 0.4, None, 0.7]}, "texts": {"b": ["x", None, "y", "x"]}}


@cache
def scored(kind: str = "usual") -> PrivateSession:
    declared: dict[str, Any] = {
        "usual": {"rivals": ["q"], "groups": {"sex": ["F", "M"]}},
        "added": {"neighbours": "add-remove"},
        "units": {"unit": "id", "rows_per_unit": 2},
        "mapped": {"score_map": (0.5, 0.2), "out_of_range": "clip"},
    }[kind]
    return ho.Session(ho.Dataset(TABLE, label="y", score="p", **declared), budget=ALL)


@cache
def classified() -> PrivateSession:
    table = {"y": TABLE["id"] % 3, "p": TABLE["p"], "q": TABLE["q"], "r": 1 - TABLE["p"]}
    table["b"] = TABLE["id"] % 5 % 3
    declared: dict[str, Any] = {"classes": [0, 1, 2], "scores": ["p", "q", "r"], "rivals": ["b"]}
    return ho.Session(ho.Dataset(table, label="y", **declared), budget=ALL)


@cache
def fitted() -> PrivateSession:
    made = {"o": TABLE["p"] * 4, "f": TABLE["q"] * 4}
    return RegressionSession(RegressionTable(made, observed="o", predicted="f"), budget=ALL)


@cache
def truth() -> PrivateSession:
    made = {"a": RANDOM.random(300), "b": RANDOM.choice(["x", "y"], 300)}
    return PrivateSession(Truth(made, numbers=("a",), texts=("b",), expected_rows=300), budget=ALL)


@cache
def featured() -> PrivateSession:
    matrix = FeatureMatrix(RANDOM.random((400, 12)) < 0.3, RANDOM.integers(0, 2, 400))
    return PrivateSession(matrix, budget=ALL)


CASES: dict[str, tuple[Any, tuple[q.Question, ...]]] = {
    "auc": (scored, (q.Auc(epsilon="2"),)),
    "auc added": (lambda: scored("added"), (q.Auc(epsilon="1"),)),
    "auc of units": (lambda: scored("units"), (q.Auc(epsilon="1", smaller_class=1200),)),
    "auc published": (scored, (q.Auc(epsilon=1, method="boyd-2015-laplace", delta="1e-6"),)),
    "auc by sex": (scored, (q.Auc(epsilon="1", by="sex"),)),
    "average precision": (scored, (q.AveragePrecision(epsilon="2"),)),
    "brier": (scored, (q.Brier(epsilon="1"),)),
    "brier by sex": (scored, (q.Brier(epsilon="1", by="sex"),)),
    "auc of classes": (classified, (q.ClassAuc(epsilon="1"),)),
    "average precision of classes": (classified, (q.ClassAveragePrecision(epsilon="1"),)),
    "compare of classes": (classified, (q.ClassCompare(epsilon="1", score="b"),)),
    "confusion of classes": (classified, (q.ClassConfusion(epsilon="1"),)),
    "report of classes": (classified, (q.Report(epsilon="1", sections=["confusion"]),)),
    "top k": (classified, (q.TopK(epsilon="1"),)),
    "compare": (scored, (q.Compare(epsilon="1", score="q"),)),
    "confusion": (scored, (q.Confusion(epsilon="1", threshold=0.3),)),
    "confusion mapped": (lambda: scored("mapped"), (q.Confusion(epsilon="1", threshold=0.3),)),
    "confusion by sex": (scored, (q.Confusion(epsilon="1", by="sex"),)),
    "curves": (scored, (q.Curves(epsilon="1"),)),
    "curves with a named threshold": (scored, (q.Curves(epsilon="1", thresholds=[0.5]),)),
    "report with curves": (scored, (q.Report(epsilon="2", curves=True),)),
    "curves by sex": (scored, (q.Curves(epsilon="1", by="sex"),)),
    "curves added": (lambda: scored("added"), (q.Curves(epsilon="1"),)),
    "curves published": (
        scored,
        (q.Curves(epsilon=1, method="laplace", options={"thresholds": 9}),),
    ),
    "grid ties": (scored, (q.GridTies(epsilon="1/50"),)),
    "log loss": (scored, (q.LogLoss(epsilon="1"),)),
    "ndcg": (lambda: scored("units"), (q.Ndcg(epsilon="1"),)),
    "precision at k": (lambda: scored("units"), (q.PrecisionAtK(epsilon="1"),)),
    "mean absolute error": (scored, (q.MeanAbsoluteError(epsilon="1"),)),
    "mean squared error": (lambda: scored("added"), (q.MeanSquaredError(epsilon="1"),)),
    "report": (scored, (q.Report(epsilon="2", by="sex", sections=["auc", "brier"]),)),
    "report on the grid": (scored, (q.Report(epsilon="2", scores="grid", sections=["auc"]),)),
    "separability": (truth, (q.Separability(epsilon="1", privatized=PUBLIC),)),
    "regression metrics": (fitted, (q.RegressionMetrics(epsilon="1"),)),
    "residual plot": (fitted, (q.ResidualPlot(epsilon="1", grid=8),)),
    "residual plot published": (fitted, (q.ResidualPlot(epsilon="1", method="dawa"),)),
    "selection": (featured, (q.Selection(epsilon="1", k=3),)),
    "training": (featured, (q.Training(epsilon="1"),)),
    "logistic": (
        featured,
        (q.Training(epsilon="1", classifier="logistic", select="noisy-counts"),),
    ),
    "several": (scored, (q.GridTies(epsilon="1/2"), q.Brier(epsilon="1/2"))),
}


def made_up(kind: str) -> tuple[Any, tuple[q.Question, ...]]:
    """A kind that has nothing special here: its own example."""
    question, rows = q.find(kind).with_rows(epsilon="1")
    return (lambda: PrivateSession(rows, budget=ALL)), (question,)


_LISTED = {each.kind for _, questions in CASES.values() for each in questions}
CASES |= {kind: made_up(kind) for kind in q.kinds() if kind not in _LISTED}


@cache
def answered(name: str) -> tuple[Answered, str]:
    session, questions = CASES[name]
    found = session().answer(*questions)
    return found, json.dumps(found.as_dict(), allow_nan=False)


def told(release: Any) -> Iterator[Any]:
    """All that a reader sees of a release."""
    yield release.as_dict(0.8)  # all intervals at that level
    if isinstance(release, Report):
        yield release.html() if "brier" in release.releases else str(release)
        return
    yield release.loss, release.receipt, release.interval()
    yield [each.svg for each in release.figures()]


def test_every_kind_of_question_is_kept_here() -> None:
    asked = {each.kind for _, questions in CASES.values() for each in questions}
    assert asked == set(q.kinds())


@pytest.mark.parametrize("name", CASES)
def test_a_kept_answer_is_read_as_the_drawn_one(name: str) -> None:
    drawn, text = answered(name)
    kept = Answered.from_dict(json.loads(text))
    assert kept.questions == drawn.questions
    assert kept.drawn.about == drawn.drawn.about
    assert json.dumps(kept.as_dict()) == text
    for ours, theirs in zip(kept.releases, drawn.releases, strict=True):
        assert list(told(ours)) == list(told(theirs))


def test_an_answer_tells_of_the_account_as_it_was_then() -> None:
    rows = ho.Dataset(TABLE, label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(epsilon=1))
    first = session.answer(q.Confusion(epsilon="1/4"))
    assert first.standing.remaining == ho.Loss.pure("3/4")
    session.answer(q.Confusion(epsilon="1/4"))
    assert first.as_dict()["remaining"] == {"epsilon": "3/4", "delta": "0"}


def test_what_was_paid_for_is_delivered_though_the_ledger_cannot_be_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=ho.Budget(epsilon=1))

    def away(*_: Any) -> None:
        raise LedgerError("The ledger did not answer.")

    monkeypatch.setattr(Ledger, "standing", away)
    assert session.report(epsilon="1/4").remaining == ho.Loss.pure("3/4")
    assert session.answer(q.Confusion(epsilon="1/4")).as_dict()["remaining"]["epsilon"] == "1/2"


def test_asking_is_answering_without_the_rest() -> None:
    session = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=ho.Budget(epsilon=1))
    release = session.ask(q.Confusion(epsilon="1/2"))
    found = session.answer(q.Confusion(epsilon="1/2"), reference="order 7")
    assert type(found.releases[0]) is type(release)
    earlier, later = session._ledger.entries(session._account)
    assert later.request == earlier.request | {"reference": "order 7"}
    for wrong in ("", 7, b"x"):
        with pytest.raises(ArgumentError, match="reference must be a text"):
            session.answer(q.Confusion(epsilon="1/2"), reference=wrong)  # type: ignore[arg-type]


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in some JSON."""
    yield path
    if isinstance(content, dict | list):
        for name in content if isinstance(content, dict) else range(len(content))[:2]:
            yield from places(content[name], (*path, name))


@pytest.mark.parametrize("name", ["auc added", "confusion", "curves published"])
def test_whatever_is_malformed_is_refused_in_words(name: str) -> None:
    content = json.loads(answered(name)[1])
    awkward = [None, -1, "x", {"tuple": ["x"]}, {"os.system": {"a": 1}}]
    for path in places(content):
        for wrong in awkward:
            changed = copy.deepcopy(content)
            if path:
                inner = changed
                for step in path[:-1]:
                    inner = inner[step]
                inner[path[-1]] = wrong
            try:
                kept = Answered.from_dict(changed if path else wrong)  # type: ignore[arg-type]
            except ArgumentError:
                continue
            assert json.dumps(kept.as_dict()), path  # another answer, and a whole one
            for release in kept.releases:
                release.interval()


def test_an_answer_at_another_price_than_its_receipt_is_refused() -> None:
    content = json.loads(answered("confusion")[1])
    content["questions"][0]["epsilon"] = "2"
    with pytest.raises(ArgumentError, match="not that of the questions"):
        Answered.from_dict(content)


def test_only_what_is_listed_is_made_of_content() -> None:
    for wrong in ({"Path": {}}, {"Sealed": {"content": 1}}, {"Answered": {}}, {"a": 1, "b": 2}):
        with pytest.raises((KeyError, ValueError)):
            from_plain(wrong)
    with pytest.raises(TypeError, match="cannot be kept"):
        plain({1: object()})
    assert {"ScoredRows", "Protection", "RankingMechanism", "NamedCounts"} <= set(stored_classes())
    assert {kind.__module__.split(".")[0] for kind in stored_classes().values()} == {"heldout"}


def test_numbers_are_kept_exactly() -> None:
    value = {
        "whole": (2**200, -1, True, None, "text"),
        "real": [0.1, -0.0, 1e-300, float("inf"), np.float64(1 / 3)],
        "array": np.array([[0.1, np.inf], [-np.inf, 1 / 3]]),
        "flags": np.array([True, False]),
    }
    back = from_plain(json.loads(json.dumps(plain(value), allow_nan=False)))
    for name in ("whole", "real"):
        assert back[name] == value[name]
    for kept, drawn in ((back["array"], value["array"]), (back["flags"], value["flags"])):
        assert np.array_equal(kept, drawn)  # type: ignore[arg-type]
        assert kept.dtype == np.asarray(drawn).dtype
    assert np.isnan(from_plain(plain(np.array([np.nan])))).all()


@pytest.mark.parametrize("name", [name for name in CASES if name != "several"])
def test_every_release_keeps_to_the_published_schema(name: str) -> None:
    import jsonschema

    release = answered(name)[0].releases[0]
    schema = release.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    content = json.loads(release.to_json())
    assert [error.message for error in validator.iter_errors(content)] == []
    inner = next(iter(content["releases"].values())) if "releases" in content else content
    measure = next(iter(inner["measures"].values()))
    for place, field, wrong in (
        (inner, "loss", {"epsilon": 0.5, "delta": "0"}),
        (inner, "receipt", None),
        (measure, "interval", [0.5]),
        (measure, "value", "0.5"),
    ):
        kept = place[field]
        place[field] = wrong
        assert not validator.is_valid(content), field
        del place[field]
        assert not validator.is_valid(content), field
        place[field] = kept


@pytest.mark.parametrize("name", ["auc", "curves", "report", "confusion by sex", "residual plot"])
def test_a_release_is_a_frame_of_its_measures(name: str) -> None:
    release = answered(name)[0].releases[0]
    frame = release.to_frame(0.9)
    measures = release.measures() if isinstance(release, Report) else release.measures
    assert list(frame.index) == list(measures)
    first = next(iter(measures.values()))
    assert tuple(frame.iloc[0][["low", "high"]]) == first.interval(0.9)
    assert release.to_dict(0.9) == release.as_dict(0.9) == json.loads(release.to_json(0.9))


def test_a_curve_is_a_frame_of_its_points() -> None:
    curves = answered("curves")[0].releases[0]
    frame = curves.roc.to_frame()
    assert list(frame) == ["fpr", "tpr", "thresholds", "low", "high"]
    assert list(curves.calibration.to_frame())[:2] == ["predicted", "observed"]
    assert (frame.low <= frame.tpr).all()
