"""The private side: rows and scores, on workers alone.

The rows of a data set are copied once, when it is registered or refreshed: the columns that were
declared and no others. Scores of a model are kept beside the labels and keys they belong to.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from heldout.data import Dataset, PrivateTable, sql
from heldout.data.engine import open_table, or_raise
from heldout.data.folder import files_of
from heldout.data.measured import RegressionTable
from heldout.data.table import People
from heldout.data.validation import check_columns
from heldout.errors import ArgumentError, HeldoutError, UnreadableTable
from heldout.models import load, score
from heldout.models.score import local_engine
from heldout.server import asking
from heldout.server.datasets import Registered
from heldout.server.declaration import (
    OWN_VARIABLES,
    ROW_NUMBER,
    SCORE,
    Declaration,
    Part,
    check_place,
)
from heldout.server.evaluations import RIVAL
from heldout.server.settings import Settings
from heldout.server.storage import Json
from heldout.server.vault import Vault

# Where rows come from: files, tables and uploads, as a worker sees them.
#
# The web may have no way to the rows, so a worker lists what there is, and reads the columns of
# what a custodian chooses.
ENDINGS: Final = (".parquet", ".csv")
MOST_LISTED: Final = 500
"""Files, and tables of one database, that are offered."""
MOST_COLUMNS: Final = 1000
"""Columns that pages can ask about."""
SECONDS: Final = 5
"""How long a database may take to be reached."""
ROLE: Final = {"host": "host", "port": "port", "database": "dbname", "username": "user"}
"""What tells a role of a database apart: in an address, and among what it says after a ?."""
DEFAULTS: Final = {"port": "5432"}


def source_of(source: Mapping[str, Any], settings: Settings) -> object:
    """Return what a registered source stands for on this machine.

    Where a pattern, a folder or a link leads is seen here alone: the web may have no way to the
    rows. So every file is looked at once more.
    """
    if "upload" in source:
        return str(uploaded(source["upload"], settings))
    if "file" in source:
        for file in or_raise(lambda: _followed(Path(source["file"])), _unreadable):
            check_place(file, settings)
        return source["file"]
    if "spark" in source:
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate().table(source["spark"])
    from heldout.data.postgres import PostgresTable

    address = _address(source["database"], settings)
    return PostgresTable(address, table=source.get("table"), query=source.get("query"))


def _address(variable: str, settings: Settings) -> str:
    """Return the address of a database that rows may be taken from."""
    address = os.environ.get(variable)
    if address is None:
        raise UnreadableTable(
            f"The worker has no variable {variable} with the address of the database."
        )
    if settings.database is not None and _same_role(address, settings.database):
        raise ArgumentError(
            f"{variable} is the address of the server's own tables, under their owner's "
            "name. Give the rows a role of their own, which can read nothing else."
        )
    return address


def _followed(place: Path) -> list[Path]:
    """Return the files that a path stands for, wherever links lead."""
    files = [place] if place.is_file() else files_of(place) or [place]
    return [file.resolve() for file in files]


def _unreadable() -> UnreadableTable:
    return UnreadableTable("The rows cannot be read where they are. Check the path.")


def _same_role(address: str, own: str) -> bool:
    """Return whether two addresses are of one database, and of one user there."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError as NoAddress

    try:
        first, second = (make_url(url) for url in (address, own))
    except (NoAddress, ValueError):
        return False
    return all(_part_of(first, part) == _part_of(second, part) for part in ROLE)


def _part_of(url: Any, what: str) -> str:
    """Return a part of an address, wherever it stands there."""
    return str(url.query.get(ROLE[what]) or getattr(url, what) or DEFAULTS.get(what, ""))


# --- what there is -------------------------------------------------------------------------------


def offered(settings: Settings) -> Json:
    """Return the files and tables that a custodian may choose from: names, and nothing in them."""
    databases = {}
    for variable, address in sorted(os.environ.items()):
        own = variable.upper().startswith(OWN_VARIABLES)
        if not own and address.startswith(("postgresql://", "postgres://")):
            databases[variable] = _tables(variable, settings)
    return {"files": _files(settings), "databases": databases}


def _files(settings: Settings) -> list[str]:
    """Return the files in the folder of rows; folders of Parquet files as one."""
    root = (settings.rows or settings.folder / "rows").resolve()
    names: list[str] = []
    for folder, inner, files in os.walk(root):
        inner.sort()
        place = Path(folder)
        chosen = sorted(file for file in files if file.lower().endswith(ENDINGS))
        if place != root and len(chosen) > 1 and all(file.endswith(".parquet") for file in chosen):
            names.append(f"{place.relative_to(root)}/")
            inner.clear()
        else:
            names += [str((place / file).relative_to(root)) for file in chosen]
        if len(names) >= MOST_LISTED:
            break
    return names[:MOST_LISTED]


def _tables(variable: str, settings: Settings) -> list[str]:
    """Return the tables that the workers' role may read; none where it cannot be reached."""
    import psycopg

    query = (
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema "
        "NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2 LIMIT %s"
    )
    try:
        address = _address(variable, settings)
        with psycopg.connect(address, connect_timeout=SECONDS) as connection:
            rows = connection.execute(query, [MOST_LISTED]).fetchall()
    except (HeldoutError, psycopg.Error):
        return []
    return [f"{schema}.{table}" for schema, table in rows]


def columns_of(source: Mapping[str, Any], settings: Settings) -> dict[str, str]:
    """Return the columns of a source with the types of its own schema. No row is read.

    Of a CSV file, which has no schema, every column is text until the custodian says otherwise.
    """
    columns = dict(open_table(source_of(source, settings), schema=None).columns)
    if len(columns) > MOST_COLUMNS:
        raise ArgumentError(
            f"It has {len(columns):,} columns, and the pages ask about {MOST_COLUMNS:,} at most. "
            "Register it by the API, or leave columns out."
        )
    return columns


# --- uploads -------------------------------------------------------------------------------------


def arrived(identity: str, ending: str, settings: Settings) -> Path:
    """Return where the web puts a file of rows until a worker takes it."""
    return settings.artifacts / f"rows-{identity}{ending}"


def uploaded(identity: str, settings: Settings) -> Path:
    """Return an uploaded file, in the folder that workers alone read."""
    for ending in ENDINGS:
        came, own = arrived(identity, ending, settings), _own(identity, ending, settings)
        if came.exists():
            _move(came, own)
        if own.exists():
            return own
    raise UnreadableTable("The uploaded rows are gone: they are removed once they were read.")


def _own(identity: str, ending: str, settings: Settings) -> Path:
    return settings.private / f"upload-{identity}{ending}"


def _move(came: Path, own: Path) -> None:
    """Move a file, whole, perhaps to another volume; nobody else may read it there."""
    import shutil

    partial = own.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with came.open("rb") as file:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(file, copy, 2**20)
    partial.replace(own)
    came.unlink(missing_ok=True)


def forget_upload(identity: str, settings: Settings) -> None:
    """Remove an uploaded file, wherever it is by now; the web removes what it put down alone."""
    for ending in ENDINGS:
        arrived(identity, ending, settings).unlink(missing_ok=True)
        _own(identity, ending, settings).unlink(missing_ok=True)


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
        forget_upload(registered.source["upload"], settings)


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
    engine = local_engine(source_of(registered.source, settings), schema=declared.types)
    ours = [*declared.scores, RIVAL]
    if declared.features is None:
        for name in declared.scores:
            if name in engine.columns:
                raise ArgumentError(f"A column of the rows is called {name!r}. List the features.")
    features = declared.features or [
        name for name in engine.columns if declared.target and name not in declared.own_columns
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
    import duckdb

    declared = registered.declaration
    number = declared.default_score
    connection = duckdb.connect()
    connection.register("copied", table)
    constant = f"CAST({number!r} AS DOUBLE)"
    scores = ", ".join(f"{constant} AS {sql.identifier(name)}" for name in declared.scores)
    relation = connection.sql(f"SELECT *, {scores} FROM copied")
    return _private(relation.to_arrow_table(), registered.name, declared)


def people_of(declared: Declaration, path: Path, *, vault: Vault) -> People | None:
    """Return who is in the rows, for the ledger to compare with other accounts.

    None where nothing tells: no column names a row or a person, or what does merely numbers them.
    """
    if not declared.may_be_refreshed:
        return None
    key = None if declared.unit is not None else declared.row_key
    people = People(vault.source(path), unit=declared.unit, row_key=key)
    return None if people.are_numbered() else people


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
                lowest=declared.unsent_score,
                score_range=declared.range,
                into=_outputs(declared, artifact.found or {}) or SCORE,
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
                into=SCORE,
                column=_outputs(declared, {"scores": model.width, "classes": model.classes})
                or (None if model.width < 3 else 1),
                seconds_per_row=seconds_per_row,
                out=out,
            )
        engine = local_engine(scored if out is not None else joined.to_arrow(), schema=None)
        listed = ", ".join(map(sql.column, [*declared.own_columns, *declared.scores]))
        statement = f"SELECT {listed} FROM {engine.source} AS held"
        vault.write(wanted, engine.batches(statement, rows=BATCH))
    finally:
        scored.unlink(missing_ok=True)


def _outputs(declared: Declaration, described: Mapping[str, Any]) -> dict[str, int]:
    """Return which of several scores is which class's; none where there is one score."""
    declared.check_model(described)
    if not declared.classes:
        return {}
    return declared.outputs(width=described.get("scores", 1), labels=described.get("classes", ()))


def _features(model: Any, registered: Registered, listed: Sequence[str] | None) -> list[str] | None:
    """Return the columns of a model's inputs; None where they have the names of columns."""
    inputs = [{"name": field.name, "width": field.width} for field in model.inputs]
    return asking.columns_for(registered, inputs, listed)


@lru_cache(maxsize=MOST_OPEN)
def _open_scored(
    name: str, declaration: str, scores: Path, rival: Path | None, vault: Vault
) -> PrivateTable:
    import json

    declared = Declaration.of(json.loads(declaration))
    table = vault.read(scores)
    if rival is not None:
        keys = [declared.key_column]
        other = vault.read(rival, columns=[*keys, SCORE])
        table = table.join(other.rename_columns([*keys, RIVAL]), keys=keys, join_type="inner")
    if declared.row_key is None:  # which of a person's rows count is then a matter of their order
        table = table.sort_by(ROW_NUMBER)
    return _private(table, name, declared, rivals=[RIVAL] if rival is not None else None)


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


def open_part(registered: Registered, part: Part, *, private: Path, vault: Vault) -> PrivateTable:
    """Return the rows as a kind of rows that no model goes with."""
    declared = registered.declaration
    path = snapshot_file(private, registered.name, registered.revision)
    return part.open(vault.read(path), declared, _facts(declared, registered.name))


def _facts(declared: Declaration, name: str) -> dict[str, Any]:
    """Return what every kind of private rows is told: its name, keys and protection."""
    names = ("row_key", "unit", "rows_per_unit", "neighbours")
    return {"name": name} | {field: getattr(declared, field) for field in names}


def _private(
    table: Any, name: str, declared: Declaration, rivals: list[str] | None = None
) -> PrivateTable:
    """Return rows with scores as the kind of private rows that was declared."""
    facts = {"row_key": declared.row_key, "name": name, **declared.of_rows}
    if declared.outcome is not None:
        return RegressionTable(table, observed=declared.outcome, predicted=SCORE, **facts)
    columns: dict[str, Any] = {"score": SCORE, "rivals": rivals}
    if declared.classes:
        columns = {"scores": list(declared.scores)}
    assert declared.label is not None
    return Dataset(table, label=declared.label, **columns, out_of_range="clip", **facts)
