"""For whoever runs the server: readiness, figures, workers, the access log and the log."""

import csv
import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import LINEAR, Site, write_rows
from tests.server.test_threats_roles import session

from heldout.server import jobs, storage
from heldout.server.worker import Worker, run

pytest.importorskip("prometheus_client")
BRIER = {"question": "brier", "epsilon": "1/4"}
TOKEN = "a token for the figures"


def figures(site: Site) -> str:
    answer = site.client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    answer.raise_for_status()
    return str(answer.text)


# --- workers -------------------------------------------------------------------------------------


def test_ready_knows_how_many_workers_are_alive(site: Site) -> None:
    client = site.client()
    assert client.get("/ready").json() == {"state": "ready", "workers": 0}
    assert client.get("/ready?workers=1").status_code == 503
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(site.service,), kwargs={"stop": stop})
    thread.start()
    end = time.monotonic() + 300
    while client.get("/ready?workers=1").status_code != 200 and time.monotonic() < end:
        time.sleep(0.05)
    assert client.get("/ready?workers=1").json() == {"state": "ready", "workers": 1}
    assert client.get("/ready?workers=2").status_code == 503
    stop.set()
    thread.join()
    assert client.get("/ready").json()["workers"] == 0  # it said that it ended


def test_a_worker_that_was_silent_for_a_lease_is_not_alive(site: Site) -> None:
    worker = Worker(site.service)
    worker.signs.give("score")
    assert [line["alive"] for line in jobs.listed(site.service)] == [True]
    with site.service.store.write() as connection:
        silent = storage.now() - site.service.settings.lease - 1
        connection.execute(storage.workers.update().values(seen=silent))
    assert [line["alive"] for line in jobs.listed(site.service)] == [False]
    assert jobs.count_alive(site.service) == 0
    page = session(site, "adam").get("/operations").text
    assert worker.name in page
    assert "silent" in page


def test_the_administrator_sees_workers_queue_and_disk_and_nobody_else_does(
    opened: Site,
) -> None:
    artifact = opened.upload()["id"]
    opened.ask(BRIER, artifact=artifact, key="one")
    opened.worker.signs.give()
    page = session(opened, "adam").get("/operations").text
    assert opened.worker.name in page
    assert '<th scope="row">evaluate</th><td>waiting</td><td>1</td>' in page
    assert "% of the disk is free" in page
    for name in ("carol", "ana", "olga"):
        assert session(opened, name).get("/operations").status_code == 403


# --- figures -------------------------------------------------------------------------------------


def test_figures_need_their_token_and_do_not_exist_without_one(site: Site, tmp_path: Path) -> None:
    assert site.client().get("/metrics").status_code == 404
    other = Site(tmp_path / "other", metrics_token=TOKEN)
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        refused = other.client().get("/metrics", headers=headers, follow_redirects=False)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.text == "Send the token of the metrics: Authorization: Bearer TOKEN.\n"
    assert "heldout_ledger_trusted 1.0" in figures(other)
    other.service.close()


def test_no_figure_depends_on_rows(tmp_path: Path) -> None:
    """Two servers whose rows differ in one: another label, and a cell that the model fails on."""
    seen = []
    for name, changed in (("one", {}), ("two", {"readmitted": (7, 1), "stay": (7, float("nan"))})):
        place = tmp_path / name
        site = Site(place, metrics_token=TOKEN)
        site.register(write_rows(tmp_path / f"{name}.parquet", **changed))
        site.grant()
        artifact = site.upload(LINEAR)["id"]
        assert site.answer(BRIER, artifact=artifact, key="one")["state"] == "answered"
        site.ask({"question": "auc", "epsilon": "9"}, artifact=artifact, key="too much")
        waiting = site.ask(BRIER, artifact=artifact, key="waits")
        waiting.raise_for_status()
        text = figures(site)
        seen.append([line for line in text.splitlines() if "_created" not in line])
        with site.service.store.write() as connection:  # answered, and its tick is to come
            connection.execute(storage.evaluations.update().values(visible=storage.now() + 60))
        assert 'state="answered"' not in figures(site)
        site.service.close()
    oldest = [at for at, line in enumerate(seen[0]) if "oldest_job" in line and line[0] != "#"]
    for lines in seen:
        for at in oldest:
            lines[at] = ""  # how long the test took
    assert seen[0] == seen[1]
    assert 'heldout_jobs{kind="evaluate",state="waiting"} 1.0' in seen[0]
    assert 'heldout_evaluations{state="answered"} 1.0' in seen[0]
    assert not [line for line in seen[0] if "bytes" in line or "duration" in line]


def test_requests_are_counted_by_route_and_no_secret_is_a_label(tmp_path: Path) -> None:
    site = Site(tmp_path / "server", metrics_token=TOKEN)
    site.client().get("/sign-in/heldout_secret")
    site.client("ana").get("/api/v1/me")
    text = figures(site)
    assert 'heldout_requests_total{method="GET",route="/api/v1/me",status="200"} 1.0' in text
    assert 'route="/sign-in/{secret}"' in text
    assert "heldout_secret" not in text
    site.service.close()


# --- the access log ------------------------------------------------------------------------------


def requests(text: str) -> list[Any]:
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "request"]


def test_every_request_is_printed_with_its_person_and_without_what_was_filled_in(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    site.client("ana").get("/api/v1/me")
    site.client().get("/sign-in/heldout_secret")
    site.client().get("/ready")
    text = capfd.readouterr().err
    first, second = requests(text)
    assert (first["route"], first["status"], first["person"]) == ("/api/v1/me", 200, "ana")
    assert (second["route"], second["status"], second["person"]) == (
        "/sign-in/{secret}",
        403,
        None,
    )
    assert "heldout_secret" not in text


def test_the_access_log_can_be_turned_off(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    site = Site(tmp_path / "server", access_log=False)
    site.client("ana").get("/api/v1/me")
    assert requests(capfd.readouterr().err) == []
    site.service.close()


# --- the log -------------------------------------------------------------------------------------


def test_the_log_is_filtered_by_person_action_and_day(opened: Site) -> None:
    opened.upload()
    client = opened.client("olga")

    def lines(query: str) -> list[Any]:
        return list(client.get(f"/api/v1/audit?{query}").json())

    assert {line["person"] for line in lines("who=ana")} == {"ana"}
    assert [line["action"] for line in lines("action=upload")] == ["upload"]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert lines(f"since={today}&until={today}") == lines("")
    assert lines("until=2020-01-01") == []
    assert lines("since=2999-01-01") == []
    assert client.get("/api/v1/audit?since=yesterday").status_code == 422


def test_a_custodian_sees_what_was_asked_of_their_data_and_of_no_others(opened: Site) -> None:
    artifact = opened.upload()["id"]
    asked = opened.answer(BRIER, artifact=artifact, key="one")
    page = session(opened, "carol").get("/log").text
    assert f"readmissions, epsilon 0.25, {asked['id']}" in page
    lines = opened.client("carol").get("/api/v1/audit").json()
    [line] = [line for line in lines if line["action"] == "evaluate"]
    assert (line["person"], line["dataset"], line["price"]) == (
        "ana",
        "readmissions",
        "epsilon 0.25",
    )
    assert not [line for line in lines if line["action"] == "upload"]
    from heldout.server import accounts

    accounts.add_person(opened.service, name="carl", role="custodian")
    opened.tokens["carl"] = opened.token("carl", "custodian")
    others = opened.client("carl").get("/api/v1/audit").json()
    assert {line["person"] for line in others} == {"carl"}


def test_the_log_is_exported_whole_and_no_cell_is_a_formula(site: Site) -> None:
    for number in range(230):
        site.service.note("=1+1", "sign in", f"try {number}", 403)
    answer = site.client("olga").get("/api/v1/audit.csv?action=sign+in")
    assert answer.headers["content-type"].startswith("text/csv")
    table = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(table) == 230
    assert {line["person"] for line in table} == {"'=1+1"}
    assert session(site, "olga").get("/log.csv?action=sign+in").text == answer.text
    older = session(site, "olga").get("/log?action=sign+in").text
    assert "before=" in older
    assert site.client("ana").get("/api/v1/audit.csv").status_code == 403
