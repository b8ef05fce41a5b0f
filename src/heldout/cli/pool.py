"""`heldout pool`: the answers of several sites as one."""

import json
from pathlib import Path
from typing import Any

from heldout.cli.values import Json
from heldout.errors import ArgumentError

LARGEST = 50_000_000  # bytes of a file


def pool(
    *files: Path,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Make one answer of what several sites answered separately to the same question.

    Takes the JSON that `heldout evaluate --json`, `heldout compare --json` or `as_dict()` wrote.
    Reads no row and spends nothing. Examples:

    ```
    heldout pool north.json south.json east.json
    heldout pool north.json south.json --out pooled.html --json
    ```

    Parameters
    ----------
    files
        One .json file a site; sites are called as their files are.
    out
        Write a page with forest plots to this .html file.
    """
    import heldout as ho
    from heldout.cli.failure import one_line
    from heldout.cli.output import print_json, print_table
    from heldout.drawing.words import spread
    from heldout.pooling.answer import Pooled, PooledReport

    found = ho.pool([_read(each) for each in files], names=_names(files))
    report = PooledReport({found.name: found}) if isinstance(found, Pooled) else found
    if out is not None:
        report.save(out)
    if as_json:
        print_json(found.as_dict())
        return
    rows = [
        [name, *spread(measure, 0.95)]
        for each in report.answers.values()
        for name, measure in each.measures.items()
    ]
    print_table(("measure", "value", "95% interval", "noise alone"), rows)
    for each in report.answers.values():
        said = [each.headline.name, each.heterogeneity(), each.predicted()]
        print(one_line(" ".join(f"{words}." for words in said if words)))
    if report.left_out:
        words = "not every site asked it, or its answers cannot be pooled"
        print(one_line(f"Left out: {', '.join(report.left_out)} ({words})."))
    print(f"Price: {report.price}. Pooling costs nothing.")
    if out is not None:
        print(one_line(f"Written: {out}"))


def _names(files: tuple[Path, ...]) -> list[str]:
    """As files are called; with their folder where sites call theirs alike."""
    if len({each.resolve() for each in files}) < len(files):
        raise ArgumentError("Each file must be given once: it would count as two sites.")
    names = [each.stem for each in files]
    if len(set(names)) < len(names):
        names = [str(each.with_suffix("")) for each in files]
    return names


def _read(file: Path) -> Any:
    try:
        if file.stat().st_size > LARGEST:
            raise ValueError
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{file} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise ArgumentError(f"{file} is not JSON of a release or a report.") from None
