"""A server on made-up rows: the web in this process, a worker that the tests step by hand."""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

pytest.importorskip("fastapi")
pytest.importorskip("onnxruntime")

from anyio.from_thread import start_blocking_portal
from fastapi.testclient import TestClient
from tests.conftest import new_schema

from heldout.server import accounts, storage
from heldout.server.app import make_app
from heldout.server.run import prepare
from heldout.server.service import Service, Settings
from heldout.server.worker import Worker, run

DECLARATION = {"label": "readmitted", "row_key": "admission", "features": ["age", "stay"]}
REAL_HASHER = accounts._hasher
ON_POSTGRES = os.environ.get("HELDOUT_TEST_SERVER_ON") == "postgres"
"""Whether every server here keeps its tables and its ledger in PostgreSQL; else in SQLite."""
LINEAR = {"coefficients": {"age": 0.04, "stay": 0.1}, "intercept": -3, "link": "logit"}


def rows(count: int = 400) -> dict[str, list[Any]]:
    return {
        "admission": [f"a{at}" for at in range(count)],
        "age": [20 + 13 * at % 70 for at in range(count)],
        "stay": [1.0 + 7 * at % 11 for at in range(count)],
        "readmitted": [int(13 * at % 70 + at % 3 > 45) for at in range(count)],
    }


def write_rows(path: Path, count: int = 400, **changed: Any) -> Path:
    import pyarrow
    import pyarrow.parquet

    table = rows(count)
    for name, (at, value) in changed.items():
        table[name][at] = value
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path


@pytest.fixture(scope="session", autouse=True)
def _quick_hashes() -> Iterator[None]:
    """Passwords are hashed as ever, with less work; a test of accounts looks at the real ones."""
    import argon2

    quick = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "_hasher", lambda: quick)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_loop() -> Iterator[None]:
    """Requests share an event loop; a thread and a loop for each take longer than most answers."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "portal", portal)
        yield


class Hurried:
    """The real clock; whoever would sleep until a tick puts it forward to there instead."""

    ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.ahead += seconds


@pytest.fixture(scope="session", autouse=True)
def _no_waiting() -> Iterator[None]:
    """A server in this process reaches its ticks at once: hundreds of tests wait for several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "time", Hurried())
        yield


@cache
def _empty_tables() -> bytes:
    """Return a database with all tables and nothing in them: every other site begins with it."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Settings.at(Path(folder) / "server"))
        service.store.migrate()
        service.close()
        return (Path(folder) / "server" / "server.sqlite").read_bytes()


class Site:
    """One server with its people; `client(name)` speaks for one of them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        if ON_POSTGRES and "database" not in settings:
            _, settings["database"] = new_schema()  # which goes when the test server does
        usual = {"scoring_tick": settings.get("tick", 0.1), "hosts": ("testserver",)}
        usual |= {"seconds_per_row": 0.05}  # a busy machine's: the limit has tests of its own
        self.service = Service(Settings.at(folder, **usual | settings))
        if settings.get("database") is None and not (folder / "server.sqlite").exists():
            (folder / "server.sqlite").touch(mode=0o600)  # as the server makes it
            (folder / "server.sqlite").write_bytes(_empty_tables())
        self.link = prepare(self.service)
        self.app = make_app(self.service)
        self.worker = Worker(self.service)
        self.tokens: dict[str, str] = {}
        for name, role in (
            ("carol", "custodian"),
            ("ana", "analyst"),
            ("bert", "analyst"),
            ("olga", "auditor"),
            ("adam", "administrator"),
        ):
            accounts.add_person(self.service, name=name, role=role)
            self.tokens[name] = self.token(name, role)

    def token(self, name: str, role: str, **more: Any) -> str:
        person = accounts.Person(name, role, "", "browser", accounts.SCOPES)
        made = accounts.make_token(self.service, person, label="test", **more)
        return str(made["token"])

    def client(self, name: str | None = None) -> TestClient:
        headers = {} if name is None else {"Authorization": f"Bearer {self.tokens[name]}"}
        return TestClient(self.app, headers=headers, raise_server_exceptions=False)

    def work(self) -> None:
        """Everything that waits is done, at its tick."""
        while self.worker.step() or (self.until_tick() and self.worker.step()):
            pass

    def until_tick(self) -> bool:
        """Whether a job was to be begun at a tick, which has come now."""
        first, then = storage.jobs.alias("first"), storage.jobs
        query = sa.select(first.c.due).join_from(first, then, then.c.after == first.c.id)
        query = query.where(then.c.state == "waiting", first.c.state == "done")
        with self.service.store.read() as connection:
            ticks = connection.execute(query).scalars().all()
        coming = [due for due in ticks if due > storage.now()]  # others came since a worker looked
        if coming:
            storage.wait_until(min(coming))
        return bool(ticks)

    def register(self, file: Path, *, name: str = "readmissions", budget: str = "3") -> Any:
        self.register_again(file, name=name, budget=budget)
        self.work()
        return self.client("carol").get(f"/api/v1/datasets/{name}").json()

    def register_again(self, file: Path, *, name: str = "readmissions", budget: str = "3") -> None:
        """Send a registration that no worker has looked at yet."""
        body = {
            "name": name,
            "source": str(file),
            "declaration": DECLARATION,
            "budget": budget,
            "facts": "Admissions of 2025.",
        }
        self.client("carol").post(
            "/api/v1/datasets", json=body, headers={"Prefer": "wait=0"}
        ).raise_for_status()

    def grant(self, analyst: str = "ana", *, name: str = "readmissions", budget: str = "2") -> Any:
        body = {"analyst": analyst, "budget": budget}
        answer = self.client("carol").post(f"/api/v1/datasets/{name}/grants", json=body)
        answer.raise_for_status()
        return answer.json()

    def upload(self, model: Any = None, *, who: str = "ana") -> Any:
        content = json.dumps(LINEAR if model is None else model)
        return self.send_file("model.json", content, "application/json", who=who)

    def send_file(self, name: str, content: str | bytes, kind: str, *, who: str = "ana") -> Any:
        """Send an artefact, and return what is known of it once it was looked at."""
        answer = self.client(who).put(
            f"/api/v1/artifacts?name={name}",
            content=content,
            headers={"Content-Type": kind, "Prefer": "wait=0"},
        )
        answer.raise_for_status()
        self.work()
        return self.client(who).get(f"/api/v1/artifacts/{answer.json()['id']}").json()

    dataset = "readmissions"
    """What questions are asked of, unless a test says otherwise."""

    def ask(self, *questions: Any, artifact: str, key: str, who: str = "ana", of: str = "") -> Any:
        dataset, headers = of or self.dataset, {"Idempotency-Key": key}
        body = {"dataset": dataset, "artifact": artifact, "questions": list(questions)}
        return self.client(who).post("/api/v1/evaluations", json=body, headers=headers)

    def answer(self, *questions: dict[str, Any], artifact: str, key: str, who: str = "ana") -> Any:
        asked = self.ask(*questions, artifact=artifact, key=key, who=who)
        asked.raise_for_status()
        self.work()
        found = self.client(who).get(
            f"/api/v1/evaluations/{asked.json()['id']}", headers={"Prefer": "wait=5"}
        )
        found.raise_for_status()
        return found.json()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: Any, tmp_path: Path) -> str:
    """A database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'server.sqlite'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path / "server")
    yield found
    found.service.close()


@pytest.fixture
def opened(site: Site, tmp_path: Path) -> Site:
    """A site with a data set, a share for ana, and a model of hers."""
    site.register(write_rows(tmp_path / "rows.parquet"))
    site.grant()
    return site


@pytest.fixture
def working(site: Site) -> Iterator[Callable[[], None]]:
    """A worker in the background."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(site.service,), kwargs={"stop": stop})
    thread.start()
    yield lambda: None
    stop.set()
    thread.join()
