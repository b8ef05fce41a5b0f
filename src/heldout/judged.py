"""Judged answers of language models: logs of Inspect and samples of lm-eval as tables of rows.

Every cell is a text or None, whatever the log holds: a cell must not depend on what other rows
hold. `heldout.Dataset` reads texts as numbers where a column is declared so.
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from heldout.arguments import no_such, shown
from heldout.errors import ArgumentError, UnreadableTable

__all__ = ["count_right", "read_inspect", "read_lm_eval"]

Table = dict[str, list[str | None]]
LONGEST: Final = 400
"""Digits of a number that are written out; no double has more before its point."""
MOST_BYTES: Final = 2**30
"""Of one sample, decompressed: a few bytes of a zip can stand for a machine's memory."""
_SAMPLE: Final = re.compile(r"samples/.*_epoch_\d+(\.json|/sample\.json)", re.DOTALL)
"""A member of an .eval archive that holds a sample: whole, or the head of one in several parts."""
_NOT_METRICS: Final = {
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
}
"""Keys of a line of lm-eval's samples that are not metrics of the sample."""


def read_inspect(path: str | os.PathLike[str]) -> Table:
    """Read an Inspect log (.json, or .eval, which is a zip of samples) as one row per sample.

    Columns are `id`, `epoch` and one for each scorer with its value: "C", "I", "P", "N", or a
    number. A value with several parts has a column `scorer.part` for each.

    Parameters
    ----------
    path
        The log. `inspect log convert --to json` makes a .json file of any log.

    Returns
    -------
    dict of lists
        A table for `heldout.Dataset`, for example with
        `values={"match": {"C": 1, "I": 0}}`, `unit="id"`.
    """
    place = Path(path)
    return _table(_inspect_row(sample) for sample in _inspect_samples(place))


def _inspect_samples(place: Path) -> Iterator[Any]:
    if not zipfile.is_zipfile(place):
        samples = _load(place, place.read_bytes).get("samples")
        if not isinstance(samples, list):
            raise UnreadableTable(
                f"{place.name} is not an Inspect log with samples. Write one with log_samples on."
            )
        yield from samples
        return
    with zipfile.ZipFile(place) as archive:
        # A sample that was logged again has its name twice; the last one counts.
        names = {name for name in archive.namelist() if _SAMPLE.fullmatch(name)}
        if not names:
            raise UnreadableTable(f"{place.name} is not an Inspect log: it holds no samples.")
        for name in sorted(names):
            if archive.getinfo(name).file_size > MOST_BYTES:
                raise UnreadableTable(
                    f"{place.name} holds a sample of more than {MOST_BYTES // 2**20} MB. Make a "
                    ".json file of it: inspect log convert --to json."
                )
            yield _load(place, lambda name=name: archive.read(name))


def _load(place: Path, read: Any) -> Any:
    try:
        # Digits as they are written: as doubles, the ids 2^53 + 1 and 2^53 would be one person's.
        content = json.loads(read(), parse_float=Decimal)
    except (ValueError, RecursionError):
        content = None
    except (zipfile.BadZipFile, zlib.error, EOFError):  # whose words name the sample
        raise UnreadableTable(f"{place.name} is damaged. Copy it again.") from None
    except NotImplementedError:  # a compression that this Python does not know
        raise UnreadableTable(
            f"{place.name} is compressed in a way that cannot be read here. Make a .json file of "
            "it: inspect log convert --to json."
        ) from None
    except RuntimeError:
        raise UnreadableTable(f"{place.name} is encrypted. Decrypt it first.") from None
    if not isinstance(content, dict):
        raise UnreadableTable(f"{place.name} must hold JSON objects.")
    return content


def _inspect_row(sample: Any) -> dict[str, str | None]:
    scores = (sample.get("scores") or {}) if isinstance(sample, Mapping) else None
    if not isinstance(scores, Mapping):
        raise UnreadableTable("A sample must be a JSON object, with its scores by scorer.")
    row = {"id": _cell(sample.get("id")), "epoch": _cell(sample.get("epoch", 1))}
    for scorer, score in scores.items():
        if scorer in row:
            raise UnreadableTable(f"A scorer must not be called {scorer!r}. Rename it in the log.")
        value = score.get("value") if isinstance(score, Mapping) else score
        row |= _parts(str(scorer), value)
    return row


def read_lm_eval(path: str | os.PathLike[str], *, filter: str | None = None) -> Table:
    """Read lm-eval's samples (`samples_<task>_<date>.jsonl`) as one row per sample.

    Columns are `doc_id`, `doc_hash` and one for each metric. Where the file has samples of several
    filters, name the one that counts: a document would be there several times.
    """
    place, rows, filters = Path(path), [], set()
    with place.open("rb") as lines:  # a line that is no UTF-8 is no JSON
        for line in lines:
            if not line.strip():
                continue
            sample = _load(place, lambda line=line: line)
            if "doc_id" not in sample:
                raise UnreadableTable(f"{place.name} holds no samples of lm-eval.")
            filters.add(str(sample.get("filter", "none")))
            if filter is None or sample.get("filter") == filter:
                row = {name: _cell(sample.get(name)) for name in ("doc_id", "doc_hash")}
                for name in sorted(set(sample) - _NOT_METRICS):
                    row |= _parts(name, sample[name])
                rows.append(row)
    if filter is not None and not rows:
        raise ArgumentError(no_such("filter", filter, sorted(filters)))
    if filter is None and len(filters) > 1:
        raise ArgumentError(
            f"{place.name} has samples of several filters. Name one: filter={sorted(filters)[0]!r}."
        )
    return _table(rows)


def count_right(table: Mapping[str, Any], *, by: str, column: str, right: object = "C") -> Table:
    """Return one row per prompt: its `samples`, and how many of them were `right`.

    `by` is the column that names the prompt, `right` the value of `column` of a right answer. For
    `heldout.questions.PassAtK`.

    >>> rows = {"id": ["a", "a", "b", "b"], "match": ["C", "I", "C", "C"]}
    >>> count_right(rows, by="id", column="match")
    {'id': ['a', 'b'], 'right': ['1', '2'], 'samples': ['2', '2']}
    """
    if not isinstance(table, Mapping):
        raise ArgumentError(f"table must hold columns by name, got a {type(table).__name__}.")
    for name in (by, column):
        if not isinstance(name, str) or name not in table:
            raise ArgumentError(no_such("column", name, [str(known) for known in table]))
    try:
        rows = list(zip(table[by], table[column], strict=True))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"The columns {by!r} and {column!r} must have the same length."
        ) from None
    hit, counts = _cell(right), {}  # type: ignore[var-annotated]
    for prompt, value in rows:
        own = counts.setdefault(_cell(prompt), [0, 0])
        own[0] += _cell(value) == hit
        own[1] += 1
    return {
        by: list(counts),
        "right": [str(right) for right, _ in counts.values()],
        "samples": [str(samples) for _, samples in counts.values()],
    }


def _parts(name: str, value: object) -> dict[str, str | None]:
    """Return the columns of a value: one, or one for each part."""
    if isinstance(value, Mapping):
        return {f"{name}.{part}": _cell(inner) for part, inner in value.items()}
    if isinstance(value, list):
        return {f"{name}.{place}": _cell(inner) for place, inner in enumerate(value)}
    return {name: _cell(value)}


def _cell(value: object) -> str | None:
    """Return a cell as text: a number by its digits, true as 1, and nothing as None.

    >>> _cell(True), _cell(1.0), _cell(Decimal("1e2")), _cell("C"), _cell(None)
    ('1', '1', '100', 'C', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if value.is_integer() and abs(value) >= 2**53:
            raise ArgumentError(
                "A float at or beyond 2^53 may stand for several whole numbers. Read the column as "
                "integers or texts."
            )
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        return _digits(value)
    if isinstance(value, int | str):
        return str(value)
    raise ArgumentError(f"A score must be a text or a number, got {shown(type(value).__name__)}.")


def _digits(number: Decimal) -> str:
    """Return a number without an exponent and without zeros that say nothing.

    >>> _digits(Decimal("1.50")), _digits(Decimal("-0.0")), _digits(Decimal("1e9999"))
    ('1.5', '0', '1E+9999')
    """
    if not number.is_finite() or abs(number.adjusted()) > LONGEST:
        return str(number)
    digits = f"{number:f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if digits == "-0" else digits


def _table(rows: Iterable[Mapping[str, str | None]]) -> Table:
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    if not listed:
        raise UnreadableTable("There are no samples in it.")
    return {name: [row.get(name) for row in listed] for name in names}
