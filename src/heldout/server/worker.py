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
from heldout.errors import AlreadyBooked, AnswerLost, HeldoutError, PrivacyError, ScoringFailed
from heldout.kernel.ledger.witness import Witness
from heldout.models import load
from heldout.questions.answers import plain
from heldout.questions.session import Session
from heldout.server import artifacts, jobs, judging, limits, receipts, rows
from heldout.server.accounts import Person
from heldout.server.datasets import Held, find, share_of
from heldout.server.evaluations import UNPAID, scoring_seconds, scoring_tick, shown_at, tick_of
from heldout.server.jobs import Job
from heldout.server.logs import told
from heldout.server.service import Conflict, Service, TooLarge
from heldout.server.signing import Signer
from heldout.server.storage import artifacts as artifact_table
from heldout.server.storage import datasets, evaluations, scorings, wait_until

__all__ = ["Worker", "run"]

SHORTEST, LONGEST = 0.01, 0.2
"""Seconds between two looks at an empty table of jobs."""
PATIENCE: Final = 120.0
"""Seconds for which a drawn answer is held in hand while a database is away."""
LATE: Final = (
    "The server did not score all rows within {:g} seconds, the time that it allows for so many "
    "rows. All scores were discarded. Submit a smaller model, or try again later."
)
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
            "forget": self._forget,
            "open-board": partial(judging.open_board, service),
            "judge": partial(judging.judge, service),
        }

    def step(self) -> bool:
        """Do one job, if there is one; whatever fails in it leaves the next one alone."""
        settings = self.service.settings
        job = jobs.claim(
            self.service.store,
            worker=self.name,
            lease=settings.lease,
            most_running=settings.most_running,
        )
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
                return self._scored_by(connection, job, state="refused", words=words)
            elif job.kind == "evaluate":
                self._end(connection, job, words)
            elif job.kind != "forget":
                judging.fail(self.service, connection, job, words)
            jobs.finish(connection, job)

    # --- the kinds of work -----------------------------------------------------------------------

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
            "about": plain(held.declared.described(table)),
        }
        with self.service.store.write() as connection:
            connection.execute(datasets.update().where(datasets.c.name == name).values(values))
            jobs.finish(connection, job)

    def _quarantine(self, job: Job) -> None:
        """Read an artefact alone, in the sandbox; no row is near."""
        row = self._artifact(job.subject)
        if row.state == "deleted":
            return self._done(job)
        file, copied = artifacts.file_of(self.service, row), 0
        if row.kind == "predictions":
            from heldout.models.predictions import read_predictions

            out = artifacts.normalised(self.service, row)
            out.unlink(missing_ok=True)
            most = self.service.settings.most_prediction_rows
            sent = read_predictions(file, out=out, most_rows=most)
            copied = out.stat().st_size
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
            try:
                if copied:
                    limits.check_room(self.service, connection, row.owner, copied)
            except TooLarge as error:
                artifacts.normalised(self.service, row).unlink(missing_ok=True)
                state, words, copied = "refused", str(error), 0
            values = {"state": state, "words": words, "found": found, "copied": copied}
            _set_artifact(connection, row.id, **values)
            jobs.finish(connection, job)

    def _forget(self, job: Job) -> None:
        """Remove what was made of an artefact that its owner deleted."""
        row = self._artifact(job.subject)
        rows.forget_scores(self.service.settings.private, row.id)
        artifacts.normalised(self.service, row).unlink(missing_ok=True)
        with self.service.store.write() as connection:
            connection.execute(scorings.delete().where(scorings.c.artifact == row.id))
            jobs.finish(connection, job)

    def _score(self, job: Job) -> None:
        """Score every row in isolation; unpaid, and kept with the rows."""
        artifact, revision, name = job.subject.split("/", 2)
        held, row = find(self.service, name), self._artifact(artifact)
        if row.state in ("refused", "deleted"):
            raise PrivacyError(f"The artefact cannot be used: {row.words}")
        if held.revision == int(revision):
            kept = row.kind == "predictions"
            place = artifacts.normalised if kept else artifacts.file_of
            try:
                rows.score_rows(
                    held,
                    row,
                    place(self.service, row),
                    private=self.service.settings.private,
                    seconds_per_row=self.service.settings.seconds_per_row,
                )
            except ScoringFailed:  # one bit, of the machine and perhaps of the rows: docs say so
                raise PrivacyError(LATE.format(scoring_seconds(self.service, held))) from None
        with self.service.store.write() as connection:
            self._scored_by(connection, job, state="ready", words="")

    def _scored_by(self, connection: sa.Connection, job: Job, *, state: str, words: str) -> None:
        """Keep how a scoring ended; nothing that comes after it begins before its tick."""
        held = find(self.service, job.subject.split("/", 2)[2])
        visible = shown_at(self.service, job.begun, scoring_tick(self.service, held))
        _set_scoring(connection, job, state=state, words=words, visible=visible)
        jobs.finish(connection, job, due=visible)

    def _evaluate(self, job: Job) -> None:
        """Book all questions at once, draw, sign, and keep the answer."""
        with self.service.store.read() as connection:
            query = sa.select(evaluations).where(evaluations.c.id == job.subject)
            row = connection.execute(query).one()
            scored = self._scored(connection, row)
        if row.state not in UNPAID:
            return self._done(job)
        refused = [each.words for each in scored if each.state == "refused"]
        if refused:
            raise PrivacyError(f"{refused[0]} Nothing was charged.")
        held = find(self.service, row.dataset)
        if held.revision != row.revision:
            raise PrivacyError("The rows were refreshed meanwhile. Nothing was charged; ask again.")
        share_of(self.service, Person(row.owner, "analyst", "", "", ()), row.dataset)
        receipts.check(self.service)
        session = self._session(held, row)
        questions = [q.from_dict(each) for each in row.questions]
        values: dict[str, Any]
        tick = tick_of(self.service, held)
        booked = shown_at(self.service, job.begun, tick)
        wait_until(booked)
        if not self._past_cancelling(row.id):
            return self._done(job)
        try:
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
        values["visible"] = shown_at(self.service, booked, tick)
        self._keep(job, values)

    def _past_cancelling(self, identity: str) -> bool:
        """From here on its owner cannot cancel it; False if they did."""
        mine = evaluations.update().where(evaluations.c.id == identity)
        with self.service.store.write() as connection:
            mine = mine.where(evaluations.c.state.in_(UNPAID)).values(state="booking")
            return connection.execute(mine).rowcount == 1

    def _keep(self, job: Job, values: dict[str, Any]) -> None:
        """What was paid for is held in hand while the database is away, and is not drawn again."""
        mine = evaluations.update().where(evaluations.c.id == job.subject)
        # Whoever drew has the last word: a worker that only found the booking may be wrong.
        over = (*UNPAID, "lost") if values["state"] == "answered" else UNPAID
        paid = {name: values["statement"]["receipt"][name] for name in ("sequence", "hash")}
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.service.store.write() as connection:
                    connection.execute(mine.where(evaluations.c.state.in_(over)).values(values))
                    receipts.note(connection, Witness(self.service.ledger.id, **paid))
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

    def _end(self, connection: sa.Connection, job: Job, words: str) -> None:
        """Refused, unless the price was booked after all: then the answer is lost."""
        identity = job.subject
        query = sa.select(evaluations).where(evaluations.c.id == identity)
        row = connection.execute(query).one()
        if row.state not in UNPAID:
            return
        values: dict[str, Any] = {"state": "refused", "words": words}
        entry = self.service.ledger.booked(identity)
        if entry is not None:
            values = _lost(entry.sequence, entry.hash, words)
        held = find(self.service, row.dataset)
        values["visible"] = shown_at(self.service, job.begun, tick_of(self.service, held))
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
    mine = mine.where(artifact_table.c.state != "deleted")
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
