"""`heldout residuals`: does a regression fit, on rows that must not be shown?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.cli.frame import NO_MODEL, NO_SERVER, buy, deliver
from heldout.cli.model import Scoring
from heldout.cli.remote import Remote
from heldout.cli.rows import FittedOptions, Several, Where
from heldout.cli.values import Json, Labels

if TYPE_CHECKING:
    from heldout.questions.regression.by_group import MetricsByGroup, PlotsByGroup
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import ResidualPlot

Kind = Literal["density", "points", "mean", "spread", "scale", "qq"]


def residuals(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    rows: Annotated[FittedOptions | None, Parameter(name="*")] = None,
    scoring: Annotated[Scoring, Parameter(name="*")] = NO_MODEL,
    remote: Annotated[Remote, Parameter(name="*")] = NO_SERVER,
    scale: float = 1.0,
    bounds: str | None = None,
    method: str = "heldout",
    metrics: str | None = None,
    by: Several = (),
    expected_rows: int | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    kind: Kind = "density",
    out: Path | None = None,
    title: str | None = None,
    labels: Labels = (),
    as_json: Json = False,
) -> None:
    """Does a regression fit? A private plot of its residuals, and what it says.

    One release of a noisy table of residuals by predicted value; pictures, the mean and the
    spread by prediction, and the verdict are read off it at no further cost. Examples:

    ```
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1 --out plot.html
    heldout residuals pay.csv --observed salary --predicted fitted --epsilon 1 --scale 1000 --json
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1/2 \\
      --bounds predicted=0:100,residual=20 --kind points --out points.svg
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1 --metrics 1/2
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1 --metrics 1 \\
      --groups sex=F,M --by sex --out groups.html
    heldout residuals visits.parquet --observed cost --predicted fitted --epsilon 1 \\
      --unit patient --rows-per-unit 4 --ledger l.sqlite --budget 3
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query. Left
        out where --server has the rows.
    epsilon
        The price of the plot and all that it shows, such as 1, 0.5 or 1/3.
    scale
        The public unit of the numbers: 1 for a test score, 1000 for a salary.
    bounds
        What is publicly known of the numbers, to save the search: predicted=0:100,residual=20.
    method
        heldout, or dawa or the paper's own chen-2016-prirp, which give no verdict.
    metrics
        Release MAE, RMSE, R squared and quantiles as well, at this further price.
    by
        A plot, and error measures, for each group, at the same price: a column of --groups, or
        several to cross.
    expected_rows
        A public guess at the number of rows, where that is private; it divides the price better.
    yes
        Do not ask where privacy noise will leave nothing to read.
    kind
        Which picture goes into an .svg file: density, points, mean, spread, scale or qq. With --by
        it is the plots of all groups.
    out
        Write all pictures to this .html file, or one to this .svg file.
    title
        The heading of the page.
    labels
        What the page calls a column or the data, such as fitted="The new model".
    """
    from heldout import questions as q

    declared = {} if bounds is None else parsed_bounds(bounds)
    if out is not None:
        _checked_out(out)
    shared: dict[str, Any] = {"scale": scale, "expected_rows": expected_rows, "by": by or None}
    asked: list[q.Question[Any]] = [
        q.ResidualPlot(epsilon=epsilon, method=method, bounds=declared, **shared)
    ]
    if metrics is not None:
        asked.append(q.RegressionMetrics(epsilon=metrics, bounds=_symmetric(declared), **shared))
    bought = buy(
        *asked,
        table=table,
        rows=rows,
        options=FittedOptions,
        scoring=scoring,
        remote=remote,
        yes=yes,
        expected_rows=expected_rows,
        labels=labels,
    )
    plot, errors = (*bought.releases, None)[:2]

    def content() -> dict[str, Any]:
        more = {} if errors is None else {"metrics": errors.as_dict()}
        return bought.content(figure={"kind": kind, "svg": _svg(plot, kind)}, **more)

    def text() -> None:
        if by:
            for release in bought.releases:
                _print_groups(release)
        else:
            _print(plot)
            if errors is not None:
                _print_metrics(errors)
        print(f"Left: {bought.remaining}.")

    deliver(
        bought,
        text=text,
        content=content,
        as_json=as_json,
        out=out,
        write=lambda place: _write(
            place, plot, kind, metrics=errors, title=title, labels=bought.labels
        ),
        noun="Picture",
    )


def _symmetric(bounds: dict[str, Any] | None) -> dict[str, Any]:
    """Declared bounds of the residuals, if they are alike on both sides as error measures need."""
    residual = (bounds or {}).get("residual")
    if isinstance(residual, tuple):
        residual = residual[1] if residual[0] == -residual[1] else None
    return {} if residual is None else {"residual": residual}


def parsed_bounds(text: str) -> dict[str, Any]:
    """Bounds as they are typed.

    >>> parsed_bounds("predicted=0:100,residual=20")
    {'predicted': (0.0, 100.0), 'residual': 20.0}
    """
    from heldout.errors import ArgumentError

    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        ends = [_number(each) for each in value.split(":")]
        right = name.strip() in ("predicted", "residual") and name.strip() not in found
        if not right or None in ends or len(ends) > 2 or (len(ends) == 1 and "pred" in name):
            raise ArgumentError(
                f"--bounds must be like predicted=0:100,residual=20, got {text!r}. One number is "
                "enough for residuals: they lie between it and its negative."
            )
        found[name.strip()] = ends[0] if len(ends) == 1 else tuple(ends)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _checked_out(out: Path) -> None:
    from heldout.drawing.place import checked_place
    from heldout.errors import ArgumentError

    if out.suffix.lower() == ".svg":
        if not out.parent.is_dir():
            raise ArgumentError(f"--out must lie in a folder that exists, got {str(out)!r}.")
        return
    checked_place(out)


def _svg(plot: "ResidualPlot | PlotsByGroup", kind: Kind) -> str:
    from heldout.questions.regression.release import ResidualPlot

    return plot.svg(kind) if isinstance(plot, ResidualPlot) else plot.svg()


def _write(out: Path, plot: "ResidualPlot | PlotsByGroup", kind: Kind, **words: Any) -> None:
    from heldout.drawing.place import write_file

    if out.suffix.lower() == ".svg":
        write_file(out, _svg(plot, kind))
    else:
        plot.save(out, **words)


def _print(plot: "ResidualPlot", *, level: float = 0.95) -> None:
    from heldout.cli.output import console, print_table
    from heldout.drawing.words import numbers, spread
    from heldout.questions.regression.page import band_rows

    percent = f"{level * 100:g}%"
    say = console()
    say.print(str(plot.verdict), style="bold")
    measures = [[name, *spread(each, level)] for name, each in plot.measures.items()]
    print_table(("measure", "value", f"{percent} interval", "noise alone"), measures)
    if plot.table.unbiased:
        chances = "; ".join(f"{name}-style {each:.2g}" for name, each in plot.p_values.items())
        say.print(f"p-values: {chances}.")
    if plot.mean_residual.informative:
        bands = [[band, *rest] for band, _, *rest in band_rows(plot, level)]
        print_table(("residuals at", "mean", percent, "spread", percent), bands)
    (low, high), (down, up) = plot.bounds
    edge, number = numbers(plot.predicted_edges), numbers(plot.residual_edges)
    say.print(
        f"Shown: predictions {edge(low)} to {edge(high)}, residuals {number(down)} to "
        f"{number(up)}, {len(plot.residual_edges) - 1} by {len(plot.predicted_edges) - 1} cells."
    )
    say.print(f"Paid {plot.loss}, {plot.protection.describe()}.")
    print(f"Receipt: {plot.receipt.hash}")


def _print_groups(release: "PlotsByGroup | MetricsByGroup", *, level: float = 0.95) -> None:
    from heldout.cli.output import console, print_table
    from heldout.drawing.words import spread

    percent = f"{level * 100:g}% interval"
    for name, said in getattr(release, "verdicts", {}).items():
        console().print(f"{name}: {said}", style="bold", markup=False)
    gaps = [release.gap_in(each) for each in release.compared]
    told = [[each.name, *spread(each, level), f"{each.p_value:.3g}"] for each in gaps]
    print_table(("gap", "value", percent, "noise alone", "p-value"), told)
    names = [each for each in release.measures if not each.startswith("gap in ")]
    told = [[each, *spread(release.measures[each], level)] for each in names]
    print_table(("measure, group", "value", percent, "noise alone"), told)
    print(f"Paid {release.loss} for these. Receipt: {release.receipt.hash}")


def _print_metrics(errors: "RegressionMetrics", *, level: float = 0.95) -> None:
    from heldout.cli.output import print_table
    from heldout.drawing.words import spread

    head = ("error", "value", f"{level * 100:g}% interval", "noise alone")
    print_table(head, [[name, *spread(each, level)] for name, each in errors.measures.items()])
    print(f"Paid {errors.loss} for these. Receipt: {errors.receipt.hash}")
