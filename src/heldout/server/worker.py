"""A worker: takes jobs up, one at a time. It alone has the rows, the sandbox and the noise."""

import contextlib
import hashlib
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
from heldout.data import Dataset, PrivateTable
from heldout.doors import as_json
from heldout.errors import (
    AlreadyBooked,
    AnswerLost,
    HeldoutError,
    LedgerError,
    PrivacyError,
    ScoringFailed,
)
from heldout.kernel.ledger.witness import Witness
from heldout.models import load
from heldout.questions.answers import plain
from heldout.questions.boards import Board, BoardEnded
from heldout.questions.session import PrivateSession
from heldout.server import artifacts, books, drafts, fitting, jobs, retention, rows, sources
from heldout.server.boards import Posted, find_board
from heldout.server.datasets import (
    Registered,
    check_there,
    declared_ranges,
    find,
    has_share,
    usable_share,
)
from heldout.server.evaluations import (
    answer_tick,
    evaluated_part,
    needs_model,
    scoring_seconds,
    scoring_tick,
    shown_at,
    tick_of,
)
from heldout.server.jobs import UNPAID, Job, Signs
from heldout.server.service import Conflict, Service, TooLarge, print_line
from heldout.server.signing import Signer, canonical
from heldout.server.storage import (
    Json,
    datasets,
    evaluations,
    now,
    scorings,
    submissions,
    wait_until,
)
from heldout.server.storage import artifacts as artifact_table
from heldout.server.storage import boards as board_table
from heldout.server.vault import private_copies

SHORTEST, LONGEST = 0.01, 0.4
"""Seconds between two looks at an empty table of jobs."""
PATIENCE: Final = 120.0
"""Seconds for which a drawn answer is kept in memory while a database is away."""
LATE: Final = (
    "The server did not score all rows within {:g} seconds, the time that it allows for so many "
    "rows. All scores were discarded. Submit a smaller model, or try again later."
)
NOT_COMPARED: Final = (
    "Nothing in these rows tells who they are about, or they are merely numbered. So nobody could "
    "see whether the same people are in another data set; if they are, close this one and register "
    "it under the other's budget."
)
GIVEN_UP: Final = "It failed several times and was given up."
DOES_NOT_FIT: Final = (
    "The model could not be scored on the rows of this board. Its custodian can tell you which "
    "columns they have."
)


class LostWorkers(HeldoutError):
    """Every worker that began a job was lost."""


class Worker:
    """One worker on one service; `step` does one job.

    A handler writes down how its job ended, and returns the moment at which that may show.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.signer = Signer.of(service.settings.folder)
        self.signs = Signs(service.store, self.name)
        self._swept = 0
        self._sessions: dict[tuple[Any, ...], PrivateSession] = {}
        self._handlers: dict[str, Callable[[Job], float]] = {
            "survey": self._survey,
            "look": self._look,
            "unload": self._unload,
            "register": self._register,
            "quarantine": self._quarantine,
            "score": self._score,
            "evaluate": self._evaluate,
            "forget": self._forget,
            "open-board": self._open_board,
            "judge": self._judge,
            "sweep": self._sweep,
        }

    def sweep_daily(self) -> None:
        """Ask for a sweep, once a day, where there are rules."""
        today = int(now() // retention.DAY)
        if retention.is_wanted(self.service) and self._swept != today:
            retention.enqueue(self.service)
            self._swept = today

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
        with self._lease(job):
            self._do(job)
        return True

    def _do(self, job: Job) -> None:
        """Do a job, and keep its place until a moment that public figures decide.

        How long the work took depends on rows. Whatever begins because this worker, or this
        person's turn, is free again would show it: a second upload's check, a stranger's question.
        """
        outcome, again = "done", False
        try:
            if job.hopeless:
                raise LostWorkers(GIVEN_UP)
            end = self._handlers[job.kind](job)
        except HeldoutError as error:  # its message holds no private value
            outcome = type(error).__name__
            end = self._fail(job, as_json(str(error)))
        except Exception as error:
            outcome, again = type(error).__name__, not job.last
            end = self._end_of(job) if again else self._fail(job, GIVEN_UP)
        wait_until(end)
        with self.service.store.write() as connection:
            if again:
                jobs.again(connection, job)
            else:
                jobs.finish(connection, job, due=end)
        # How long it took is not logged: it may depend on rows.
        print_line("job", kind=job.kind, subject=job.subject, outcome=outcome, attempt=job.attempts)

    def _end_of(self, job: Job) -> float:
        """Return the next moment at which a job may end; one that reads no rows ends at once."""
        if job.kind == "register":
            name, ticks = job.subject.rsplit("/", 1)[0], scoring_tick
        elif job.kind == "score":
            name, ticks = job.subject.split("/", 2)[2], scoring_tick
        elif job.kind == "evaluate":
            row = self._row(evaluations, job.subject)
            name, ticks = row.dataset, partial(answer_tick, content=row.questions)
        elif job.kind == "judge":
            board = self._row(submissions, job.subject).board
            name, ticks = find_board(self.service, board).dataset, tick_of
        else:
            return job.begun
        return shown_at(self.service, job.begun, ticks(self.service, find(self.service, name)))

    @contextlib.contextmanager
    def _lease(self, job: Job) -> Iterator[None]:
        """Renew the lease until the job is done."""
        lease, done = self.service.settings.lease, threading.Event()

        def renew() -> None:
            while not done.wait(lease / 3):
                with contextlib.suppress(sa.exc.SQLAlchemyError):
                    jobs.renew(self.service.store, job, worker=self.name, lease=lease)
                    self.signs.give(job.kind)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _fail(self, job: Job, words: str) -> float:
        """End whatever the job is about with a reason; returns when that may show."""
        end = self._end_of(job)
        refused: Json = {"state": "refused", "words": words}
        if job.kind == "register":
            wait_until(end)  # analysts see when a data set opens again
        with self.service.store.write() as connection:
            if job.kind == "register":
                name, revision = job.subject.rsplit("/", 1)
                mine = (datasets.c.name == name) & (datasets.c.revision == int(revision))
                connection.execute(datasets.update().where(mine).values(refused))
                self._forget_rows(name, int(revision))
            elif job.kind in ("survey", "look"):
                drafts.stopped(connection, job.subject.split("/")[0], words)
            elif job.kind == "quarantine":
                _set_artifact(connection, job.subject, **refused)
            elif job.kind == "score":
                _set_scoring(connection, job, **refused, visible=end)
            elif job.kind == "evaluate":
                self._refuse_evaluation(connection, job.subject, refused | {"visible": end})
            elif job.kind == "open-board":
                self._refuse_board(connection, job.subject, words)
            elif job.kind == "judge":
                _set_unpaid(connection, submissions, job.subject, **refused, visible=end)
        return end

    def _forget_rows(self, name: str, revision: int) -> None:
        """Leave no copy of rows behind that were refused."""
        registered = find(self.service, name)
        newer = None if registered.revision == revision else registered.revision
        rows.forget_rows(registered, settings=self.service.settings, but=newer)

    # --- data sets and artefacts -----------------------------------------------------------------

    def _survey(self, job: Job) -> float:
        """List where rows may be taken from, for a custodian who begins to register some."""
        offered = sources.offered(self.service.settings)
        with self.service.store.write() as connection:
            drafts.surveyed(connection, job.subject, offered)
        return job.begun

    def _look(self, job: Job) -> float:
        """Read the columns of a source, and no row."""
        identity = job.subject.split("/")[0]
        source = drafts.source_in(self.service, identity)
        columns = {} if source is None else sources.columns_of(source, self.service.settings)
        with self.service.store.write() as connection:
            drafts.looked_at(connection, identity, columns)
        return job.begun

    def _unload(self, job: Job) -> float:
        """Remove rows that were uploaded and then not registered."""
        sources.forget_upload(job.subject, self.service.settings)
        return job.begun

    def _register(self, job: Job) -> float:
        """Copy the rows, look at every rule, and open their account."""
        name, revision = job.subject.rsplit("/", 1)
        registered = find(self.service, name)
        if registered.state != "checking" or registered.revision != int(revision):
            return job.begun
        ledger = self.service.ledger
        path = rows.copy_rows(registered, settings=self.service.settings, vault=self.service.vault)
        tables = rows.validate(registered, path, vault=self.service.vault)
        by, words = ledger.registered_by(name), "Analysts with an allowance may ask."
        if by is None:
            people = rows.people_of(registered.declaration, path, vault=self.service.vault)
            words += "" if people is not None else f" {NOT_COMPARED}"
            ledger.register(
                name,
                budget=registered.budget,
                table=people,
                apart=True,
                who=registered.owner,
                **registered.declaration.of_account,
            )
        elif by != registered.owner and registered.description is None:  # another's account, say
            raise Conflict(f"There is an account {shown(name)} already. Choose another name.")
        # The account's own rules on refreshed rows are looked at now, not when somebody asks.
        for table in tables:
            PrivateSession(table, ledger=ledger, account=name)
        described = [plain(registered.declaration.describe(table)) for table in tables]
        values = {
            "state": "open",
            "words": words,
            "about": described if len(described) > 1 else described[0],
        }
        end, registration = self._end_of(job), ledger.head()
        wait_until(end)  # analysts see when a data set opens again
        with self.service.store.write() as connection:
            connection.execute(datasets.update().where(datasets.c.name == name).values(values))
            books.keep_receipt(connection, registration)
        rows.forget_rows(registered, settings=self.service.settings, but=registered.revision)
        return end

    def _quarantine(self, job: Job) -> float:
        """Read an artefact alone, in the sandbox; no row is near."""
        row = self._row(artifact_table, job.subject)
        if row.state == "deleted":
            return job.begun
        file, copied = artifacts.file_of(self.service, row), 0
        if row.kind == "predictions":
            from heldout.models.predictions import read_predictions

            out = artifacts.normalised(self.service, row)
            out.unlink(missing_ok=True)
            most = self.service.settings.most_prediction_rows
            sent = read_predictions(file, out=out, most_rows=most)
            copied = out.stat().st_size
            described: Json = {"row_wise": True, "kind": "predictions"}
            described["sent"] = fitting.sent_scores(out, declared_ranges(self.service))
            if len(sent.names) > 1:
                described |= {"scores": len(sent.names), "classes": list(sent.names)}
            state, words = "ready", "Predictions by row key; each belongs to one row."
        elif row.kind == artifacts.COPY:
            described, words = artifacts.describe_copy(file)
            state = "ready"
        else:
            model = load(file)
            described = model.as_dict()
            state, words = "ready", "Proven to look at one row at a time."
            if not model.row_wise:
                state, words = "refused", str(model.why_not)
        with self.service.store.write() as connection:
            try:
                if copied:
                    jobs.check_room(self.service, connection, row.owner, copied)
            except TooLarge as error:
                artifacts.normalised(self.service, row).unlink(missing_ok=True)
                state, words, copied = "refused", as_json(str(error)), 0
            values = {"state": state, "words": words, "found": described, "copied": copied}
            _set_artifact(connection, row.id, **values)
        return job.begun

    def _forget(self, job: Job) -> float:
        """Remove what was made of an artefact that its owner deleted."""
        row = self._row(artifact_table, job.subject)
        rows.forget_scores(self.service.settings.private, row.id)
        artifacts.normalised(self.service, row).unlink(missing_ok=True)
        with self.service.store.write() as connection:
            connection.execute(scorings.delete().where(scorings.c.artifact == row.id))
        return job.begun

    def _score(self, job: Job) -> float:
        """Score every row in isolation; unpaid, and stored with the rows."""
        artifact, revision, name = job.subject.split("/", 2)
        registered, row = find(self.service, name), self._row(artifact_table, artifact)
        if row.state in ("refused", "deleted"):
            raise PrivacyError(f"The artefact cannot be used: {row.words}")
        if registered.revision == int(revision):
            is_table = row.kind == "predictions"
            place = artifacts.normalised if is_table else artifacts.file_of
            try:
                rows.score_rows(
                    registered,
                    row,
                    place(self.service, row),
                    private=self.service.settings.private,
                    vault=self.service.vault,
                    seconds_per_row=self.service.settings.seconds_per_row,
                )
            except ScoringFailed:  # one bit, of the machine and perhaps of the rows: docs say so
                seconds = scoring_seconds(self.service, registered)
                raise PrivacyError(LATE.format(seconds)) from None
        end = self._end_of(job)
        with self.service.store.write() as connection:
            _set_scoring(connection, job, state="ready", words="", visible=end)
        return end

    def _sweep(self, job: Job) -> float:
        """Delete what is older than the rules allow; once a day."""
        for words in retention.sweep(self.service):
            print_line("retention", deleted=words)
        return job.begun

    # --- evaluations -----------------------------------------------------------------------------

    def _evaluate(self, job: Job) -> float:
        """Book all questions at once, draw, sign, and keep the answer."""
        row = self._row(evaluations, job.subject)
        if row.state not in UNPAID:
            return job.begun
        models = [model for model in (row.artifact, row.rival) if model]
        for scoring in self._scorings(models, row.dataset, row.revision):
            if scoring.state == "refused":
                raise PrivacyError(f"{scoring.words} Nothing was charged.")
        registered = find(self.service, row.dataset)
        if registered.revision != row.revision:
            raise PrivacyError("The rows were refreshed meanwhile. Nothing was charged; ask again.")
        if row.owner != registered.owner:  # a custodian publishes out of the whole budget
            usable_share(self.service, row.owner, registered)
        books.check_receipt(self.service)
        copy = (
            self._row(artifact_table, row.artifact) if artifacts.needs_copy(row.questions) else None
        )
        content = artifacts.with_copy(self.service, registered, row.questions, copy)
        questions = [q.from_dict(question) for question in content]
        session = self._session(registered, row, questions)
        subject = self._subject(registered, models)
        tick = answer_tick(self.service, registered, row.questions)
        booked = self._past_cancelling(evaluations, job, tick)
        if booked is None:
            return self._end_of(job)
        try:
            answered = session.answer(*questions, reference=row.id, subject=subject)
        except (AlreadyBooked, AnswerLost) as error:
            values = _lost(error.sequence, error.receipt, as_json(str(error)))
        else:
            content = answered.as_dict()
            # What is signed names the ledger: its entry is where the chain ended then.
            statement = {
                "evaluation": row.id,
                "ledger": self.service.ledger.id,
                "answer": content,
                "subject": subject
                | {
                    "price": row.price,
                    "time": content["receipt"]["time"],
                    "server_key": self.signer.public,
                },
            }
            signed = {"receipt": content["receipt"], "signed": self.signer.sign(statement)}
            values = {"state": "answered", "words": "Paid and answered.", "statement": signed}
        end = shown_at(self.service, booked, tick)
        self._keep(job, values | {"visible": end})
        return end

    def _subject(self, registered: Registered, models: list[str]) -> Json:
        """Return what an answer is about: its models by digest, and the rows by registration."""
        rows_of = [self._row(artifact_table, model) for model in models]
        declared = hashlib.sha256(canonical(registered.declaration.content)).hexdigest()
        return {
            "models": [{"name": row.name, "sha256": row.sha256} for row in rows_of],
            "dataset": registered.name,
            "registration": {"revision": registered.revision, "declaration": declared},
        }

    def _past_cancelling(self, table: sa.Table, job: Job, tick: float) -> float | None:
        """Wait for the tick of the booking; from then on nobody cancels. None if somebody did."""
        booked = shown_at(self.service, job.begun, tick)
        wait_until(booked)
        with self.service.store.write() as connection:
            changed = _set_unpaid(connection, table, job.subject, state="booking")
        return booked if changed else None

    def _keep(self, job: Job, values: Json) -> None:
        """Write down what was paid for, as soon as the database lets us; it is not drawn again."""
        mine = evaluations.update().where(evaluations.c.id == job.subject)
        # Whoever drew has the last word: a worker that only found the booking may be wrong.
        over = (*UNPAID, "lost") if values["state"] == "answered" else UNPAID
        paid = {name: values["statement"]["receipt"][name] for name in ("sequence", "hash")}
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.service.store.write() as connection:
                    connection.execute(mine.where(evaluations.c.state.in_(over)).values(values))
                    receipt = Witness(self.service.ledger.id, **paid)
                    return books.keep_receipt(connection, receipt)
            except sa.exc.SQLAlchemyError:
                if time.monotonic() > until:
                    raise
                time.sleep(LONGEST)

    def _refuse_evaluation(self, connection: sa.Connection, identity: str, values: Json) -> None:
        """Refuse an evaluation, unless its price was booked after all: then the answer is lost."""
        entry = self.service.ledger.booked(identity)
        if entry is not None:
            values |= _lost(entry.sequence, entry.hash, values["words"])
        _set_unpaid(connection, evaluations, identity, **values)

    def _session(
        self, registered: Registered, row: sa.Row[Any], questions: list[q.Question[Any]]
    ) -> PrivateSession:
        """Return a session of this analyst on these scores; it stays open for the next question."""
        part = evaluated_part(registered, questions)
        if part is not None:
            table = rows.open_part(
                registered,
                part,
                private=self.service.settings.private,
                vault=self.service.vault,
                artifact=row.artifact if needs_model(registered, questions) else "",
            )
            analyst = None if row.owner == registered.owner else row.owner
            return PrivateSession(
                table, ledger=self.service.ledger, account=registered.name, analyst=analyst
            )
        key = (registered.name, row.revision, row.artifact, row.rival, row.owner)
        if key not in self._sessions:
            if len(self._sessions) >= 4 * rows.MOST_OPEN:
                self._sessions.clear()
            table = self._open(registered, row.artifact, row.rival)
            self._sessions[key] = PrivateSession(
                table, ledger=self.service.ledger, account=registered.name, analyst=row.owner
            )
        return self._sessions[key]

    def _open(self, registered: Registered, artifact: str, rival: str | None) -> PrivateTable:
        private = self.service.settings.private
        return rows.open_scored(
            registered,
            private=private,
            vault=self.service.vault,
            artifact=artifact,
            rival=rival,
        )

    def _scorings(self, models: list[str], dataset: str, revision: int) -> list[sa.Row[Any]]:
        which = scorings.c.artifact.in_(models) & (scorings.c.dataset == dataset)
        which &= scorings.c.revision == revision
        return self.service.store.rows(sa.select(scorings).where(which))

    def _row(self, table: sa.Table, identity: str) -> sa.Row[Any]:
        with self.service.store.look() as connection:
            return connection.execute(sa.select(table).where(table.c.id == identity)).one()

    # --- boards ----------------------------------------------------------------------------------

    def _board(self, posted: Posted) -> Board:
        short = hashlib.sha256(posted.name.encode()).hexdigest()[:20]
        return Board(
            posted.name,
            plan=posted.plan,
            ledger=self.service.ledger,
            account=posted.dataset,
            state=self.service.settings.private / f"board-{short}.json",
        )

    def _open_board(self, job: Job) -> float:
        """Pay the board's whole price, and draw its bar."""
        posted = find_board(self.service, job.subject)
        books.check_receipt(self.service)
        if posted.state == "opening":
            self._board(posted)
        paid = self.service.ledger.head()
        values = {"state": "open", "words": "Submissions are judged."}
        mine = board_table.update().where(board_table.c.name == posted.name)
        with self.service.store.write() as connection:
            connection.execute(mine.values(values))
            books.keep_receipt(connection, paid)
        return job.begun

    def _refuse_board(self, connection: sa.Connection, name: str, words: str) -> None:
        """End a board that could not open; one whose price was booked says that it was."""
        values = {"state": "refused", "words": words}
        entry = self.service.ledger.booked(f"board/{name}/bar")
        if entry is not None:
            paid = f"The price of the board was booked as entry {entry.sequence} and stays spent."
            values = {"state": "lost", "words": f"{paid} {words}"}
            receipt = Witness(self.service.ledger.id, entry.sequence, entry.hash)
            books.keep_receipt(connection, receipt)
        mine = board_table.update().where(board_table.c.name == name)
        connection.execute(mine.values(values))

    def _judge(self, job: Job) -> float:
        """Tell a submission whether it improved; show the score of one that did."""
        row = self._row(submissions, job.subject)
        if row.state not in UNPAID:
            return job.begun
        check_there(self.service, row.owner)
        posted = find_board(self.service, row.board)
        registered = find(self.service, posted.dataset)
        if registered.revision != posted.revision:
            raise BoardEnded("The rows were refreshed since the board opened: it has ended.")
        self._check_scored(row, posted)
        books.check_receipt(self.service)
        table = self._open(registered, row.artifact, None)
        assert isinstance(table, Dataset)  # no board opens on other rows
        booked = self._past_cancelling(submissions, job, tick_of(self.service, registered))
        if booked is None:
            return self._end_of(job)
        try:
            outcome = self._board(posted).submit(table, submission=row.id)
            values: Json = {
                "state": "judged",
                "improved": outcome.improved,
                "score": outcome.score,
                "words": str(outcome),
            }
        except LedgerError as error:
            values = {"state": "refused", "words": as_json(str(error))}
        values["visible"] = shown_at(self.service, booked, scoring_tick(self.service, registered))
        mine = submissions.update().where(submissions.c.id == row.id)
        with self.service.store.write() as connection:
            connection.execute(mine.values(values))
            books.keep_receipt(connection, self.service.ledger.head())
        return shown_at(self.service, booked, tick_of(self.service, registered))

    def _check_scored(self, row: sa.Row[Any], posted: Posted) -> None:
        scored = self._scorings([row.artifact], posted.dataset, posted.revision)
        scoring = scored[0] if scored else None
        if scoring is not None and scoring.state == "ready":
            return
        # Why names columns, which are for those to know who have a share.
        if scoring is None or not has_share(self.service, posted.dataset, row.owner):
            raise PrivacyError(DOES_NOT_FIT)
        raise PrivacyError(scoring.words)


def _lost(sequence: int, receipt: str, why: str) -> Json:
    """Return the state of an answer that was lost: the price stays, and the words say so."""
    statement = {"receipt": {"sequence": sequence, "hash": receipt}, "signed": None}
    words = f"The answer was lost after its price was booked as entry {sequence}. {why}"
    return {"state": "lost", "words": words, "statement": statement}


def _set_artifact(connection: sa.Connection, identity: str, **values: object) -> None:
    mine = artifact_table.update().where(artifact_table.c.id == identity)
    mine = mine.where(artifact_table.c.state != "deleted")
    connection.execute(mine.values(values))


def _set_scoring(connection: sa.Connection, job: Job, **values: object) -> None:
    artifact, revision, name = job.subject.split("/", 2)
    mine = (scorings.c.artifact == artifact) & (scorings.c.dataset == name)
    mine &= scorings.c.revision == int(revision)
    connection.execute(scorings.update().where(mine).values(values))


def _set_unpaid(
    connection: sa.Connection, table: sa.Table, identity: str, **values: object
) -> bool:
    """Change what is not paid for; another worker may have ended it. Returns whether it was so."""
    mine = table.update().where(table.c.id == identity, jobs.is_unpaid(table))
    return connection.execute(mine.values(values)).rowcount == 1


def run(
    service: Service,
    *,
    stop: threading.Event | None = None,
    alone: Callable[[], bool] | None = None,
) -> None:
    """Work until asked to stop, or left alone; a job that was begun is finished first."""
    ended = stop or threading.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
    worker, pause, due = Worker(service), SHORTEST, 0.0
    retention.tidy(service)
    service.vault.seal(private_copies(service.settings))
    while not ended.is_set() and not (alone is not None and alone()):
        try:
            if time.monotonic() >= due:
                worker.signs.give()
                worker.sweep_daily()
                due = time.monotonic() + service.settings.lease / 3
            busy = worker.step()
        except sa.exc.OperationalError:  # the database is away for a moment
            busy = False
        pause = SHORTEST if busy else min(pause * 1.5, LONGEST)
        if not busy:
            ended.wait(pause)
    with contextlib.suppress(sa.exc.SQLAlchemyError):
        worker.signs.leave()
