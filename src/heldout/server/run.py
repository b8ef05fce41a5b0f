"""Starting and stopping: tables, keys, rights, web processes and workers, and the demo."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.errors import ArgumentError, MissingDependency
from heldout.server.service import Service, secret_in
from heldout.server.settings import FOLDER, PARENT, Settings, chosen
from heldout.server.signing import Signer
from heldout.server.storage import Json, Store, people
from heldout.server.storage import datasets as dataset_table

if TYPE_CHECKING:
    from fastapi import FastAPI

PATIENCE = 30.0
"""Seconds that workers have to finish what they began."""
SCRIPT: Final = files("heldout.server").joinpath("roles.sql").read_text(encoding="utf-8")
PASSWORDS = {
    "heldout_web": "HELDOUT_WEB_PASSWORD",
    "heldout_worker": "HELDOUT_WORKER_PASSWORD",
}
"""Where the passwords of the roles are, if they are to be set."""


def open_service(
    folder: Path, *, database: str | None, address: str | None = None, new: bool = False
) -> Service:
    """Return a server as a command on its machine sees it; nothing is started or brought up."""
    _check_installed()
    if not new and not folder.is_dir():
        raise ArgumentError(f"There is no folder {shown(str(folder))}.")
    return Service(Settings.read(folder, database=database, address=address))


def application() -> "FastAPI":
    """Return what a web process serves: the settings come through its environment."""
    from heldout.server.app import make_app

    return make_app(Service(Settings.read(Path(os.environ[FOLDER]))))


def serve(
    folder: Path,
    *,
    demo: bool,
    prepare_only: bool = False,
    accept_ledger: bool = False,
    **given: object,
) -> None:
    """Run the web and its workers until somebody says stop; `given` are settings."""
    _check_installed()
    import uvicorn

    _write_no_core()
    values = chosen(folder, **given)
    if not prepare_only:  # before anything is made or promised
        _check_port(str(values.get("host", Settings.host)), values.get("port", Settings.port))
    settings = Settings.at(folder, **values)
    if settings.workers > 0 and not prepare_only:
        _check_rows(settings)
    reached = settings.reached
    settings = replace(settings, address=reached)
    service = Service(settings, accept_ledger=accept_ledger)
    link = prepare(service, worker=settings.workers > 0 and not prepare_only)
    if link is not None:
        print(f"Sign in as the administrator, once, by {reached}/sign-in/{link}", flush=True)
    if prepare_only:
        give_rights(service.store)
    service.close()
    if prepare_only:
        return
    environment = os.environ | settings.environment() | {PARENT: str(os.getpid())}
    signal.signal(signal.SIGTERM, _end)  # uvicorn hands it on once the web has stopped
    started = [_start_worker(settings, environment) for _ in range(settings.workers)]
    try:
        if demo:
            for line in offer_demo(Service(settings), reached):
                print(line, flush=True)
        print(f"heldout serves on {reached}. Ctrl-C stops it.", flush=True)
        os.environ.update(environment)
        uvicorn.run(
            "heldout.server.run:application",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.processes,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=settings.secure,
            forwarded_allow_ips=list(settings.proxies),
        )
    finally:
        _stop(started)


def work(folder: Path, *, database: str | None, rows: Path | None) -> None:
    """Be one worker."""
    _check_installed()
    from heldout.server.worker import run

    _write_no_core()
    is_there = folder.is_dir()
    settings = Settings.read(folder, database=database, rows=rows)
    if settings.database is None and not is_there:
        name = shown(str(folder))
        raise ArgumentError(f"There is no folder {name}. Start the server first: heldout serve.")
    _check_rows(settings)
    service = Service(settings)
    prepare(service)
    parent = os.environ.get(PARENT)
    try:
        run(service, alone=None if parent is None else lambda: os.getppid() != int(parent))
    finally:
        service.close()


def _write_no_core() -> None:
    """A process that crashes leaves no picture of its memory: a worker's has rows and their key."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(*_: object) -> None:
    raise SystemExit(0)


def _start_worker(settings: Settings, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "heldout", "worker", str(settings.folder)]
    # A session of its own: Ctrl-C at the terminal reaches the web alone, which then stops us.
    return subprocess.Popen(command, env=environment, start_new_session=True)


def _stop(started: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Ask every worker to end, and wait until what it began is done."""
    for process in started:
        process.send_signal(signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    for process in started:
        try:
            process.wait(max(end - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _check_rows(settings: Settings) -> None:
    """Refuse a folder of rows that is not there; the web alone need not see it."""
    if settings.rows is not None and not settings.rows.is_dir():
        raise ArgumentError(f"There is no folder {shown(settings.rows.name)}. Check --rows.")


def _check_port(host: str, port: Any) -> None:
    """Refuse a port that cannot be had."""
    try:
        if isinstance(port, int) and not 0 < port < 2**16:
            raise OverflowError  # the system would take another one, modulo 65,536
        family, kind, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(place)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "no such port"
        raise ArgumentError(
            f"The server cannot listen at {host}:{port} ({why}). Pass another --port or --host."
        ) from None


def _check_installed() -> None:
    from importlib.util import find_spec

    needed = ("fastapi", "uvicorn", "alembic", "argon2")
    missing = [name for name in needed if not find_spec(name)]
    if missing:
        raise MissingDependency(
            f"The server requires {missing[0]}. Install it with: pip install 'heldout[server]'"
        )


# --- the first start -----------------------------------------------------------------------------


def _hide_key(settings: Settings) -> None:
    """Move the ledger's key, which older versions kept where the web can read it."""
    old, new = settings.folder / "ledger.key", settings.private / "ledger.key"
    if old.exists() and not new.exists():
        secret_in(new, old.read_bytes)
        old.unlink()


def prepare(service: Service, *, worker: bool = True) -> str | None:
    """Bring everything up to date; on the first start returns the administrator's secret link."""
    from heldout.server import accounts, books

    service.store.migrate()
    if worker:
        _hide_key(service.settings)
    service.ledger.head()
    if service.accept_ledger:
        line = books.accept_ledger(service)
        print(
            f"The ledger is accepted as it is: {line or 'no entry with a receipt is missing'}.",
            flush=True,
        )
    books.check_receipt(service)
    if worker:
        Signer.of(service.settings.folder)
    if service.store.row(sa.select(people.c.name)) is not None:
        return None
    return accounts.add_person(service, name="administrator", role="administrator")


def give_rights(store: Store) -> None:
    """Make the roles if need be, and give each its rights; only the tables' owner can."""
    if not store.postgres:
        raise ArgumentError("Roles need PostgreSQL. Pass --database, or leave --prepare out.")
    with store.write() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(SCRIPT)
        for role, variable in PASSWORDS.items():
            if password := os.environ.get(variable):
                # format() quotes on the server; what is executed is never put together here.
                cursor.execute(
                    "SELECT format('ALTER ROLE %%I PASSWORD %%L', %s, %s)", (role, password)
                )
                for (statement,) in cursor.fetchall():
                    cursor.execute(statement)


# --- the demo: a made-up hospital with a custodian, an analyst and two models --------------------

NAME = "readmissions"
FACTS = """Made-up hospital stays. A model is to say who comes back within 30 days; one row is one
stay, and a patient may have several. Nobody in this table is real."""
ADMISSION = {
    "age": 0.03,
    "emergency": 0.7,
    "length_of_stay": 0.09,
    "comorbidities": 0.3,
    "prior_admissions": 0.6,
}
MODELS: dict[str, Json] = {
    "admission.json": {"coefficients": ADMISSION, "intercept": -5.7, "link": "logit"},
    "laboratory.json": {
        "coefficients": ADMISSION | {"haemoglobin": -0.36, "creatinine": 0.85},
        "intercept": -2.3,
        "link": "logit",
    },
}
"""Two models to try, as an analyst would submit them."""


def offer_demo(service: Service, address: str) -> Iterator[str]:
    """Set the demo up if it is not there; yields what to print about it."""
    import pyarrow.parquet

    from heldout.examples import readmission
    from heldout.server import accounts, datasets
    from heldout.server.accounts import SCOPES, Person

    known = service.store.row(sa.select(dataset_table.c.name).where(dataset_table.c.name == NAME))
    folder = service.settings.folder / "demo"
    if known is None:
        folder.mkdir(exist_ok=True)
        table = readmission().drop_columns(["risk_a", "risk_b"])
        pyarrow.parquet.write_table(table, folder / "readmissions.parquet")
        for name, model in MODELS.items():
            (folder / name).write_text(json.dumps(model, indent=2), encoding="utf-8")
        names = [person["name"] for person in accounts.everyone(service)]
        for name, role in (("carol", "custodian"), ("ana", "analyst")):
            if name not in names:
                accounts.add_person(service, name=name, role=role)
        carol = Person("carol", "custodian", "", "", SCOPES)
        declaration = {
            "label": "readmitted",
            "row_key": "encounter_id",
            "unit": "patient_id",
            "rows_per_unit": 3,
            "expected_rows": 5000,
            "prevalence": 0.125,
            "features": {
                "age": [18, 95],
                "emergency": ["0", "1"],
                "length_of_stay": [1, 30],
                "comorbidities": [0, 8],
                "prior_admissions": [0, 6],
                "haemoglobin": [5, 19],
                "creatinine": [0.4, 6],
            },
        }
        datasets.register(
            service,
            carol,
            name=NAME,
            source=str(folder / "readmissions.parquet"),
            declaration=declaration,
            budget="6",
            facts=FACTS,
        )
        _wait(service)
        datasets.grant(service, carol, NAME, analyst="ana", budget="4")
    yield f"The demo's analyst:   {address}/sign-in/{accounts.new_link(service, 'ana')}"
    yield f"The demo's custodian: {address}/sign-in/{accounts.new_link(service, 'carol')}"
    yield f"Models to submit are in {folder}: {', '.join(MODELS)}"


def _wait(service: Service) -> None:
    """Until a worker has looked at the rows; without one running, look at them here."""
    from heldout.server import datasets
    from heldout.server.worker import Worker

    end = time.monotonic() + 20
    while datasets.find(service, NAME).state == "checking" and time.monotonic() < end:
        time.sleep(0.1)
    if datasets.find(service, NAME).state == "checking":
        while Worker(service).step():
            pass
