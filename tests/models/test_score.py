"""Scoring private rows: the library's own scores, a default where a row fails, silence on rows."""

import importlib
import pickle
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heldout as ho
from heldout.errors import (
    ArgumentError,
    HeldoutError,
    MissingColumn,
    UnreadableTable,
    UnusableModel,
)
from heldout.models import sandbox
from heldout.regression import RegressionTable

attacks: Any = importlib.import_module("attacks")
swapping: Any = importlib.import_module("swapping")

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")

X = [f"x{i}" for i in range(attacks.WIDTH)]


def frame(rows: int = 6, seed: int = 0) -> pd.DataFrame:
    cells = swapping.rows_of("float32", rows, len(X), np.random.default_rng(seed))
    return pd.DataFrame(cells, columns=X).assign(id=range(rows), y=[0, 1] * (rows // 2))


def linear(width: int = 1) -> bytes:
    """A logistic model of the four columns, with as many classes as the width."""
    nodes = [attacks.node("MatMul", ["x", "w"], ["s"]), attacks.node("Sigmoid", ["s"], ["y"])]
    return bytes(attacks.model(nodes, {"w": attacks.floats(4, width)}))


@cache
def loaded(width: int = 1) -> Any:
    """The same, checked once: that takes a process of its own."""
    return ho.models.load(linear(width))


def scores(model: Any, rows: pd.DataFrame, **options: Any) -> Any:
    found = ho.models.score(model, rows, features=X, row_key="id", **options)
    return np.column_stack([found.to_arrow()[name].to_numpy() for name in found.scores])


def test_a_proven_model_scores_as_the_runtime_does_alone() -> None:
    import onnxruntime

    model, rows = ho.models.load(linear()), frame(50)
    assert model.row_wise
    assert model.why_not is None
    session = onnxruntime.InferenceSession(linear(), providers=["CPUExecutionProvider"])
    alone = [session.run(None, {"x": row[None]})[0].item() for row in rows[X].to_numpy()]
    found = scores(model, rows, default=-1.0)[:, 0]
    ordinary = np.isfinite(rows[X].to_numpy()).all(axis=1)
    assert np.allclose(found[ordinary], np.array(alone)[ordinary], rtol=0, atol=1e-6)
    assert set(found[~np.isfinite(alone)]) <= {-1.0}
    assert np.isfinite(found).all()


def test_the_swap_test_holds_for_what_is_proven() -> None:
    model, rows, others = loaded(), frame(8), frame(8, seed=1)
    before = scores(model, rows)
    for keep in (0, 3, 7):
        changed = others.copy()
        changed.loc[keep] = rows.loc[keep]
        assert np.array_equal(scores(model, changed)[keep], before[keep])


STATEFUL = [
    "randomness_drawn_only_if_a_row_says_so",
    "state_in_randomuniform",
    "reducemean_all",
    "softmax_along_rows",
    "a_recurrent_network_over_the_rows",
    "gathered_by_a_number_in_the_row",
    "a_tensor_as_large_as_a_row_says",
    "a_loop_as_long_as_a_row_says",
]


def test_what_is_not_proven_is_refused_unless_the_custodian_allows_it() -> None:
    model, seen = ho.models.load(attacks.ATTACKS["softmax_along_rows"]()), []
    with pytest.raises(UnusableModel, match="allow_unproven=True"):
        scores(model, frame(2), tick=0.001, progress=lambda *done: seen.append(done))
    assert not seen, "no row was scored"


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEFUL)
def test_what_is_not_proven_is_harmless_in_one_process_per_row(name: str) -> None:
    model, rows, others = ho.models.load(attacks.ATTACKS[name]()), frame(), frame(seed=1)
    assert not model.row_wise
    with pytest.raises(UnusableModel, match="allow_unproven=True"):
        scores(model, rows)
    allowed: dict[str, Any] = {"allow_unproven": True, "seconds_per_row": 5, "tick": 0.001}
    before = scores(model, rows, default=-7.0, **allowed)
    assert (before != -7.0).any() or name == "a_tensor_as_large_as_a_row_says", "it runs"
    for keep in (0, 5):
        changed = others.copy()
        changed.loc[keep] = rows.loc[keep]
        after = scores(model, changed, default=-7.0, **allowed)
        assert np.array_equal(after[keep], before[keep]), name


@pytest.mark.slow
def test_an_unproven_model_ends_when_it_was_declared_to_whatever_the_rows_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    score_module: Any = importlib.import_module("heldout.models.score")
    monkeypatch.setattr(score_module, "START", 8.0)
    model = ho.models.load(attacks.ATTACKS["integers_divided_by_a_cell"]())
    ends = score_module.declared_seconds(rows=4, seconds_per_row=0.3, one_process_per_row=True)
    assert ends == pytest.approx(8 + 4 * 0.4)
    for cell in (1.0, -1.0):  # fine, and deadly to its process
        began = time.monotonic()
        rows = frame(4).assign(**dict.fromkeys(X, cell))
        scores(model, rows, allow_unproven=True, seconds_per_row=0.3)
        assert ends <= time.monotonic() - began < ends + 20  # of a busy machine


def test_a_row_that_kills_its_process_or_is_late_has_the_default_and_no_other() -> None:
    deadly = ho.models.load(attacks.ATTACKS["integers_divided_by_a_cell"]())
    rows = frame(6).assign(**dict.fromkeys(X, 2.0))
    rows.loc[1, X] = -1.0  # the smallest integer divided by -1
    rows.loc[3, X] = 0.0
    found = scores(deadly, rows, allow_unproven=True, default=7.0, tick=0.001, column=0)[:, 0]
    assert [float(each) for each in found] == [-(2.0**62), 7.0, -(2.0**62), 7.0, *[-(2.0**62)] * 2]
    slow = ho.models.load(attacks.ATTACKS["a_loop_as_long_as_a_row_says"]())
    rows = frame(4).assign(**dict.fromkeys(X, 1.0))
    rows.loc[2, X] = 1e17
    # A busy machine scores the others within a second, too.
    found = scores(slow, rows, allow_unproven=True, seconds_per_row=1, tick=0.001, column=0)
    assert found[2, 0] == 0.0
    assert (found[[0, 1, 3], 0] != 0.0).all()


def test_nan_infinity_and_missing_cells_give_the_default() -> None:
    model = ho.models.load(bytes(attacks.model([attacks.node("Identity", ["x"], ["y"])])))
    rows = frame(4).assign(**dict.fromkeys(X, 1.0))
    rows.loc[0, "x0"] = np.nan
    rows.loc[1, "x0"] = np.inf
    rows["x0"] = rows["x0"].astype(object)
    rows.loc[2, "x0"] = None
    rows["x0"] = rows["x0"].astype("Float64")
    assert scores(model, rows, default=-2.0, column=0)[:, 0].tolist() == [-2.0, -2.0, -2.0, 1.0]


def test_three_classes_give_three_columns_and_two_the_second() -> None:
    three, rows = loaded(3), frame(4)
    assert three.width == 3
    found = ho.models.score(three, rows, features=X)
    assert found.scores == ("score_0", "score_1", "score_2")
    assert ho.models.score(loaded(2), rows, features=X).scores == ("score",)
    both = loaded(2)
    assert np.array_equal(scores(both, rows), scores(both, rows, column=1))
    with pytest.raises(ArgumentError, match="below 2"):
        scores(both, rows, column=2)


def test_the_result_is_a_table_for_every_workflow(tmp_path: Path) -> None:
    model, rows = loaded(), frame(60)
    first = ho.models.score(model, rows, features=X, row_key="id", into="a")
    both = ho.models.score(model, first, features=X, row_key="id", into="b", default=0.5)
    assert both.columns == [*rows.columns, "a", "b"]
    data = ho.Dataset(both, label="y", score="a", rivals=["b"])
    assert data.public_rows == 60
    session = ho.Session(data, budget=ho.Budget(epsilon="4"))
    assert 0 <= session.auc(epsilon="1").value <= 1
    session.compare(score="b", epsilon="1")
    RegressionTable(both, observed="y", predicted="a", row_key="id")
    file = ho.models.score(model, rows, features=X, row_key="id", out=tmp_path / "scored.parquet")
    again = ho.Dataset(file, label="y", score="score")
    assert again.public_rows == 60
    assert (tmp_path / "scored.parquet").stat().st_mode & 0o077 == 0
    with pytest.raises(ArgumentError, match="new file"):
        ho.models.score(model, rows, features=X, out=tmp_path / "scored.parquet")


def test_rows_scored_by_two_models_share_one_budget() -> None:
    model, rows = loaded(), frame(60)
    ledger = ho.Ledger.open("sqlite://")
    for which in ("a", "b"):
        scored = ho.models.score(model, rows, features=X, row_key="id", into=which)
        data = ho.Dataset(scored, label="y", score=which)
        session = ho.Session(data, budget=ho.Budget(epsilon="1"), ledger=ledger)
        session.auc(epsilon="1/2")
    assert str(session.remaining) == "epsilon 0"


def test_a_column_called_row_key_is_no_key() -> None:
    rows = frame(6).assign(row_key=1, p=0.5)
    assert ho.Dataset(rows, label="y", score="p").public_rows == 6


def test_the_result_shows_no_row() -> None:
    found = ho.models.score(loaded(), frame(), features=X, row_key="id")
    assert repr(found) == "ScoredRows(scores=['score'], row_key='id')"
    with pytest.raises(TypeError, match="private rows"):
        pickle.dumps(found)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (None, "takes 4 columns, got 1"),
        (X[:3], "takes 4 columns, got 3"),
        ([*X[:3], "text"], "is of kind text, and the model's input 'x' takes float32"),
        ({"z": X}, "no input 'z'"),
        ("x0", "list of columns"),
    ],
)
def test_columns_that_do_not_fit_are_named_to_whoever_declares_them(
    features: Any, words: str
) -> None:
    rows = frame().assign(text="a")
    with pytest.raises(ArgumentError, match=words):
        ho.models.score(loaded(), rows, features=features)


def test_a_column_that_is_not_there_is_missed_by_name() -> None:
    with pytest.raises(MissingColumn, match="nope"):
        ho.models.score(loaded(), frame(), features=[*X[:3], "nope"])
    with pytest.raises(HeldoutError, match="has a column 'Y' already"):
        ho.models.score(loaded(), frame(), features=X, into="Y")


def test_a_table_that_changes_while_it_is_scored_is_refused(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.csv", tmp_path / "scored.parquet"
    rows.write_text("id,age\n1,40\n2,50\n")
    model = ho.models.load({"coefficients": {"age": 0.1}, "intercept": -4})

    def changed(done: int, count: int) -> None:
        rows.write_text("id,age\n1,40\n2,99\n3,60\n")

    with pytest.raises(UnreadableTable, match="changed while it was scored"):
        ho.models.score(model, rows, row_key="id", out=out, progress=changed)
    assert not out.exists()
    assert ho.models.score(model, rows, row_key="id") is not None, "as it stands now"


def test_progress_is_reported_to_the_custodian() -> None:
    seen: list[tuple[int, int]] = []
    ho.models.score(
        ho.models.load({"coefficients": {"x0": 1.0}}),
        frame(10),
        progress=lambda done, rows: seen.append((done, rows)),
    )
    assert seen == [(10, 10)]


def test_what_is_no_model_is_refused_before_any_row(tmp_path: Path) -> None:
    for content in (b"", b"\x08\x07", b"garbage" * 100, bytes(1000)):
        with pytest.raises(UnusableModel):
            ho.models.load(content)
    with pytest.raises(ArgumentError, match="Check the path"):
        ho.models.load(tmp_path / "none.onnx")


def test_too_many_nodes_are_refused_before_any_row() -> None:
    with pytest.raises(UnusableModel, match="cannot be used"):
        ho.models.load(attacks.ATTACKS["a_hundred_thousand_nodes"]())
