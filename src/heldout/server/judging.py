"""Boards on a worker: the bar is drawn here, and submissions are judged, on the rows."""

import hashlib
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from heldout.errors import LedgerError, PrivacyError
from heldout.questions.boards.board import Board, BoardEnded
from heldout.server import jobs, receipts, rows
from heldout.server.boards import Posted, find_board
from heldout.server.datasets import check_there, find, has_share
from heldout.server.evaluations import UNPAID, scoring_tick, shown_at, tick_of
from heldout.server.jobs import Job
from heldout.server.service import Service
from heldout.server.storage import boards, scorings, submissions, wait_until

__all__ = ["fail", "judge", "open_board"]

DOES_NOT_FIT = (
    "The model could not be scored on the rows of this board. Its custodian can tell you which "
    "columns they have."
)


def _board(service: Service, posted: Posted) -> Board:
    short = hashlib.sha256(posted.name.encode()).hexdigest()[:20]
    state: Path = service.settings.private / f"board-{short}.json"
    return Board(
        posted.name, plan=posted.plan, ledger=service.ledger, account=posted.dataset, state=state
    )


def open_board(service: Service, job: Job) -> None:
    """Pay the board's whole price, and draw its bar."""
    posted = find_board(service, job.subject)
    receipts.check(service)
    if posted.state == "opening":
        _board(service, posted)
    paid = service.ledger.head()
    values = {"state": "open", "words": "Submissions are judged."}
    with service.store.write() as connection:
        connection.execute(boards.update().where(boards.c.name == posted.name).values(values))
        receipts.note(connection, paid)
        jobs.finish(connection, job)


def judge(service: Service, job: Job) -> None:
    """Tell a submission whether it improved; show the score of one that did."""
    with service.store.read() as connection:
        row = connection.execute(
            sa.select(submissions).where(submissions.c.id == job.subject)
        ).one()
    if row.state not in UNPAID:
        return _done(service, job)
    check_there(service, row.owner)
    posted = find_board(service, row.board)
    held = find(service, posted.dataset)
    if held.revision != posted.revision:
        raise BoardEnded("The rows were refreshed since the board opened: it has ended.")
    _check_scored(service, row, posted)
    receipts.check(service)
    table = rows.opened(held, private=service.settings.private, artifact=row.artifact, rival=None)
    booked = shown_at(service, job.begun, tick_of(service, held))
    wait_until(booked)
    with service.store.write() as connection:
        mine = submissions.update().where(submissions.c.id == row.id)
        mine = mine.where(submissions.c.state.in_(UNPAID))
        if connection.execute(mine.values(state="booking")).rowcount != 1:  # cancelled meanwhile
            return jobs.finish(connection, job)
    try:
        found = _board(service, posted).submit(table, submission=row.id)
        values: dict[str, Any] = {
            "state": "judged",
            "improved": found.improved,
            "score": found.score,
            "words": str(found),
        }
    except LedgerError as error:
        values = {"state": "refused", "words": str(error)}
    values["visible"] = shown_at(service, booked, scoring_tick(service, held))
    with service.store.write() as connection:
        connection.execute(submissions.update().where(submissions.c.id == row.id).values(values))
        receipts.note(connection, service.ledger.head())
        jobs.finish(connection, job)


def _done(service: Service, job: Job) -> None:
    with service.store.write() as connection:
        jobs.finish(connection, job)


def _check_scored(service: Service, row: Any, posted: Posted) -> None:
    which = (scorings.c.artifact == row.artifact) & (scorings.c.dataset == posted.dataset)
    which &= scorings.c.revision == posted.revision
    with service.store.read() as connection:
        found = connection.execute(sa.select(scorings).where(which)).first()
    if found is not None and found.state == "ready":
        return
    # Why names columns, which are for those to know who have a share.
    if found is None or not has_share(service, posted.dataset, row.owner):
        raise PrivacyError(DOES_NOT_FIT)
    raise PrivacyError(found.words)


def fail(service: Service, connection: sa.Connection, job: Job, error: str) -> None:
    """A board that cannot open, or a submission that cannot be judged, says why."""
    if job.kind == "open-board":
        change = boards.update().where(boards.c.name == job.subject)
        connection.execute(change.values(state="refused", words=error))
        return
    row = connection.execute(sa.select(submissions).where(submissions.c.id == job.subject)).one()
    held = find(service, find_board(service, row.board).dataset)
    visible = shown_at(service, job.begun, scoring_tick(service, held))
    change = submissions.update().where(submissions.c.id == job.subject)
    change = change.where(submissions.c.state.in_(UNPAID))  # another worker may have judged it
    connection.execute(change.values(state="refused", words=error, visible=visible))
