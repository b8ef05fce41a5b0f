"""Questions are data; asking them is one booking, and a quote is what asking will cost."""

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import questions as q
from heldout.data.feature_matrix import FeatureMatrix
from heldout.data.two_tables import Truth
from heldout.errors import AnswerLost, ArgumentError, BudgetExceeded
from heldout.kernel.noise import DiscreteLaplace
from heldout.questions.base import KINDS
from heldout.questions.session import PrivateSession
from heldout.regression import RegressionSession, RegressionTable

RANDOM = np.random.default_rng(5)
LABELS = (RANDOM.random(600) < 0.4).astype(int)
SCORES = np.clip(RANDOM.normal(0.4 + 0.2 * LABELS, 0.15), 0, 1)
TABLE = {"y": LABELS, "p": SCORES, "q": RANDOM.random(600)}
PUBLIC = {"numbers": {"a": [1.0, 2.0, None, 4.5]}, "texts": {"b": ["x", None, "y", "x"]}}
EXAMPLES: list[q.Question] = [
    q.Auc(epsilon="1/3"),
    q.Auc(epsilon="1", method="boyd-2015-laplace", delta="1e-6", scores="grid"),
    q.AveragePrecision(epsilon=0.1, smaller_class=40),
    q.Brier(epsilon="2"),
    q.ClassAuc(epsilon="1"),
    q.ClassAveragePrecision(epsilon="2"),
    q.ClassConfusion(epsilon="1", by="g", weighted=True),
    q.Compare(epsilon="1", score="q"),
    q.Confusion(epsilon="1", threshold=0.25),
    q.Curves(epsilon="1", method="recursive-medians", options={"levels": 4}),
    q.Curves(epsilon="1", thresholds=[0.5, 0.2]),
    q.GridTies(epsilon="1/50"),
    q.LogLoss(epsilon="1", clip=0.02),
    q.MeanAbsoluteError(epsilon="1"),
    q.MeanSquaredError(epsilon="1"),
    q.Ndcg(epsilon="1", k=5),
    q.PrecisionAtK(epsilon="1", k=3),
    q.RegressionMetrics(epsilon="1", bounds={"residual": 20}, r_squared=False),
    q.Report(epsilon="1", curves=True, sections=["auc", "brier"], threshold=0.3),
    q.Report(epsilon="1", sections=["ndcg", "precision_at_k"], k=3),
    q.Report(epsilon="1", weighted=True),
    q.ResidualPlot(epsilon="1", bounds={"predicted": (0, 10)}, grid=8, scale=2),
    q.Selection(epsilon="1", k=3, score="total-count"),
    q.Separability(epsilon="1", privatized=PUBLIC),
    q.TopK(epsilon="1/2"),
    q.Training(epsilon="1", classifier="logistic", select="noisy-counts", ridge="1/4"),
]
LISTED = {each.kind for each in EXAMPLES}
EXAMPLES += [kind.with_rows()[0] for kind in q.registered() if kind.kind not in LISTED]
each_question = pytest.mark.parametrize("question", EXAMPLES, ids=lambda each: each.kind)


def session(budget: Any = 10, **declared: Any) -> ho.Session:
    dataset = ho.Dataset(TABLE, label="y", score="p", rivals=["q"], **declared)
    return ho.Session(dataset, budget=ho.Budget(epsilon=budget))


def test_every_kind_has_an_example_here() -> None:
    assert {each.kind for each in EXAMPLES} == set(q.kinds())


@each_question
def test_a_question_goes_to_json_and_back(question: q.Question) -> None:
    text = json.dumps(question.as_dict(), allow_nan=False)
    back = q.from_dict(json.loads(text))
    assert back == question
    assert back.as_dict() == question.as_dict()
    assert isinstance(back.price, Fraction)


@each_question
def test_unknown_kinds_fields_and_versions_are_refused(question: q.Question) -> None:
    content = question.as_dict()
    for wrong, words in (
        (content | {"question": "everything"}, "No question "),
        (content | {"version": 2}, "version must be 1"),
        (content | {"colour": "red"}, "has no field 'colour'"),
        ({name: each for name, each in content.items() if name != "epsilon"}, "needs the field"),
        (content | {"epsilon": "0"}, "epsilon must be more than 0"),
    ):
        with pytest.raises(ArgumentError, match=words):
            q.from_dict(wrong)


def test_what_is_no_object_is_no_question() -> None:
    for content in (None, 7, "auc", [], {"question": ["auc"]}, {}):
        with pytest.raises(ArgumentError):
            q.from_dict(content)  # type: ignore[arg-type]


def test_a_question_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        q.Auc(epsilon=1).epsilon = 2  # type: ignore[misc]


@pytest.mark.parametrize("given", [3, "3", 3.0, Fraction(3)])
def test_a_price_is_one_exact_number_however_it_is_written(given: Any) -> None:
    assert q.Auc(epsilon=given) == q.Auc(epsilon="6/2")
    assert q.Auc(epsilon=given).as_dict()["epsilon"] == "3"


def test_several_questions_are_one_entry_or_none() -> None:
    door = session(budget=2)
    asked = (q.Auc(epsilon="1/2"), q.Confusion(epsilon="1/2"), q.Compare(score="q", epsilon="1/2"))
    auc, cells, difference = door.ask(*asked)
    [entry] = door._ledger.entries(door._account)
    assert auc.receipt == cells.receipt == difference.receipt
    assert auc.receipt.hash == entry.hash
    assert [q.from_dict(each) for each in entry.request["questions"]] == list(asked)
    assert entry.request["model"] == "p"
    assert (auc.loss.epsilon, str(entry.loss)) == (Fraction(1, 2), "epsilon 1.5")
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        door.ask(*asked)
    assert len(door._ledger.entries(door._account)) == 1
    assert door.remaining == ho.Loss.pure("1/2")


def test_one_that_cannot_be_asked_keeps_the_others_from_being_paid() -> None:
    door = session()
    for wrong in (q.Confusion(epsilon=1, threshold=7), q.Compare(score="nobody", epsilon=1)):
        with pytest.raises(ArgumentError):
            door.ask(q.Auc(epsilon=1), wrong)
    for nothing in ((), ("auc",), (q.Auc(epsilon=1), None)):
        with pytest.raises(ArgumentError, match="Pass one question or more"):
            door.ask(*nothing)  # type: ignore[arg-type]
    assert door.spent == ho.Loss.pure(0)


def of_every_kind() -> dict[str, PrivateSession]:
    some = np.arange(60) % 2
    letters = ["a", "b", "c"] * 20
    classes = {"label": "y", "classes": ["a", "b", "c"], "scores": ["a", "b", "c"]}
    fitted = RegressionTable({"o": some, "f": some}, observed="o", predicted="f")
    tables: dict[str, Any] = {
        "ScoredRows": ho.Dataset({"y": some, "p": some, "q": some}, label="y", score="p"),
        "ClassifiedRows": ho.Dataset({"y": letters, **dict.fromkeys("abc", some)}, **classes),
        "FittedRows": fitted,
        "FeatureRows": FeatureMatrix(np.eye(60)[:, :5], some, features_per_row=2),
        "TruthRows": Truth(
            {"a": some * 1.0, "b": letters}, numbers=("a",), texts=("b",), expected_rows=60
        ),
    }
    budget = ho.Budget(epsilon=1000, delta="1/2")
    return {name: PrivateSession(each, budget=budget) for name, each in tables.items()}


@each_question
def test_a_question_to_rows_of_another_kind_is_refused_and_costs_nothing(
    question: q.Question,
) -> None:
    for name, door in of_every_kind().items():
        if name not in {each.__name__ for each in question.of}:
            for asked in (door.ask, door.quote):
                with pytest.raises(ArgumentError, match="cannot be asked of these rows"):
                    asked(question)
        assert door.spent.epsilon == 0


def test_a_privatized_table_of_other_columns_than_the_truths_is_refused() -> None:
    door = of_every_kind()["TruthRows"]
    numbers = {"a": [1.0, 2.0], "b": [1.0, 2.0], "z": [1.0, 2.0]}
    texts = {"b": ["x", "y"], "c": ["x", "y"]}
    for mine, theirs in (("z", "b"), ("ab", ""), ("a", "c"), ("a", ""), ("az", "b")):
        public = {
            "numbers": {name: numbers[name] for name in mine},
            "texts": {name: texts[name] for name in theirs},
        }
        with pytest.raises(ArgumentError, match="columns that the truth was opened with"):
            door.ask(q.Separability(epsilon=1, privatized=public))
    assert door.spent == ho.Loss.pure(0)


def test_what_is_lost_after_the_booking_is_said_with_its_receipt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = session(budget=1)

    def fail(*_: Any) -> None:
        raise RuntimeError("17 rows")

    monkeypatch.setattr(DiscreteLaplace, "sample", fail)
    with pytest.raises(AnswerLost, match="The price stays booked") as caught:
        door.confusion(epsilon="1/4")
    [entry] = door._ledger.entries(door._account)
    assert caught.value.receipt == entry.hash
    assert "17 rows" not in str(caught.value)
    assert caught.value.__context__ is None
    assert door.remaining == ho.Loss.pure("3/4")


def test_an_analyst_gets_a_description_and_no_rows() -> None:
    door = session(neighbours="add-remove")
    about = door.dataset
    assert (about.label, about.score, about.rows) == ("y", "p", None)
    assert not hasattr(about, "_fetch")
    assert json.loads(json.dumps(about.as_dict()))["protection"]["neighbours"] == "add-remove"
    with pytest.raises(ArgumentError, match=r"needs a Dataset"):
        ho.Session(about, budget=ho.Budget(epsilon=9))  # type: ignore[arg-type]


def test_every_registered_kind_is_listed() -> None:
    ours = {kind for kind, found in KINDS.items() if found.__module__.startswith("heldout")}
    assert ours == set(q.kinds())


# --- quotes --------------------------------------------------------------------------------------

ROOMS = tuple(f"heldout.questions.{name}" for name in ("counts", "curves", "ranking"))
OF_SCORES = [each for each in EXAMPLES if type(each).__module__.startswith(ROOMS)]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("question", OF_SCORES, ids=lambda each: each.kind)
def test_a_quote_is_what_the_ledger_charges(question: q.Question, neighbours: str) -> None:
    budget = ho.Budget(epsilon=10, delta="1e-5")
    rows = ho.Dataset(TABLE, label="y", score="p", rivals=["q"], neighbours=neighbours)
    door = ho.Session(rows, budget=budget)
    quote = door.quote(question)
    assert door.spent.epsilon == 0
    door.ask(question)
    [entry] = door._ledger.entries(door._account)
    assert entry.loss == quote.loss
    assert entry.event == quote.event


def test_a_quote_reads_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    door = session()
    table = RegressionTable({"o": SCORES, "f": TABLE["q"]}, observed="o", predicted="f")
    fits = RegressionSession(table, budget=ho.Budget(epsilon=9))
    for rows in (door._table, table):
        monkeypatch.setattr(rows, "_fetch", lambda *_: pytest.fail("rows were read"))
    for quote in (
        door.quote(*OF_SCORES[3:5], q.Report(epsilon="1", curves=True)),
        fits.quote(q.ResidualPlot(epsilon="1"), q.RegressionMetrics(epsilon="1")),
    ):
        assert all(widths for widths in quote.half_widths)
        assert json.dumps(quote.as_dict(), allow_nan=False)
        assert "±" in str(quote)


def test_a_quote_needs_a_guess_of_rows_that_are_not_public() -> None:
    door = session(neighbours="add-remove")
    quote = door.quote(q.Auc(epsilon="1"))
    assert quote.loss == ho.Loss.pure(1)
    with pytest.raises(ArgumentError, match="not public here"):
        _ = quote.half_widths
    assert door.quote(q.Auc(epsilon="1"), rows=600).half_widths[0]["AUC"].noise > 0


@pytest.mark.parametrize("where", ["file", "postgres"])
def test_sixteen_threads_with_budget_for_ten_reports_get_ten_whole_ones(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = tmp_path / "l.sqlite" if where == "file" else request.getfixturevalue("postgres")
    dataset = ho.Dataset(TABLE, label="y", score="p", name="racing")
    with ho.Ledger.open(place) as ledger:
        door = ho.Session(dataset, budget=ho.Budget(epsilon=10), ledger=ledger)

        def ask(_: int) -> Any:
            try:
                return door.report(epsilon="1", sections=["auc", "confusion", "brier"])
            except BudgetExceeded as refused:
                return str(refused)

        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(ask, range(30)))
        refused = [each for each in answers if isinstance(each, str)]
        reports = [each for each in answers if not isinstance(each, str)]
        assert (len(reports), len(refused)) == (10, 20)
        assert all("Nothing was charged" in each for each in refused)
        assert {name for each in reports for name in each.releases} == {"auc", "confusion", "brier"}
        assert len({each["auc"].receipt.hash for each in reports}) == 10
        assert len(ledger.entries()) == 10
