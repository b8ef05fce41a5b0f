"""Outcomes alone are secret on the server: registered, asked about, and refused in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.server.conftest import Site
from tests.server.test_regression import predictions

from heldout.errors import ArgumentError
from heldout.server.declaration import Declaration

DECLARED: dict[str, Any] = {"label": "y", "row_key": "id", "neighbours": "label"}


@pytest.mark.parametrize(
    "more",
    [
        {"features": ["age", "Y"]},
        {"groups": {"y": [1]}},
        {"unit": "y"},
        {"weight": "y", "largest_weight": 1},
        {"people": "patients"},
        {"survival": {"time": "days", "event": "died"}},
        {"flags": {"columns": ["y", "age"]}},
    ],
)
def test_an_outcome_that_something_else_would_show_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="neighbours='label'"):
        Declaration.of(DECLARED | more)


def test_the_account_knows_the_outcome() -> None:
    assert Declaration.of(DECLARED).of_account["outcome"] == "y"
    assert "outcome" not in Declaration.of(DECLARED | {"neighbours": "replace-one"}).of_account


def test_rows_whose_outcomes_alone_are_secret_are_asked_and_say_so(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    outcome = (generator.random(400) < 0.3).astype(int)
    table = {"id": np.arange(400), "age": generator.random(400), "y": outcome}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    site = Site(tmp_path / "server")
    try:
        body = {"name": "rows", "source": str(tmp_path / "rows.parquet"), "budget": "9"}
        sent = site.client("carol").post("/api/v1/datasets", json=body | {"declaration": DECLARED})
        sent.raise_for_status()
        site.work()
        facts = site.client("carol").get("/api/v1/datasets/rows").json()
        assert facts["state"] == "open", facts["words"]
        assert list(facts["features"]) == ["age"]
        site.grant(name="rows", budget="5")
        scores = np.round(np.clip(0.3 + 0.4 * outcome * generator.random(400), 0, 1), 3)
        sent = site.client("ana").put(
            "/api/v1/artifacts?name=m",
            content=predictions(scores),
            headers={"Content-Type": "text/csv", "Prefer": "wait=0"},
        )
        sent.raise_for_status()
        site.work()
        asked = site.client("ana").post(
            "/api/v1/evaluations",
            json={
                "dataset": "rows",
                "artifact": sent.json()["id"],
                "questions": [
                    {"question": "confusion", "epsilon": "1"},
                    {"question": "curves", "epsilon": "1"},
                ],
            },
            headers={"Idempotency-Key": "one"},
        )
        site.work()
        address = f"/api/v1/evaluations/{asked.json()['id']}"
        answer = site.client("ana").get(address, headers={"Prefer": "wait=5"}).json()
        assert answer["state"] == "answered", answer["words"]
        for release in answer["answers"]:
            assert release["protection"]["neighbours"] == "label"
            assert release["protection"]["outcome"] == "y"
    finally:
        site.service.close()
