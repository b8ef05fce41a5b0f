"""The base of every part of the server: refusals, and limits of one web process."""

import contextlib
import ipaddress
import json
import math
import os
import re
import secrets
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heldout.arguments import shown, visible
from heldout.errors import ArgumentError, HeldoutError
from heldout.kernel import Ledger
from heldout.server.settings import Settings
from heldout.server.storage import Store, log, now
from heldout.server.vault import Vault

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from heldout.server.jobs import Figures

MOST_BUCKETS: Final = 50_000
RESERVED: Final = 1.0
"""Seconds that free work is taken to need until it is done."""
PATIENCE: Final = 10.0


# --- why the server does not do what somebody asks for -------------------------------------------


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


class Busy(TooMany):
    """The server has too much to do right now; it is nobody's fault."""


class TooLarge(ArgumentError):
    """More bytes than the server takes."""


class TooSlow(HeldoutError):
    """The request did not arrive in the time that it has."""


# --- small things --------------------------------------------------------------------------------


def checked_path_name(what: str, name: object) -> str:
    """Return a name that fits into an address and a page as it is."""
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        return name
    raise ArgumentError(
        f"{what} must be 1 to 64 letters, digits, dots, dashes or underscores, got {shown(name)}."
    )


def checked_person_name(name: object) -> str:
    """Return what somebody is called: letters of any alphabet, as they write it themselves.

    >>> checked_person_name("Dr. Müller")
    'Dr. Müller'
    """
    if (
        isinstance(name, str)
        and 0 < len(name) <= 64
        and name.isprintable()
        and name == unicodedata.normalize("NFC", " ".join(name.split()))
        and name[0].isalnum()
        and all(character.isalnum() or character in " .,'’_@+-" for character in name)
    ):
        return name
    raise ArgumentError(
        "name must be 1 to 64 letters, digits, spaces, dots, dashes or apostrophes, and begin with "
        f"a letter or a digit, got {shown(name)}."
    )


def secret_in(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the secret of a file that nobody else may read; whoever is first makes it, whole."""
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


def in_words(seconds: int) -> str:
    """Return a time to wait as people say it."""
    if seconds < 120:
        return f"{seconds} seconds" if seconds > 1 else "a second"
    return f"{math.ceil(seconds / 60)} minutes"


def kilobytes(size: int) -> str:
    """Return a size as people read it.

    >>> kilobytes(90), kilobytes(2500), kilobytes(3_000_000)
    ('90 bytes', '2.5 kB', '3.0 MB')
    """
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 10**6 else f"{size / 10**6:.1f} MB"


def moment(time: float | str) -> str:
    """Return a time of UTC as people read it.

    >>> moment(0), moment("2026-02-03T04:05:06+00:00")
    ('1 Jan 1970, 00:00', '3 Feb 2026, 04:05')
    """
    when = (
        datetime.fromisoformat(time) if isinstance(time, str) else datetime.fromtimestamp(time, UTC)
    )
    return f"{when.day} {when:%b %Y, %H:%M}"


def print_line(event: str, **facts: object) -> None:
    """Print a line of JSON for whoever runs the server, without a private value.

    Control characters become escapes, so nobody can forge a second line.
    """
    content = {"time": round(now(), 3), "event": event} | facts
    print(json.dumps(content, default=str), file=sys.stderr, flush=True)


# --- in one web process --------------------------------------------------------------------------


class FreeWork:
    """A budget of processor seconds for work that nobody pays for: so many in a minute.

    Every person has their own, in every web process. Work begins while something is left, and what
    it took is then taken off; until that is known a second is set aside for it.
    """

    def __init__(self, seconds_per_minute: float) -> None:
        self._most = seconds_per_minute
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def of(self, person: str) -> Iterator[None]:
        """Do some of a person's free work, or say when to come back."""
        with self._lock:
            left = self._now_left(person)
            if left <= 0:
                seconds = math.ceil((RESERVED - left) * 60 / self._most)
                raise TooMany(
                    "Free work, such as quotes and pages, took all of your "
                    f"{self._most:g} processor seconds per minute. "
                    f"Come back in {in_words(seconds)}.",
                    seconds,
                )
            self._set(person, left - RESERVED)
        begun = time.thread_time()
        try:
            yield
        finally:
            taken = time.thread_time() - begun
            with self._lock:
                self._set(person, self._now_left(person) + RESERVED - taken)

    def _now_left(self, person: str) -> float:
        left, last = self._left.get(person, (self._most, 0.0))
        return min(left + (time.monotonic() - last) * self._most / 60, self._most)

    def _set(self, person: str, left: float) -> None:
        self._left[person] = (left, time.monotonic())


class Rates:
    """Limits how often somebody may ask: a bucket of requests by name, refilled in a minute."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, most: int) -> None:
        """Take one request out of a bucket, or say when to come back."""
        then = time.monotonic()
        left, last = self._buckets.get(name, (float(most), then))
        left = min(left + (then - last) * most / 60, float(most)) - 1
        if len(self._buckets) > MOST_BUCKETS:  # those that have refilled say nothing
            recent = {name for name, (_, last) in self._buckets.items() if then - last < 60}
            self._buckets = {name: self._buckets[name] for name in recent}
        self._buckets[name] = (max(left, -1.0), then)
        if left < 0:
            seconds = 1 + int(60 / most)
            raise TooMany(f"Too many requests. Try again in {seconds} seconds.", seconds)


class Turnstile:
    """Lets a few through at a time and a few more wait; whoever comes then is sent away."""

    def __init__(self, at_once: int, *, waiting: int) -> None:
        self._inside = threading.BoundedSemaphore(at_once)
        self._near = threading.BoundedSemaphore(at_once + waiting)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for gate, patience in ((self._near, 0.0), (self._inside, PATIENCE)):
                if not gate.acquire(timeout=patience):
                    raise Busy("Too many people are signing in. Try again in 2 seconds.", 2)
                stack.callback(gate.release)
            yield


def address_of(scope: Mapping[str, object]) -> str:
    """Return where a request comes from; of IPv6 the network, which is what one household has.

    >>> address_of({"client": ("192.0.2.7", 1)}), address_of({"client": ("2001:db8::1:2", 1)})
    ('192.0.2.7', '2001:db8::/64')
    """
    client = scope.get("client")
    host = str(client[0]) if isinstance(client, tuple) else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        network = ipaddress.ip_network((address, 64), strict=False)
        return str(address.ipv4_mapped or network)
    return str(address)


def note(
    connection: "Connection", person: str | None, action: str, subject: str, status: int = 200
) -> None:
    """Write a line of the log, in the transaction of what it is about."""
    who = None if person is None else visible(person)[:100]
    row = {"time": now(), "person": who, "action": action, "subject": visible(subject)[:300]}
    connection.execute(LINE, row | {"status": status})


LINE: Final = log.insert()


# --- what is open --------------------------------------------------------------------------------


@dataclass
class Service:
    """The server's tables and the ledger, opened where they are first needed."""

    settings: Settings
    accept_ledger: bool = False
    """Take the ledger as it is for the truth, whatever its witness knows."""

    @cached_property
    def free(self) -> FreeWork:
        """Return the limits of work that costs people nothing."""
        return FreeWork(self.settings.free_seconds_per_minute)

    @cached_property
    def rates(self) -> Rates:
        """Return the limits of how often addresses, tokens and people may ask."""
        return Rates()

    @cached_property
    def hashing(self) -> Turnstile:
        """Where passwords are looked at."""
        return Turnstile(self.settings.most_hashing, waiting=4 * self.settings.most_hashing)

    @cached_property
    def figures(self) -> "Figures":
        """Figures for a monitoring system."""
        from heldout.server.jobs import Figures

        return Figures(self)

    @cached_property
    def vault(self) -> Vault:
        """Return where workers keep their copies of rows and scores."""
        return Vault(self.settings)

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
        return Ledger.open(
            where, key=key, witness=witness, tick=tick, renew_witness=self.accept_ledger
        )

    def reopen_ledger(self) -> None:
        """Let go of a ledger object and of what it remembers."""
        self.ledger.close()
        del self.__dict__["ledger"]

    def note(self, person: str | None, action: str, subject: str, status: int = 200) -> None:
        """Write down who did what, for the auditor; no private value, nor how long it took."""
        with self.store.write() as connection:
            note(connection, person, action, subject, status)

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
        if "ledger" in self.__dict__:
            self.ledger.close()
