"""No clock decides a score: a row's score is its own, or the job fails as a whole."""

import importlib
import time
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import TensorProto, helper, numpy_helper

import heldout as ho
from heldout.errors import ScoringFailed, UnusableModel
from heldout.models import sandbox
from heldout.models.isolate import Scorer
from heldout.models.keeper import Field, Task
from heldout.models.verify import examine

attacks: Any = importlib.import_module("attacks")

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")

X = [f"x{i}" for i in range(attacks.WIDTH)]
LATE = 1_000
FALSE_ALARM = 1e-7  # chance that a sound machine fails one of the rank tests below


def looping() -> Any:
    """A model that is not proven, and runs for ever on a row of 1e17."""
    return ho.models.load(attacks.ATTACKS["a_loop_as_long_as_a_row_says"]())


def rows_of(late: int, fast: int) -> pd.DataFrame:
    cells = np.full((late + fast, len(X)), 1e17)
    cells[late:] = np.linspace(0, 3, fast * len(X)).reshape(fast, len(X))
    return pd.DataFrame(cells, columns=X).assign(id=range(late + fast))


def scores(model: Any, rows: pd.DataFrame, **options: Any) -> Any:
    options = {"allow_unproven": True, "tick": 0.001, "column": 0, "default": -7.0, **options}
    return ho.models.score(model, rows, features=X, **options).to_arrow()["score"].to_numpy()


@pytest.mark.parametrize("late", [20, pytest.param(LATE, marks=pytest.mark.slow)])
def test_late_rows_before_them_change_no_bit_of_fast_rows(
    late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    score_module: Any = importlib.import_module("heldout.models.score")
    monkeypatch.setattr(score_module, "FORK", 1.0)  # other tests may have the processor
    model, rows, fast = looping(), rows_of(late, 200), 200 if late == LATE else 20
    rows = rows.iloc[: late + fast]
    alone = scores(model, rows.iloc[late:], seconds_per_row=0.05)
    after = scores(model, rows, seconds_per_row=0.05)
    assert (after[:late] == -7.0).all()
    assert (alone != -7.0).all()
    assert np.array_equal(after[late:].view(np.int64), alone.view(np.int64))


def test_a_job_that_is_not_finished_in_its_declared_time_fails_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    rows, out, calls, original = rows_of(0, 4), tmp_path / "scored.parquet", [], Scorer.score

    def late(scorer: Scorer, block: Any, count: int) -> Any:
        calls.append(count)
        if len(calls) == 3:
            scorer._until = 0.0  # the declared time is over before the third row is scored
        return original(scorer, block, count)

    monkeypatch.setattr(Scorer, "score", late)
    with pytest.raises(ScoringFailed, match="All scores are discarded"):
        scores(looping(), rows, seconds_per_row=5.0, out=out)
    assert not out.exists()


def test_a_model_too_slow_for_its_declared_time_is_refused_before_a_row_is_read() -> None:
    nodes = [attacks.node("MatMul", ["x", "w"], ["h0"])]
    nodes += [attacks.node("MatMul", [f"h{n}", "v"], [f"h{n + 1}"]) for n in range(40)]
    weights = {"w": attacks.floats(4, 1500), "v": attacks.floats(1500, 1500)}
    model = ho.models.load(attacks.model(nodes, weights, output="h40"))
    assert model.row_wise
    with pytest.raises(UnusableModel, match=r"more than 0\.0001 seconds per row"):
        scores(model, rows_of(0, 4), seconds_per_row=0.0001, column=0)


# --- time that depends on cells -------------------------------------------------------------------


def turning(operator: str, wide: int) -> bytes:
    """The sum of sines or cosines of `wide` copies of a double."""
    shape = [numpy_helper.from_array(np.array([1, wide]), "shape")]
    graph = helper.make_graph(
        [
            helper.make_node("Expand", ["x", "shape"], ["w"]),
            helper.make_node(operator, ["w"], ["s"]),
            helper.make_node("ReduceSum", ["s", "axis"], ["y"]),
        ],
        "turning",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["rows", 1])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["rows", 1])],
        [*shape, numpy_helper.from_array(np.array([1]), "axis")],
    )
    opset = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString())


@pytest.mark.parametrize("operator", ["Sin", "Cos"])
def test_angles_are_those_of_numpy_within_the_declared_bound(operator: str) -> None:
    angles = np.array([0.0, 0.5, -2.0, 3.1, 100.0, -12345.678, 1e7])
    model = ho.models.load(turning(operator, 1))
    assert model.row_wise
    scored = ho.models.score(model, {"x": angles})
    wanted = getattr(np, operator.lower())(angles)
    assert np.allclose(scored.to_arrow()["score"].to_numpy(), wanted, rtol=0, atol=1e-7)
    huge = ho.models.score(model, {"x": [1e22, 1e300, 2.0**26]}).to_arrow()["score"].to_numpy()
    assert len(set(huge)) == 1, "angles beyond the bound count as the bound"


@pytest.mark.slow
@pytest.mark.chance(FALSE_ALARM, "a p-value of ranks; the times are not noise of ours")
@pytest.mark.parametrize("operator", ["Sin", "Cos"])
def test_the_time_does_not_tell_how_many_rows_have_huge_angles(operator: str) -> None:
    from scipy.stats import kruskal

    rows, times = 2000, {0: [], 150: [], 400: []}  # type: ignore[var-annotated]
    task = Task(
        content=turning(operator, 1024),
        output=None,
        sandboxed=True,
        memory=2**30,
        seconds=600,
        rows=rows,
        fields=(Field("x", "float64", 1, 2),),
    )
    source = np.random.default_rng()
    scorer = Scorer(task, until=time.monotonic() + 600)
    try:
        for attempt in range(53):
            for affected in source.permutation(list(times)).tolist():
                cells = source.normal(size=(rows, 1))
                cells[source.choice(rows, affected, replace=False)] = 1e22
                began = time.perf_counter()
                scorer.score({"x": cells}, rows)
                if attempt >= 3:
                    times[affected].append(time.perf_counter() - began)
    finally:
        scorer.close()
    assert kruskal(*times.values()).pvalue > FALSE_ALARM


def test_a_model_whose_time_depends_much_on_cells_is_refused() -> None:
    found, _ = examine(turning("Sin", 2**13), output=None)
    assert not found["problems"]
    found, _ = examine(turning("Sin", 2**15), output=None)
    assert "differ too much between two rows" in found["problems"][0][1]


def test_a_constant_with_a_negative_dimension_is_refused() -> None:
    def change(model: onnx.ModelProto) -> None:
        model.graph.initializer[0].dims[:] = [-1, 2]

    nodes = [attacks.node("MatMul", ["x", "w"], ["y"])]
    found, _ = examine(
        attacks.model(nodes, {"w": attacks.floats(4, 2)}, change=change), output=None
    )
    assert "has a dimension below 0" in found["problems"][0][1]
