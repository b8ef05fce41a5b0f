"""Deletes by age: models, scores, answers, and copies of rows that nobody can ask any more.

Never deleted are the ledger, receipts, evaluations with their keys and prices, the log, and the
copy of the rows of a data set that is open. Everything here goes by age alone, and the log says
what went. A sweep can be begun again at any point.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from heldout.server import artifacts as artifact_files
from heldout.server import jobs, rows
from heldout.server.datasets import find
from heldout.server.service import Service
from heldout.server.storage import (
    artifacts,
    datasets,
    evaluations,
    log,
    now,
    scorings,
    submissions,
)
from heldout.server.storage import jobs as job_table

DAY: Final = 86400.0
ACTION: Final = "retention"


@dataclass(frozen=True)
class Due:
    """Something that is older than its rule allows, and how it is deleted in one transaction."""

    words: str
    delete: Callable[[sa.Connection], bool]


def is_wanted(service: Service) -> bool:
    """Return whether anything is deleted by age."""
    settings = service.settings
    rules = (settings.keep_models, settings.keep_scores, settings.keep_answers, settings.keep_rows)
    return any(rule is not None for rule in rules)


def enqueue(service: Service) -> None:
    """Let a worker sweep once a day."""
    day = datetime.fromtimestamp(now(), UTC).date().isoformat()
    with service.store.write() as connection:
        jobs.enqueue(connection, "sweep", day, owner="", seconds=0)


def sweep(service: Service, *, dry_run: bool = False) -> list[str]:
    """Delete what is due, and write each deletion to the log; returns their words."""
    done = []
    for rule in (_models, _scores, _answers, _rows):  # with a model, its scores are gone
        for due in list(rule(service)):
            if dry_run or _delete(service, due):
                done.append(due.words)
    return done


def _delete(service: Service, due: Due) -> bool:
    with service.store.write() as connection:
        if not due.delete(connection):
            return False
        line = {"time": now(), "person": None, "action": ACTION, "subject": due.words}
        connection.execute(log.insert(), line | {"status": 200})
    return True


def _before(days: float) -> float:
    return now() - days * DAY


def _last_use(artifact: "sa.ColumnElement[str]") -> list["sa.ScalarSelect[Any]"]:
    asked = (evaluations.c.artifact == artifact) | (evaluations.c.rival == artifact)
    shown = submissions.c.artifact == artifact
    return [
        sa.select(sa.func.max(evaluations.c.created)).where(asked).scalar_subquery(),
        sa.select(sa.func.max(submissions.c.created)).where(shown).scalar_subquery(),
    ]


def _unused(artifact: "sa.ColumnElement[str]", days: float) -> sa.ColumnElement[bool]:
    """Return whether nobody asked about an artefact for so many days."""
    recent = [sa.func.coalesce(use, 0.0) <= _before(days) for use in _last_use(artifact)]
    return sa.and_(*recent)


def _models(service: Service) -> Iterator[Due]:
    days = service.settings.keep_models
    if days is None:
        return
    old = (artifacts.c.created <= _before(days)) & artifacts.c.state.in_(("ready", "refused"))
    query = sa.select(artifacts).where(old, _unused(artifacts.c.id, days))
    words = f"Deleted after {days:g} days without a question."
    for row in service.store.rows(query):

        def delete(connection: sa.Connection, row: Any = row) -> bool:
            if jobs.is_needed(connection, jobs.is_unpaid, artifact=row.id):
                return False
            mine = artifacts.update().where(artifacts.c.id == row.id)
            connection.execute(mine.values(state="deleted", words=words))
            _forget_scores(service, connection, row.id)
            artifact_files.normalised(service, row).unlink(missing_ok=True)
            for file in service.settings.artifacts.glob(f"{row.id}.*"):
                file.unlink(missing_ok=True)
            return True

        yield Due(f"model {row.id} of {row.owner}", delete)


def _scores(service: Service) -> Iterator[Due]:
    days = service.settings.keep_scores
    if days is None:
        return
    query = sa.select(scorings.c.artifact).distinct()
    query = query.join(artifacts, artifacts.c.id == scorings.c.artifact)
    done = scorings.c.state.in_(("ready", "refused")) & (scorings.c.visible <= _before(days))
    query = query.where(done, _unused(scorings.c.artifact, days))
    for (artifact,) in service.store.rows(query):

        def delete(connection: sa.Connection, artifact: str = artifact) -> bool:
            if jobs.is_needed(connection, jobs.is_unpaid, artifact=artifact):
                return False
            _forget_scores(service, connection, artifact)
            return True

        yield Due(f"scores of model {artifact}", delete)


def _forget_scores(service: Service, connection: sa.Connection, artifact: str) -> None:
    """Delete every score of an artefact; whoever asks again has them made again."""
    mine = job_table.c.subject.startswith(f"{artifact}/", autoescape=True)
    again = job_table.update().where(job_table.c.kind == "score", mine)
    connection.execute(again.values(state="cancelled", attempts=0))
    connection.execute(scorings.delete().where(scorings.c.artifact == artifact))
    rows.forget_scores(service.settings.private, artifact)


def _answers(service: Service) -> Iterator[Due]:
    days = service.settings.keep_answers
    if days is None:
        return
    old = (evaluations.c.state == "answered") & (evaluations.c.visible <= _before(days))
    query = sa.select(evaluations.c.id, evaluations.c.owner, evaluations.c.statement).where(old)
    for row in service.store.rows(query):
        receipt = row.statement["receipt"]
        words = f"The answer was deleted after {days:g} days. Its price stays spent, as entry "
        values = {
            "state": "expired",
            "words": f"{words}{receipt['sequence']} of the ledger.",
            "statement": {"receipt": receipt, "signed": None},
        }

        def delete(connection: sa.Connection, row: Any = row, values: Any = values) -> bool:
            mine = evaluations.update().where(evaluations.c.id == row.id, old)
            return connection.execute(mine.values(values)).rowcount == 1

        yield Due(f"answer of evaluation {row.id} of {row.owner}", delete)


def _rows(service: Service) -> Iterator[Due]:
    days = service.settings.keep_rows
    if days is None:
        return
    old = (datasets.c.state == "closed") & (datasets.c.closed <= _before(days))
    private = service.settings.private
    for (name,) in service.store.rows(sa.select(datasets.c.name).where(old)):
        registered = find(service, name)
        if not any(rows.files_about(private, name)):
            continue

        def delete(connection: sa.Connection, name: str = name, about: Any = registered) -> bool:
            if jobs.is_needed(connection, jobs.is_unpaid, dataset=name):
                return False
            connection.execute(scorings.delete().where(scorings.c.dataset == name))
            rows.forget_rows(about, settings=service.settings)
            for file in list(rows.files_about(private, name)):
                file.unlink(missing_ok=True)
            return True

        yield Due(f"copy of the rows of data set {name}, and scores on it", delete)


def tidy(service: Service) -> None:
    """Remove what a worker that was killed left half written, a day ago or longer."""
    for pattern in ("*.partial", "*.scored.parquet"):
        for file in service.settings.private.glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime < now() - DAY:
                    file.unlink()
