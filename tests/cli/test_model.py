"""`heldout model check`, the custodian's verdict at home, and `heldout evaluate --model`."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "models"))
LINEAR = (
    '{"coefficients": {"age": 0.03, "prior_admissions": 0.2}, "intercept": -4, "link": "logit"}'
)


@pytest.fixture
def attacks() -> Any:
    pytest.importorskip("onnxruntime")
    return importlib.import_module("attacks")


def test_a_model_that_is_proven_is_said_to_be(run, attacks):
    Path("model.onnx").write_bytes(attacks.model([attacks.node("Sigmoid", ["x"], ["y"])]))
    outcome = run("model", "check", "model.onnx")
    assert (outcome.code, outcome.err) == (0, "")
    assert "row-wise" in outcome.out
    assert "takes x (float32, 4 columns)" in outcome.out


def test_a_model_that_is_not_proven_is_refused_with_its_node_and_how_to_mend_it(run, attacks):
    Path("model.onnx").write_bytes(attacks.ATTACKS["softmax_along_rows"]())
    outcome = run("model", "check", "model.onnx")
    assert outcome.code == 2
    assert "node number 1 (Softmax): it mixes rows" in outcome.out
    assert "Work along the features" in " ".join(outcome.out.split())
    assert outcome.err.count("\n") == 1


def test_the_verdict_as_json(run, attacks):
    Path("model.onnx").write_bytes(attacks.ATTACKS["softmax_along_rows"]())
    found = json.loads(run("model", "check", "model.onnx", "--json").out)
    assert found["row_wise"] is False
    assert found["problems"][0]["node"] == "node number 1 (Softmax)"
    found = json.loads(run("model", "check", "model.json", "--json").out)
    assert found["row_wise"] is True
    assert found["inputs"][0] == {"name": "age", "type": "float64", "width": 1}


@pytest.mark.parametrize("rows", ["test.parquet", "test.csv"])
def test_evaluate_scores_the_rows_first(run, rows):
    line = (
        f"evaluate {rows} --label readmitted --model model.json --epsilon 2 --sections auc --json"
    )
    outcome = run(*line.split())
    assert (outcome.code, outcome.err) == (0, "")
    assert 0 <= json.loads(outcome.out)["releases"]["auc"]["value"] <= 1


def test_evaluate_with_a_column_that_the_table_lacks_names_it(run):
    Path("other.json").write_text('{"coefficients": {"weight": 1}}')
    outcome = run(
        *[
            "evaluate",
            "test.parquet",
            "--label",
            "readmitted",
            "--model",
            "other.json",
            "--epsilon",
            "1",
        ]
    )
    assert outcome.code == 2
    assert "'weight'" in outcome.err


def test_models_share_the_budget_of_their_rows(run):
    line = "evaluate test.parquet --label readmitted --epsilon 1 --sections auc --json"
    custody = "--row-key encounter_id --ledger l.sqlite"
    assert run(*line.split(), *custody.split(), "--score", "risk_a", "--budget", "2").code == 0
    assert run(*line.split(), *custody.split(), "--model", "model.json").code == 0
    assert run(*line.split(), *custody.split(), "--model", "model.json").code == 1, (
        "nothing is left"
    )
