"""Starting and stopping as people do it, and tables that go up, down and up again."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.server.conftest import Site, write_rows

from heldout.server.storage import Store, log, metadata


def test_tables_go_up_and_down_and_are_what_the_code_says(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = Store(url)
    for revision in ("head", "base", "head"):
        store.migrate(revision)
        with store.engine.connect() as connection:
            names = set(sa.inspect(connection).get_table_names())
        assert (set(metadata.tables) <= names) == (revision == "head")
    with store.engine.connect() as connection:
        told = {"version_table": "server_version", "include_name": _ours}
        assert compare_metadata(MigrationContext.configure(connection, opts=told), metadata) == []
    store.migrate("base")
    store.close()


def test_of_many_writers_each_sees_what_the_one_before_wrote(url: str) -> None:
    store = Store(url)
    store.migrate()

    def count_one(_: int) -> None:
        with store.write() as connection:
            seen = connection.execute(sa.select(sa.func.count()).select_from(log)).scalar_one()
            time.sleep(0.002)
            row = {"time": 0.0, "person": None, "action": "", "subject": "", "status": seen}
            connection.execute(log.insert(), row)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(count_one, range(12)))
    with store.read() as connection:
        told = sorted(connection.execute(sa.select(log.c.status)).scalars())
    assert told == list(range(12))
    store.migrate("base")
    store.close()


def _ours(name: str | None, kind: str, _: Any) -> bool:
    return kind != "table" or bool(name and name in metadata.tables)


def test_a_whole_evaluation_on_postgresql(postgres: str, tmp_path: Path) -> None:
    site = Site(tmp_path / "server", database=postgres)
    try:
        site.register(write_rows(tmp_path / "rows.parquet"))
        site.grant()
        model = site.upload()["id"]
        found = site.answer({"question": "auc", "epsilon": "1/2"}, artifact=model, key="one")
        assert found["state"] == "answered"
        assert site.client("olga").get("/api/v1/ledger/verify").json()["intact"]
    finally:
        site.service.store.migrate("base")
        site.service.close()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.mark.slow
def test_the_demo_serves_and_stops_when_told(tmp_path: Path) -> None:
    port = _free_port()
    command = [sys.executable, "-m", "heldout", "serve", str(tmp_path / "site"), "--demo"]
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + 300
    try:
        while _get(f"{address}/ready")[0] != 200:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.2)
        assert json.loads(_get(f"{address}/health")[1]) == {"state": "alive"}
        assert _get(f"{address}/api/v1/datasets")[0] == 401
        workers = _children(process.pid)
        assert workers
        for each in (process.pid, *workers):  # a crash writes down no rows, and no keys
            limits = Path(f"/proc/{each}/limits").read_text(encoding="ascii")
            assert re.search(r"Max core file size +0 +0 ", limits)
    finally:
        process.send_signal(signal.SIGTERM)
    printed, logged = process.communicate(timeout=300)
    assert "The demo's analyst" in printed
    assert "/sign-in/heldout_" in printed
    assert all(json.loads(line)["event"] for line in logged.splitlines())
    assert not any(Path(f"/proc/{each}").exists() for each in workers)


def _children(parent: int) -> list[int]:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    return [int(each) for each in text.split()]


def test_a_port_that_is_taken_is_one_line_and_nothing_is_made(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from heldout.cli import main

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["serve", str(tmp_path / "server"), "--port", port]) == 2
    said = capfd.readouterr()
    assert "heldout: The server cannot listen at 127.0.0.1:" in said.err
    assert "serves on" not in said.out
    assert not (tmp_path / "server").exists()


def test_an_older_server_goes_on_and_can_go_back(url: str) -> None:
    """Rows of the tables before turns and quotas: kept on the way up, and on the way down."""
    from alembic import command

    from heldout.server import jobs
    from heldout.server.storage import alembic_configuration

    store = Store(url)
    store.migrate("2")
    insert = [
        "INSERT INTO server_people (name, role, failures, retry, created) "
        "VALUES ('ana', 'analyst', 3, 0, 1)",
        "INSERT INTO server_tokens (id, person, kind, digest, label, scopes, created, expires) "
        "VALUES ('t', 'ana', 'api', 'd', 'l', '[]', 1, 2)",
        "INSERT INTO server_jobs (kind, subject, state, lease, attempts, created) "
        "VALUES ('evaluate', 'e', 'waiting', 0, 0, 1)",
    ]
    with store.write() as connection:
        for statement in insert:
            connection.exec_driver_sql(statement)
    store.migrate()
    job = jobs.claim(store, worker="w", lease=30.0)
    assert job is not None
    assert (job.kind, job.subject) == ("evaluate", "e")
    with store.write() as connection:
        more = {"owner": "ana", "seconds": 1.0}
        jobs.enqueue(connection, "evaluate", "later", **more)  # type: ignore[arg-type]
        assert jobs.cancel(connection, "evaluate", "later")
    command.downgrade(alembic_configuration(store.url.render_as_string(hide_password=False)), "2")
    with store.read() as connection:
        people = connection.exec_driver_sql("SELECT name, failures FROM server_people").all()
        states = connection.exec_driver_sql("SELECT state FROM server_jobs ORDER BY id").all()
    assert [tuple(row) for row in people] == [("ana", 0)]
    assert [row[0] for row in states] == ["running", "done"], "older code takes up no cancelled job"
    store.migrate("base")
    store.close()


def test_the_tables_go_back_one_by_one_and_forward_again_with_rows_in_them(
    url: str, tmp_path: Path
) -> None:
    """A server that was used, as an upgrade and a downgrade find it."""
    from heldout.server.storage import people, revision_of, revisions

    more = {} if url.startswith("sqlite") else {"database": url}
    site = Site(tmp_path / "server", **more)
    site.register(write_rows(tmp_path / "rows.parquet"))
    site.grant()
    model = site.upload()["id"]
    question = {"question": "brier", "epsilon": "1/4"}
    before = site.answer(question, artifact=model, key="one")
    head = site.service.ledger.head()
    with site.service.store.write() as connection:
        connection.execute(people.update().where(people.c.name == "ana").values(subject="x 1"))
    assert revisions()[:4] == ["1", "2", "receipts", "3"]
    for revision in revisions()[-2:2:-1]:
        site.service.store.migrate(revision, back=True)
        assert revision_of(site.service.store) == revision
    site.service.store.migrate()
    site.service.store.check_current()
    assert site.service.ledger.head() == head
    after = site.client("ana").get(f"/api/v1/evaluations/{before['id']}").json()
    assert after["statement"] == before["statement"]
    assert site.answer(question, artifact=model, key="two")["state"] == "answered"
    same = site.ask(question, artifact=model, key="one")
    assert same.json()["id"] == before["id"]
    site.service.close()
