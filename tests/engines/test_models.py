"""A model scores rows of a database as it does those of a frame."""

from typing import Any

import pyarrow as pa
import pytest

import heldout as ho

MODEL = {"coefficients": {"age": 0.1, "sex": {"F": 0.0, "M": 1.0}}, "intercept": -5}


def test_rows_of_a_database_are_scored_like_a_frame(engine: Any) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 3, 4],
            "age": [40.0, None, 60.5, 70.0],
            "sex": ["F", "M", "M", None],
            "y": [0, 1, 1, 0],
        }
    )
    model, found = ho.models.load(MODEL), {}
    for name, source in (("frame", rows), ("database", engine.hold(rows))):
        scored = ho.models.score(model, source, row_key="id", default=-9.0).to_arrow()
        found[name] = dict(zip(scored["id"].to_pylist(), scored["score"].to_pylist(), strict=True))
    assert (
        found["frame"] == found["database"] == {1: -1.0, 2: -9.0, 3: pytest.approx(2.05), 4: -9.0}
    )
