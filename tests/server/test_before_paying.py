"""What is checked, said and offered before anything is paid."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

pytest.importorskip("fastapi")
pytest.importorskip("onnxruntime")

from tests.server.conftest import LINEAR, Site, write_rows
from tests.server.test_site import Visitor

from heldout.server import accounts, storage
from heldout.server.datasets import find
from heldout.server.evaluations import expected, tick_of

API = "/api/v1"
AUC = {"question": "auc", "epsilon": "1/10"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("before")
    site = Site(folder / "server")
    site.register(write_rows(folder / "rows.parquet"), budget="50")
    for analyst in ("ana", "bert"):
        site.grant(analyst, budget="3")
    yield site
    site.service.close()


def visit(site: Site, name: str) -> Visitor:
    browser = Visitor(site.app, raise_server_exceptions=False)
    address = f"/sign-in/{accounts.new_link(site.service, name)}"
    browser.fill(address, seen=address).raise_for_status()
    return browser


def send(site: Site, name: str, content: str, kind: str, who: str = "ana", **query: Any) -> Any:
    headers = {"Content-Type": kind, "Prefer": "wait=0"}
    address = f"{API}/artifacts"
    params = {"name": name} | query
    sent = site.client(who).put(address, content=content, headers=headers, params=params)
    sent.raise_for_status()
    site.work()
    return site.client(who).get(f"{API}/artifacts/{sent.json()['id']}").json()


def quote(site: Site, artifact: str, who: str = "ana") -> Any:
    body = {"dataset": "readmissions", "questions": [AUC], "artifact": artifact}
    return site.client(who).post(f"{API}/quotes", json=body)


def predictions(low: float, high: float, count: int = 400) -> str:
    step = (high - low) / (count - 1)
    lines = [f"a{at},{low + at * step}" for at in range(count)]
    return "\n".join(["key,score", *lines])


def test_a_model_of_other_columns_is_refused_when_it_is_chosen(site: Site) -> None:
    other = site.upload({"coefficients": {"weight": 1}, "intercept": 0, "link": "logit"})
    quoted = quote(site, other["id"])
    assert quoted.status_code == 422
    assert "'weight', which is not a feature" in quoted.json()["detail"]
    asked = site.ask(AUC, artifact=other["id"], key="other")
    assert asked.status_code == 422, "no job, no price"
    ana = visit(site, "ana")
    page = ana.get(
        f"/datasets/readmissions/ask?artifact={other['id']}&question=auc&by=price&cost=5"
    )
    assert "which is not a feature of this data set" in page.text
    assert "disabled>Continue" in page.text
    assert quote(site, site.upload()["id"]).status_code == 200


def test_predictions_beyond_the_range_are_counted_before_they_are_paid_for(site: Site) -> None:
    wide = send(site, "wide.csv", predictions(-1, 2), "text/csv")
    [note] = quote(site, wide["id"]).json()["notes"]
    values = [-1 + at * 3 / 399 for at in range(400)]
    beyond = sum(not 0 <= value <= 1 for value in values)
    assert note.startswith(f"{beyond} of the 400 predictions in 'wide.csv' lie beyond")
    ana = visit(site, "ana")
    chosen = f"artifact={wide['id']}&question=auc&by=price&cost=5"
    for page in ("ask", "confirm"):
        assert "lie beyond the range" in ana.get(f"/datasets/readmissions/{page}?{chosen}").text
    within = send(site, "within.csv", predictions(0, 1), "text/csv")
    assert quote(site, within["id"]).json()["notes"] == []


def test_a_forecast_says_whose_guess_it_rests_on_and_offers_the_counts_first(site: Site) -> None:
    model, ana = site.upload()["id"], visit(site, "ana")
    ask = f"/datasets/readmissions/ask?artifact={model}&question=auc&by=price&cost=20"
    before = ana.get(ask).text
    assert "a guess: one in four" in before
    assert "Buy their number first" in before
    bought = site.answer({"question": "confusion", "epsilon": "1"}, artifact=model, key="counts")
    assert bought["state"] == "answered"
    after = ana.get(ask).text
    assert "by your answer of" in after
    assert "Buy their number first" not in after
    bert = visit(site, "bert").get("/datasets/readmissions/ask?question=auc&by=price&cost=20").text
    assert "a guess: one in four" in bert, "what one analyst bought is not another's"
    assert "your guess" in ana.get(f"{ask}&positives=90").text
    assert "calibrated" not in after, "an area does not depend on it"
    judging = ask.replace("question=auc", "question=auc&question=brier")
    assert "calibrated scores (if they are not, intervals" in ana.get(judging).text
    assert "a calibration slope of 0.5." in ana.get(f"{judging}&calibration_slope=0.5").text


def test_a_question_that_another_one_answers_is_flagged(site: Site) -> None:
    ana = visit(site, "ana")
    ask = "/datasets/readmissions/ask?by=price&cost=20&question=curves"
    assert "Leave one of them out" not in ana.get(ask).text
    both = ana.get(f"{ask}&question=auc").text
    assert "tells the AUC as well, less exactly" in both


def test_an_analyst_asks_for_more_and_the_custodian_raises_it_by_a_click(site: Site) -> None:
    ana, carol = visit(site, "ana"), visit(site, "carol")
    dear = "/datasets/readmissions/ask?question=auc&by=price&cost=30"
    assert "Ask the custodian for a larger allowance" in ana.get(dear).text
    small = site.client("ana").post(f"{API}/datasets/readmissions/request", json={"budget": "1"})
    assert (small.status_code, "more than you have" in small.json()["detail"]) == (422, True)
    sent = ana.fill("/datasets/readmissions/request", budget="5", why="A second model.")
    assert "The custodian sees your request" in sent.text
    assert "You asked the custodian for epsilon 5" in ana.get("/datasets/readmissions").text
    shown = carol.get("/datasets/readmissions").text
    assert "asks for epsilon 5" in shown
    assert "A second model." in shown
    raised = carol.fill("/datasets/readmissions/grants/ana", budget="5")
    assert "is changed" in raised.text
    assert "asks for epsilon 5" not in raised.text
    left = site.client("ana").get(f"{API}/datasets/readmissions").json()["allowance"]
    assert left["budget"]["epsilon"] == "5"
    ana.fill("/datasets/readmissions/request", budget="9").raise_for_status()
    carol.fill("/datasets/readmissions/grants/ana/decline").raise_for_status()
    assert "asks for epsilon 9" not in carol.get("/datasets/readmissions").text


def test_a_file_is_stored_and_scored_once_and_nobody_learns_of_anothers(site: Site) -> None:
    model = LINEAR | {"intercept": -7}
    first, again = site.upload(model)["id"], site.upload(model)["id"]
    assert first == again
    files = list(site.service.settings.artifacts.glob("*.json"))
    theirs = (
        site.client("bert")
        .put(
            f"{API}/artifacts?name=model.json",
            content=json.dumps(model),
            headers={"Content-Type": "application/json", "Prefer": "wait=0"},
        )
        .json()
    )
    assert theirs["id"] != first
    assert theirs["state"] == "checking", "as any other file"
    assert len(list(site.service.settings.artifacts.glob("*.json"))) == len(files) + 1
    site.work()


def test_a_model_is_renamed_and_what_was_signed_keeps_its_name(site: Site) -> None:
    model = site.upload(LINEAR | {"intercept": -6})["id"]
    answer = site.answer(AUC, artifact=model, key="renamed")
    renamed = site.client("ana").patch(f"{API}/artifacts/{model}", json={"name": "Dr. Müller’s"})
    assert renamed.json()["name"] == "Dr. Müller’s"
    assert (
        site.client("bert").patch(f"{API}/artifacts/{model}", json={"name": "x"}).status_code == 404
    )
    ana = visit(site, "ana")
    assert "Dr. Müller’s" in ana.get("/artifacts").text
    assert "is renamed" in ana.fill(f"/artifacts/{model}/rename", name="second.json").text
    page = site.client("ana").get(f"{API}/reports/{answer['id']}.html").text
    assert "model.json" in page


def test_whoever_waits_sees_the_public_time_of_the_answer(site: Site) -> None:
    model = site.upload()["id"]
    asked = site.ask(AUC, artifact=model, key="waits").json()
    assert (asked["queue_place"], asked["expected"]) == (0, None)
    store = site.service.store
    with store.write() as connection:
        mine = (storage.jobs.c.kind == "evaluate") & (storage.jobs.c.subject == asked["id"])
        begun = storage.now()
        running = {"state": "running", "begun": begun, "lease": begun + 30, "worker": "w"}
        connection.execute(storage.jobs.update().where(mine).values(running))
        row = connection.execute(
            sa.select(storage.evaluations).where(storage.evaluations.c.id == asked["id"])
        ).one()
    tick = tick_of(site.service, find(site.service, "readmissions"))
    due = expected(site.service, row)
    assert due is not None
    assert 0 <= due - begun - 2 * tick <= site.service.settings.tick + 1e-6
    page = visit(site, "ana").get(f"/evaluations/{asked['id']}").text
    assert "The answer appears at" in page
    assert f'data-until="{due}"' in page
    with store.write() as connection:
        connection.execute(storage.jobs.update().where(mine).values(state="waiting"))
    site.work()
    answered = site.client("ana").get(
        f"{API}/evaluations/{asked['id']}", headers={"Prefer": "wait=5"}
    )
    assert (answered.json()["state"], answered.json()["expected"]) == ("answered", None)
