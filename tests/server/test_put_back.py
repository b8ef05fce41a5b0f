"""A ledger that is put back together with its witness is refused: the server has receipts."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from tests.server.conftest import ON_POSTGRES, Site, rows, write_rows

from heldout.errors import LedgerTampered
from heldout.kernel import Ledger
from heldout.server import books
from heldout.server.run import prepare
from heldout.server.service import Service
from heldout.server.storage import receipts as receipt_table
from heldout.server.worker import Worker

pytestmark = pytest.mark.skipif(ON_POSTGRES, reason="the ledger's files are SQLite's")
BRIER = [{"question": "brier", "epsilon": "1/4"}]
FILES = ("ledger.sqlite", "ledger.sqlite.witness")


@pytest.fixture
def asked(site: Site, tmp_path: Path) -> Any:
    """Asks once more, and returns the evaluation."""
    site.register(write_rows(tmp_path / "rows.parquet"))
    site.grant()
    artifact = site.upload()["id"]

    def ask(key: str) -> Any:
        body = {"dataset": "readmissions", "artifact": artifact, "questions": BRIER}
        client = site.client("ana")
        headers = {"Idempotency-Key": key, "Prefer": "wait=0"}
        found = client.post("/api/v1/evaluations", json=body, headers=headers).json()
        site.work()
        return site.service, found["id"]

    return ask


def copied(service: Service, to: Path) -> None:
    """A copy of the ledger and its witness, as a backup has them."""
    service.ledger.close()
    to.mkdir(exist_ok=True)
    for name in FILES:
        shutil.copy(service.settings.folder / name, to / name)


def put_back(service: Service, copy: Path) -> None:
    service.ledger.close()
    for name in FILES:
        (service.settings.folder / f"{name}-wal").unlink(missing_ok=True)
        (service.settings.folder / f"{name}-shm").unlink(missing_ok=True)
        shutil.copy(copy / name, service.settings.folder / name)


def state_of(service: Service, identity: str) -> Any:
    from heldout.server.storage import evaluations

    with service.store.read() as connection:
        query = sa.select(evaluations).where(evaluations.c.id == identity)
        return connection.execute(query).one()


def test_a_ledger_put_back_with_its_witness_is_refused_at_start(
    site: Site, asked: Any, tmp_path: Path
) -> None:
    asked("one")
    copied(site.service, tmp_path / "copy")
    asked("two")
    put_back(site.service, tmp_path / "copy")
    Ledger.open(site.service.settings.folder / "ledger.sqlite").close()  # which sees no harm
    with pytest.raises(LedgerTampered, match="put back to an older copy") as refusal:
        prepare(Service(site.service.settings))
    assert "Nothing was charged" in str(refusal.value)


def test_a_ledger_put_back_while_running_is_refused_before_the_booking(
    site: Site, asked: Any, tmp_path: Path
) -> None:
    """Of two workers one slept while the other booked; the first alone would notice nothing."""
    asked("one")
    slept = Service(site.service.settings)
    slept.ledger.head()
    slept.ledger.close()  # lets go of the file, and remembers what it saw
    copied(site.service, tmp_path / "copy")
    asked("two")
    put_back(site.service, tmp_path / "copy")
    before = Ledger.open(site.service.settings.folder / "ledger.sqlite").head()
    site.worker = Worker(slept)
    with site.service.store.write() as connection:  # the web's own ledger object refuses by itself
        query = sa.text("SELECT * FROM server_evaluations")
        row = dict(connection.execute(query).mappings().first() or {})
        row |= {"id": "third", "key": "three", "state": "waiting", "statement": None}
        columns = ", ".join(row)
        connection.execute(
            sa.text(f"INSERT INTO server_evaluations ({columns}) VALUES (:{', :'.join(row)})"), row
        )
        from heldout.server import jobs

        jobs.enqueue(connection, "evaluate", "third", owner="ana", seconds=1.0)
    site.work()
    found = state_of(slept, "third")
    assert found.state == "refused"
    assert "Nothing was charged" in found.words
    assert Ledger.open(site.service.settings.folder / "ledger.sqlite").head() == before
    ready = site.client().get("/ready")
    assert ready.status_code == 503
    assert "put back" in ready.json()["words"]
    told = site.client("olga").get("/api/v1/ledger/verify").json()
    assert told["intact"] is False
    assert "put back to an older copy" in told["words"]


def test_what_is_compared_is_one_row_and_only_grows(site: Site, asked: Any) -> None:
    service, _ = asked("one")
    asked("two")
    newest = service.ledger.head()
    with service.store.write() as connection:
        books.keep_receipt(connection, type(newest)(newest.ledger, 1, "an older one"))
        rows = connection.execute(sa.select(receipt_table)).all()
    assert [(row.ledger, row.sequence, row.hash) for row in rows] == [tuple(vars(newest).values())]
    assert site.client().get("/ready").json()["state"] == "ready"


def test_a_server_of_an_older_version_takes_the_receipts_of_its_answers(
    site: Site, asked: Any
) -> None:
    service, _ = asked("one")
    asked("two")
    from alembic import command

    from heldout.server.storage import alembic_configuration

    with service.store.read() as connection:
        before = connection.execute(sa.select(receipt_table)).all()
    configuration = alembic_configuration(service.store.url.render_as_string(hide_password=False))
    command.downgrade(configuration, "2")
    service.store.migrate()
    with service.store.read() as connection:
        assert connection.execute(sa.select(receipt_table)).all() == before


def test_a_custodian_may_accept_a_ledger_whose_newest_copy_is_lost_and_the_log_says_so(
    site: Site, asked: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked("one")
    copied(site.service, tmp_path / "copy")
    asked("two")
    lost = site.service.ledger.head()
    put_back(site.service, tmp_path / "copy")
    (site.service.settings.folder / "ledger.sqlite.witness").write_bytes(lost.encode() * 2)
    with pytest.raises(LedgerTampered):
        prepare(Service(site.service.settings))
    accepted = Service(site.service.settings, accept_ledger=True)
    prepare(accepted)
    ends = accepted.ledger.head()
    assert f"entry {ends.sequence}" in capsys.readouterr().out
    [line] = [
        line
        for line in site.client("olga").get("/api/v1/audit").json()
        if line["action"] == "accept ledger"
    ]
    assert lost.hash in line["subject"]
    assert f"entry {lost.sequence}" in line["subject"]
    prepare(Service(site.service.settings))  # the next start needs no option
    site.service.reopen_ledger()
    site.worker = Worker(site.service)
    _, third = asked("three")
    assert state_of(accepted, third).state == "answered"


def test_a_ledger_that_lacks_a_registration_alone_is_noticed(
    site: Site, asked: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked("one")
    copied(site.service, tmp_path / "copy")
    site.service.reopen_ledger()
    table = rows()
    table["admission"] = [f"other {admission}" for admission in table["admission"]]
    pq.write_table(pa.table(table), tmp_path / "others.parquet")
    registered = site.register(tmp_path / "others.parquet", name="others")
    assert registered["state"] == "open", registered
    put_back(site.service, tmp_path / "copy")
    with pytest.raises(LedgerTampered, match="put back to an older copy"):
        prepare(Service(site.service.settings))
    prepare(Service(site.service.settings, accept_ledger=True))
    assert "the newest receipt was for entry" in capsys.readouterr().out


def test_nothing_is_logged_if_an_accepted_ledger_lacks_nothing(
    site: Site, asked: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked("one")
    prepare(Service(site.service.settings, accept_ledger=True))
    assert "no entry with a receipt is missing" in capsys.readouterr().out
    lines = site.client("olga").get("/api/v1/audit").json()
    assert not [line for line in lines if line["action"] == "accept ledger"]


def test_a_receipt_that_is_older_than_what_was_seen_is_looked_for_until_it_is_found(
    tmp_path: Path,
) -> None:
    """A fork of the ledger: this object has seen further than the receipt, on another branch."""
    from heldout.kernel import Budget, Event

    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    account = ledger.register("rows", budget=Budget(epsilon=1))
    event = Event("exponential", {"epsilon": "1/3"})
    ledger.book(account, event, request={})
    head = ledger.head()
    older = type(head)(head.ledger, 1, "0" * 64)
    with pytest.raises(LedgerTampered):
        ledger.expect(older)
    with pytest.raises(LedgerTampered, match="after a receipt saw it"):
        ledger.book(account, event, request={})
    ledger.close()
    fresh = Ledger.open(tmp_path / "ledger.sqlite")
    fresh.expect(head)
    fresh.book(account, event, request={})
    fresh.close()
