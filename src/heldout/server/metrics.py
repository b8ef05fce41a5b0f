"""Figures for a monitoring system, in Prometheus's form; none of them depends on rows.

Jobs change their state at moments that public figures decide, and no duration and no size of what
was made of rows is counted.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sqlalchemy as sa

import heldout
from heldout.server import books, workers
from heldout.server.service import Service
from heldout.server.storage import evaluations, now

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

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
        alive = workers.count_alive(self._service)
        yield Gauge("heldout_workers_alive", "Workers that gave a sign of life.", value=alive)
        waiting = Gauge("heldout_jobs", "Jobs by kind and state.", labels=("kind", "state"))
        oldest = 0.0
        for line in workers.queue(self._service):
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
        with self._service.store.read() as connection:
            return [(str(name), int(count)) for name, count in connection.execute(query)]
