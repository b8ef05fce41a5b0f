"""Work that waits for a worker: one table, claimed by a lease, so that no queue is needed.

A worker that is lost lets its lease run out, and another takes the job up. What a job does must
therefore be safe to begin again; only a booking is not, and the ledger books a reference once.
"""

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from heldout.server.storage import Store, jobs, now

__all__ = ["MOST_ATTEMPTS", "Job", "again", "claim", "enqueue", "finish", "renew"]

MOST_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Job:
    """Some work, and how often it was begun."""

    id: int
    kind: str
    subject: str
    attempts: int

    @property
    def last(self) -> bool:
        """Whether it is not begun again if it fails now."""
        return self.attempts >= MOST_ATTEMPTS

    @property
    def hopeless(self) -> bool:
        """Whether every worker that began it was lost."""
        return self.attempts > MOST_ATTEMPTS


def enqueue(connection: sa.Connection, kind: str, subject: str, *, after: int | None = None) -> int:
    """Add a job, unless it is there; it is begun once the job `after` is done."""
    same = sa.select(jobs.c.id).where(jobs.c.kind == kind, jobs.c.subject == subject)
    found = connection.execute(same).scalar()
    if found is not None:
        return int(found)
    row = {"kind": kind, "subject": subject, "after": after, "state": "waiting", "created": now()}
    added = connection.execute(jobs.insert().returning(jobs.c.id), row)
    return int(added.scalar_one())


def claim(store: Store, *, worker: str, lease: float) -> Job | None:
    """The oldest job that nobody has, or whose worker is silent; ours for the time of a lease."""
    first = jobs.alias("first")
    free = (jobs.c.state == "waiting") | ((jobs.c.state == "running") & (jobs.c.lease < now()))
    ready = jobs.c.after.is_(None) | ~sa.exists().where(
        first.c.id == jobs.c.after, first.c.state != "done"
    )
    oldest = sa.select(jobs.c.id).where(free, ready)
    oldest = oldest.order_by(jobs.c.id).limit(1)
    take = (
        jobs.update()
        .where(jobs.c.id == oldest.scalar_subquery())
        .values(
            state="running",
            worker=worker,
            lease=now() + lease,
            attempts=jobs.c.attempts + 1,
        )
        .returning(jobs.c.id, jobs.c.kind, jobs.c.subject, jobs.c.attempts)
    )
    with store.read() as connection:  # most looks find nothing, and need not wait for writers
        if connection.execute(sa.select(jobs.c.id).where(free, ready).limit(1)).first() is None:
            return None
    with store.write() as connection:
        found = connection.execute(take).first()
    return None if found is None else Job(*found)


def renew(store: Store, job: Job, *, worker: str, lease: float) -> None:
    with store.write() as connection:
        mine = jobs.update().where(jobs.c.id == job.id, jobs.c.worker == worker)
        connection.execute(mine.values(lease=now() + lease))


def again(connection: sa.Connection, job: Job) -> None:
    """Leave it to whoever comes next."""
    connection.execute(jobs.update().where(jobs.c.id == job.id).values(state="waiting"))


def finish(connection: sa.Connection, job: Job) -> None:
    connection.execute(jobs.update().where(jobs.c.id == job.id).values(state="done"))
