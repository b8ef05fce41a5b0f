"""The web and the workers each have a role of their own, with the rights that they need."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url
from tests.server.conftest import Site, write_rows
from tests.server.test_boards import TERMS

from heldout.kernel.ledger import tables
from heldout.server.accounts import sign_in
from heldout.server.app import make_app
from heldout.server.run import SCRIPT, give_rights
from heldout.server.service import Forbidden, Service, Settings
from heldout.server.storage import metadata
from heldout.server.worker import Worker

DELETES = {
    "web": (
        "server_drafts",
        "server_grants",
        "server_requests",
        "server_scorings",
        "server_tries",
    ),
    "worker": ("heldout_sketches", "server_scorings", "server_workers"),
}
BRIER = {"question": "brier", "epsilon": "1/4"}


@pytest.fixture
def roles(tmp_path: Path, postgres: str) -> Iterator[tuple[Site, dict[str, sa.Engine]]]:
    """A server whose web and worker are the two roles, and connections of each."""
    site = Site(tmp_path / "server", database=postgres)
    give_rights(site.service.store)
    give_rights(site.service.store)  # after an upgrade it is run again
    services, engines = {}, {}
    for name in ("web", "worker"):
        url = make_url(postgres).set(username=f"heldout_{name}")
        text = url.render_as_string(hide_password=False)
        usual: dict[str, Any] = {"hosts": ("testserver",), "scoring_tick": 0.1}
        services[name] = Service(Settings.at(tmp_path / "server", database=text, **usual))
        engines[name] = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    site.app, site.worker = make_app(services["web"]), Worker(services["worker"])
    yield site, engines
    for service in (*services.values(), site.service):
        service.close()
    for engine in engines.values():
        engine.dispose()


def refused(engine: sa.Engine, statement: str, words: Any = None) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError) as refusal:
        connection.execute(sa.text(statement), words or {})
    assert isinstance(refusal.value.orig, psycopg.errors.InsufficientPrivilege), statement


def life(site: Site, tmp_path: Path) -> None:
    """A data set, a share, a model, an answer, a board: with what each role may do."""
    site.register(write_rows(tmp_path / "rows.parquet", 2000), budget="12")
    site.grant()
    model = site.upload()
    assert model["state"] == "ready", model
    answer = site.answer(BRIER, artifact=model["id"], key="one")
    assert answer["state"] == "answered", answer
    other = site.upload()["id"]
    asked = site.ask(BRIER, artifact=other, key="two").json()["id"]
    cancelled = site.client("ana").delete(f"/api/v1/evaluations/{asked}")
    assert cancelled.json()["state"] == "cancelled", cancelled.text
    assert site.client("ana").delete(f"/api/v1/artifacts/{other}").status_code == 204
    with pytest.raises(Forbidden):
        sign_in(site.app.state.service, name="ana", password="wrong horse battery")
    body = {"name": "spring", "dataset": "readmissions", "terms": TERMS}
    site.client("carol").post("/api/v1/boards", json=body).raise_for_status()
    site.work()
    assert site.client("ana").get("/api/v1/boards/spring").json()["state"] == "open"
    carol = site.client("carol")
    raised = carol.patch("/api/v1/datasets/readmissions/grants/ana", json={"budget": "5/2"})
    assert raised.status_code < 300, raised.text
    revoked = carol.delete("/api/v1/datasets/readmissions/grants/ana")
    assert revoked.status_code < 300, revoked.text
    told = site.client("olga").get("/api/v1/ledger/verify").json()
    assert told["intact"] is True, told
    assert site.client().get("/ready").status_code == 200


def test_each_role_can_do_its_own_work(roles: Any, tmp_path: Path) -> None:
    site, _ = roles
    life(site, tmp_path)


def test_the_web_cannot_book_answer_or_see_who_is_in_the_rows(roles: Any, tmp_path: Path) -> None:
    site, engines = roles
    life(site, tmp_path)
    web = engines["web"]
    refused(web, "SELECT sketch FROM heldout_sketches")
    booking = (
        "INSERT INTO heldout_entries SELECT 999, account, hash, 'x', body FROM heldout_entries"
    )
    refused(web, f"{booking} WHERE body::json ->> 'kind' = 'booking'")
    refused(web, f"{booking} WHERE body::json ->> 'kind' = 'registration'")
    refused(web, "INSERT INTO heldout_accounts VALUES ('a', 'data', 'a', NULL, '{}', 1, '')")
    refused(web, "INSERT INTO heldout_references VALUES ('mine', 1)")
    refused(web, "UPDATE heldout_entries SET body = '{}'")
    refused(web, "UPDATE heldout_ledger SET key_check = ''")
    refused(web, "UPDATE server_evaluations SET statement = '{}'")
    refused(web, "UPDATE server_submissions SET score = 1")
    with web.connect() as connection:  # it cancels what waits, and brings nothing back
        change = "UPDATE server_evaluations SET state = 'waiting' WHERE state = 'answered'"
        assert connection.execute(sa.text(change)).rowcount == 0
    refused(web, "UPDATE server_receipts SET sequence = 1")
    with site.service.store.read() as connection:
        answered = sa.text("SELECT * FROM server_evaluations WHERE state = 'answered'")
        row = dict(connection.execute(answered).mappings().one())
    own = row | {"id": "forged", "key": "forged", "questions": "[]", "price": "{}"}
    into = f"INSERT INTO server_evaluations ({', '.join(own)}) VALUES (:{', :'.join(own)})"
    refused(web, into, own | {"statement": '{"receipt": {}}', "state": "waiting"})
    refused(web, into, own | {"statement": None, "state": "answered"})


def test_the_worker_sees_no_password_and_no_token(roles: Any) -> None:
    _, engines = roles
    worker = engines["worker"]
    refused(worker, "SELECT password FROM server_people")
    refused(worker, "SELECT digest FROM server_tokens")
    refused(worker, "INSERT INTO server_people SELECT * FROM server_people")
    refused(worker, "UPDATE server_people SET role = 'custodian'")
    refused(worker, "UPDATE server_datasets SET source = '{}'")
    line = "INSERT INTO server_log (time, person, action, subject, status) VALUES (1, {}, 'x', 200)"
    for who_and_action in ("'adam', 'sign in'", "'adam', 'retention'", "NULL, 'sign in'"):
        refused(worker, line.format(who_and_action))
    with worker.connect() as connection:  # what it deleted by age it writes down itself
        connection.execute(sa.text(line.format("NULL, 'retention'")))
    refused(worker, "SELECT * FROM server_log")


@pytest.mark.parametrize("name", ["web", "worker"])
def test_no_role_changes_a_table_or_takes_anything_away(roles: Any, name: str) -> None:
    _, engines = roles
    engine = engines[name]
    for table in (*tables.NAMES, *metadata.tables):
        refused(engine, f"DROP TABLE {table}")
        refused(engine, f"ALTER TABLE {table} ADD COLUMN more INTEGER")
        refused(engine, f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        refused(engine, f"TRUNCATE {table}")
        if table not in DELETES[name]:
            refused(engine, f"DELETE FROM {table}")
    refused(engine, "CREATE TABLE more (id INTEGER)")
    refused(engine, "CREATE ROLE more SUPERUSER")


def test_the_script_names_every_table() -> None:
    named = set(re.findall(r"\b(?:server|heldout)_[a-z]+\b", SCRIPT))
    assert {*tables.NAMES, *metadata.tables} <= named
