"""How much of the server one person may take: waiting jobs, processor seconds, bytes, free work.

Nothing here is measured on rows. A job counts for its public figures (how long it may take, how
much it may write), whatever it really took: else a quota would tell how long a scoring was.
"""

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from heldout.server.refusals import Busy, TooLarge, TooMany
from heldout.server.storage import artifacts, evaluations, jobs, now, scorings, submissions
from heldout.server.words import kilobytes

if TYPE_CHECKING:
    from heldout.server.service import Service

__all__ = [
    "FreeWork",
    "Rates",
    "Turnstile",
    "address_of",
    "bytes_of",
    "check_jobs",
    "check_room",
    "is_arriving",
    "waits",
]

HOUR: Final = 3600.0
SCORE_BYTES: Final = 16
"""What one score of one row counts for, with its share of keys and labels."""
MOST_BUCKETS: Final = 50_000
RESERVED: Final = 1.0
"""Seconds that free work is taken to need until it is done."""
PATIENCE: Final = 10.0


# --- jobs ----------------------------------------------------------------------------------------


def waits(table: sa.Table) -> sa.ColumnElement[bool]:
    """Whether something still waits, as far as anybody is told.

    Not by its state: a place that is free before the tick would tell when the work was done.
    """
    return table.c.visible.is_(None) | (table.c.visible > now())


def check_jobs(service: "Service", connection: sa.Connection, owner: str) -> None:
    """Refuse another job of somebody who has too many waiting, or used their processor seconds.

    Call it in the transaction that writes the job: nobody else writes meanwhile.
    """
    settings = service.settings
    if _waiting(service, connection, owner) >= settings.most_waiting:
        raise TooMany(
            f"{settings.most_waiting} jobs of yours are waiting, which is as many as one person "
            "may have. Wait for them, or cancel some.",
            5,
        )
    mine = sa.select(jobs.c.created, jobs.c.seconds)
    mine = mine.where(jobs.c.owner == owner, jobs.c.created > now() - HOUR)
    recent = connection.execute(mine.order_by(jobs.c.created)).all()
    over = sum(row.seconds for row in recent) - settings.processor_seconds_per_hour
    if over < 0:
        return
    for row in recent:  # the oldest leave the hour first
        over -= row.seconds
        if over < 0:
            break
    seconds = max(1, math.ceil(row.created + HOUR - now()))
    raise TooMany(
        f"Your jobs of the last hour count for {settings.processor_seconds_per_hour:g} processor "
        f"seconds, which is as much as one person may use. Come back in {_words(seconds)}.",
        seconds,
    )


def _words(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} seconds" if seconds > 1 else "a second"
    return f"{math.ceil(seconds / 60)} minutes"


def is_arriving(service: "Service") -> sa.ColumnElement[bool]:
    """Whether an upload may still arrive; afterwards it takes no room, and cannot.

    A file may be sent for `upload_seconds`, and is then written down.
    """
    return (artifacts.c.state == "receiving") & (
        artifacts.c.created > now() - 2 * service.settings.upload_seconds
    )


def _waiting(service: "Service", connection: sa.Connection, owner: str) -> int:
    """How many jobs of a person wait, of whatever kind: uploads, evaluations, submissions."""
    counted = (
        sa.select(sa.func.count()).where(table.c.owner == owner, waiting)
        for table, waiting in (
            (evaluations, waits(evaluations)),
            (submissions, waits(submissions)),
            (artifacts, (artifacts.c.state == "checking") | is_arriving(service)),
        )
    )
    return sum(int(connection.execute(query).scalar_one()) for query in counted)


# --- room ----------------------------------------------------------------------------------------


def bytes_of(service: "Service", connection: sa.Connection, owner: str) -> int:
    """Bytes of what a person brought, of the copies that were made of it, and of its scores."""
    there = artifacts.c.state.not_in(("deleted", "receiving")) | is_arriving(service)
    brought = sa.select(sa.func.coalesce(sa.func.sum(artifacts.c.size + artifacts.c.copied), 0))
    brought = brought.where(artifacts.c.owner == owner, there)
    scored = sa.select(sa.func.coalesce(sa.func.sum(scorings.c.size), 0)).join_from(
        scorings, artifacts, scorings.c.artifact == artifacts.c.id
    )
    scored = scored.where(artifacts.c.owner == owner)
    return sum(int(connection.execute(query).scalar_one()) for query in (brought, scored))


def check_room(service: "Service", connection: sa.Connection, owner: str, more: int) -> None:
    """Refuse more bytes than a person has room for, in the transaction that takes the room."""
    most = service.settings.most_kept
    if bytes_of(service, connection, owner) + more > most:
        raise TooLarge(
            f"There is not enough room: your models, predictions and their scores may take "
            f"{kilobytes(most)} in all. Delete models that you no longer need."
        )


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
                    "Prices and pages that nobody pays for took all of your "
                    f"{self._most:g} processor seconds per minute. Come back in {_words(seconds)}.",
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
    """How often somebody may ask: a bucket of requests for every name, which refills in a minute."""

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


def address_of(scope: Any) -> str:
    """Where a request comes from; of IPv6 the network, which is what one household has.

    >>> address_of({"client": ("192.0.2.7", 1)}), address_of({"client": ("2001:db8::1:2", 1)})
    ('192.0.2.7', '2001:db8::/64')
    """
    import ipaddress

    host = (scope.get("client") or ("", 0))[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return str(host)
    if found.version == 6:
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
