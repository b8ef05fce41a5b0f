"""A private model is evaluated on private rows: same custody, and what is left of the budget."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from tests.chances import louder

import heldout as ho
from heldout.data.feature_matrix import ScoredFeatures
from heldout.errors import ArgumentError, BudgetExceeded, BudgetMismatch
from heldout.features import FeatureMatrix, HashedText, PrivateLogisticRegression, PrivatePipeline

ROWS = 400
PEOPLE = np.repeat(np.arange(ROWS // 2), 2)
RNG = np.random.default_rng(5)
y = np.arange(ROWS) % 2
X = (RNG.random((ROWS, 12)) < 0.2 + 0.5 * y[:, None]).astype(np.int8)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "keys",
    [{}, {"row_keys": np.arange(ROWS)}, {"unit": PEOPLE}, {"unit": PEOPLE, "rows_per_unit": 2}],
    ids=["rows", "keys", "people", "people of two"],
)
def test_training_and_evaluation_of_the_same_rows_share_one_budget(keys, neighbours, tmp_path):
    private = FeatureMatrix(X, y, neighbours=neighbours, most_rows=10 * ROWS, **keys)
    book = str(tmp_path / "ledger.sqlite")
    model = PrivatePipeline(epsilon="1", ledger=book, budget=ho.Budget(epsilon="3")).fit(private)
    scored = model.scored(private)
    assert scored.protection == private.protection
    assert scored.public_rows == private.public_rows
    session = ho.Session(scored, ledger=book)
    assert str(session.remaining) == "epsilon 2"
    session.auc(epsilon="3/2")
    with pytest.raises(BudgetExceeded):
        model.fit(private)
    with pytest.raises(BudgetExceeded):
        ho.Session(model.scored(private), ledger=book).auc(epsilon="1")
    with pytest.raises(BudgetMismatch):
        ho.Session(scored, budget=ho.Budget(epsilon="3"))


def test_each_row_is_scored_as_a_public_one_would_be():
    private = FeatureMatrix(X, y, features_per_row=3)
    model = PrivateLogisticRegression(epsilon="5").fit(private)
    found = model.scored(private)._fetch("SELECT label, score FROM evaluated")
    assert np.array_equal(np.asarray(found["label"]), y)
    assert np.allclose(np.asarray(found["score"]), model.predict_proba(X)[:, 1])


@pytest.mark.chance(louder(0, 6, 20))
def test_texts_are_scored_where_they_lie_and_through_the_features_that_were_chosen():
    table = {"message": ["win cash now", "see you soon"] * 200, "spam": [1, 0] * 200}
    private = FeatureMatrix.from_table(
        table, label="spam", text="message", space=HashedText(size=512)
    )
    model = PrivatePipeline(select="noisy-top-k", k=6, epsilon="50").fit(private)
    session = ho.Session(model.scored(private), budget=ho.Budget(epsilon="20"))
    assert session.auc(epsilon="20") > 0.9


def test_rows_of_another_kind_are_refused():
    model = PrivatePipeline(epsilon="1").fit(X, y)
    for wrong in (X, FeatureMatrix(X[:, :5], y)):
        with pytest.raises(ArgumentError, match="FeatureMatrix of 12 features"):
            model.scored(wrong)
    with pytest.raises(ArgumentError, match=r"Session\(model.scored\(rows\)"):
        model.predict_proba(FeatureMatrix(X, y))


BEYOND = 2**53  # from here on a double is not every integer


@pytest.mark.parametrize(
    ("kind", "people"),
    [
        (pa.decimal128(38, 0), [Decimal(10 * BEYOND + each) for each in range(12)]),
        (pa.decimal128(18, 0), [Decimal(10 * BEYOND + each) for each in range(12)]),
        (pa.decimal128(20, 2), [Decimal(10 * BEYOND + each).scaleb(-2) for each in range(12)]),
        (pa.uint64(), [2**63 + each for each in range(12)]),
        (pa.int64(), [2**62 + each for each in range(12)]),
        (pa.string(), [f"{BEYOND + each}.0" for each in range(12)]),
    ],
    ids=["decimal of 38", "decimal of 18", "cents", "unsigned", "signed", "text"],
)
@pytest.mark.parametrize("key", ["unit", "row_key"])
def test_keys_beyond_a_double_stay_those_of_different_people(kind, people, key):
    table = {"u": pa.array(people, kind), "y": [1, 0] * 6, "a": [1] * 6 + [0] * 6}
    private = FeatureMatrix.from_table(pa.table(table), label="y", features=["a"], **{key: "u"})
    found = ScoredFeatures(private, _first)._fetch("SELECT label, score FROM evaluated")
    assert len(found["label"]) == len(people)


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT", "DECIMAL(38,0)"])
def test_one_person_of_a_huge_number_who_leaves_takes_one_row_along(kind, tmp_path):
    def counts(people):
        path = tmp_path / "rows.csv"
        rows = [f"{person},{label},{label}" for person, label in people]
        path.write_text("\n".join(["u,y,a", *rows]))
        private = FeatureMatrix.from_table(
            str(path),
            label="y",
            features=["a"],
            unit="u",
            neighbours="add-remove",
            schema={"u": kind, "y": "INTEGER", "a": "INTEGER"},
        )
        scored = ScoredFeatures(private, _first)
        found = scored._fetch("SELECT label, score FROM evaluated")
        pairs = np.column_stack([found["label"], found["score"]]).astype(int)
        return np.array([(pairs == each).all(axis=1).sum() for each in ((0, 0), (1, 1))])

    others = [(each, each % 2) for each in range(20)]
    one, another = (2 * BEYOND, 1), (2 * BEYOND + 1, 0)  # one and the same double
    moved = counts([*others, one, another]) - counts([*others, another])
    assert moved.tolist() == [0, 1]


@pytest.mark.parametrize("unit", ["patient_id", "Score", "label"])
@pytest.mark.parametrize("row_key", [None, "visit"])
@pytest.mark.parametrize("registered", [True, False])
def test_people_under_the_custodians_names_are_trained_on_and_evaluated(
    unit, row_key, registered, tmp_path
):
    table = {unit: PEOPLE, "visit": np.arange(ROWS), "y": y, "a": X[:, 0], "b": X[:, 1]}
    private = FeatureMatrix.from_table(
        table, label="y", features=["a", "b"], unit=unit, rows_per_unit=2, row_key=row_key
    )
    book = str(tmp_path / "ledger.sqlite")
    named = {"ledger": book, "budget": ho.Budget(epsilon="3")}
    if registered:
        ledger = ho.Ledger.open(book)
        ledger.register("visits", budget=ho.Budget(epsilon="3"), unit=unit, rows_per_unit=2)
        named = {"ledger": ledger, "account": "visits"}
    model = PrivatePipeline(epsilon="1", **named).fit(private)
    scored = model.scored(private)
    assert scored.protection == private.protection
    assert str(ho.Session(scored, **named).remaining) == "epsilon 2"


def _first(matrix):
    return matrix.toarray()[:, 0].astype(float)
