"""A private twin that a custodian publishes: priced in the ledger, downloaded by analysts."""

import csv
from collections.abc import Iterator
from html import unescape
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tests.server.clicking import Clicking
from tests.server.conftest import Site, write_rows

from heldout.server import evaluations

ROWS = {"id": list(range(500)), "age": [18 + at % 60 for at in range(500)]}
ROWS |= {"pay": [1000.0 * (at % 60) for at in range(500)]}
DECLARATION = {"row_key": "id", "measured": {"values": {"age": [18, 78], "pay": [0, 60000]}}}
TWIN = {"question": "private-twin", "epsilon": "5", "bins": 4, "whole": ["age"]}
TWIN |= {"separability": "1/5"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("published")
    site = Site(folder / "server")
    pyarrow.parquet.write_table(pyarrow.table(ROWS), folder / "people.parquet")
    body = {"name": "people", "source": str(folder / "people.parquet"), "budget": "10"}
    body |= {"declaration": DECLARATION}
    wait = {"Prefer": "wait=0"}
    site.client("carol").post("/api/v1/datasets", json=body, headers=wait).raise_for_status()
    site.work()
    site.grant(name="people", budget="2")
    site.register(write_rows(folder / "rows.parquet"))
    site.grant(budget="1")
    yield site
    site.service.close()


def published(site: Site, key: str, who: str = "carol", **question: Any) -> Any:
    headers = {"Idempotency-Key": key}
    body = {"question": TWIN | question}
    return site.client(who).post("/api/v1/datasets/people/published", json=body, headers=headers)


def test_a_twin_is_booked_once_and_downloaded_by_analysts(site: Site) -> None:
    asked = published(site, "one")
    assert asked.status_code == 202, asked.text
    assert published(site, "one").json()["id"] == asked.json()["id"]
    site.work()
    identity = asked.json()["id"]
    wait = {"Prefer": "wait=10"}
    assert (
        site.client("carol").get(f"/api/v1/evaluations/{identity}", headers=wait).json()["state"]
        == "answered"
    )
    ana = site.client("ana")
    [shown] = ana.get("/api/v1/datasets/people/published").json()
    assert (shown["id"], shown["price"]["epsilon"]) == (identity, "5")
    assert any("three columns" in words for words in shown["answers_badly"])
    # To read it takes seconds, when nobody did yet.
    site.service.free._set("ana", -60.0)
    try:
        assert ana.get("/api/v1/datasets/people/published").status_code == 429
    finally:
        site.service.free._left.clear()
    text = ana.get(f"/api/v1/datasets/people/published/{identity}.csv").text
    made = list(csv.DictReader(text.splitlines()))
    assert (list(made[0]), len(made)) == (["age", "pay"], 500)
    assert all(18 <= int(row["age"]) <= 78 and 0 <= float(row["pay"]) <= 60000 for row in made)
    # Out of the data set's budget, once; nobody's allowance pays.
    spent = [
        site.client(who).get("/api/v1/datasets/people").json()["allowance"]["spent"]["epsilon"]
        for who in ("carol", "ana")
    ]
    assert spent == ["5", "0"]
    assert ana.get(f"/api/v1/reports/{identity}.html").status_code == 200
    page = unescape(Clicking(site, "ana").browser.get("/datasets/people").text)
    assert f"/datasets/people/published/{identity}.csv" in page
    assert "They cost epsilon 5 of the data set’s budget" in page
    assert "What three columns or more do together" in page
    assert (
        "how much better than chance a classifier tells them from the true rows" in shown["finding"]
    )
    assert shown["finding"] in page


def test_a_key_stands_for_one_question_of_one_data_set(site: Site) -> None:
    asked = published(site, "one key", epsilon="1/100", separability=None)
    assert asked.status_code == 202, asked.text
    other = published(site, "one key", epsilon="1/50", separability=None)
    assert (other.status_code, other.json()["type"]) == (409, "Conflict")
    assert "Idempotency-Key" in other.json()["detail"]


def test_what_cannot_be_published_is_refused_in_words(site: Site) -> None:
    dear = published(site, "dear", epsilon="40")
    assert (dear.status_code, "is left" in dear.json()["detail"]) == (402, True)
    other = published(site, "other", question="mean", column="age")
    assert other.status_code == 422
    assert published(site, "ana", who="ana").status_code == 403
    body = {"question": {"question": "auc", "epsilon": "1"}}
    headers = {"Idempotency-Key": "rows"}
    address = "/api/v1/datasets/readmissions/published"
    refused = site.client("carol").post(address, json=body, headers=headers)
    assert "needs columns with declared values" in refused.json()["detail"]


def test_a_custodian_publishes_by_a_form(site: Site) -> None:
    browser = Clicking(site).browser
    form = {"kind": "private-twin", "epsilon": "1/2", "private-twin.bins": "3", "key": "form"}
    sent = browser.fill("/datasets/people/publish", seen="/datasets/people", **form)
    assert "all analysts can download them" in sent.text
    site.work()
    shown = site.client("ana").get("/api/v1/datasets/people/published").json()
    assert shown[0]["price"]["epsilon"] == "1/2"
    wrong = browser.fill(
        "/datasets/people/publish", seen="/datasets/people", **form | {"epsilon": "much"}
    )
    assert wrong.status_code == 422


def test_a_twin_is_nobodys_before_its_tick(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = site.client("ana")
    address = "/api/v1/datasets/people/published"
    published(site, "early", epsilon="1/100", separability=None).raise_for_status()
    site.work()
    shown = ana.get(address).json()
    file = f"{address}/{shown[0]['id']}.csv"
    visible = shown[0]["published"]
    monkeypatch.setattr(evaluations, "now", lambda: visible - 0.001)
    assert ana.get(file).status_code == 404
    assert shown[0] not in ana.get(address).json()
    monkeypatch.setattr(evaluations, "now", lambda: visible)
    assert ana.get(file).status_code == 200
    assert shown[0] in ana.get(address).json()


def test_what_an_analyst_buys_is_hers_alone(site: Site) -> None:
    address = "/api/v1/datasets/people/published"
    before = site.client("carol").get(address).json()
    body = {"dataset": "people", "questions": [TWIN | {"epsilon": "1", "separability": None}]}
    asked = site.client("ana").post(
        "/api/v1/evaluations", json=body, headers={"Idempotency-Key": "hers"}
    )
    asked.raise_for_status()
    site.work()
    identity = asked.json()["id"]
    assert site.client("ana").get(f"/api/v1/evaluations/{identity}").json()["state"] == "answered"
    for who in ("carol", "ana"):
        assert site.client(who).get(address).json() == before
        assert site.client(who).get(f"{address}/{identity}.csv").status_code == 404


def test_somebody_without_a_share_sees_nothing_of_it(site: Site) -> None:
    [first, *_] = site.client("ana").get("/api/v1/datasets/people/published").json()
    bert = site.client("bert")
    for address in (
        "/api/v1/datasets/people/published",
        f"/api/v1/datasets/people/published/{first['id']}.csv",
        f"/api/v1/evaluations/{first['id']}",
    ):
        assert bert.get(address).status_code == 404
