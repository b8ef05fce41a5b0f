"""Many clients, web processes and workers, and kill -9 at random: the books stay right.

python -m benchmarks.server_kill [SECONDS]

Needs HELDOUT_TEST_POSTGRES for the run on PostgreSQL (tools/with_postgres.sh sets it).
"""

import contextlib
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.figure import judge

EPSILON = Fraction(1, 4)
QUESTIONS = [{"question": "brier", "epsilon": str(EPSILON)}]
MODEL = {"coefficients": {"x": 1.0}}
LEASE = float(os.environ.get("HELDOUT_BENCHMARK_LEASE", "2"))
"""Seconds; short where workers are killed, so that their jobs are soon taken up."""


# --- processes, forked from one that has imported everything --------------------------------------


def nursery() -> None:
    """Reads commands, forks a web process or a worker for each, and says its number."""
    import uvicorn

    from heldout.server import app, worker
    from heldout.server.service import Service

    for name in json.loads(sys.stdin.readline()):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        kind, folder, database, port = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with contextlib.suppress(BaseException):
                service = Service(settings(Path(folder), database))
                if kind == "web":
                    made = app.make_app(service)
                    uvicorn.run(made, port=port, log_level="critical", access_log=False)
                else:
                    worker.run(service)
            os._exit(0)
        print(child, flush=True)


def settings(folder: Path, database: str | None) -> Any:
    from heldout.server.service import Settings

    more = {"lease": LEASE, "tick": 0.05, "scoring_tick": 0.05, "requests_per_minute": 10**6}
    more |= {"most_waiting": 1000, "most_running": 100, "processor_seconds_per_hour": 10**9}
    return Settings.at(folder, database=database, **more)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Fleet:
    """Web processes and workers that are killed, and replaced at once."""

    folder: Path
    database: str | None
    webs: int
    workers: int
    alive: dict[tuple[str, int], int] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> "Fleet":
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.server_kill", "nursery"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._nursery = subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload]
        wanted = ("heldout", "opendp", "scipy", "pyarrow", "duckdb", "sqlglot", "flint", "numpy")
        known = [each for each in sys.modules if each.split(".")[0] in wanted]
        self._nursery.stdin.write(json.dumps(known) + "\n")
        self.ports = [free_port() for _ in range(self.webs)]
        places = [("web", port) for port in self.ports]
        for place in [*places, *(("worker", at) for at in range(self.workers))]:
            self.start(place)
        return self

    def start(self, place: tuple[str, int]) -> None:
        command = [place[0], str(self.folder), self.database, place[1]]
        self._nursery.stdin.write(json.dumps(command) + "\n")
        self._nursery.stdin.flush()
        self.alive[place] = int(self._nursery.stdout.readline())

    def kill_one(self) -> None:
        place = random.choice(list(self.alive))
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.alive[place], signal.SIGKILL)
        self.killed[place[0]] += 1
        self.start(place)

    def __exit__(self, *_: object) -> None:
        for process in self.alive.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._nursery.kill()
        self._nursery.wait()


# --- clients --------------------------------------------------------------------------------------


class Client(threading.Thread):
    """Asks and asks again; whatever fails on the way is sent again under the same key."""

    def __init__(self, number: int, fleet: Fleet, token: str, artifact: str) -> None:
        super().__init__(daemon=True)
        self._number, self._fleet, self._token, self._artifact = number, fleet, token, artifact
        self.stop = threading.Event()
        self.found: dict[str, Any] = {}
        self.ids: dict[str, set[str]] = {}
        self.refused = 0

    def run(self) -> None:
        count = 0
        while not self.stop.is_set():
            key = f"client {self._number} request {count}"
            count += 1
            body = {
                "dataset": "stays",
                "artifact": self._artifact,
                "questions": QUESTIONS,
            }
            for _ in range(random.choice((1, 1, 2))):  # a double click
                status, content = self._call("POST", "/evaluations", body, key=key)
                if status == 202:
                    self.ids.setdefault(key, set()).add(content["id"])
            if status != 202:
                assert status in (402, 429), (status, content)
                self.refused += 1
                self.stop.wait(0.1)
                continue
            while content["state"] == "waiting":
                path = f"/evaluations/{content['id']}"
                _, content = self._call("GET", path, wait=5)
            self.found[content["id"]] = content

    def _call(
        self, method: str, path: str, body: Any = None, *, key: str = "", wait: int = 0
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Prefer": f"wait={wait}"}
        headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        data = None if body is None else json.dumps(body).encode()
        while True:
            port = random.choice(self._fleet.ports)
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/api/v1{path}", data, headers, method=method
            )
            try:
                with urllib.request.urlopen(asked, timeout=30) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    return error.code, json.load(error)
                raise
            except (OSError, ValueError, EOFError):  # killed on the way: the same key again
                time.sleep(0.05)


# --- the run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What the clients saw and what the books say."""

    states: Counter[str]
    bookings: int
    spent: Fraction
    budget: Fraction
    killed: Counter[str]
    refused: int
    wrong: list[str]


def run(
    folder: Path,
    *,
    clients: int = 16,
    webs: int = 2,
    workers: int = 3,
    seconds: float = 20.0,
    budget: int = 100,
    database: str | None = None,
    pause: float = 0.6,
) -> Outcome:
    """Let clients ask while processes are killed; then hold all that was said to the books."""
    service, tokens, artifact = prepared(folder, budget=budget, database=database)
    with Fleet(folder, database, webs, workers) as fleet:
        people = [Client(at, fleet, tokens[at % 2], artifact[at % 2]) for at in range(clients)]
        for each in people:
            each.start()
        time.sleep(2.0)  # until everything has started
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(random.uniform(0, 2 * pause))
            fleet.kill_one()
        for each in people:
            each.stop.set()
        for each in people:
            each.join(60)
        hung = sum(each.is_alive() for each in people)
        _until_done(service)
        killed = fleet.killed
    return _judged(service, people, budget=budget, killed=killed, hung=hung)


def prepared(folder: Path, *, budget: int, database: str | None) -> tuple[Any, Any, Any]:
    """A server with rows, two analysts whose shares are larger than the data set's budget."""
    import asyncio

    import pyarrow
    import pyarrow.parquet

    from heldout.server import accounts, artifacts, datasets, evaluations
    from heldout.server.run import prepare
    from heldout.server.service import Service
    from heldout.server.worker import Worker

    folder.mkdir(exist_ok=True)
    service = Service(settings(folder, database))
    prepare(service)
    rows = {"id": list(range(60)), "x": [0, 1] * 30, "y": [0, 1, 1] * 20}
    pyarrow.parquet.write_table(pyarrow.table(rows), folder / "rows.parquet")
    who = {}
    for name, role in (("carol", "custodian"), ("ana", "analyst"), ("bert", "analyst")):
        accounts.add_person(service, name=name, role=role)
        who[name] = accounts.Person(name, role, "", "browser", accounts.SCOPES)
    datasets.register(
        service,
        who["carol"],
        name="stays",
        source=str(folder / "rows.parquet"),
        declaration={"label": "y", "row_key": "id", "features": ["x"]},
        budget=str(budget),
    )
    worker = Worker(service)
    while worker.step():
        pass
    tokens, found = [], []

    async def content() -> Any:
        yield json.dumps(MODEL).encode()

    for name in ("ana", "bert"):
        datasets.grant(service, who["carol"], "stays", analyst=name, budget=str(budget))
        tokens.append(accounts.make_token(service, who[name], label="kill")["token"])
        stored = artifacts.store(
            service, who[name], content(), content_type="application/json", name="model"
        )
        found.append(asyncio.run(stored))
        evaluations.submit(
            service, who[name], dataset="stays", artifact=found[-1], content=QUESTIONS, key="first"
        )
    while worker.step():  # what a server imports when it is first asked is imported now
        pass
    return service, tokens, found


def _until_done(service: Any) -> None:
    """Every job ends, at the latest when leases have run out a few times."""
    import sqlalchemy as sa

    from heldout.server.storage import jobs

    left = sa.select(sa.func.count()).where(jobs.c.state != "done")
    end = time.monotonic() + 20 * LEASE
    while time.monotonic() < end:
        with service.store.read() as connection:
            if connection.execute(left).scalar_one() == 0:
                return
        time.sleep(0.1)


def _judged(service: Any, people: list[Client], *, budget: int, killed: Any, hung: int) -> Outcome:
    import sqlalchemy as sa

    from heldout.server.storage import evaluations, jobs

    wrong = [f"{hung} clients wait for ever"] if hung else []
    with service.store.read() as connection:
        rows = {row.id: row for row in connection.execute(sa.select(evaluations))}
        waiting = [
            row.subject for row in connection.execute(sa.select(jobs)) if row.state != "done"
        ]
    if waiting:
        wrong.append(f"{len(waiting)} jobs never ended")
    service.ledger.verify()
    entries = [each for each in service.ledger.history("stays") if each.content.get("charge")]
    booked: dict[str, Any] = {}
    for entry in entries:
        reference = entry.content["request"]["reference"]
        if reference in booked:
            wrong.append(f"{reference} was charged twice")
        booked[reference] = entry
    spent = sum((Fraction(each.content["charge"]["epsilon"]) for each in entries), Fraction())
    receipts = [row for row in rows.values() if row.statement is not None]
    if {row.id for row in receipts} != set(booked):
        wrong.append("receipts and bookings are not the same")
    if len(receipts) * EPSILON != spent or spent > budget:
        wrong.append(f"{len(receipts)} receipts, but {spent} of {budget} was spent")
    wrong += [fault for client in people for fault in _faults(client, booked)]
    states = Counter(row.state for row in rows.values())
    refused = sum(each.refused for each in people)
    if states["waiting"] + states["booking"]:
        wrong.append(f"{states['waiting'] + states['booking']} evaluations never ended")
    service.close()
    return Outcome(states, len(entries), spent, Fraction(budget), killed, refused, wrong)


def _faults(client: Client, booked: dict[str, Any]) -> Iterator[str]:
    """What one client was told that the books do not say."""
    for key, ids in client.ids.items():
        if len(ids) != 1:
            yield f"the key {key!r} stands for {len(ids)} evaluations"
    for identity, content in client.found.items():
        receipt = content["receipt"]
        if (receipt is not None) != (identity in booked):
            yield f"{identity} is {content['state']}, and its booking says otherwise"
        elif receipt is not None and receipt["hash"] != booked[identity].hash:
            yield f"{identity} has another receipt than its booking"
        if content["answers"] is not None and content["state"] != "answered":
            yield f"{identity} has an answer and is {content['state']}"


def main() -> bool:
    seconds = next((float(each) for each in sys.argv[1:] if each.replace(".", "").isdigit()), 30.0)
    right = True
    for database in (None, os.environ.get("HELDOUT_TEST_POSTGRES")):
        if database is None and not right:
            break
        with tempfile.TemporaryDirectory(prefix="heldout-kill-") as folder:
            found = run(Path(folder), seconds=seconds, database=database)
        kind = "SQLite" if database is None else "PostgreSQL"
        print(f"{kind}: killed {dict(found.killed)}; evaluations {dict(found.states)}; refused for")
        print(f"  want of budget {found.refused}; {found.bookings} bookings, {found.spent} spent")
        for each in found.wrong:
            print("  WRONG:", each)
        right &= judge("faults in the books", len(found.wrong), 0)
        if os.environ.get("HELDOUT_TEST_POSTGRES") is None:
            break
    return right


if __name__ == "__main__":
    if sys.argv[1:] == ["nursery"]:
        nursery()
    else:
        raise SystemExit(0 if main() else 1)
