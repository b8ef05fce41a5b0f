"""`heldout residuals`: does a regression fit, on rows that must not be shown?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.cli.frame import FRAME, MODEL, PAGE, ROWS, Framed, Paged, buy
from heldout.cli.output import Several, console, print_measures, print_table
from heldout.cli.rows import FittedOptions, Where
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import MetricsByGroup, PlotsByGroup, ResidualPlot

Kind = Literal["density", "points", "mean", "spread", "scale", "qq"]


def residuals(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    scale: float = 1.0,
    bounds: str | None = None,
    method: str = "heldout",
    metrics: str | None = None,
    by: Several = (),
    kind: Kind = "density",
    coefficients: Annotated[Path | None, Parameter(group=MODEL)] = None,
    rows: Annotated[FittedOptions | None, Parameter(name="*", group=ROWS)] = None,
    frame: Framed = FRAME,
    page: Paged = PAGE,
) -> None:
    """Does a regression fit? A private plot of its residuals, and what it says.

    One release of a noisy table of residuals by predicted value; pictures, the mean and the
    spread by prediction, and the verdict are read off it at no further cost. With --out it becomes
    a page of all pictures (.html) or one picture (.svg). Examples:

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
    heldout residuals --server https://evaluate.example.org --token-file token.txt \\
      --dataset costs --coefficients fit.json --epsilon 1 --scale 5 --out plot.html
    ```

    Parameters
    ----------
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
    kind
        Which picture goes into an .svg file: density, points, mean, spread, scale or qq. With --by
        it is the plots of all groups.
    coefficients
        Instead of --model: a linear model as JSON, {"intercept": 2.0, "age": 0.5}.
    """
    from heldout import questions as q

    if coefficients is not None:
        if frame.scoring.model is not None:
            raise ArgumentError("--model and --coefficients both name a model: leave one out.")
        frame = replace(frame, scoring=replace(frame.scoring, model=coefficients))
    declared = {} if bounds is None else parsed_bounds(bounds)
    page.check(".svg")
    shared: dict[str, Any] = {
        "scale": scale,
        "expected_rows": frame.expected_rows,
        "by": by or None,
    }
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
        frame=frame,
        labels=page.labels,
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
                print_measures(errors.measures, what="error")
                _print_price(errors)
        print(f"Left: {bought.remaining}.")

    def write(place: Path) -> None:
        from heldout.drawing.page import write_file

        if page.is_svg:
            write_file(place, _svg(plot, kind))
        else:
            plot.save(place, metrics=errors, title=page.title, labels=bought.labels)

    bought.deliver(text=text, content=content, out=page.out, write=write, noun="Picture")


def _symmetric(bounds: dict[str, Any] | None) -> dict[str, Any]:
    """Declared bounds of the residuals, if they are alike on both sides as error measures need."""
    residual = (bounds or {}).get("residual")
    if isinstance(residual, tuple):
        residual = residual[1] if residual[0] == -residual[1] else None
    return {} if residual is None else {"residual": residual}


def parsed_bounds(text: str) -> dict[str, Any]:
    """Read bounds as they are typed.

    >>> parsed_bounds("predicted=0:100,residual=20")
    {'predicted': (0.0, 100.0), 'residual': 20.0}
    """
    bounds: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        ends = [_number(end) for end in value.split(":")]
        right = name.strip() in ("predicted", "residual") and name.strip() not in bounds
        if not right or None in ends or len(ends) > 2 or (len(ends) == 1 and "pred" in name):
            raise ArgumentError(
                f"--bounds must be like predicted=0:100,residual=20, got {text!r}. One number is "
                "enough for residuals: they lie between it and its negative."
            )
        bounds[name.strip()] = ends[0] if len(ends) == 1 else tuple(ends)
    return bounds


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _svg(plot: "ResidualPlot | PlotsByGroup", kind: Kind) -> str:
    from heldout.questions.regression.release import ResidualPlot

    return plot.svg(kind) if isinstance(plot, ResidualPlot) else plot.svg()


def _print(plot: "ResidualPlot", *, level: float = 0.95) -> None:
    from heldout.drawing.words import numbers
    from heldout.questions.regression.page import band_rows

    percent = f"{level * 100:g}%"
    say = console()
    say.print(str(plot.verdict), style="bold")
    print_measures(plot.measures, level=level)
    if plot.table.unbiased:
        chances = "; ".join(f"{name}-style {chance:.2g}" for name, chance in plot.p_values.items())
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
    from heldout.drawing.words import spread

    for name, verdict in getattr(release, "verdicts", {}).items():
        console().print(f"{name}: {verdict}", style="bold", markup=False)
    gaps = [release.gap_in(name) for name in release.compared]
    rows = [[gap.name, *spread(gap, level), f"{gap.p_value:.3g}"] for gap in gaps]
    head = ("gap", "value", f"{level * 100:g}% interval", "noise alone", "p-value")
    print_table(head, rows)
    by_group = {
        name: measure
        for name, measure in release.measures.items()
        if not name.startswith("gap in ")
    }
    print_measures(by_group, level=level, what="measure, group")
    _print_price(release)


def _print_price(release: "PlotsByGroup | MetricsByGroup | RegressionMetrics") -> None:
    print(f"Paid {release.loss} for these. Receipt: {release.receipt.hash}")
