"""`heldout train`: the model is the answer, as a file that a custodian takes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho


@pytest.fixture
def flags(tmp_path: Path) -> Path:
    y = np.arange(2000) % 2
    columns = {"late": y, "paid": 1 - y, "blue": np.arange(2000) % 3 == 0, "y": y}
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(str(int(cell)) for cell in row) for row in rows)]
    place = tmp_path / "flags.csv"
    place.write_text("\n".join(lines) + "\n")
    return place


def test_a_trained_model_is_checked_and_scores_rows(run: Any, flags: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    words = ["--columns", "late,paid,blue", "--label", "y", "--epsilon", "4", "--yes"]
    done = run("train", str(flags), *words, "--out", str(out))
    assert done.code == 0, done.err
    model = json.loads(out.read_text())
    assert model["link"] == "logit"
    assert model["coefficients"]["late"] > 0 > model["coefficients"]["paid"]
    assert run("model", "check", str(out)).code == 0
    loaded = ho.models.load(out, isolation="none")
    assert loaded.row_wise


def test_what_is_no_linear_model_is_refused_before_it_is_paid(run: Any, flags: Path) -> None:
    many = ",".join(f"c{place}" for place in range(51))
    for words in (["--columns", many], ["--text", "late"]):
        done = run("train", str(flags), *words, "--label", "y", "--epsilon", "1", "--yes")
        assert done.code == 2
        assert "at most 50 columns" in done.err
