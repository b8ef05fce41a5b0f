"""Compare a model with a data set, by what is public of both, before anything is paid.

A model that does not fit is refused when it is chosen. What merely costs accuracy, predictions
beyond the declared range, is counted in the file that was sent and said beside the price.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from heldout.arguments import shown
from heldout.data.duckdb import new_connection
from heldout.doors import as_json
from heldout.errors import ArgumentError
from heldout.server.datasets import Registered
from heldout.server.storage import Json

Range = tuple[float, float]
USUAL: Final[Range] = (0.0, 1.0)
MOST_RANGES: Final = 100
TAKES: Final = {
    "float": ("number", "boolean"),
    "int": ("number", "boolean"),
    "bool": ("number", "boolean"),
    "string": ("text",),
}
"""The kinds of columns that an input takes, by how its type begins."""


def check(registered: Registered, model: Any) -> None:
    """Refuse a model or predictions that cannot be scored on these rows, with what to change.

    `model` is the artefact's row. One that no worker has looked at yet is not known well enough.
    """
    if model.kind == "copy":
        raise ArgumentError(
            f"{shown(model.name)} is a copy of rows, not a model. Choose a model, or predictions."
        )
    described = model.found
    if not described:
        return
    registered.declaration.check_model(described)
    if model.kind == "predictions":
        return
    inputs = described.get("inputs", ())
    listed = columns_for(registered, inputs, model.features)
    names = [field["name"] for field in inputs] if listed is None else listed
    fields = inputs if len(inputs) == len(names) else [inputs[0]] * len(names)
    for field, name in zip(fields, names, strict=True):
        kind, known = registered.features[name], str(field["type"]).rstrip("0123456789")
        if kind not in TAKES.get(known, (kind,)):
            raise ArgumentError(
                f"The model takes {field['type']} for {shown(field['name'])}, and the column "
                f"{shown(name)} of this data set holds {kind} values. Name another column, or "
                "convert it inside the model."
            )


def columns_for(
    registered: Registered, inputs: Sequence[Mapping[str, Any]], listed: Sequence[str] | None
) -> list[str] | None:
    """Return the columns of a model's inputs: as the analyst says, or in their order.

    None where the inputs have the names of columns.
    """
    allowed = registered.features
    width = sum(int(field["width"] or 1) for field in inputs)
    if listed is not None:
        unknown = [name for name in listed if name not in allowed]
        if unknown:
            raise ArgumentError(
                f"{shown(unknown[0])} is not a feature of this data set. {_features(allowed)}"
            )
        if len(listed) != width:
            raise ArgumentError(
                f"The model takes {width} columns, and {len(listed)} were listed when it was "
                "submitted. Submit it again with as many."
            )
        return list(listed)
    unknown = [field["name"] for field in inputs if field["name"] not in allowed]
    if not unknown:
        return None
    if len(inputs) == 1 and width == len(allowed):
        return list(allowed)
    if len(inputs) == 1 and width > 1:
        raise ArgumentError(
            f"The model takes {width} columns in one input, and this data set has {len(allowed)} "
            "features. Submit it again and list the columns in the order that it expects. "
            f"{_features(allowed)}"
        )
    raise ArgumentError(
        f"The model asks for {shown(unknown[0])}, which is not a feature of this data set. "
        f"{_features(allowed)}"
    )


def _features(allowed: Iterable[str]) -> str:
    names = list(allowed)
    more = ", ..." if len(names) > 20 else ""
    return f"Features: {', '.join(map(shown, names[:20]))}{more}."


def why_not(registered: Registered, model: Any) -> str:
    """Return why a model does not go with a data set; empty if it does."""
    try:
        check(registered, model)
    except ArgumentError as error:
        return as_json(str(error))
    return ""


def notes(registered: Registered, model: Any) -> list[str]:
    """Return what an analyst should know of a model on these rows before paying."""
    low, high = registered.declaration.range
    sent = (model.found or {}).get("sent")
    if not sent or (low <= sent["lowest"] and sent["highest"] <= high):
        return []
    exact = [count for *ends, count in sent["beyond"] if tuple(ends) == (low, high)]
    many = f"{exact[0]:,} of the {sent['rows']:,}" if exact else "Some of the"
    return [
        f"{many} predictions in {shown(model.name)} lie beyond the range of this data set, "
        f"{low:g} to {high:g}: they count as the nearer end, which costs accuracy. (They lie "
        f"between {sent['lowest']:g} and {sent['highest']:g}.)"
    ]


def sent_scores(file: Path, ranges: Iterable[Range]) -> Json:
    """Return how many predictions a file has, where they lie, and how many are beyond each range.

    By the file alone, which its sender knows; no row is near.
    """
    wanted = list(dict.fromkeys((USUAL, *ranges)))[:MOST_RANGES]
    with new_connection() as connection:
        columns = [name for name in connection.read_parquet(str(file)).columns if name != "key"]
        listed = ", ".join(f'"{name}"' for name in columns)
        asked = ["count(*)", "min(score)", "max(score)"]
        asked += [f"count_if(score < {low!r} OR score > {high!r})" for low, high in wanted]
        row = connection.execute(
            f"SELECT {', '.join(asked)} FROM (SELECT unnest([{listed}]) AS score "
            "FROM read_parquet($file)) AS sent WHERE isfinite(score)",
            {"file": str(file)},
        ).fetchone()
    assert row is not None
    counts = [[*ends, int(count)] for ends, count in zip(wanted, row[3:], strict=True)]
    return {
        "rows": int(row[0]),
        "lowest": float(row[1] or 0.0),
        "highest": float(row[2] or 0.0),
        "beyond": counts,
    }
