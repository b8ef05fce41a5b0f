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


@pytest.fixture
def people(tmp_path: Path) -> Path:
    random = np.random.default_rng(5)
    age, ward = random.uniform(18, 90, 4000), random.integers(0, 4, 4000)
    smokes = random.integers(0, 2, 4000)
    ill = age / 20 + 2.0 * (ward == 2) + smokes + random.logistic(size=4000) > 4.5
    lines = [
        "age,ward,smokes,ill",
        *(f"{a:.1f},{w},{s},{int(i)}" for a, w, s, i in zip(age, ward, smokes, ill, strict=True)),
    ]
    place = tmp_path / "people.csv"
    place.write_text("\n".join(lines) + "\n")
    return place


def test_numbers_and_kinds_are_trained_on_by_their_bounds_and_scored_as_they_are(
    run: Any, people: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model.json"
    words = ["--columns", "age,ward,smokes", "--bounds", "age=18,90", "ward=4", "--label", "ill"]
    done = run("train", str(people), *words, "--epsilon", "8", "--yes", "--out", str(out))
    assert done.code == 0, done.err
    coefficients = json.loads(out.read_text())["coefficients"]
    assert list(coefficients) == ["age", "ward", "smokes"]
    assert coefficients["ward"]["edges"] == [0.5, 1.5, 2.5]
    ages, wards = (coefficients[name]["weights"] for name in ("age", "ward"))
    assert len(ages) == 32
    assert ages[0] < ages[16] < ages[-1]
    assert max(wards) == wards[2]
    assert coefficients["smokes"] > 0
    model = ho.models.load(out, isolation="none")
    rows = {"age": [20.0, 85.0, 85.0], "ward": [0, 0, 2], "smokes": [0, 0, 1]}
    well, old, ill = ho.models.score(model, rows).to_arrow()["score"].to_pylist()
    assert 0 < well < old < ill < 1


def test_bounds_that_cannot_be_read_are_refused_before_anything_is_paid(
    run: Any, people: Path
) -> None:
    for bounds, says in (("age", "age=18,90"), ("age=90,18", "lower"), ("pay=0,9", "pay")):
        words = ["--columns", "age,smokes", "--bounds", bounds, "--label", "ill"]
        done = run("train", str(people), *words, "--epsilon", "1", "--yes", "--out", "m.json")
        assert done.code == 2, bounds
        assert says in done.err
