"""A released residual plot as one HTML page that needs nothing from anywhere else."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from heldout.drawing.page import checked_labels, rendered
from heldout.drawing.words import numbers
from heldout.privacy.accountant import total

if TYPE_CHECKING:
    from heldout.regression.measures import RegressionMetrics
    from heldout.regression.release import ResidualPlot

__all__ = ["band_rows", "page"]

_ANSWERS: Final = {
    "seen": "seen",
    "not seen": "no sign at this epsilon",
    "too noisy": "too noisy to tell",
    "too coarse": "too coarse to tell",
    "no verdict": "no verdict",
    "not judged": "not judged beside a bend",
}


def page(
    plot: "ResidualPlot",
    *,
    level: float = 0.95,
    metrics: "RegressionMetrics | None" = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """The whole document, with the error measures if they were released as well.

    `labels` are what people call the data, its columns and the unit.
    """
    bounds = (plot.bounds.predicted, plot.bounds.residual)
    parameters = plot.as_dict(level)["parameters"]
    columns = [parameters[each] for each in ("observed", "predicted") if each in parameters]
    protection = plot.protection
    called = checked_labels((plot.data, *columns, protection.unit_name), labels or {})
    if protection.unit_name is not None:
        unit = called.get(protection.unit_name, protection.unit_name)
        protection = replace(protection, unit_name=unit)
    releases = [plot] if metrics is None else [plot, metrics]
    return rendered(
        "residuals.html",
        title=title or "Does the model fit?",
        plot=plot,
        level=level,
        public_rows=plot.rows if plot.table.rows_scale is None else None,
        data=called.get(plot.data, plot.data),
        columns=[called.get(each, each) for each in columns],
        protection=protection,
        chances=plot.p_values if plot.table.unbiased else {},
        shown=[" to ".join(numbers(each)(end) for end in each) for each in bounds],
        answers=_ANSWERS,
        outside=" to ".join(f"{end:.1%}" for end in plot.outside.interval(level)),
        price=total(each.loss for each in releases),
        errors=[] if metrics is None else metrics.measures.items(),
        bands=list(band_rows(plot, level)),
        drawn=plot.figures(level),
        releases=releases,
    )


def band_rows(plot: "ResidualPlot", level: float) -> Iterator[tuple[str, ...]]:
    """Band of predictions, rows, mean and its interval, standard deviation and its interval."""
    means, spreads = plot.mean_by_prediction, plot.spread_by_prediction
    edge, number = numbers(means.edges), numbers(plot.residual_edges)
    for left, right, held, mean, low, high, deviation, least, most in zip(
        means.edges[:-1],
        means.edges[1:],
        means.rows,
        means.values,
        *means.interval(level),
        spreads.values,
        *spreads.interval(level),
        strict=True,
    ):
        yield (
            f"{edge(left)} to {edge(right)}",
            f"{held:,.0f}",
            number(mean),
            f"{number(low)} to {number(high)}",
            number(deviation),
            f"{number(least)} to {number(most)}",
        )
