"""The private side: rows and scores, on workers alone.

The rows of a data set are copied once, when it is registered or refreshed: the columns that were
declared and no others. Scores of a model are kept beside the labels and keys they belong to.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from heldout.data import Dataset, PrivateTable, sql
from heldout.data.measured import RegressionTable
from heldout.data.table import People
from heldout.data.validation import check_columns
from heldout.errors import ArgumentError, UnreadableTable
from heldout.models import load, score
from heldout.models.score import local_engine
from heldout.server import fitting, sources
from heldout.server.datasets import Registered
from heldout.server.declaration import ROW_NUMBER, SCORE, Declaration
from heldout.server.evaluations import RIVAL
from heldout.server.parts import Part
from heldout.server.settings import Settings
from heldout.server.vault import Vault

BATCH = 2**16
MOST_OPEN = 8
"""Tables that a worker keeps open."""


def snapshot_file(private: Path, name: str, revision: int) -> Path:
    """Return where the rows of a data set are; the name is a digest, as any text may be a name."""
    return private / f"rows-{_short(name)}-{revision}.parquet"


def scores_file(private: Path, name: str, revision: int, artifact: str) -> Path:
    return private / f"scores-{_short(name)}-{revision}-{artifact}.parquet"


def forget_rows(registered: Registered, *, settings: Settings, but: int | None = None) -> None:
    """Remove the copies of a data set's rows, and what was uploaded for them, but for one copy."""
    stays = None if but is None else snapshot_file(settings.private, registered.name, but)
    for file in settings.private.glob(f"rows-{_short(registered.name)}-*.parquet"):
        if file != stays:
            file.unlink(missing_ok=True)
    if "upload" in registered.source:
        sources.forget_upload(registered.source["upload"], settings)


def forget_scores(private: Path, artifact: str) -> None:
    """Remove every score of an artefact."""
    for file in private.glob(f"scores-*-{artifact}.parquet"):
        file.unlink(missing_ok=True)


def files_about(private: Path, name: str) -> Iterator[Path]:
    """Yield the copies of a data set's rows, and all scores on them."""
    for kind in ("rows", "scores"):
        yield from private.glob(f"{kind}-{_short(name)}-*.parquet")


def _short(name: str) -> str:
    import hashlib

    return hashlib.sha256(name.encode()).hexdigest()[:20]


def copy_rows(registered: Registered, *, settings: Settings, vault: Vault) -> Path:
    """Copy the declared columns of the rows to this worker's private folder."""
    declared = registered.declaration
    engine = local_engine(sources.source_of(registered.source, settings), schema=declared.types)
    ours = [*declared.scores, *rival_columns(declared)]
    if declared.features is None:
        for name in declared.scores:
            if name in engine.columns:
                raise ArgumentError(f"A column of the rows is called {name!r}. List the features.")
    features = declared.features or [
        name for name in engine.columns if declared.scores and name not in declared.unseen_columns
    ]
    of_parts = [name for part in declared.parts.values() for name in part.columns_used]
    names = list(dict.fromkeys([*declared.own_columns, *features, *of_parts]))
    if declared.row_key is None:
        ours.append(ROW_NUMBER)
        names.remove(ROW_NUMBER)
    taken = {name.lower() for name in names}  # databases take Score and score for one
    if any(name.lower() in taken for name in ours):
        listed = " or ".join(map(repr, ours))
        raise ArgumentError(f"No column may be called {listed}. Rename it.")
    check_columns(engine, names)
    listed = ", ".join(map(sql.column, names))
    if declared.row_key is None:
        listed = f"row_number() OVER () AS {ROW_NUMBER}, {listed}"
    statement = f"SELECT {listed} FROM {engine.source} AS held"
    path = snapshot_file(settings.private, registered.name, registered.revision)
    vault.write(path, engine.batches(statement, rows=BATCH))
    if engine.has_changed():
        path.unlink(missing_ok=True)
        raise UnreadableTable("The rows changed while they were copied. Register them again.")
    return path


def validate(registered: Registered, path: Path, *, vault: Vault) -> list[PrivateTable]:
    """Return the rows as everything that was declared, those of models first.

    Every rule is looked at; the score of each row says nothing.
    """
    declared = registered.declaration
    table = vault.read(path)
    tables = [] if declared.target is None else [_with_no_score(registered, table)]
    facts = _facts(declared, registered.name)
    return tables + [part.open(table, declared, facts) for part in declared.parts.values()]


def _with_no_score(registered: Registered, table: Any) -> PrivateTable:
    import pyarrow

    declared = registered.declaration
    number = declared.default_score
    same = pyarrow.repeat(pyarrow.scalar(float(number)), len(table))
    for name in declared.scores:
        table = table.append_column(name, same)
    return _private(table, registered.name, declared)


def people_of(declared: Declaration, path: Path, *, vault: Vault) -> People | None:
    """Return who is in the rows, for the ledger to compare with other accounts.

    None where nothing tells: no column names a row or a person, or a row key merely numbers the
    rows. Numbers of people count as who they are: a hospital may well number its patients.
    """
    if not declared.may_be_refreshed:
        return None
    key = None if declared.unit is not None else declared.row_key
    people = People(vault.source(path), unit=declared.unit, row_key=key)
    return None if key is not None and people.are_numbered() else people


def score_rows(
    registered: Registered,
    artifact: Any,
    file: Path,
    *,
    private: Path,
    vault: Vault,
    seconds_per_row: float,
) -> None:
    """Score all rows with what an analyst brought, in isolation, and keep the scores."""
    rows = vault.source(snapshot_file(private, registered.name, registered.revision))
    wanted = scores_file(private, registered.name, registered.revision, artifact.id)
    scored = wanted.with_suffix(f".{os.getpid()}.scored.parquet")
    scored.unlink(missing_ok=True)
    out = None if vault.seals else scored  # nothing is written in the clear, not even for a while
    declared = registered.declaration
    try:
        if artifact.kind == "predictions":
            from heldout.models.predictions import join_predictions

            joined = join_predictions(
                file,
                rows,
                row_key=declared.key_column,
                lowest={name: low for name, (low, _) in declared.from_models.items()}
                or declared.unsent_score,
                score_range=declared.from_models or declared.range,
                into=_outputs(declared, artifact.found or {}) or declared.scores[0],
                out=out,
            )
        else:
            model = load(file)
            joined = score(
                model,
                rows,
                features=_features(model, registered, artifact.features),
                row_key=declared.key_column,
                default=declared.default_score,
                into=declared.scores[0],
                column=_outputs(declared, {"scores": model.width, "classes": model.classes})
                or (None if model.width < 3 else 1),
                seconds_per_row=seconds_per_row,
                out=out,
            )
        engine = local_engine(scored if out is not None else joined.to_arrow(), schema=None)
        of_parts = [name for part in declared.parts.values() for name in part.columns_used]
        names = [
            *declared.own_columns,
            *(of_parts if declared.from_models else ()),
            *declared.scores,
        ]
        listed = ", ".join(map(sql.column, dict.fromkeys(names)))
        statement = f"SELECT {listed} FROM {engine.source} AS held"
        vault.write(wanted, engine.batches(statement, rows=BATCH))
    finally:
        scored.unlink(missing_ok=True)


def _outputs(declared: Declaration, described: Mapping[str, Any]) -> dict[str, int]:
    """Return which of several scores is which class's; none where there is one score."""
    declared.check_model(described)
    if len(declared.scores) < 2:
        return {}
    return declared.outputs(width=described.get("scores", 1), labels=described.get("classes", ()))


def _features(model: Any, registered: Registered, listed: Sequence[str] | None) -> list[str] | None:
    """Return the columns of a model's inputs; None where they have the names of columns."""
    inputs = [{"name": field.name, "width": field.width} for field in model.inputs]
    return fitting.columns_for(registered, inputs, listed)


@lru_cache(maxsize=MOST_OPEN)
def _open_scored(
    name: str, declaration: str, scores: Path, rival: Path | None, vault: Vault
) -> PrivateTable:
    import json

    declared = Declaration.of(json.loads(declaration))
    table = vault.read(scores)
    if rival is not None:
        keys = [declared.key_column]
        other = vault.read(rival, columns=[*keys, *declared.scores])
        names = [*keys, *rival_columns(declared)]
        table = table.join(other.rename_columns(names), keys=keys, join_type="inner")
    if declared.row_key is None:  # which of a person's rows count is then a matter of their order
        table = table.sort_by(ROW_NUMBER)
    return _private(table, name, declared, has_rival=rival is not None)


def rival_columns(declared: Declaration) -> list[str]:
    """Return what the scores of a second model are called beside those of the first."""
    if not declared.classes:
        return [RIVAL]
    return [f"{RIVAL}_{place}" for place in range(len(declared.scores))]


def open_scored(
    registered: Registered, *, private: Path, vault: Vault, artifact: str, rival: str | None
) -> PrivateTable:
    """Return the rows with a model's scores, validated; kept open for the next question."""
    import json

    files = [
        None if model is None else scores_file(private, registered.name, registered.revision, model)
        for model in (artifact, rival)
    ]
    assert files[0] is not None
    text = json.dumps(registered.declaration.content, sort_keys=True)
    return _open_scored(registered.name, text, files[0], files[1], vault)


def open_part(
    registered: Registered, part: Part, *, private: Path, vault: Vault, artifact: str = ""
) -> PrivateTable:
    """Return the rows as one of the kinds that a part declares, with a model's numbers if any."""
    declared, place = registered.declaration, (registered.name, registered.revision)
    path = scores_file(private, *place, artifact) if artifact else snapshot_file(private, *place)
    table = vault.read(path)
    if declared.row_key is None:
        table = table.sort_by(ROW_NUMBER)
    return part.open(table, declared, _facts(declared, registered.name))


def _facts(declared: Declaration, name: str) -> dict[str, Any]:
    """Return what a data set of every kind is given: its name, keys and protection."""
    names = ("row_key", "unit", "rows_per_unit", "neighbours")
    return {"name": name} | {field: getattr(declared, field) for field in names}


def _private(
    table: Any, name: str, declared: Declaration, *, has_rival: bool = False
) -> PrivateTable:
    """Return rows with scores as the kind of private rows that was declared."""
    facts = {"row_key": declared.row_key, "name": name, **declared.of_rows}
    if declared.outcome is not None:
        return RegressionTable(table, observed=declared.outcome, predicted=SCORE, **facts)
    columns: dict[str, Any] = {"score": SCORE, "rivals": [RIVAL] if has_rival else None}
    if declared.classes:
        rivals = {RIVAL: rival_columns(declared)} if has_rival else None
        columns = {"scores": list(declared.scores), "rivals": rivals}
    assert declared.label is not None
    return Dataset(table, label=declared.label, **columns, out_of_range="clip", **facts)
