"""Work that waits for a worker: one table, claimed by a lease; and which workers are alive.

People take turns: whoever was served longest ago is served next, and one person has only so many
jobs running at once. A worker that is lost lets its lease run out, and another takes the job up.
What a job does must therefore be safe to begin again; only a booking is not, and the ledger books a
reference once.

Quotas count by public figures (how long a job may take, how much it may write), whatever it really
took: else they would show how long a scoring was.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

import heldout
from heldout.server.service import Service, TooLarge, TooMany, in_words, kilobytes
from heldout.server.storage import (
    Json,
    Store,
    artifacts,
    boards,
    evaluations,
    jobs,
    now,
    scorings,
    submissions,
    workers,
)

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily


FLOAT: Final = sa.Float(53)
UNPAID: Final = ("waiting", "booking")
MOST_ATTEMPTS: Final = 3
HOUR: Final = 3600.0
SCORE_BYTES: Final = 16
"""Bytes that one score of one row counts for, with its share of keys and labels."""


@dataclass(frozen=True)
class Job:
    """Some work, how often it was begun, and when last."""

    id: int
    kind: str
    subject: str
    attempts: int
    begun: float

    @property
    def last(self) -> bool:
        """Return True if it is not begun again when it fails now."""
        return self.attempts >= MOST_ATTEMPTS

    @property
    def hopeless(self) -> bool:
        """Return True if every worker that began it was lost."""
        return self.attempts > MOST_ATTEMPTS


def enqueue(
    connection: sa.Connection,
    kind: str,
    subject: str,
    *,
    owner: str,
    seconds: float,
    after: int | None = None,
    new: bool = False,
) -> int:
    """Add a job, unless it is there; it is begun once the job `after` is done and due.

    One that is `new`, by the name of its subject, cannot be there.
    `seconds` is what it counts for in its owner's quota: a public figure, never a measurement.
    """
    same = sa.select(jobs.c.id, jobs.c.state).where(jobs.c.kind == kind, jobs.c.subject == subject)
    known = None if new else connection.execute(same).first()
    row = {
        "after": after,
        "state": "waiting",
        "created": now(),
        "owner": owner,
        "seconds": float(seconds),
    }
    if known is None:
        added = jobs.insert().returning(jobs.c.id)
        return int(connection.execute(added, row | {"kind": kind, "subject": subject}).scalar_one())
    if known.state == "cancelled":
        connection.execute(jobs.update().where(jobs.c.id == known.id).values(row))
    return int(known.id)


def _claiming() -> tuple[sa.Select[Any], sa.UpdateBase]:
    """Return the statements that look for a job and take it, built once."""
    first, other, time = jobs.alias("first"), jobs.alias("other"), sa.bindparam("time", type_=FLOAT)
    free = (jobs.c.state == "waiting") | ((jobs.c.state == "running") & (jobs.c.lease < time))
    undone = (first.c.state != "done") | (first.c.due > time)
    ready = jobs.c.after.is_(None) | ~sa.exists().where(first.c.id == jobs.c.after, undone)
    running = sa.select(sa.func.count()).where(
        other.c.owner == jobs.c.owner, other.c.state == "running", other.c.lease >= time
    )
    may_run = running.scalar_subquery() < sa.bindparam("most_running", type_=sa.Integer)
    served = sa.select(sa.func.max(other.c.begun)).where(other.c.owner == jobs.c.owner)
    possible = sa.select(jobs.c.id).where(free, ready, may_run).limit(1)
    chosen = possible.order_by(served.scalar_subquery(), jobs.c.id)
    take = (
        jobs.update()
        .where(jobs.c.id == chosen.scalar_subquery())
        .values(
            state="running",
            worker=sa.bindparam("by"),
            lease=sa.bindparam("until", type_=FLOAT),
            attempts=jobs.c.attempts + 1,
            begun=time,
        )
        .returning(jobs.c.id, jobs.c.kind, jobs.c.subject, jobs.c.attempts, jobs.c.begun)
    )
    return possible, take


LOOK, TAKE = _claiming()


def claim(store: Store, *, worker: str, lease: float, most_running: int = 1) -> Job | None:
    """Take a job that nobody has, or whose worker is silent, for the time of a lease.

    Of all people with such a job, the one who was served longest ago; of theirs, the oldest.
    """
    values = {"time": now(), "most_running": most_running}
    if store.first(LOOK, **values) is None:  # most find nothing, and need not wait for writers
        return None
    mine = {"by": worker, "until": values["time"] + lease}
    with store.write() as connection:
        taken = connection.execute(TAKE, values | mine).first()
    return None if taken is None else Job(*taken)


def renew(store: Store, job: Job, *, worker: str, lease: float) -> None:
    mine = jobs.update().where(jobs.c.id == job.id, jobs.c.worker == worker)
    store.change(mine.values(lease=now() + lease))


def again(connection: sa.Connection, job: Job) -> None:
    """Leave it to whoever comes next."""
    connection.execute(jobs.update().where(jobs.c.id == job.id).values(state="waiting"))


def finish(connection: sa.Connection, job: Job, *, due: float = 0.0) -> None:
    """End a job; whatever comes after it is not begun before `due`."""
    done = jobs.update().where(jobs.c.id == job.id)
    connection.execute(done.values(state="done", due=due))


def cancel(connection: sa.Connection, kind: str, subject: str) -> bool:
    """End a job that no worker has begun; says whether there was one."""
    mine = (jobs.c.kind == kind) & (jobs.c.subject == subject) & (jobs.c.state == "waiting")
    return connection.execute(jobs.update().where(mine).values(state="cancelled")).rowcount == 1


# --- quotas -------------------------------------------------------------------------------------


def waits(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether something still waits, as far as anybody can see.

    Not by its state: a place that is free before the tick would tell when the work was done.
    """
    return table.c.visible.is_(None) | (table.c.visible > now())


def is_unpaid(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether the price of something is not booked yet."""
    return table.c.state.in_(UNPAID)


def is_needed(
    connection: sa.Connection,
    still: Callable[[sa.Table], sa.ColumnElement[bool]],
    *,
    artifact: str | None = None,
    dataset: str | None = None,
    revision: int | None = None,
) -> bool:
    """Return whether an evaluation or a submission is about a model, or some rows, or both.

    `still` says which count: those that wait as far as anybody can see, or that are not paid for.
    """
    asked, shown = [still(evaluations)], [still(submissions)]
    if artifact is not None:
        asked.append((evaluations.c.artifact == artifact) | (evaluations.c.rival == artifact))
        shown.append(submissions.c.artifact == artifact)
    if dataset is not None:
        asked.append(evaluations.c.dataset == dataset)
        on_rows = sa.select(boards.c.name).where(boards.c.dataset == dataset)
        shown.append(submissions.c.board.in_(on_rows))
    if revision is not None:
        asked.append(evaluations.c.revision == revision)
    queries = (sa.select(evaluations.c.id).where(*asked), sa.select(submissions.c.id).where(*shown))
    return any(connection.execute(query.limit(1)).first() is not None for query in queries)


def check_jobs(service: Service, connection: sa.Connection, owner: str) -> None:
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
    recent = connection.execute(RECENT, {"owner": owner, "since": now() - HOUR}).all()
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
        f"seconds, which is as much as one person may use. Come back in {in_words(seconds)}.",
        seconds,
    )


def is_arriving(service: Service) -> sa.ColumnElement[bool]:
    """Return whether an upload may still arrive; afterwards it takes no room, and cannot.

    A file may be sent for `upload_seconds`, and is then written down.
    """
    return (artifacts.c.state == "receiving") & (
        artifacts.c.created > now() - 2 * service.settings.upload_seconds
    )


def _counting() -> sa.Select[Any]:
    """Return the statement that counts a person's waiting jobs, built once."""
    owner = sa.bindparam("owner", type_=sa.Text)
    time, since = sa.bindparam("time", type_=FLOAT), sa.bindparam("since", type_=FLOAT)
    arriving = (artifacts.c.state == "receiving") & (artifacts.c.created > since)
    counts = [
        sa.select(sa.func.count()).where(table.c.owner == owner, waiting).scalar_subquery()
        for table, waiting in (
            (evaluations, evaluations.c.visible.is_(None) | (evaluations.c.visible > time)),
            (submissions, submissions.c.visible.is_(None) | (submissions.c.visible > time)),
            (artifacts, (artifacts.c.state == "checking") | arriving),
        )
    ]
    return sa.select(counts[0] + counts[1] + counts[2])


COUNT: Final = _counting()
RECENT: Final = (
    sa.select(jobs.c.created, jobs.c.seconds)
    .where(jobs.c.owner == sa.bindparam("owner"), jobs.c.created > sa.bindparam("since"))
    .order_by(jobs.c.created)
)


def _waiting(service: Service, connection: sa.Connection, owner: str) -> int:
    """Return how many jobs of a person wait: uploads, evaluations, submissions."""
    since = now() - 2 * service.settings.upload_seconds
    values = {"owner": owner, "time": now(), "since": since}
    return int(connection.execute(COUNT, values).scalar_one())


# --- room ----------------------------------------------------------------------------------------


def bytes_of(service: Service, connection: sa.Connection, owner: str) -> int:
    """Bytes of what a person brought, of the copies that were made of it, and of its scores."""
    there = artifacts.c.state.not_in(("deleted", "receiving")) | is_arriving(service)
    brought = sa.select(sa.func.coalesce(sa.func.sum(artifacts.c.size + artifacts.c.copied), 0))
    brought = brought.where(artifacts.c.owner == owner, there)
    scored = sa.select(sa.func.coalesce(sa.func.sum(scorings.c.size), 0)).join_from(
        scorings, artifacts, scorings.c.artifact == artifacts.c.id
    )
    scored = scored.where(artifacts.c.owner == owner)
    return sum(int(connection.execute(query).scalar_one()) for query in (brought, scored))


def check_room(service: Service, connection: sa.Connection, owner: str, more: int) -> None:
    """Refuse more bytes than a person has room for, in the transaction that takes the room."""
    most = service.settings.most_kept
    if bytes_of(service, connection, owner) + more > most:
        raise TooLarge(
            f"There is not enough room: your models, predictions and their scores may take "
            f"{kilobytes(most)} in all. Delete models that you no longer need."
        )


# --- which workers are alive, and what waits for them, as the administrator sees it ---------------
#
# A worker writes down that it lives three times within a lease; one that was silent for a lease is
# taken for lost. Nothing here depends on rows: a job's state changes at moments that public figures
# decide, and no size of a file that was made of rows is shown.


FORGOTTEN = 24 * 3600.0
"""Seconds after which a worker that was lost is no longer listed."""


@dataclass(frozen=True)
class Signs:
    """The signs of life of one worker."""

    store: Store
    name: str

    def give(self, job: str | None = None) -> None:
        """Write down that this worker lives, and which kind of job it does."""
        with self.store.write() as connection:
            self.give_within(connection, job)

    def give_within(self, connection: sa.Connection, job: str | None) -> None:
        time = now()
        mine = workers.update().where(workers.c.name == self.name)
        if connection.execute(mine.values(seen=time, job=job)).rowcount:
            return
        row = {"name": self.name, "version": heldout.__version__, "begun": time, "seen": time}
        connection.execute(workers.insert(), row | {"job": job})
        connection.execute(workers.delete().where(workers.c.seen < time - FORGOTTEN))

    def leave(self) -> None:
        """Write down that this worker has ended."""
        with self.store.write() as connection:
            connection.execute(workers.delete().where(workers.c.name == self.name))


def listed(service: Service) -> list[Json]:
    """Return every worker of the last day, with whether it is alive."""
    rows, since = service.store.rows(sa.select(workers).order_by(workers.c.begun)), _since(service)
    return [dict(row._mapping) | {"alive": row.seen >= since} for row in rows]


def _since(service: Service) -> float:
    return now() - service.settings.lease


def count_alive(service: Service) -> int:
    return len(
        service.store.rows(sa.select(workers.c.name).where(workers.c.seen >= _since(service)))
    )


def queue(service: Service) -> list[Json]:
    """Return how many jobs of each kind wait and run, and since when the oldest waits."""
    query = (
        sa.select(
            jobs.c.kind,
            jobs.c.state,
            sa.func.count().label("count"),
            sa.func.min(jobs.c.created).label("oldest"),
        )
        .where(jobs.c.state.in_(("waiting", "running")))
        .group_by(jobs.c.kind, jobs.c.state)
        .order_by(jobs.c.kind, jobs.c.state)
    )
    return [dict(row._mapping) for row in service.store.rows(query)]


# --- Figures for a monitoring system, in Prometheus's form; none of them depends on rows ----------


KIND = "text/plain; version=0.0.4; charset=utf-8"


class Figures:
    """The counters of one web process, and what the tables say when somebody asks."""

    def __init__(self, service: Service) -> None:
        from prometheus_client import CollectorRegistry, Counter

        self._service = service
        self._registry: CollectorRegistry = CollectorRegistry()
        self._requests: Counter = Counter(
            "heldout_requests",
            "Requests that this web process answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._registry.register(self)

    def count(self, method: str, route: str, status: int) -> None:
        """Count a request by its route as it is written; what was filled in may be a secret."""
        self._requests.labels(method, route, str(status)).inc()

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> "Iterator[GaugeMetricFamily]":
        """Yield what the tables say now."""
        from prometheus_client.core import GaugeMetricFamily as Gauge

        from heldout.server import books

        about = Gauge("heldout_info", "The version that runs.", labels=("version",))
        about.add_metric((heldout.__version__,), 1)
        yield about
        alive = count_alive(self._service)
        yield Gauge("heldout_workers_alive", "Workers that gave a sign of life.", value=alive)
        waiting = Gauge("heldout_jobs", "Jobs by kind and state.", labels=("kind", "state"))
        oldest = 0.0
        for line in queue(self._service):
            waiting.add_metric((line["kind"], line["state"]), line["count"])
            if line["state"] == "waiting":
                oldest = max(oldest, now() - line["oldest"])
        yield waiting
        words = "Seconds that the oldest job has been waiting."
        yield Gauge("heldout_oldest_job_seconds", words, value=oldest)
        asked = Gauge("heldout_evaluations", "Evaluations by state.", labels=("state",))
        for state, count in self._evaluations():
            asked.add_metric((state,), count)
        yield asked
        trusted, end = 1, 0
        try:
            books.check_receipt(self._service)
            end = self._service.ledger.head().sequence
        except heldout.errors.HeldoutError:
            trusted = 0
        yield Gauge("heldout_ledger_trusted", "1 if the ledger has what was paid.", value=trusted)
        yield Gauge("heldout_ledger_entries", "Entries of the ledger.", value=end)

    def _evaluations(self) -> list[tuple[str, int]]:
        """Count evaluations by the state that their owners see, which changes at ticks."""
        hidden = evaluations.c.visible > now()
        state = sa.case((hidden, "waiting"), else_=evaluations.c.state)
        query = sa.select(state, sa.func.count()).group_by(state).order_by(state)
        return [(str(name), int(count)) for name, count in self._service.store.rows(query)]
