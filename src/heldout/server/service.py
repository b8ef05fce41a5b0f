"""What every part of the server stands on: where things are, and what is allowed."""

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.kernel import Ledger
from heldout.server.limits import FreeWork, Turnstile
from heldout.server.refusals import Busy, Conflict, Forbidden, Missing, TooLarge, TooMany
from heldout.server.storage import Store

__all__ = [
    "Busy",
    "Conflict",
    "Forbidden",
    "Missing",
    "Service",
    "Settings",
    "TooLarge",
    "TooMany",
    "checked_path_name",
    "kept",
]


def checked_path_name(what: str, name: object) -> str:
    """A name that fits into an address and a page as it is."""
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        return name
    raise ArgumentError(
        f"{what} must be 1 to 64 letters, digits, dots, dashes or underscores, got {shown(name)}."
    )


def kept(path: Path, make: Callable[[], bytes]) -> bytes:
    """A secret in a file that nobody else may read; whoever is first makes it, whole."""
    if not path.exists():
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(make())
        try:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink()
    return path.read_bytes()


@dataclass(frozen=True)
class Settings:
    """Where the server keeps things, and its limits. All of it is public but the files' content."""

    folder: Path
    database: str | None = None
    """Of the server and the ledger; None keeps both in SQLite files in the folder."""
    rows: Path | None = None
    """The one folder from which rows may be registered; None allows any file of this machine."""
    address: str = "http://127.0.0.1:8000"
    secure: bool = False
    """Whether browsers come by https, so that cookies may insist on it."""
    most_upload: int = 256 * 2**20
    most_body: int = 2**20
    most_prediction_rows: int = 20_000_000
    most_kept: int = 4 * 2**30
    """Bytes of all artefacts of one analyst, of copies made of them, and of their scores."""
    most_waiting: int = 50
    """Jobs of one person that may wait at once: uploads, evaluations and submissions together."""
    most_running: int = 1
    """Jobs of one person that run at once: with two workers nobody waits for one other person."""
    processor_seconds_per_hour: float = 14_400
    """What the jobs of one person may count for within an hour; a job counts for as long as it is
    allowed to take, which is far longer than it usually takes."""
    free_seconds_per_minute: float = 10.0
    """Processor seconds for one person's quotes and pages, in one web process."""
    most_hashing: int = 2
    """Passwords that one web process looks at at once: 64 MB of memory each."""
    hosts: tuple[str, ...] = ()
    """Names that the server answers to, beside this machine's own and that of its address."""
    requests_per_minute: int = 6000
    """Of one person in one web process; of one address ten times as many."""
    sign_ins_per_minute: int = 60
    """Of one address in one web process."""
    tick: float = 0.2
    """Prices are booked, and answers appear, at whole multiples of this many seconds of the clock,
    and a whole number of ticks after a worker took the question up; more for large tables."""
    scoring_tick: float = 1.0
    """The same for the scoring of a model, for every 20,000 rows."""
    seconds_per_row: float = 0.002
    """What the scoring of a model may take beyond its start, for every row; then it fails whole."""
    lease: float = 30.0
    """Seconds after which a job of a silent worker is taken up again."""
    quote_seconds: int = 3600

    @classmethod
    def at(cls, folder: str | os.PathLike[str], **more: object) -> "Settings":
        """Settings of a folder, which is made if need be."""
        try:
            place = Path(folder).resolve()
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in ("artifacts", "private"):
                (place / name).mkdir(mode=0o700, exist_ok=True)
        except (OSError, ValueError, RuntimeError):
            raise ArgumentError(
                f"The folder {shown(os.fspath(folder))} cannot be made. Choose another."
            ) from None
        return cls(folder=place, **more)  # type: ignore[arg-type]

    @property
    def known_hosts(self) -> frozenset[str]:
        """Every name that a request may be addressed to."""
        own = urlsplit(self.address).hostname or ""
        names = {"localhost", "127.0.0.1", "::1", own, *map(str.lower, self.hosts)}
        return frozenset(names - {""})  # what a missing or a garbled header is read as

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    @property
    def private(self) -> Path:
        """What only workers may read: rows and scores."""
        return self.folder / "private"


@dataclass
class Service:
    """The server's tables and the ledger, opened where they are first needed."""

    settings: Settings

    @cached_property
    def free(self) -> FreeWork:
        """What people may have worked out for nothing."""
        return FreeWork(self.settings.free_seconds_per_minute)

    @cached_property
    def hashing(self) -> Turnstile:
        """Where passwords are looked at."""
        return Turnstile(self.settings.most_hashing, waiting=4 * self.settings.most_hashing)

    @cached_property
    def store(self) -> Store:
        place = self.settings.database
        if place is not None:
            return Store(place)
        return Store.on_file(self.settings.folder / "server.sqlite")

    @cached_property
    def ledger(self) -> Ledger:
        folder = self.settings.folder
        where = self.settings.database or folder / "ledger.sqlite"
        witness = folder / "ledger.sqlite.witness" if self.settings.database is None else None
        key, tick = self.settings.private / "ledger.key", self.settings.tick
        return Ledger.open(where, key=key, witness=witness, tick=tick)

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
        if "ledger" in self.__dict__:
            self.ledger.close()
