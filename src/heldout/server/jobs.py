"""Work that waits for a worker: one table, claimed by a lease, so that no queue is needed.

People take turns: whoever was served longest ago is served next, and one person has only so many
jobs running at once. A worker that is lost lets its lease run out, and another takes the job up.
What a job does must therefore be safe to begin again; only a booking is not, and the ledger books a
reference once.
"""

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from heldout.server.storage import Store, jobs, now

__all__ = ["MOST_ATTEMPTS", "Job", "again", "cancel", "claim", "enqueue", "finish", "renew"]

MOST_ATTEMPTS: Final = 3


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
        """Whether it is not begun again if it fails now."""
        return self.attempts >= MOST_ATTEMPTS

    @property
    def hopeless(self) -> bool:
        """Whether every worker that began it was lost."""
        return self.attempts > MOST_ATTEMPTS


def enqueue(
    connection: sa.Connection,
    kind: str,
    subject: str,
    *,
    owner: str,
    seconds: float,
    after: int | None = None,
) -> int:
    """Add a job, unless it is there; it is begun once the job `after` is done and due.

    `seconds` is what it counts for in its owner's quota: a public figure, never a measurement.
    """
    same = sa.select(jobs.c.id, jobs.c.state).where(jobs.c.kind == kind, jobs.c.subject == subject)
    known = connection.execute(same).first()
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


def claim(store: Store, *, worker: str, lease: float, most_running: int = 1) -> Job | None:
    """Take a job that nobody has, or whose worker is silent, for the time of a lease.

    Of all people with such a job, the one who was served longest ago; of theirs, the oldest.
    """
    first, other, time = jobs.alias("first"), jobs.alias("other"), now()
    free = (jobs.c.state == "waiting") | ((jobs.c.state == "running") & (jobs.c.lease < time))
    undone = (first.c.state != "done") | (first.c.due > time)
    ready = jobs.c.after.is_(None) | ~sa.exists().where(first.c.id == jobs.c.after, undone)
    running = sa.select(sa.func.count()).where(
        other.c.owner == jobs.c.owner, other.c.state == "running", other.c.lease >= time
    )
    may_run = running.scalar_subquery() < most_running
    served = sa.select(sa.func.max(other.c.begun)).where(other.c.owner == jobs.c.owner)
    possible = sa.select(jobs.c.id).where(free, ready, may_run).limit(1)
    chosen = possible.order_by(served.scalar_subquery(), jobs.c.id)
    take = (
        jobs.update()
        .where(jobs.c.id == chosen.scalar_subquery())
        .values(
            state="running",
            worker=worker,
            lease=time + lease,
            attempts=jobs.c.attempts + 1,
            begun=time,
        )
        .returning(jobs.c.id, jobs.c.kind, jobs.c.subject, jobs.c.attempts, jobs.c.begun)
    )
    with store.read() as connection:  # most looks find nothing, and need not wait for writers
        if connection.execute(possible).first() is None:
            return None
    with store.write() as connection:
        taken = connection.execute(take).first()
    return None if taken is None else Job(*taken)


def renew(store: Store, job: Job, *, worker: str, lease: float) -> None:
    with store.write() as connection:
        mine = jobs.update().where(jobs.c.id == job.id, jobs.c.worker == worker)
        connection.execute(mine.values(lease=now() + lease))


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
