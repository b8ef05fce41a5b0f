"""A worker: takes jobs up, one at a time. It alone has the rows, the sandbox and the noise."""

import contextlib
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from heldout import questions as q
from heldout.arguments import shown
from heldout.errors import (
    AlreadyBooked,
    AnswerLost,
    HeldoutError,
    PrivacyError,
)
from heldout.models import load
from heldout.questions.kept import plain
from heldout.questions.session import Session
from heldout.server import artifacts, jobs, judging, rows
from heldout.server.accounts import Person
from heldout.server.datasets import Held, find, share_of
from heldout.server.evaluations import scoring_tick, shown_at, tick_of
from heldout.server.jobs import Job
from heldout.server.logs import told
from heldout.server.service import Conflict, Service
from heldout.server.signing import Signer
from heldout.server.storage import artifacts as artifact_table
from heldout.server.storage import datasets, evaluations, now, scorings

__all__ = ["Worker", "run"]

SHORTEST, LONGEST = 0.01, 0.2
"""Seconds between two looks at an empty table of jobs."""
PATIENCE: Final = 120.0
"""Seconds for which a drawn answer is held in hand while a database is away."""
GIVEN_UP: Final = "It failed several times and was given up."


class LostWorkers(HeldoutError):
    """Every worker that began a job was lost."""


class Worker:
    """One worker on one service; `step` does one job."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.signer = Signer.of(service.settings.folder)
        self._sessions: dict[tuple[Any, ...], Session] = {}
        self._handlers: dict[str, Callable[[Job], None]] = {
            "register": self._register,
            "quarantine": self._quarantine,
            "score": self._score,
            "evaluate": self._evaluate,
            "open-board": partial(judging.open_board, service),
            "judge": partial(judging.judge, service),
        }

    def step(self) -> bool:
        """Do one job, if there is one; whatever fails in it leaves the next one alone."""
        lease = self.service.settings.lease
        job = jobs.claim(self.service.store, worker=self.name, lease=lease)
        if job is None:
            return False
        outcome = "done"
        try:
            if job.hopeless:
                raise LostWorkers(GIVEN_UP)
            with self._held(job):
                self._handlers[job.kind](job)
        except HeldoutError as error:  # its message holds no private value
            outcome = type(error).__name__
            self._fail(job, str(error))
        except Exception as error:
            outcome = type(error).__name__
            if job.last:
                self._fail(job, GIVEN_UP)
            else:
                with self.service.store.write() as connection:
                    jobs.again(connection, job)
        # How long it took is not told: it may depend on rows.
        told("job", kind=job.kind, subject=job.subject, outcome=outcome, attempt=job.attempts)
        return True

    @contextlib.contextmanager
    def _held(self, job: Job) -> Iterator[None]:
        """Renew the lease until the job is done."""
        lease, done = self.service.settings.lease, threading.Event()

        def renew() -> None:
            while not done.wait(lease / 3):
                with contextlib.suppress(sa.exc.SQLAlchemyError):
                    jobs.renew(self.service.store, job, worker=self.name, lease=lease)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _fail(self, job: Job, words: str) -> None:
        """Whatever the job is about ends, and says why."""
        with self.service.store.write() as connection:
            if job.kind == "register":
                name, revision = _register_subject(job)
                mine = (datasets.c.name == name) & (datasets.c.revision == revision)
                state = "refused"
                change = datasets.update().where(mine).values(state=state, words=words)
                connection.execute(change)
            elif job.kind == "quarantine":
                _set_artifact(connection, job.subject, state="refused", words=words)
            elif job.kind == "score":
                _set_scoring(connection, job, state="refused", words=words, visible=now())
            elif job.kind == "evaluate":
                self._end(connection, job.subject, words)
            else:
                judging.fail(self.service, connection, job, words)
            jobs.finish(connection, job)

    # --- the four kinds of work ------------------------------------------------------------------

    def _register(self, job: Job) -> None:
        """Copy the rows, look at every rule, and open their account."""
        name, revision = _register_subject(job)
        held = find(self.service, name)
        if held.state != "checking" or held.revision != revision:
            return self._done(job)
        ledger = self.service.ledger
        path = rows.copy_rows(held, settings=self.service.settings)
        table = rows.judged(held, path)
        by = ledger.registered_by(name)
        if by is None:
            ledger.register(
                name,
                budget=held.budget,
                table=rows.people_of(held.declared, path),
                apart=True,
                who=held.owner,
                **held.declared.of_account,
            )
        elif by != held.owner and held.about is None:  # another custodian's people account, say
            raise Conflict(f"There is an account {shown(name)} already. Choose another name.")
        # The account's own rules on refreshed rows are looked at now, not when somebody asks.
        Session(table, ledger=ledger, account=name)
        values = {
            "state": "open",
            "words": "Analysts with an allowance may ask.",
            "about": plain(table.description),
        }
        with self.service.store.write() as connection:
            connection.execute(datasets.update().where(datasets.c.name == name).values(values))
            jobs.finish(connection, job)

    def _quarantine(self, job: Job) -> None:
        """Read an artefact alone, in the sandbox; no row is near."""
        row = self._artifact(job.subject)
        file = artifacts.file_of(self.service, row)
        if row.kind == "predictions":
            from heldout.models.predictions import read_predictions

            out = artifacts.normalised(self.service, row)
            out.unlink(missing_ok=True)
            most = self.service.settings.most_prediction_rows
            sent = read_predictions(file, out=out, most_rows=most)
            found: dict[str, Any] = {"row_wise": True, "kind": "predictions"}
            if len(sent.names) > 1:
                found |= {"scores": len(sent.names), "classes": list(sent.names)}
            state, words = "ready", "Predictions by row key; each belongs to one row."
        else:
            model = load(file)
            found = model.as_dict()
            state, words = "ready", "Proven to look at one row at a time."
            if not model.row_wise:
                state, words = "refused", str(model.why_not)
        with self.service.store.write() as connection:
            _set_artifact(connection, row.id, state=state, words=words, found=found)
            jobs.finish(connection, job)

    def _score(self, job: Job) -> None:
        """Score every row in isolation; unpaid, and kept with the rows."""
        artifact, revision, name = job.subject.split("/", 2)
        held, row, begun = find(self.service, name), self._artifact(artifact), now()
        if row.state == "refused":
            raise PrivacyError(f"The artefact cannot be used: {row.words}")
        if held.revision == int(revision):
            kept = row.kind == "predictions"
            place = artifacts.normalised if kept else artifacts.file_of
            rows.score_rows(
                held,
                row,
                place(self.service, row),
                private=self.service.settings.private,
                seconds_per_row=self.service.settings.seconds_per_row,
            )
        visible = shown_at(begun, scoring_tick(self.service, held))
        with self.service.store.write() as connection:
            _set_scoring(connection, job, state="ready", words="", visible=visible)
            jobs.finish(connection, job)

    def _evaluate(self, job: Job) -> None:
        """Book all questions at once, draw, sign, and keep the answer."""
        with self.service.store.read() as connection:
            query = sa.select(evaluations).where(evaluations.c.id == job.subject)
            row = connection.execute(query).one()
            scored = self._scored(connection, row)
        if row.state != "waiting":
            return self._done(job)
        refused = [each.words for each in scored if each.state == "refused"]
        if refused:
            raise PrivacyError(f"{refused[0]} Nothing was charged.")
        held = find(self.service, row.dataset)
        if held.revision != row.revision:
            raise PrivacyError("The rows were refreshed meanwhile. Nothing was charged; ask again.")
        share_of(self.service, Person(row.owner, "analyst", "", "", ()), row.dataset)
        session = self._session(held, row)
        values: dict[str, Any]
        try:
            questions = [q.from_dict(each) for each in row.questions]
            answered = session.answer(*questions, reference=row.id)
        except (AlreadyBooked, AnswerLost) as error:
            values = _lost(error.sequence, error.receipt, str(error))
        else:
            content = answered.as_dict()
            # What is signed names the ledger: its entry is where the chain ended then.
            stated = {"evaluation": row.id, "ledger": self.service.ledger.id, "answer": content}
            signed = self.signer.sign(stated)
            values = {
                "state": "answered",
                "words": "Paid and answered.",
                "statement": {
                    "receipt": content["receipt"],
                    "signed": signed,
                },
            }
        begun = max([row.created, *(each.visible for each in scored if each.visible > now())])
        values["visible"] = shown_at(begun, tick_of(self.service, held))
        self._keep(job, values)

    def _keep(self, job: Job, values: dict[str, Any]) -> None:
        """What was paid for is held in hand while the database is away, and is not drawn again."""
        mine = evaluations.update().where(evaluations.c.id == job.subject)
        # Whoever drew has the last word: a worker that only found the booking may be wrong.
        over = ("waiting", "lost") if values["state"] == "answered" else ("waiting",)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.service.store.write() as connection:
                    connection.execute(mine.where(evaluations.c.state.in_(over)).values(values))
                    return jobs.finish(connection, job)
            except sa.exc.SQLAlchemyError:
                if time.monotonic() > until:
                    raise
                time.sleep(LONGEST)

    # --- small things ----------------------------------------------------------------------------

    def _session(self, held: Held, row: Any) -> Session:
        """A session of this analyst on these scores; kept open for the next question."""
        key = (held.name, row.revision, row.artifact, row.rival, row.owner)
        if key not in self._sessions:
            if len(self._sessions) >= 4 * rows.KEPT:
                self._sessions.clear()
            private = self.service.settings.private
            table = rows.opened(held, private=private, artifact=row.artifact, rival=row.rival)
            self._sessions[key] = Session(
                table, ledger=self.service.ledger, account=held.name, analyst=row.owner
            )
        return self._sessions[key]

    def _scored(self, connection: sa.Connection, row: Any) -> list[Any]:
        which = scorings.c.artifact.in_([each for each in (row.artifact, row.rival) if each])
        query = sa.select(scorings).where(which, scorings.c.dataset == row.dataset)
        return list(connection.execute(query.where(scorings.c.revision == row.revision)).all())

    def _artifact(self, identity: str) -> Any:
        with self.service.store.read() as connection:
            query = sa.select(artifact_table).where(artifact_table.c.id == identity)
            return connection.execute(query).one()

    def _end(self, connection: sa.Connection, identity: str, words: str) -> None:
        """Refused, unless the price was booked after all: then the answer is lost."""
        query = sa.select(evaluations).where(evaluations.c.id == identity)
        row = connection.execute(query).one()
        if row.state != "waiting":
            return
        values: dict[str, Any] = {"state": "refused", "words": words}
        entry = self.service.ledger.booked(identity)
        if entry is not None:
            values = _lost(entry.sequence, entry.hash, words)
        held = find(self.service, row.dataset)
        values["visible"] = shown_at(row.created, tick_of(self.service, held))
        connection.execute(evaluations.update().where(evaluations.c.id == identity).values(values))

    def _done(self, job: Job) -> None:
        with self.service.store.write() as connection:
            jobs.finish(connection, job)


def _lost(sequence: int, receipt: str, why: str) -> dict[str, Any]:
    """The price stays, and the state says so."""
    kept = {"receipt": {"sequence": sequence, "hash": receipt}, "signed": None}
    words = f"The answer was lost after its price was booked as entry {sequence}. {why}"
    return {"state": "lost", "words": words, "statement": kept}


def _register_subject(job: Job) -> tuple[str, int]:
    name, revision = job.subject.rsplit("/", 1)
    return name, int(revision)


def _set_artifact(connection: sa.Connection, identity: str, **values: Any) -> None:
    mine = artifact_table.update().where(artifact_table.c.id == identity)
    connection.execute(mine.values(values))


def _set_scoring(connection: sa.Connection, job: Job, **values: Any) -> None:
    artifact, revision, name = job.subject.split("/", 2)
    mine = (scorings.c.artifact == artifact) & (scorings.c.dataset == name)
    mine &= scorings.c.revision == int(revision)
    connection.execute(scorings.update().where(mine).values(values))


def run(
    service: Service,
    *,
    stop: threading.Event | None = None,
    alone: Callable[[], bool] | None = None,
) -> None:
    """Work until told to stop, or left alone; a job that was begun is finished first."""
    ended = stop or threading.Event()
    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: ended.set())
    worker, pause = Worker(service), SHORTEST
    while not ended.is_set() and not (alone is not None and alone()):
        try:
            busy = worker.step()
        except sa.exc.OperationalError:  # the database is away for a moment
            busy = False
        pause = SHORTEST if busy else min(pause * 1.5, LONGEST)
        if not busy:
            ended.wait(pause)
