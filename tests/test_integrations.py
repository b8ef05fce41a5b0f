"""Answers for other tools: nothing is read and nothing is charged."""

import json
import sys
from datetime import date
from types import ModuleType

import pytest

import heldout as ho
from heldout.errors import ArgumentError, MissingDependency

WORDS = {
    "name": "Readmission model",
    "curator": "St. Mary's Hospital",
    "use": "Decide whether the model may be used.",
    "region": "Ireland",
    "published": date(2026, 11, 18),
    "author": "A. Custodian",
}


@pytest.fixture(scope="module")
def session():
    rows = {"id": list(range(400)), "y": [1, 0] * 200, "p": [0.8, 0.3] * 200}
    made = ho.Dataset(rows, label="y", score="p", unit="id")
    return ho.Session(made, budget=ho.Budget(epsilon="100000"))


class Recorder(ModuleType):
    """Stands for mlflow, with the four calls that are made."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.metrics: dict[str, float] = {}
        self.tags: dict[str, str] = {}
        self.files: dict[str, object] = {}

    def log_metrics(self, metrics, step=None):
        self.metrics |= metrics

    def set_tags(self, tags):
        self.tags |= tags

    def log_dict(self, content, name):
        json.dumps(content)
        self.files[name] = content


def test_mlflow_gets_value_interval_price_and_receipt(session, monkeypatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    answer = session.auc(epsilon="100")
    ho.integrations.log_to_mlflow(answer)
    low, high = answer.interval()
    ends = {"heldout.AUC.low": low, "heldout.AUC.high": high}
    assert recorder.metrics == {"heldout.AUC": answer.value, **ends}
    assert recorder.tags["heldout.receipt"] == answer.receipt.hash
    assert recorder.tags["heldout.epsilon"] == "100"
    assert [content["kind"] for content in recorder.files.values()] == ["auc"]


def test_a_measure_that_noise_hides_gets_no_value(session, monkeypatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    content = session.auc(epsilon="100").as_dict()
    content["measures"]["AUC"]["informative"] = False
    ho.integrations.log_to_mlflow(content)
    assert recorder.metrics == {}
    assert recorder.tags


def test_without_mlflow_the_message_names_it(session, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependency, match="pip install mlflow"):
        ho.integrations.log_to_mlflow(session.auc(epsilon="1"))


def test_an_entry_of_the_registry_says_price_unit_and_neighbours(session) -> None:
    entry = ho.integrations.registry_entry(session.auc(epsilon="5/2"), **WORDS)
    assert entry["status"] == "Draft"
    assert entry["url_slug"] == "readmission-model-st-mary-s-hospital-2026"
    deployment = entry["deployment"]
    required = {"name", "data_curators", "description", "intended_use", "data_product_type",
                "data_product_region", "publication_date"}  # fmt: skip
    assert required <= set(deployment["basic"])
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.5}
    assert "One id" in deployment["privacy_loss"]["privacy_unit"]
    assert "replacing one unit" in deployment["privacy_loss"]["privacy_unit_details"]
    assert "piecewise Laplace" in deployment["implementation"]["mechanisms"]
    assert json.loads(json.dumps(entry)) == entry


def test_what_is_no_answer_is_refused() -> None:
    with pytest.raises(ArgumentError, match="it lacks claim, kind"):
        ho.integrations.registry_entry({"measures": {}}, **WORDS)
    with pytest.raises(ArgumentError, match="answer must be a release"):
        ho.integrations.registry_entry(0.85, **WORDS)
