"""`heldout pool`: the answers of several sites as one."""

import json
from pathlib import Path

from heldout.cli.output import Json, one_line, print_json, print_measures, text_of
from heldout.errors import ArgumentError


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
        One .json file per site; sites are called as their files are.
    out
        Write a page with forest plots to this .html file.
    """
    import heldout as ho
    from heldout.pooling.answer import Pooled, PooledReport

    pooled = ho.pool([_read(file) for file in files], names=_names(files))
    report = PooledReport({pooled.name: pooled}) if isinstance(pooled, Pooled) else pooled
    if out is not None:
        report.save(out)
    if as_json:
        print_json(pooled.as_dict())
        return
    for answer in report.answers.values():
        print_measures(answer.measures)
        sentences = [answer.headline.name, answer.heterogeneity(), answer.predicted()]
        print(one_line(" ".join(f"{sentence}." for sentence in sentences if sentence)))
    if report.left_out:
        words = "not every site asked it, or its answers cannot be pooled"
        print(one_line(f"Left out: {', '.join(report.left_out)} ({words})."))
    print(f"Price: {report.price}. Pooling costs nothing.")
    if out is not None:
        print(one_line(f"Written: {out}"))


def _names(files: tuple[Path, ...]) -> list[str]:
    """Return what files are called; with their folder where sites call theirs alike."""
    if len({file.resolve() for file in files}) < len(files):
        raise ArgumentError("Each file must be given once: it would count as two sites.")
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        names = [str(file.with_suffix("")) for file in files]
    return names


def _read(file: Path) -> object:
    what = "JSON of a release or a report"
    text = text_of(file, what)
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentError(f"{file} is not {what}.") from None
    return content
