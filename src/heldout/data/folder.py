"""Many Parquet files as one table: a folder, a pattern, or an Arrow data set of files anywhere.

A column for each folder that is called name=value (hive partitions), read as a text. All files must
have the same columns. They are stamped together: one more, one less or another is a change.
"""

import glob
import os
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.arguments import shown
from heldout.data.engine import or_raise
from heldout.data.sql import text
from heldout.errors import ArgumentError, HeldoutError, MissingDependency, UnreadableTable

if TYPE_CHECKING:
    import pyarrow.dataset

MOST_FILES = 100_000
_DIFFER = (
    "The files of a table must have the same columns, of the same types and in the same order. "
    "Write those that differ anew."
)
REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+")  # of one letter, it is a drive
PATTERN = re.compile(r"[*?\[]")


def files_of(place: Path) -> list[Path] | None:
    """The Parquet files of a folder or a pattern, in the order of their names; None for neither."""
    if os.path.isdir(place):  # noqa: PTH112 - False for a name that the system cannot spell
        _refuse_managed(place)
        files = [
            Path(folder, name)
            for folder, _, names in os.walk(place, onerror=_refuse_unread)
            for name in names
            if _is_parquet(name)
        ]
    elif PATTERN.search(str(place)):
        _check_listed(place)
        # A pattern with more than one ** finds a file once for each way to divide its path.
        named = map(Path, set(glob.glob(str(place), recursive=True)))  # noqa: PTH207
        files = [file for file in named if file.is_file()]
        for file in files:
            if not _is_parquet(file.name):
                raise ArgumentError("A pattern must name .parquet files alone. Convert the others.")
    else:
        return None
    if not files:
        raise UnreadableTable(f"No .parquet file in {shown(place.name)}. Check the path.")
    if len(files) > MOST_FILES:
        raise UnreadableTable(f"A table may have at most {MOST_FILES:,} files. Join some of them.")
    statuses = map(Path.stat, files)
    if len({(status.st_dev, status.st_ino) for status in statuses}) < len(files):
        raise UnreadableTable(
            "Two file names lead to the same file, so its rows would count twice. Remove the link."
        )
    return sorted(files)


def _is_parquet(name: str) -> bool:
    """Return True for a file of rows; what writers keep beside them begins with _ or a dot."""
    return name.lower().endswith((".parquet", ".pq")) and name[0] not in "._"


def _refuse_unread(problem: OSError) -> None:
    """Raise what a walk would skip: the files of a folder that cannot be listed are rows too."""
    raise problem


def _check_listed(pattern: Path) -> None:
    """Raise what a search by a pattern would skip: a folder that it must list and cannot."""
    for place, part in enumerate(pattern.parts):
        if not PATTERN.search(part):
            continue
        for folder in glob.glob(str(Path(*pattern.parts[:place])), recursive=True):  # noqa: PTH207
            if not os.path.isdir(folder):  # noqa: PTH112
                continue
            if part == "**":
                deque(os.walk(folder, onerror=_refuse_unread), maxlen=0)
            else:
                os.scandir(folder).close()


def _refuse_managed(folder: Path) -> None:
    """The files of such a table hold rows that were deleted; only its own reader knows which."""
    if (folder / "_delta_log").exists():
        raise ArgumentError(
            "This folder is a Delta table, whose files also hold deleted rows. Pass "
            "deltalake.DeltaTable(path).to_pyarrow_dataset(), or the DataFrame of Spark's reader."
        )
    if any((folder / "metadata").glob("*.metadata.json")):
        raise ArgumentError(
            "This folder is an Iceberg table, whose files also hold deleted rows. Pass "
            "pyiceberg's table.scan().to_arrow(), or the DataFrame of Spark's reader."
        )


def reader(connection: Any, files: list[Path], root: Path) -> str:
    """DuckDB's reader of all of them as one table, once they are seen to have the same columns."""
    listed = f"[{', '.join(map(literally, files))}]"
    kinds = (
        "name, type, type_length, num_children, converted_type, scale, precision, "
        "CAST(logical_type AS VARCHAR)"
    )
    schemas = or_raise(
        lambda: connection.execute(
            f"SELECT count(DISTINCT columns) FROM (SELECT list(({kinds})) AS columns "
            f"FROM parquet_schema({listed}) WHERE num_children IS NULL GROUP BY file_name)"
        ).fetchall(),
        _unreadable,
    )
    if schemas != [(1,)]:
        raise UnreadableTable(_DIFFER)
    hive = bool(_partitions([str(file.relative_to(root)) for file in files]))
    # Which type the values of a partition happen to have is not guessed: they are texts.
    partitions = f"hive_partitioning={str(hive).lower()}, hive_types_autocast=false"
    return f"read_parquet({listed}, {partitions}, union_by_name=false)"


def literally(path: Path) -> str:
    """The path as a text literal in which no character is a wildcard."""
    return text(re.sub(r"([*?\[])", r"[\1]", str(path)))


def is_remote(place: str) -> bool:
    """Return True for an address of a file system that Arrow reads, such as s3://bucket/rows."""
    return REMOTE.match(place) is not None


def is_arrow_dataset(source: Any) -> bool:
    """Return True for a data set of Arrow's, without importing it."""
    return type(source).__module__ == "pyarrow._dataset" and hasattr(source, "get_fragments")


def arrow_dataset(place: str) -> "pyarrow.dataset.Dataset":
    """The Parquet file or files at an address, with hive partitions as texts."""
    scheme = REMOTE.match(place)
    assert scheme is not None
    path = place[scheme.end() :]
    address = f"{scheme[1]}:///{path}" if scheme[1] == "file" else f"{scheme[1]}://{path}"

    def discover() -> "pyarrow.dataset.Dataset":
        import pyarrow
        import pyarrow.dataset
        from pyarrow import fs

        system, inner = fs.FileSystem.from_uri(address)
        # A partition is a text: discovered, one folder's name would decide the type of all.
        read = pyarrow.dataset.dataset(inner, filesystem=system, format="parquet")
        base = inner.rstrip("/")
        names = _partitions([file.removeprefix(base) for file in read.files])
        hive = pyarrow.dataset.partitioning(
            pyarrow.schema([(name, pyarrow.string()) for name in names]), flavor="hive"
        )
        return pyarrow.dataset.dataset(
            inner, filesystem=system, format="parquet", partitioning=hive
        )

    return or_raise(discover, _unreachable)


def check_dataset(dataset: Any) -> None:
    """Refuse an Arrow data set whose files differ, or with partitions of a guessed type."""
    from pyarrow import types

    known, partitions = dataset.schema, getattr(dataset, "partitioning", None)
    for field in () if partitions is None else partitions.schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not (types.is_string(kind) or types.is_large_string(kind)):
            raise ArgumentError(
                f"partition {field.name!r} must be a text: another type is guessed from the names "
                "of all folders. Pass the data set's address, or pyarrow.dataset.partitioning("
                "pyarrow.schema([(name, pyarrow.string())]), flavor='hive')."
            )
    wanted = {field.name: field.type for field in known}
    for name in () if partitions is None else partitions.schema.names:
        wanted.pop(name, None)

    def differs() -> bool:
        for fragment in dataset.get_fragments():
            own = {field.name: field.type for field in fragment.physical_schema}
            if partitions is None:  # by a catalogue, whose schema says what older files lack
                own = wanted | {name: kind for name, kind in own.items() if name in wanted}
            if {name: _unit_of_time(kind) for name, kind in own.items()} != {
                name: _unit_of_time(kind) for name, kind in wanted.items()
            }:
                return True
        return False

    if or_raise(differs, _unreadable):
        raise UnreadableTable(_DIFFER)


def _unit_of_time(kind: Any) -> str:
    """The type; all resolutions of a time are one, since files keep fewer than there are."""
    return re.sub(r"^timestamp\[[a-z]+", "timestamp[", str(kind))


def _partitions(files: list[str]) -> list[str]:
    """The names of hive partitions, which must be the same in the path of every file."""
    partitions = {
        tuple(part.split("=", 1)[0] for part in Path(file).parts[:-1] if "=" in part)
        for file in files
    }
    if len(partitions) > 1:
        raise UnreadableTable(
            "The files of a table must be in folders of the same partitions, name=value. Move "
            "those that are not."
        )
    return [*partitions.pop()] if partitions else []


def arrow_stamp(dataset: Any) -> tuple[Any, ...]:
    """Each file, its size and when it was written, as its file system tells."""
    if not hasattr(dataset, "files"):
        raise ArgumentError(
            "An Arrow data set must be made of files. Pass a table, or write it to files first."
        )
    statuses = dataset.filesystem.get_file_info(dataset.files)
    return tuple((file.path, file.size, file.mtime_ns) for file in statuses)


def _unreadable() -> HeldoutError:
    return UnreadableTable("The files of the table cannot be read. Check that each is Parquet.")


def _unreachable() -> HeldoutError:
    return MissingDependency(
        "Arrow cannot read this address, or the files at it. Check it, its credentials, and that "
        "pyarrow has the file system; for another one pass a pyarrow.dataset.Dataset."
    )
