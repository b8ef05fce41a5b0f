"""Values that are typed as text and mean something else."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heldout.arguments import shown
from heldout.errors import ArgumentError


def label_value(text: str) -> object:
    """A label as it is typed: a whole number, a number, true or false, or else text.

    >>> [label_value(each) for each in ("1", "0", "true", "1.5", "yes", "'1'")]
    [1, 0, True, 1.5, 'yes', '1']
    """
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "'\"":
        return plain[1:-1]
    for kind in (int, float):
        try:
            found = kind(plain)
        except ValueError:
            continue
        if math.isfinite(found):
            return found
    return text


Json = Annotated[
    bool, Parameter(name="--json", show_default=False, help="Print JSON and nothing else.")
]
Labels = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]


def checked_labels(names: Sequence[str | None], pairs: Sequence[str]) -> dict[str, str]:
    """NAME=TEXT as they are typed, looked at before anything is paid."""
    from heldout.drawing.page import checked_labels

    labels = dict(each.partition("=")[::2] for each in pairs)
    empty = [each for each in pairs if not each.partition("=")[2]]
    if empty:
        raise ArgumentError(f"--labels must be like score='Risk model', got {shown(empty[0])}.")
    checked_labels(names, labels)
    return labels


def declared_values(pairs: Sequence[str]) -> dict[str, list[object]]:
    """COLUMN=VALUE,VALUE as they are typed; quoted values ("'1'") are texts.

    >>> declared_values(["sex=F,M", "ward=1,2"])
    {'sex': ['F', 'M'], 'ward': [1, 2]}
    """
    found = {}
    for each in pairs:
        name, _, values = each.partition("=")
        if not name or not all(values.split(",")):
            raise ArgumentError(f"--groups must be like sex=F,M, got {shown(each)}.")
        found[name] = [label_value(value) for value in values.split(",")]
    return found


def existing_ledger(place: str) -> str:
    """A ledger that is there already: looking at one must not make one."""
    with contextlib.suppress(OSError, ValueError):  # a name that the system cannot spell
        if "://" in place or Path(place).exists() or Path(place + ".witness").exists():
            return place
    raise ArgumentError(f"No such ledger: {shown(place)}. Check the path.")


def lines_of(file: Path, option: str) -> list[str]:
    """Read public words from a file, one per line, in lower case."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(
            f"--{option} must be a file of words, one per line, got {shown(file.name)}. Check the "
            "path."
        ) from None
    return [line.strip().lower() for line in lines if line.strip()]
