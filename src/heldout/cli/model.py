"""A model: `heldout model check` looks at it, and `--model` scores the rows with it first."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from heldout.cli.output import Flag, Json, Several, console, one_line, patience, print_json

if TYPE_CHECKING:
    from heldout.models import ScoredRows

HELP = """Check a model before a custodian scores private rows with it. Examples:

```
heldout model check model.onnx
heldout model check coefficients.json --json
```
"""
app = App(name="model", help=HELP)


@app.command
def check(
    file: Path,
    /,
    *,
    output: str | None = None,
    as_json: Json = False,
) -> None:
    """Say whether a model is proven to score each row by itself, and if not, how to mend it.

    The custodian's machine gives the same verdict, since it needs the file alone and no row.
    Exits with 0 if the model is proven and 2 if it is not. Examples:

    ```
    heldout model check model.onnx
    heldout model check coefficients.json --json
    ```

    Parameters
    ----------
    file
        An ONNX model, or a linear model as JSON.
    output
        Which output is the score, where several hold numbers.
    """
    from heldout.errors import UnusableModel
    from heldout.models import available, load

    # The file is the analyst's own: a machine without a sandbox may read it too.
    isolation = "sandbox" if available()["seccomp"] else "none"
    with patience(f"Reading {file.name}"):
        model = load(file, output=output, isolation=isolation)
    if as_json:
        print_json(model.as_dict())
    elif model.row_wise:
        console().print(
            f"{one_line(model.name)}: row-wise. Each score depends on its own row alone."
        )
        for taken in model.inputs:
            wide = f", {taken.width} columns" if taken.width > 1 else ""
            console().print(f"  takes {one_line(taken.name)} ({taken.kind}{wide})")
        classes = f" (classes {', '.join(map(one_line, model.classes))})" if model.classes else ""
        console().print(f"  gives {model.width} number{'s'[: model.width > 1]} per row{classes}")
    else:
        for problem in model.problems:
            console().print(one_line(str(problem)))
    if not model.row_wise:
        raise UnusableModel(
            f"{model.name} is not proven to look at one row at a time. Fix it, or ask the "
            "custodian to allow it in one process per row."
        )


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """A model to score the rows with, first.

    Parameters
    ----------
    model
        An ONNX model, or a linear model as JSON. Each row is scored alone, in a sandbox, into the
        column that --score (or --predicted) names.
    features
        Columns in the order of the model's one input. Left out: inputs are columns by name.
    default_score
        The score of a row that fails or is scored as NaN.
    allow_unproven
        Also run a model that is not proven to look at one row at a time, in one process per row.
    """

    model: Path | None = None
    features: Several = ()
    default_score: float = 0.0
    allow_unproven: Flag = False

    def scored(self, rows: object, *, into: str, row_key: str | None) -> "ScoredRows":
        """Score the rows into one more column."""
        from heldout.models import load, score

        assert self.model is not None
        model = load(self.model)
        with _progress(f"Scoring with {self.model.name}") as progress:
            return score(
                model,
                rows,
                features=list(self.features) or None,
                row_key=row_key,
                default=self.default_score,
                into=into,
                allow_unproven=self.allow_unproven,
                progress=progress,
            )


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on a terminal: the custodian's, whose rows they are."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(doing), total=None)
        yield lambda done, rows: bar.update(task, completed=done, total=rows)
