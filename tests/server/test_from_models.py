"""Numbers that analysts' models give, judged as columns of rows with a time or with values."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.chances import louder
from tests.server.clicking import Clicking
from tests.server.conftest import LINEAR, Site

from heldout.errors import ArgumentError
from heldout.server.declaration import Declaration

ROWS = 600
RANDOM = np.random.default_rng(5)
AGE = RANDOM.uniform(0, 1, ROWS)
FOLLOWED: dict[str, Any] = {
    "who": [f"f{at}" for at in range(ROWS)],
    "days": 1 + 9 * (1 - AGE),
    "died": np.ones(ROWS, dtype=int),
    "age": AGE,
    "g": ["xy"[at % 2] for at in range(ROWS)],
}
OF_FOLLOWED: dict[str, Any] = {
    "row_key": "who",
    "groups": {"g": ["x", "y"]},
    "survival": {"time": "days", "event": "died"},
    "from_models": {"risk": [0, 1]},
}
JUDGED = {
    "who": [f"j{at}" for at in range(ROWS)],
    "grade": [at % 5 for at in range(ROWS)],
}
OF_JUDGED: dict[str, Any] = {
    "row_key": "who",
    "measured": {"values": {"grade": [0, 4]}},
    "from_models": {"dice": [0, 1], "minutes": [0, 60]},
}
RISK = LINEAR | {"coefficients": {"age": 4.0}, "intercept": -2.0}
CONCORDANCE = {"question": "concordance", "epsilon": "20"}
BRIER = {"question": "survival-brier", "epsilon": "20", "column": "risk", "horizon": 5.0}
CALIBRATION = {
    "question": "survival-calibration",
    "epsilon": "20",
    "column": "risk",
    "horizon": 5.0,
    "bins": 2,
}
ALONE = {"question": "kaplan-meier", "epsilon": "20", "grid": [2.0, 5.0]}


class Judging(Site):
    """A server with followed and with judged rows."""

    def add(self, folder: Path, name: str, table: Any, declaration: Any) -> None:
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")
        body = {"name": name, "source": str(folder / f"{name}.parquet"), "budget": "1000"}
        body |= {"declaration": declaration}
        wait = {"Prefer": "wait=0"}
        self.client("carol").post("/api/v1/datasets", json=body, headers=wait).raise_for_status()
        self.work()
        facts = self.client("carol").get(f"/api/v1/datasets/{name}").json()
        assert facts["state"] == "open", facts["words"]
        self.grant(name=name, budget="900")

    def send(self, name: str, content: bytes, kind: str) -> str:
        model = self.send_file(name, content, kind)
        assert model["state"] == "ready", model["words"]
        return str(model["id"])

    def answered(self, dataset: str, key: str, *questions: Any, **more: Any) -> Any:
        body = {"dataset": dataset, "questions": list(questions)} | more
        headers = {"Idempotency-Key": key}
        asked = self.client("ana").post("/api/v1/evaluations", json=body, headers=headers)
        if asked.status_code != 202:
            return {"state": "refused", "words": asked.text} | asked.json()
        self.work()
        address = f"/api/v1/evaluations/{asked.json()['id']}"
        return self.client("ana").get(address, headers={"Prefer": "wait=10"}).json()


@pytest.fixture(scope="module")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judging]:
    folder = tmp_path_factory.mktemp("from-models")
    site = Judging(folder / "server")
    site.add(folder, "followed", FOLLOWED, OF_FOLLOWED)
    site.add(folder, "judged", JUDGED, OF_JUDGED)
    yield site
    site.service.close()


def by_key(names: str, *columns: Any) -> bytes:
    lines = [f"key,{names}"]
    lines += [",".join(map(str, cells)) for cells in zip(*columns, strict=True)]
    return "\n".join(lines).encode()


def first_value(answer: Any) -> float:
    return float(next(iter(answer["measures"].values()))["value"])


@pytest.mark.chance(louder(0, 3, 40))
def test_a_models_risk_is_judged_against_time_and_event(judging: Judging) -> None:
    model = judging.send("risk.json", json.dumps(RISK).encode(), "application/json")
    facts = judging.client("ana").get("/api/v1/datasets/followed").json()
    assert (facts["from_models"], list(facts["features"])) == ({"risk": [0.0, 1.0]}, ["age"])
    takes = {each["question"]: each["takes_model"] for each in facts["questions"]}
    assert takes["concordance"]
    assert takes["survival-brier"]
    assert not takes["kaplan-meier"]
    told = judging.answered("followed", "m1", CONCORDANCE, BRIER, CALIBRATION, artifact=model)
    assert told["state"] == "answered", told["words"]
    assert first_value(told["answers"][0]) > 0.9  # the older die first
    subject = told["statement"]["statement"]["subject"]
    assert [each["name"] for each in subject["models"]] == ["risk.json"]


@pytest.mark.chance(louder(0, 3, 40))
def test_predictions_by_key_are_judged_the_same_way(judging: Judging) -> None:
    upside_down = by_key("score", FOLLOWED["who"], 1 - AGE)
    model = judging.send("down.csv", upside_down, "text/csv")
    told = judging.answered("followed", "p1", CONCORDANCE | {"by": "g"}, artifact=model)
    assert told["state"] == "answered", told["words"]
    told = judging.answered("followed", "p2", CONCORDANCE, artifact=model)
    assert first_value(told["answers"][0]) < 0.1


def test_questions_of_the_rows_alone_take_no_model_and_the_others_need_one(
    judging: Judging,
) -> None:
    model = judging.send("risk.json", json.dumps(RISK).encode(), "application/json")
    told = judging.answered("followed", "a1", ALONE)
    assert told["state"] == "answered", told["words"]
    assert told["statement"]["statement"]["subject"]["models"] == []
    assert (
        "leave artifact out" in judging.answered("followed", "a2", ALONE, artifact=model)["detail"]
    )
    assert "id of the model" in judging.answered("followed", "a3", CONCORDANCE)["detail"]


@pytest.mark.chance(louder(0, 3, 40))
def test_predictions_by_key_carry_several_declared_columns(judging: Judging) -> None:
    columns = np.full(ROWS, 0.75), np.full(ROWS, 90.0)
    model = judging.send("several.csv", by_key("dice,minutes", JUDGED["who"], *columns), "text/csv")
    mean = {"question": "mean", "epsilon": "20"}
    told = judging.answered(
        "judged",
        "s1",
        mean | {"column": "dice"},
        mean | {"column": "minutes"},
        mean | {"column": "grade"},
        artifact=model,
    )
    assert told["state"] == "answered", told["words"]
    dice, minutes, grade = map(first_value, told["answers"])
    assert (dice, minutes, grade) == pytest.approx((0.75, 60, 2), abs=1)
    assert dice == pytest.approx(0.75, abs=0.05)
    alone = judging.answered("judged", "s2", mean | {"column": "grade"})
    assert alone["state"] == "answered", alone["words"]


def test_predictions_with_other_columns_are_refused_before_payment(judging: Judging) -> None:
    model = judging.send("one.csv", by_key("dice", JUDGED["who"], np.ones(ROWS)), "text/csv")
    asked = {"question": "mean", "epsilon": "1", "column": "dice"}
    told = judging.answered("judged", "o1", asked, artifact=model)
    assert "2 numbers of models: 'dice', 'minutes'" in told["detail"]


def test_a_page_asks_for_a_model_only_where_one_is_needed(judging: Judging) -> None:
    visitor = Clicking(judging, "ana").browser
    page = visitor.get("/datasets/followed/ask?by=price&cost=20&question=concordance").text
    assert "Choose the model that it is about." in page or "Submit a model first." in page
    page = visitor.get("/datasets/followed/ask?by=price&cost=20&question=kaplan-meier").text
    assert "Choose the model that it is about." not in page


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"label": "died"}, "must be left out where label or outcome"),
        ({"survival": None}, "must name the column label"),
        ({"survival": None, "flags": {"columns": ["a"]}}, "label of two values|rows that have"),
        ({"from_models": {"days": [0, 1]}}, "a column of the rows already"),
        ({"from_models": {"risk": {"low": 0, "high": 1}}}, "two bounds each"),
        ({"from_models": ["risk"]}, "bounds by column"),
    ],
)
def test_numbers_of_models_that_fit_nothing_are_refused(declared: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Declaration.of(OF_FOLLOWED | declared)


@pytest.mark.chance(louder(0, 6, 20))
def test_of_several_numbers_a_concordance_names_the_one_that_it_judges(
    tmp_path: Path,
) -> None:
    site = Judging(tmp_path / "server")
    two = OF_FOLLOWED | {"from_models": {"risk": [0, 1], "calm": [0, 1]}}
    site.add(tmp_path, "followed", FOLLOWED, two)
    lines = [f"{who},{age},{1 - age}" for who, age in zip(FOLLOWED["who"], AGE, strict=True)]
    model = site.send("two.csv", "\n".join(["key,risk,calm", *lines]).encode(), "text/csv")
    refused = site.answered("followed", "none", CONCORDANCE, artifact=model)
    assert "Name column, the risk that is judged" in refused["words"]
    for column, value in (("risk", 1.0), ("calm", 0.0)):
        asked = CONCORDANCE | {"column": column}
        answer = site.answered("followed", column, asked, artifact=model)
        assert answer["state"] == "answered", answer["words"]
        assert answer["answers"][0]["value"] == pytest.approx(value, abs=0.1)
        asked = CONCORDANCE | {"column": column, "by": "g"}
        groups = site.answered("followed", f"{column} by g", asked, artifact=model)
        of_x = groups["answers"][0]["groups"]["x"]["concordance"]
        assert of_x["value"] == pytest.approx(value, abs=0.2)
    site.service.close()
