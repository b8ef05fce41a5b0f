"""What is deleted by age, what never is, and copies of rows that are encrypted at rest."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from tests.server.conftest import Site, write_rows

from heldout.errors import ArgumentError, UnreadableTable
from heldout.server import accounts, retention, storage
from heldout.server.service import Service, Settings
from heldout.server.vault import Vault, is_sealed, private_copies
from heldout.server.worker import Worker

BRIER = {"question": "brier", "epsilon": "1/4"}
DAYS: dict[str, Any] = {"keep_models": 30, "keep_scores": 7, "keep_answers": 365, "keep_rows": 10}


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    """A server with rules, one model and one answer."""
    site = Site(tmp_path / "server", **DAYS)
    site.register(write_rows(tmp_path / "rows.parquet"))
    site.grant()
    model = site.upload()["id"]
    answer = site.answer(BRIER, artifact=model, key="one")
    assert answer["state"] == "answered"
    yield site, model, answer
    site.service.close()


def age(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    real = storage.now
    monkeypatch.setattr(retention, "now", lambda: real() + days * retention.DAY)


def evaluation(site: Site, identity: str) -> Any:
    return site.client("ana").get(f"/api/v1/evaluations/{identity}").json()


def test_nothing_goes_before_its_time_or_without_a_rule(
    asked: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site, _, _ = asked
    age(monkeypatch, 6.9)
    assert retention.sweep(site.service) == []
    plain = Site(tmp_path / "plain")
    age(monkeypatch, 10_000)
    assert retention.sweep(plain.service) == []
    assert not retention.is_wanted(plain.service)
    plain.service.close()


def test_scores_go_first_and_are_made_again(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site, model, _ = asked
    private = site.service.settings.private
    assert len(list(private.glob("scores-*"))) == 1
    age(monkeypatch, 8)
    words = f"scores of model {model}"
    assert retention.sweep(site.service, dry_run=True) == [words]
    assert len(list(private.glob("scores-*"))) == 1
    assert retention.sweep(site.service) == [words]
    assert retention.sweep(site.service) == []
    assert not list(private.glob("scores-*"))
    assert list(private.glob("rows-*"))
    monkeypatch.undo()
    for count in range(4):  # as often as it is swept: a job is not given up for it
        again = site.answer(BRIER, artifact=model, key=f"again {count}")
        assert again["state"] == "answered", again
        age(monkeypatch, 8)
        assert retention.sweep(site.service) == [words]
        monkeypatch.undo()


def test_a_model_that_nobody_asks_about_goes_with_its_files(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, model, answer = asked
    age(monkeypatch, 31)
    done = retention.sweep(site.service)
    assert done == [f"model {model} of ana"]
    assert not list(site.service.settings.artifacts.glob(f"{model}*"))
    assert not list(site.service.settings.private.glob("scores-*"))
    shown = site.client("ana").get(f"/api/v1/artifacts/{model}")
    assert shown.status_code == 404 or shown.json()["state"] == "deleted"
    assert evaluation(site, answer["id"])["answers"] is not None  # answers about it stay


def test_an_answer_goes_and_its_price_and_receipt_stay(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, model, answer = asked
    before = site.service.ledger.head()
    age(monkeypatch, 366)
    assert f"answer of evaluation {answer['id']} of ana" in retention.sweep(site.service)
    monkeypatch.undo()
    left = evaluation(site, answer["id"])
    assert (left["state"], left["answers"], left["statement"]) == ("expired", None, None)
    assert left["receipt"] == answer["receipt"]
    assert f"entry {answer['receipt']['sequence']}" in left["words"]
    with site.service.store.read() as connection:
        stored = str(connection.execute(sa.select(storage.evaluations.c.statement)).all())
    assert "signature" not in stored
    # The ledger is as it was, and the old key still stands for the old evaluation.
    assert site.service.ledger.head() == before
    same = site.ask(BRIER, artifact=model, key="one")
    assert same.json()["id"] == answer["id"]
    verified = site.client("olga").get("/api/v1/ledger/verify").json()
    assert verified["intact"] is True
    browser = site.client()
    link = accounts.new_link(site.service, "ana")
    browser.cookies.set("heldout", accounts.sign_in_by_link(site.service, link))
    page = browser.get(f"/evaluations/{answer['id']}")
    assert page.status_code == 200
    assert "deleted after 365 days" in page.text
    assert browser.get(f"/evaluations/{answer['id']}/report.html").status_code == 404
    assert browser.get("/compare?dataset=readmissions").status_code == 200


def test_rows_stay_while_a_data_set_is_open(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site, _, _ = asked
    private = site.service.settings.private
    age(monkeypatch, 5000)
    retention.sweep(site.service)
    assert list(private.glob("rows-*"))
    monkeypatch.undo()
    assert site.client("carol").delete("/api/v1/datasets/readmissions").status_code < 300
    age(monkeypatch, 9)
    assert not any("copy of the rows" in words for words in retention.sweep(site.service))
    age(monkeypatch, 11)
    assert any("copy of the rows" in words for words in retention.sweep(site.service))
    assert not list(private.glob("rows-*"))
    assert (private / "ledger.key").exists()
    assert retention.sweep(site.service) == []


def test_what_somebody_waits_for_is_not_taken_away(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, model, _ = asked
    waiting = site.ask(BRIER, artifact=model, key="waits").json()["id"]
    with site.service.store.write() as connection:  # asked long ago, and still waiting
        connection.execute(storage.evaluations.update().values(created=1.0))
    age(monkeypatch, 40)
    assert retention.sweep(site.service) == []
    monkeypatch.undo()
    site.work()
    assert evaluation(site, waiting)["state"] == "answered"


def test_a_worker_sweeps_once_a_day_and_the_log_says_what_went(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, model, _ = asked
    age(monkeypatch, 31)
    site.worker.sweep_daily()
    site.worker.sweep_daily()
    Worker(site.service).sweep_daily()
    site.work()
    lines = site.client("olga").get("/api/v1/audit?action=retention").json()
    assert [(line["person"], line["subject"]) for line in lines] == [
        (None, f"model {model} of ana")
    ]


def test_half_written_files_of_a_killed_worker_are_removed(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _, _ = asked
    left = site.service.settings.private / "rows-x-1.abc.partial"
    left.write_bytes(b"rows")
    retention.tidy(site.service)
    assert left.exists()  # another worker may be writing it
    age(monkeypatch, 2)
    retention.tidy(site.service)
    assert not left.exists()


# --- encrypted at rest ---------------------------------------------------------------------------

NAMES = [f"person-{at:05d}-of-the-ward" for at in range(400)]


@pytest.fixture
def sealed(tmp_path: Path) -> Any:
    key = Fernet.generate_key().decode()
    site = Site(tmp_path / "server", rows_key=key)
    table = pyarrow.parquet.read_table(write_rows(tmp_path / "rows.parquet"))
    table = table.set_column(0, "admission", pyarrow.array(NAMES))
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    site.register(tmp_path / "rows.parquet")
    site.grant()
    yield site, key
    site.service.close()


def test_copies_are_unreadable_without_the_key_and_answers_work(sealed: Any) -> None:
    site, key = sealed
    model = site.upload()["id"]
    answer = site.answer(BRIER, artifact=model, key="one")
    assert answer["state"] == "answered", answer
    csv = "key,score\n" + "".join(f"{name},0.5\n" for name in NAMES)
    sent = site.client("ana").put(
        "/api/v1/artifacts?name=p.csv", content=csv, headers={"Content-Type": "text/csv"}
    )
    site.work()
    second = site.answer(BRIER, artifact=sent.json()["id"], key="two")
    assert second["state"] == "answered", second
    files = list(private_copies(site.service.settings))
    assert len(files) == 3
    secret = re.compile(rb"person-\d+-of-the-ward|readmitted|admission")
    private = site.service.settings.private
    predictions = set(private.glob("predictions-*"))  # the analyst's own, and no row
    for file in set(private.iterdir()) - predictions:
        assert not secret.search(file.read_bytes()), file.name
    for file in files:
        assert is_sealed(file)
        with pytest.raises((OSError, ValueError)):
            pyarrow.parquet.read_table(file)
        assert Vault(site.service.settings).read(file).num_rows == 400
    assert key not in "".join(
        path.read_text(errors="ignore") for path in private.parent.iterdir() if path.is_file()
    )


def test_another_key_or_a_changed_file_is_refused(sealed: Any) -> None:
    site, key = sealed
    settings = site.service.settings
    (file,) = private_copies(settings)
    for other in (None, Fernet.generate_key().decode()):
        vault = Vault(Settings.at(settings.folder, rows_key=other))
        with pytest.raises(UnreadableTable, match="refresh"):
            vault.read(file)
    both = Vault(Settings.at(settings.folder, rows_key=f"{Fernet.generate_key().decode()} {key}"))
    assert both.read(file).num_rows == 400
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(UnreadableTable):
        Vault(settings).read(file)
    with pytest.raises(ArgumentError, match="heldout server key"):
        Vault(Settings.at(settings.folder, rows_key="a password"))


def test_files_from_before_the_key_are_encrypted_when_a_worker_starts(
    opened: Site, tmp_path: Path
) -> None:
    model = opened.upload()["id"]
    opened.answer(BRIER, artifact=model, key="one")
    settings = opened.service.settings
    with_key: dict[str, Any] = {"rows_key": Fernet.generate_key().decode(), "tick": 0.1}
    if settings.database is not None:
        with_key["database"] = settings.database
    service = Service(Settings.at(settings.folder, scoring_tick=0.1, **with_key))
    assert service.vault.seal(private_copies(service.settings)) == 2
    assert service.vault.seal(private_copies(service.settings)) == 0
    assert all(is_sealed(file) for file in private_copies(service.settings))
    opened.worker = Worker(service)
    assert opened.answer(BRIER, artifact=model, key="two")["state"] == "answered"
    service.close()
