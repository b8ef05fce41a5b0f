"""Public copies of rows that analysts bring, to be compared with the private ones.

A copy is an artefact of its own: a CSV file, which Python's own reader reads as text. A question
about one leaves its columns out; they are read from the file where it is priced and where it is
answered, as numbers or texts by what the custodian declared of the rows.
"""

import csv
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from heldout import questions as q
from heldout.arguments import FormField, shown
from heldout.data.description import Description
from heldout.errors import ArgumentError
from heldout.server import artifacts
from heldout.server.datasets import Registered
from heldout.server.service import Service
from heldout.server.storage import Json

KIND: Final = "copy"
MOST_CELLS: Final = 1_000_000
MOST_BYTES: Final = 2**25
"""Of the file: the web and the workers hold all of it in memory, as texts."""
Cells = Mapping[str, Sequence[str]]


def file_field(kind: type[q.Question[Any]]) -> FormField | None:
    """Return the field of a question that a file is sent for; None if it has none."""
    return next((field for field in kind.form() if field.rule.takes_file), None)


def needed(content: Any) -> bool:
    """Return whether questions, as data, leave columns out that are those of a copy."""
    for question in content if isinstance(content, list) else ():
        name = question.get("question") if isinstance(question, Mapping) else None
        field = file_field(q.find(name)) if isinstance(name, str) and name in q.kinds() else None
        if field is not None and field.name not in question:
            return True
    return False


def filled(service: Service, registered: Registered, content: Any, copy: Any) -> Any:
    """Return questions with the columns of a copy, where they leave them out.

    `copy` is the artefact's row, or None; whoever asks owns it.
    """
    if not needed(content):
        return content
    if copy is None or copy.kind != KIND:
        raise ArgumentError(
            "artifact must be the id of a copy of the rows: a CSV file that is sent with kind=copy."
        )
    return [_with_columns(service, registered, question, copy) for question in content]


def _with_columns(
    service: Service, registered: Registered, question: Mapping[str, Any], copy: Any
) -> Mapping[str, Any]:
    kind = q.find(question["question"])
    field, about = file_field(kind), registered.about(kind)
    if field is None or field.name in question or about is None:
        return question
    cells = read(artifacts.file_of(service, copy))
    return {**question, field.name: field.rule.from_cells(cells, about, field.name)}


def without_columns(question: q.Question[Any]) -> Json:
    """Return a question as data, without the columns of a copy."""
    field = file_field(type(question))
    return {
        name: value
        for name, value in question.as_dict().items()
        if field is None or name != field.name
    }


def left_out(copy: Any, about: Description) -> list[str]:
    """Return the columns of a copy that the rows have nothing to compare with."""
    declared = {*getattr(about, "numbers", ()), *getattr(about, "texts", ())}
    return [name for name in (copy.found or {}).get("columns", ()) if name not in declared]


@lru_cache(maxsize=2)
def read(file: Path) -> Cells:
    """Return the columns of a CSV file, by name; refuses what is none, with the line."""
    if file.stat().st_size > MOST_BYTES:
        raise ArgumentError(
            f"A copy must have at most {MOST_BYTES // 2**20} MB. Send some of its rows or columns."
        )
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            names = [name.strip() for name in next(reader, [])]
            if len(set(names)) < len(names) or not all(names) or not names:
                raise ArgumentError("The first line of a copy must name its columns, each once.")
            rows: list[list[str]] = []
            for row in reader:
                if row and len(row) != len(names):
                    raise ArgumentError(
                        f"Line {reader.line_num} of the copy has {len(row)} cells, and its first "
                        f"line {len(names)}."
                    )
                if row:
                    rows.append(row)
                if len(rows) * len(names) > MOST_CELLS:
                    raise ArgumentError(
                        f"A copy must have at most {MOST_CELLS:,} cells. Send some of its rows."
                    )
    except (UnicodeDecodeError, csv.Error):
        raise ArgumentError("A copy must be a CSV file in UTF-8.") from None
    if len(rows) < 2:
        raise ArgumentError("A copy must have two rows at least.")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def describe(file: Path) -> tuple[Json, str]:
    """Return what is known of a copy by itself, and the same in words."""
    cells = read(file)
    rows = len(next(iter(cells.values())))
    known: Json = {"kind": KIND, "rows": rows, "columns": list(cells)}
    listed = ", ".join(shown(name) for name in list(cells)[:20])
    return known, f"A copy of {rows:,} rows, with the columns {listed}."
