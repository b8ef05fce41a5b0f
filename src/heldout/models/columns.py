"""Which columns of the table are which inputs of the model: by name and declared type.

Whether they fit is decided from the declarations alone. A row whose cells do not fit after all
gets the default score.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heldout.arguments import shown
from heldout.data import sql
from heldout.data.engine import Engine
from heldout.data.validation import check_columns
from heldout.errors import ArgumentError
from heldout.models.keeper import TEXT, Field
from heldout.models.model import Model

__all__ = ["Matched", "matched"]

_OURS = "heldout input "
_UNFIT = "heldout unfit"


@dataclass(frozen=True)
class Matched:
    """For each input of the model the columns that fill it, and the statement that reads them."""

    columns: Mapping[str, tuple[str, ...]]
    fields: tuple[Field, ...]
    statement: str

    def block(self, batch: Any) -> tuple[dict[str, Any], Any]:
        """The inputs of a batch as arrays, and which of its rows do not fit them."""
        import numpy as np

        names, place, found = batch.schema.names, 0, {}
        for field in self.fields:
            parts = []
            for _ in range(field.width):
                cells = batch.column(names.index(f"{_OURS}{place}"))
                place += 1
                if field.kind == "string":
                    texts = [(text or "").encode()[:TEXT] for text in cells.to_pylist()]
                    parts.append(np.array(texts, dtype=field.dtype))
                else:
                    with np.errstate(all="ignore"):
                        parts.append(cells.to_numpy(zero_copy_only=False).astype(field.dtype))
            found[field.name] = parts[0] if field.rank == 1 else np.column_stack(parts)
        return found, batch.column(names.index(_UNFIT)).to_numpy(zero_copy_only=False)

    def kept(self, names: Sequence[str]) -> list[str]:
        """The custodian's own columns."""
        return [name for name in names if not name.startswith(_OURS) and name != _UNFIT]


def matched(model: Model, engine: Engine, features: Any) -> Matched:
    """Match every input to columns, or say to whoever declares them what does not fit."""
    columns = dict(_named(model, features))
    check_columns(engine, [name for names in columns.values() for name in names])
    chosen: list[str] = []
    unfit: list[str] = []
    for field in model.inputs:
        for name in columns[field.name]:
            kind = engine.columns[name]
            number, doubt = _cell(field, name, kind, text_file=engine.names_may_be_cells)
            chosen.append(f"{number} AS {sql.identifier(f'{_OURS}{len(chosen)}')}")
            unfit += doubt
    unfit_rows = " OR ".join(f"({each})" for each in unfit) or "FALSE"
    listed = ",\n  ".join(
        ["held.*", *chosen, f"coalesce({unfit_rows}, TRUE) AS {sql.identifier(_UNFIT)}"]
    )
    return Matched(columns, model.inputs, f"SELECT\n  {listed}\nFROM {engine.source} AS held")


def _named(model: Model, features: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    inputs, given = model.inputs, {}
    if isinstance(features, Mapping):
        unknown = [each for each in features if each not in {field.name for field in inputs}]
        if unknown:
            raise ArgumentError(f"The model has no input {shown(unknown[0])}. {_asked(model)}")
        given = {name: _columns(names) for name, names in features.items()}
    elif features is not None:
        listed = _columns(features)
        if isinstance(features, str):
            raise ArgumentError("features must be a list of columns, not a text.")
        if len(inputs) == 1:
            given = {inputs[0].name: listed}
        for each in inputs if len(inputs) > 1 else ():
            if each.name not in listed:
                raise ArgumentError(
                    f"The model needs column {shown(each.name)}, which features= does not list. "
                    f"{_asked(model)}"
                )
    for each in inputs:
        names = given.get(each.name, (each.name,))
        if len(names) != each.width or not isinstance(each.name, str):
            raise ArgumentError(
                f"The model's input {shown(each.name)} takes {each.width} columns, got "
                f"{len(names)}. List them in order in features=[...]."
            )
        yield each.name, names


def _columns(names: Any) -> tuple[str, ...]:
    """One column, or several in order."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise ArgumentError(f"features must be a list of columns, got {shown(names)}.")
    return tuple(names)


def _asked(model: Model) -> str:
    listed = ", ".join(f"{shown(each.name)} ({each.kind})" for each in model.inputs[:12])
    return f"Its inputs: {listed}."


def _cell(field: Field, name: str, kind: str, *, text_file: bool) -> tuple[str, list[str]]:
    """A cell as the model takes it, whatever it holds; and when a row then does not fit."""
    column, values = sql.column(name), sql.kind_of(kind)
    number = values in ("number", "boolean") or text_file
    if field.kind.startswith("float") and number:
        return f"coalesce({sql.as_double(column, kind)}, {sql.double(float('nan'))})", []
    if field.kind in ("int32", "int64", "bool") and number:
        wanted = {"int32": "INTEGER", "int64": "BIGINT", "bool": "BOOLEAN"}[field.kind]
        cell = f"TRY_CAST({column} AS {wanted})"
        whole = f"{column} = trunc({column})" if _has_fractions(kind) else "TRUE"
        return f"coalesce({cell}, CAST(0 AS {wanted}))", [f"{cell} IS NULL", f"NOT ({whole})"]
    if field.kind == "string" and values == "text":
        cell = sql.as_text(name)
        return cell, [f"{cell} IS NULL", f"strlen({cell}) > {TEXT}"]
    raise ArgumentError(
        f"Column {shown(name)} is of kind {values}, and the model's input {shown(field.name)} "
        f"takes {field.kind}. Name another column, or cast it."
    )


def _has_fractions(kind: str) -> bool:
    return sql.is_numeric(kind) and kind not in sql.INTEGER_TYPES
