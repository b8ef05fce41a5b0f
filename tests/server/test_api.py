"""The life of an evaluation, through the API."""

from pathlib import Path
from typing import Any

import pytest

from heldout.errors import ArgumentError
from heldout.server.declaration import Declaration

AUC = {"question": "auc", "epsilon": "1/2"}
CELLS = {"question": "confusion", "epsilon": "1/2", "threshold": 0.5}


def test_a_model_is_asked_about_and_paid_for(opened: Any) -> None:
    model = opened.upload()
    assert (model["state"], model["row_wise"]) == ("ready", True)
    quoted = opened.client("ana").post(
        "/api/v1/quotes", json={"dataset": "readmissions", "questions": [AUC, CELLS]}
    )
    assert quoted.json()["loss"] == {"epsilon": "1", "delta": "0"}
    assert quoted.json()["half_widths"][0]["AUC"]["noise"] > 0
    found = opened.answer(AUC, CELLS, artifact=model["id"], key="first")
    assert found["state"] == "answered"
    area, cells = found["answers"]
    assert 0.5 < area["value"] <= 1
    assert cells["release"] == "confusion"
    assert found["receipt"]["charge"] == {"epsilon": "1", "delta": "0"}
    left = opened.client("ana").get("/api/v1/datasets/readmissions").json()["allowance"]
    assert left["remaining"] == {"epsilon": "1", "delta": "0"}
    page = opened.client("ana").get(f"/api/v1/reports/{found['id']}.html")
    assert page.status_code == 200
    assert "heldout-statement" in page.text


def test_the_same_key_is_charged_once(opened: Any) -> None:
    model = opened.upload()["id"]
    first = opened.answer(AUC, artifact=model, key="same")
    again = opened.answer(AUC, artifact=model, key="same")
    assert first["id"] == again["id"]
    assert first["receipt"] == again["receipt"]
    other = opened.ask(CELLS, artifact=model, key="same")
    assert other.status_code == 409


def test_what_is_not_left_is_refused_before_any_work(opened: Any) -> None:
    model = opened.upload()["id"]
    refused = opened.ask({"question": "auc", "epsilon": "5"}, artifact=model, key="dear")
    assert (refused.status_code, refused.json()["type"]) == (402, "BudgetExceeded")
    assert "Nothing was charged" in refused.json()["detail"]


def test_a_model_that_is_not_proven_is_explained(opened: Any) -> None:
    found = opened.upload({"coefficients": {"age": "much"}})
    assert found["state"] == "refused"
    asked = opened.ask(AUC, artifact=found["id"], key="k")
    assert asked.status_code == 422


def test_rows_that_break_what_is_declared_are_told_to_their_custodian(
    site: Any, tmp_path: Path
) -> None:
    from tests.server.conftest import write_rows

    held = site.register(write_rows(tmp_path / "rows.parquet", readmitted=(3, 7)))
    assert held["state"] == "refused"
    assert "readmitted" in held["words"]


def test_a_share_that_would_end_in_the_past_is_refused_whole(opened: Any) -> None:
    change = {"budget": "3", "expires": 1.0}
    path = "/api/v1/datasets/readmissions/grants/ana"
    answer = opened.client("carol").patch(path, json=change)
    assert (answer.status_code, "in the future" in answer.json()["detail"]) == (422, True)
    [share] = opened.client("carol").get("/api/v1/datasets/readmissions/grants").json()
    assert share["budget"]["epsilon"] == "2", "and nothing was raised"


@pytest.mark.parametrize("name", ["../x", "a b", "", "x" * 65])
def test_names_fit_into_addresses(site: Any, name: str) -> None:
    body = {"name": name, "source": "x", "declaration": {"label": "y", "row_key": "k"}}
    answer = site.client("carol").post("/api/v1/datasets", json=body | {"budget": "1"})
    assert answer.status_code == 422


@pytest.mark.chance(
    1e-7, "twice or half is 7 deviations of a ratio, whose logarithms vary by .066 each"
)
def test_a_custodian_may_say_which_share_is_positive_and_quotes_take_it(
    site: Any, tmp_path: Path
) -> None:
    from tests.server.conftest import DECLARATION, write_rows

    file = str(write_rows(tmp_path / "rows.parquet"))
    for name, more in (("rare", {"prevalence": 0.02}), ("unsaid", {"new": True})):
        body = {"name": name, "source": file, "declaration": DECLARATION | more, "budget": "3"}
        wait = {"Prefer": "wait=0"}
        site.client("carol").post("/api/v1/datasets", json=body, headers=wait).raise_for_status()
        site.work()
        site.grant(name=name)
    client = site.client("ana")
    assert client.get("/api/v1/datasets/rare").json()["prevalence"] == 0.02

    def noise(name: str, **guess: int) -> float:
        body = {"dataset": name, "questions": [AUC], "guess": guess}
        answer = client.post("/api/v1/quotes", json=body).json()
        return float(answer["half_widths"][0]["AUC"]["noise"])

    # A forecast is the median of a few made-up answers, so two of the same are not quite equal.
    rare, unsaid = noise("rare"), noise("unsaid")
    assert rare == pytest.approx(noise("rare", positives=8), rel=1)
    assert rare == pytest.approx(noise("unsaid", positives=8), rel=1)
    assert unsaid == pytest.approx(noise("unsaid", positives=100), rel=1)
    assert 2 * unsaid < rare


def test_the_only_scores_of_models_are_declared() -> None:
    declared = {"label": "y", "row_key": "k", "score_values": [0, 0.25, 1]}
    assert Declaration.of(declared).of_rows["score_values"] == (0, 0.25, 1)
    assert Declaration.of(declared).content["score_values"] == [0, 0.25, 1]
    for wrong, words in (
        ({"score_values": [0, 2]}, "score_values must be 2 to"),
        ({"score_values": "0, 1"}, "score_values must be a list of numbers"),
        ({"classes": ["a", "b", "c"]}, "score_values must be left out where classes are declared"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Declaration.of(declared | wrong)


@pytest.mark.parametrize("share", [0, 1, -0.1, "some", True, [0.5]])
def test_a_share_of_positives_lies_between_0_and_1(share: Any) -> None:
    with pytest.raises(ArgumentError, match="prevalence must be a number between 0 and 1"):
        Declaration.of({"label": "y", "row_key": "k", "prevalence": share})
