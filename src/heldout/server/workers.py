"""Which workers are alive, and what waits for them, as the administrator sees it.

A worker writes down that it lives three times within a lease; one that was silent for a lease is
taken for lost. Nothing here depends on rows: a job's state changes at moments that public figures
decide, and no size of a file that was made of rows is shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

import heldout
from heldout.server import books
from heldout.server.service import Service
from heldout.server.storage import Json, Store, evaluations, jobs, now, workers

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

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
