"""Whatever the verifier accepts passes the swap test; whatever breaks it was refused."""

import importlib
from typing import Any

import numpy as np
import onnxruntime
import pytest

from heldout.models.verify import examine

graphs: Any = importlib.import_module("random_graphs")
swapping: Any = importlib.import_module("swapping")

BATCH = 3
GRAPHS = 1500


def runner(content: bytes, *, alone: bool = False) -> Any:
    """Runs a model over rows, all at once or one at a time."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (value,) = session.get_inputs()

    def run(rows: Any) -> Any:
        if not alone:
            return session.run(None, {value.name: rows})[0]
        return np.concatenate([session.run(None, {value.name: row[None]})[0] for row in rows])

    return run


def outcome(seed: int) -> tuple[bool, bool | None]:
    """Whether a random graph is proven, and whether it leaks (None: it does not run)."""
    content = graphs.random_graph(seed, batch=BATCH)
    found, proven = examine(content, output=None)
    assert "unreadable" in found or found["problems"] or found["width"] >= 1
    accepted = "unreadable" not in found and not found["problems"]
    source = np.random.default_rng(seed)
    rows, others = (swapping.rows_of("float32", BATCH, graphs.WIDTH, source) for _ in range(2))
    try:
        run = runner(proven if accepted else content)
        run(rows)
    except Exception:
        assert not accepted, "what is proven also runs"
        return accepted, None
    if accepted:
        assert len(run(rows)) == BATCH
        assert run(rows).reshape(BATCH, -1).shape[1] == found["width"], (
            "shapes are inferred rightly"
        )
        assert not swapping.leaks(runner(proven, alone=True), rows, others)
    return accepted, bool(swapping.leaks(run, rows, others))


@pytest.mark.slow
def test_random_graphs_that_are_proven_never_leak() -> None:
    accepted, leaking = 0, 0
    with np.errstate(all="ignore"):
        for seed in range(GRAPHS):
            proven, leaks = outcome(seed)
            assert not (proven and leaks), (
                f"graph {seed} is proven, and a row moves another's score"
            )
            accepted += proven
            leaking += bool(leaks)
    assert accepted > GRAPHS // 10, "the verifier accepts what is row-wise"
    assert leaking > GRAPHS // 50, "the generator makes graphs that leak"
