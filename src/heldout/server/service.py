"""What every part of the server stands on: where things are, and what is allowed."""

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from heldout.arguments import shown
from heldout.errors import ArgumentError, HeldoutError
from heldout.privacy import Ledger
from heldout.server.storage import Store

__all__ = [
    "Conflict",
    "Forbidden",
    "Missing",
    "Service",
    "Settings",
    "TooMany",
    "checked_path_name",
    "kept",
]


class Missing(HeldoutError):
    """There is no such thing, or this person may not know of it."""


class Forbidden(HeldoutError):
    """This person may not do this."""


class Conflict(HeldoutError):
    """It cannot be done in the state that things are in."""


class TooMany(HeldoutError):
    """Too many requests; `seconds` says when to come back."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


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
    """Bytes of all artefacts of one analyst."""
    most_waiting: int = 50
    """Evaluations of one analyst that may wait at once."""
    requests_per_minute: int = 6000
    """Of one person in one web process; of one address ten times as many."""
    sign_ins_per_minute: int = 60
    """Of one address in one web process."""
    tick: float = 0.1
    """Answers appear at multiples of this many seconds after they were asked for."""
    seconds_per_row: float = 0.5
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
    strangers: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Names that nobody has, under which this process was asked in vain."""

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
        return Ledger.open(where, key=folder / "ledger.key", witness=witness)

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
        if "ledger" in self.__dict__:
            self.ledger.close()
