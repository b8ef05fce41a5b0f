"""Starting and stopping: web processes and workers, each a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heldout.arguments import shown
from heldout.errors import ArgumentError, MissingDependency
from heldout.server.service import Service, Settings

__all__ = ["application", "serve", "work"]

FOLDER, DATABASE, ROWS, ADDRESS, HOSTS, PARENT = (
    f"HELDOUT_SERVER_{name}"
    for name in ("FOLDER", "DATABASE", "ROWS", "ADDRESS", "HOSTS", "PARENT")
)
PATIENCE = 30.0
"""Seconds that workers have to finish what they began."""


def settings_of(
    folder: Path,
    *,
    database: str | None,
    rows: Path | None,
    address: str | None = None,
    hosts: Sequence[str] = (),
) -> Settings:
    found: dict[str, Any] = {"database": database or os.environ.get(DATABASE) or None}
    found["hosts"] = tuple(hosts) or tuple(os.environ.get(HOSTS, "").split())
    if rows is not None:
        try:
            found["rows"] = rows.resolve()
        except (OSError, ValueError, RuntimeError):
            raise ArgumentError(f"rows must be a folder, got {shown(rows.name)}.") from None
    if address is not None:
        if not address.startswith(("http://", "https://")):
            raise ArgumentError(
                f"address must begin with http:// or https://, got {shown(address)}."
            )
        found |= {"address": address.rstrip("/"), "secure": address.startswith("https://")}
    return Settings.at(folder, **found)


def application() -> Any:
    """What a web process serves: the settings come through its environment."""
    from heldout.server.app import make_app

    rows = os.environ.get(ROWS)
    settings = settings_of(
        Path(os.environ[FOLDER]),
        database=None,
        rows=Path(rows) if rows else None,
        address=os.environ.get(ADDRESS) or None,
    )
    return make_app(Service(settings))


def serve(
    folder: Path,
    *,
    host: str,
    port: int,
    database: str | None,
    workers: int,
    processes: int,
    rows: Path | None,
    address: str | None,
    hosts: Sequence[str] = (),
    demo: bool,
    prepare_only: bool = False,
    accept_ledger: bool = False,
) -> None:
    """Run the web and its workers until somebody says stop."""
    _check_installed()
    if not prepare_only:
        _check_port(host, port)
    import uvicorn

    from heldout.server.first_start import prepare

    reached = address or f"http://{'localhost' if host == '127.0.0.1' else host}:{port}"
    settings = settings_of(folder, database=database, rows=rows, address=reached, hosts=hosts)
    service = Service(settings, accept_ledger=accept_ledger)
    link = prepare(service, worker=workers > 0 and not prepare_only)
    if link is not None:
        print(f"Sign in as the administrator, once, by {reached}/sign-in/{link}", flush=True)
    if prepare_only:
        from heldout.server.roles import give_rights

        give_rights(service.store)
    service.close()
    if prepare_only:
        return
    own = {FOLDER: str(settings.folder), ADDRESS: reached, PARENT: str(os.getpid())}
    environment = os.environ | own | {HOSTS: " ".join(settings.hosts)}
    for name, value in ((DATABASE, settings.database), (ROWS, settings.rows)):
        if value is not None:
            environment[name] = str(value)
    signal.signal(signal.SIGTERM, _end)  # uvicorn hands it on once the web has stopped
    started = [_start_worker(settings, environment) for _ in range(workers)]
    try:
        if demo:
            from heldout.server.demo import offer

            for line in offer(Service(settings), reached):
                print(line, flush=True)
        print(f"heldout serves on {reached}. Ctrl-C stops it.", flush=True)
        os.environ.update(environment)
        uvicorn.run(
            "heldout.server.run:application",
            factory=True,
            host=host,
            port=port,
            workers=processes,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=settings.secure,
        )
    finally:
        _stop(started)


def work(folder: Path, *, database: str | None, rows: Path | None) -> None:
    """Be one worker."""
    _check_installed()
    from heldout.server.first_start import prepare
    from heldout.server.worker import run

    service = Service(settings_of(folder, database=database, rows=rows))
    prepare(service)
    parent = os.environ.get(PARENT)
    try:
        run(service, alone=None if parent is None else lambda: os.getppid() != int(parent))
    finally:
        service.close()


def _end(*_: object) -> None:
    raise SystemExit(0)


def _start_worker(settings: Settings, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "heldout", "worker", str(settings.folder)]
    # A session of its own: Ctrl-C at the terminal reaches the web alone, which then stops us.
    return subprocess.Popen(command, env=environment, start_new_session=True)


def _stop(started: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Ask every worker to end, and wait until what it began is done."""
    for each in started:
        each.send_signal(signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    for each in started:
        try:
            each.wait(max(end - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()


def _check_port(host: str, port: int) -> None:
    """Refuse a port that cannot be had before anything is made or promised."""
    try:
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

    missing = [each for each in ("fastapi", "uvicorn", "alembic", "argon2") if not find_spec(each)]
    if missing:
        raise MissingDependency(
            f"The server requires {missing[0]}. Install it with: pip install 'heldout[server]'"
        )
