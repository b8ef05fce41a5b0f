"""Which workers are alive, and what waits for them, as the administrator sees it.

A worker writes down that it lives three times within a lease; one that was silent for a lease is
taken for lost. Nothing here depends on rows: a job's state changes at moments that public figures
decide, and no size of a file that was made of rows is shown.
"""

from dataclasses import dataclass

import sqlalchemy as sa

import heldout
from heldout.server.service import Service
from heldout.server.storage import Json, Store, jobs, now, workers

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
    with service.store.read() as connection:
        rows = connection.execute(sa.select(workers).order_by(workers.c.begun)).mappings().all()
    since = now() - service.settings.lease
    return [dict(row) | {"alive": row["seen"] >= since} for row in rows]


def count_alive(service: Service) -> int:
    query = sa.select(sa.func.count()).where(workers.c.seen >= now() - service.settings.lease)
    with service.store.read() as connection:
        return int(connection.execute(query).scalar_one())


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
    with service.store.read() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]
