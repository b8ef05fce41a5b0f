"""A copy of a server, put back elsewhere, is a server that works; its ledger never goes back."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.conftest import new_schema
from tests.server.conftest import LINEAR, ON_POSTGRES, Site, write_rows

from heldout.cli import main
from heldout.errors import ArgumentError, LedgerError, LedgerTampered
from heldout.server import accounts, backups, sources, storage
from heldout.server.app import make_app
from heldout.server.run import prepare
from heldout.server.service import Service, Settings
from heldout.server.signing import Genuine
from heldout.server.worker import Worker

BRIER = {"question": "brier", "epsilon": "1/4"}
KINDS = ["sqlite", "postgres"]


@pytest.fixture
def database(request: Any) -> Callable[[str], str | None]:
    """Returns the address of an empty database of a kind; None for files."""

    def make(kind: str) -> str | None:
        if kind == "sqlite":
            return None
        request.getfixturevalue("postgres")  # skips where there is none
        return str(new_schema()[1])

    return make


class Restored(Site):
    """A server that was put back, with the tokens of the first one."""

    def __init__(self, folder: Path, tokens: dict[str, str], **settings: Any) -> None:
        usual = {"scoring_tick": 0.05, "tick": 0.05, "hosts": ("testserver",)}
        self.service = Service(Settings.at(folder, **usual | settings))
        self.link = prepare(self.service)
        self.app, self.worker = make_app(self.service), Worker(self.service)
        self.tokens = tokens


def asked(site: Site, tmp_path: Path) -> tuple[str, Any]:
    """Registers rows and asks about a model; returns the model and the answer."""
    site.register(write_rows(tmp_path / "rows.parquet"))
    site.grant()
    model = site.upload()["id"]
    return model, site.answer(BRIER, artifact=model, key="one")


def restored(
    backup: Path, folder: Path, tokens: dict[str, str], database: str | None, **how: Any
) -> Restored:
    service = Service(Settings.at(folder, database=database))
    backups.restore(backups.Backup.at(backup), service, **how)
    service.close()
    return Restored(folder, tokens, database=database)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, marks=() if first == second else pytest.mark.slow)
        for first in KINDS
        for second in KINDS
    ],
)
def test_a_server_restored_elsewhere_answers_old_links_and_new_questions(
    first: str, second: str, database: Callable[[str], str | None], tmp_path: Path
) -> None:
    site = Site(tmp_path / "server", database=database(first), tick=0.05)
    model, answer = asked(site, tmp_path)
    page = site.client("ana").get(f"/api/v1/reports/{answer['id']}.html").text
    key = (tmp_path / "server" / "signing.pub").read_text()
    backups.make_backup(site.service, tmp_path / "backup")
    site.service.close()
    shutil.rmtree(tmp_path / "server")
    (tmp_path / "rows.parquet").unlink()

    again = restored(
        tmp_path / "backup",
        tmp_path / "elsewhere",
        site.tokens,
        database(second),
        accept_ledger=True,
        keep_tokens=True,
    )
    client = again.client("ana")
    assert client.get(f"/api/v1/evaluations/{answer['id']}").json() == answer
    assert client.get(f"/api/v1/reports/{answer['id']}.html").text == page
    assert (tmp_path / "elsewhere" / "signing.pub").read_text() == key
    Genuine.in_page(page, key=key)
    new = again.answer(BRIER, artifact=model, key="two")
    assert new["state"] == "answered"
    same = again.ask(BRIER, artifact=model, key="one").json()
    assert same["id"] == answer["id"]  # a key that was paid before is not charged again
    other = again.upload(LINEAR | {"intercept": -2})["id"]
    assert again.answer(BRIER, artifact=other, key="three")["state"] == "answered"
    assert (
        client.get("/api/v1/datasets/readmissions").json()["allowance"]["remaining"]["epsilon"]
        == "5/4"
    )
    assert again.client("olga").get("/api/v1/ledger/verify").json()["intact"]
    log = again.client("olga").get("/api/v1/audit").json()
    [line] = [line["subject"] for line in log if line["action"] == "restore"]
    assert "whatever was booked after it is forgotten" in line
    again.service.close()


def test_the_newest_ledger_is_kept_and_what_it_booked_stays_spent(
    site: Site, tmp_path: Path
) -> None:
    """The rows and tables are lost after the backup; the ledger was copied once more."""
    if ON_POSTGRES:
        pytest.skip("the target is a folder")
    model, _ = asked(site, tmp_path)
    backups.make_backup(site.service, tmp_path / "backup")
    backups.save_ledger(site.service, tmp_path / "ledger.copy")
    late = site.answer(BRIER, artifact=model, key="late")
    backups.save_ledger(site.service, tmp_path / "ledger.copy")
    end = site.service.ledger.head()
    again = restored(
        tmp_path / "backup",
        tmp_path / "elsewhere",
        site.tokens,
        None,
        newest=tmp_path / "ledger.copy",
        keep_tokens=True,
    )
    assert again.service.ledger.head() == end
    facts = again.client("ana").get("/api/v1/datasets/readmissions").json()
    assert facts["allowance"]["remaining"]["epsilon"] == "3/2"  # both are paid for
    assert again.client("ana").get(f"/api/v1/evaluations/{late['id']}").status_code == 404
    assert again.answer(BRIER, artifact=model, key="new")["state"] == "answered"
    again.service.close()


def test_a_ledger_that_is_in_the_folder_is_never_replaced(site: Site, tmp_path: Path) -> None:
    if ON_POSTGRES:
        pytest.skip("the ledger's files are SQLite's")
    model, _ = asked(site, tmp_path)
    backups.make_backup(site.service, tmp_path / "backup")
    site.answer(BRIER, artifact=model, key="late")
    end, folder = site.service.ledger.head(), site.service.settings.folder
    site.service.close()
    for name in ("server.sqlite", "artifacts", "private"):  # a disk that lost all but the ledger
        place = folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    again = restored(tmp_path / "backup", folder, site.tokens, None, accept_ledger=True)
    assert again.service.ledger.head() == end
    again.service.close()


def test_an_older_or_another_ledger_is_refused_and_nothing_is_restored(
    site: Site, tmp_path: Path
) -> None:
    model, _ = asked(site, tmp_path)
    backups.save_ledger(site.service, tmp_path / "old.sqlite")
    site.answer(BRIER, artifact=model, key="late")
    backups.make_backup(site.service, tmp_path / "backup")
    backup = backups.Backup.at(tmp_path / "backup")
    service = Service(Settings.at(tmp_path / "elsewhere"))
    with pytest.raises(LedgerTampered, match="not the newest ledger"):
        backups.restore(backup, service, newest=tmp_path / "old.sqlite")
    with pytest.raises(LedgerError, match="--accept-ledger"):
        backups.restore(backup, service)
    assert not backups.is_server(service)
    assert not [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]


def test_a_copy_of_the_ledger_is_not_overwritten_by_an_older_one(
    site: Site, tmp_path: Path
) -> None:
    model, _ = asked(site, tmp_path)
    site.answer(BRIER, artifact=model, key="late")
    backups.save_ledger(site.service, tmp_path / "copy.sqlite")
    other = Site(tmp_path / "other")
    with pytest.raises(LedgerTampered, match="another or an older"):
        backups.save_ledger(other.service, tmp_path / "copy.sqlite")
    other.service.close()


def test_what_was_revoked_after_the_copy_does_not_come_back(site: Site, tmp_path: Path) -> None:
    link = accounts.new_link(site.service, "ana")
    site.worker.signs.give()
    backups.make_backup(site.service, tmp_path / "backup")
    again = restored(
        tmp_path / "backup", tmp_path / "elsewhere", site.tokens, None, accept_ledger=True
    )
    assert again.client("ana").get("/api/v1/me").status_code == 401
    assert accounts.of_token(again.service, link, kind="link") is None
    assert again.client().get("/ready").json()["workers"] == 0  # the old server's are not ours
    again.service.close()


def test_a_damaged_copy_is_refused_before_anything_is_written(site: Site, tmp_path: Path) -> None:
    backups.make_backup(site.service, tmp_path / "backup")
    listed = json.loads((tmp_path / "backup" / backups.LIST).read_text())["files"]
    assert {"server.sqlite", "ledger.sqlite", "private/signing.key"} <= set(listed)
    with (tmp_path / "backup" / "private" / "signing.key").open("ab") as file:
        file.write(b"x")
    with pytest.raises(backups.UnusableBackup, match=r"signing\.key"):
        backups.Backup.at(tmp_path / "backup")
    with pytest.raises(ArgumentError, match="exists already"):
        backups.make_backup(site.service, tmp_path / "backup")


def test_a_server_is_not_restored_over_another(site: Site, tmp_path: Path) -> None:
    backups.make_backup(site.service, tmp_path / "backup")
    with pytest.raises(ArgumentError, match="There is a server"):
        backups.restore(backups.Backup.at(tmp_path / "backup"), site.service, accept_ledger=True)


def test_rows_that_a_worker_has_not_read_yet_are_in_no_copy(site: Site, tmp_path: Path) -> None:
    """They lie in the clear until then, and are removed; a copy would keep them."""
    settings = site.service.settings
    waiting = sources.arrived("1", ".csv", settings)
    taken = settings.private / "upload-2.parquet"
    for file in (waiting, taken):
        file.write_text("id,y\nsecret,1\n")
    assert sources.uploaded("2", settings) == taken
    backups.make_backup(site.service, tmp_path / "copy")
    kept = [file.name for file in (tmp_path / "copy").rglob("*")]
    assert "signing.key" in kept
    assert waiting.name not in kept
    assert taken.name not in kept


def test_nobody_else_may_read_a_copy(site: Site, tmp_path: Path) -> None:
    backups.make_backup(site.service, tmp_path / "backup")
    for path in (tmp_path / "backup", *(tmp_path / "backup").rglob("*")):
        assert not path.stat().st_mode & 0o077


def test_the_commands_do_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HELDOUT_SERVER_DATABASE", raising=False)
    site = Site(tmp_path / "server", database=None)
    folder, backup, other = (str(tmp_path / name) for name in ("server", "backup", "other"))
    assert main(["server", "backup", folder, backup]) == 0
    assert "guard it" in capsys.readouterr().out
    assert main(["server", "restore", backup, other]) == 2
    assert "--accept-ledger" in capsys.readouterr().err
    assert main(["server", "restore", backup, other, "--accept-ledger"]) == 0
    assert "the backup's ledger is accepted" in capsys.readouterr().out
    (tmp_path / "other" / "server.toml").write_text("port = 8117\n")
    assert main(["server", "admin-link", other]) == 0
    assert "by http://localhost:8117/sign-in/" in capsys.readouterr().out
    assert main(["server", "admin-link", other, "--address", "https://e.example.org"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Sign in as administrator, once, by https://e.example.org/sign-in/")
    secret = printed.strip().rsplit("/", 1)[1]
    service = Service(Settings.at(tmp_path / "other"))
    person = accounts.of_token(service, secret, kind="link")
    assert person is not None
    assert person.role == "administrator"
    assert main(["server", "backup", str(tmp_path / "nowhere"), backup]) == 2
    assert not (tmp_path / "nowhere").exists()
    site.service.close()
    service.close()


def test_where_no_administrator_is_left_the_command_adds_one(site: Site) -> None:
    with site.service.store.write() as connection:
        connection.execute(storage.people.update().values(disabled=1.0))
    name, secret = accounts.administrator_link(site.service)
    assert name == "administrator-2"  # the first one is disabled, and stays so
    assert accounts.of_token(site.service, secret, kind="link") is not None
    with site.service.store.read() as connection:
        [line] = connection.execute(
            sa.select(storage.log.c.subject).where(storage.log.c.action == "make link")
        ).scalars()
    assert "on the server's machine" in line
