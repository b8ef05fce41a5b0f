"""Many Parquet files as one table: a folder, a pattern, or an Arrow data set of files anywhere.

A column for each folder that is called name=value (hive partitions), read as a text. All files must
have the same columns. They are stamped together: one more, one less or another is a change.
"""

import glob
import os
import re
from pathlib import Path
from typing import Any

from heldout.arguments import shown
from heldout.data.reading import or_raise
from heldout.data.sql import text
from heldout.errors import ArgumentError, HeldoutError, MissingDependency, UnreadableTable

__all__ = [
    "arrow_dataset",
    "arrow_stamp",
    "files_of",
    "is_arrow_dataset",
    "is_remote",
    "literally",
    "reader",
]

MOST_FILES = 100_000
REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+")  # of one letter, it is a drive
PATTERN = re.compile(r"[*?\[]")


def files_of(place: Path) -> list[Path] | None:
    """The Parquet files of a folder or a pattern, in the order of their names; None for neither."""
    if os.path.isdir(place):  # noqa: PTH112 - False for a name that the system cannot spell
        _refuse_managed(place)
        found = [each for each in place.rglob("*") if _is_parquet(each)]
    elif PATTERN.search(str(place)):
        # A pattern with more than one ** finds a file once for each way to divide its path.
        named = map(Path, set(glob.glob(str(place), recursive=True)))  # noqa: PTH207
        found = [each for each in named if each.is_file()]
        for each in found:
            if not _is_parquet(each):
                raise ArgumentError("A pattern must name .parquet files alone. Convert the others.")
    else:
        return None
    if not found:
        raise UnreadableTable(f"No .parquet file in {shown(place.name)}. Check the path.")
    if len(found) > MOST_FILES:
        raise UnreadableTable(f"A table may have at most {MOST_FILES:,} files. Join some of them.")
    told = map(Path.stat, found)
    if len({(each.st_dev, each.st_ino) for each in told}) < len(found):
        raise UnreadableTable(
            "Two names of a table's files lead to one file, whose rows would count twice. Remove "
            "the link."
        )
    return sorted(found)


def _is_parquet(path: Path) -> bool:
    """What writers keep beside their files begins with _ or a dot, and is no file of rows."""
    return path.suffix.lower() in (".parquet", ".pq") and path.name[0] not in "._"


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
    kinds = "name, type, type_length, num_children, converted_type, CAST(logical_type AS VARCHAR)"
    schemas = or_raise(
        lambda: connection.execute(
            f"SELECT count(DISTINCT columns) FROM (SELECT list(({kinds})) AS columns "
            f"FROM parquet_schema({listed}) WHERE num_children IS NULL GROUP BY file_name)"
        ).fetchall(),
        _unreadable,
    )
    if schemas != [(1,)]:
        raise UnreadableTable(
            "The files of a table must have the same columns, of the same types and in the same "
            "order. Write those that differ anew."
        )
    hive = any("=" in part for part in files[0].relative_to(root).parts[:-1])
    # Which type the values of a partition happen to have is not guessed: they are texts.
    partitions = f"hive_partitioning={str(hive).lower()}, hive_types_autocast=false"
    return f"read_parquet({listed}, {partitions}, union_by_name=false)"


def literally(path: Path) -> str:
    """The path as a text literal in which no character is a wildcard."""
    return text(re.sub(r"([*?\[])", r"[\1]", str(path)))


def is_remote(place: str) -> bool:
    """Whether it is the address of a file system that Arrow reads, such as s3://bucket/rows."""
    return REMOTE.match(place) is not None


def is_arrow_dataset(source: Any) -> bool:
    """Whether it is a data set of Arrow's, without importing it."""
    return type(source).__module__ == "pyarrow._dataset" and hasattr(source, "get_fragments")


def arrow_dataset(place: str) -> Any:
    """The Parquet file or files at an address, with hive partitions as texts."""
    scheme = REMOTE.match(place)
    assert scheme is not None
    path = place[scheme.end() :]
    address = f"{scheme[1]}:///{path}" if scheme[1] == "file" else f"{scheme[1]}://{path}"

    def found() -> Any:
        import pyarrow.dataset
        from pyarrow import fs

        system, inner = fs.FileSystem.from_uri(address)
        hive = pyarrow.dataset.HivePartitioning.discover(infer_dictionary=False)
        return pyarrow.dataset.dataset(
            inner, filesystem=system, format="parquet", partitioning=hive
        )

    return or_raise(found, _unreachable)


def arrow_stamp(dataset: Any) -> tuple[Any, ...]:
    """Each file, its size and when it was written, as its file system tells."""
    if not hasattr(dataset, "files"):
        raise ArgumentError(
            "An Arrow data set must be made of files. Pass a table, or write it to files first."
        )
    told = dataset.filesystem.get_file_info(dataset.files)
    return tuple((each.path, each.size, each.mtime_ns) for each in told)


def _unreadable() -> HeldoutError:
    return UnreadableTable("The files of the table cannot be read. Check that each is Parquet.")


def _unreachable() -> HeldoutError:
    return MissingDependency(
        "Arrow cannot read this address, or the files at it. Check it, its credentials, and that "
        "pyarrow has the file system; for another one pass a pyarrow.dataset.Dataset."
    )
