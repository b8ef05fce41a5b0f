"""A released residual plot as one HTML page that needs nothing from anywhere else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from heldout.drawing.page import checked_labels, rendered
from heldout.drawing.words import numbers, spread
from heldout.intervals.groups import Gap
from heldout.kernel.accountant import total

if TYPE_CHECKING:
    from heldout.questions.regression.by_group import MetricsByGroup, PlotsByGroup
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import ResidualPlot
    from heldout.questions.regression.table import Bounds

__all__ = ["band_rows", "page", "page_by_group"]

_ANSWERS: Final = {
    "seen": "seen",
    "not seen": "no sign at this epsilon",
    "too noisy": "too noisy to tell",
    "cut": "may come from the cut",
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
    return rendered(
        "residuals.html",
        title=title or "Does the model fit?",
        plot=plot,
        level=level,
        public_rows=plot.rows if plot.table.rows_scale is None else None,
        chances=plot.p_values if plot.table.unbiased else {},
        answers=_ANSWERS,
        outside=" to ".join(f"{end:.1%}" for end in plot.outside.interval(level)),
        errors=[] if metrics is None else metrics.measures.items(),
        bands=list(band_rows(plot, level)),
        drawn=plot.figures(level),
        **_facts(plot, plot.bounds, metrics, labels or {}),
    )


def page_by_group(
    plots: "PlotsByGroup",
    *,
    level: float = 0.95,
    metrics: "MetricsByGroup | None" = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """The same for groups, side by side."""

    def tested(found: Iterable[Gap]) -> list[tuple[str, ...]]:
        return [(each.name, *spread(each, level), f"{each.p_value:.3g}") for each in found]

    facts = _facts(plots, next(iter(plots.groups.values())).bounds, metrics, labels or {})
    called = facts.pop("called")
    return rendered(
        "residuals_by_group.html",
        title=title or "For whom does the model fit?",
        plots=plots,
        level=level,
        by=[called.get(each, each) for each in plots.by],
        rows=plots.rows,
        gaps=lambda release: tested(e for e in release.measures.values() if isinstance(e, Gap)),
        rest=lambda release: tested(
            e for m in release.compared for e in release.against_rest(m).values()
        ),
        **facts,
    )


def _facts(plot: Any, bounds: "Bounds", metrics: Any, labels: Mapping[str, str]) -> dict[str, Any]:
    """What both pages say of the data, the protection and the price."""
    parameters = plot.as_dict()["parameters"]
    columns = [parameters[each] for each in ("observed", "predicted") if each in parameters]
    protection = plot.protection
    names = (plot.data, *columns, *getattr(plot, "by", ()), protection.unit_name)
    called = checked_labels(names, labels)
    if protection.unit_name is not None:
        unit = called.get(protection.unit_name, protection.unit_name)
        protection = replace(protection, unit_name=unit)
    releases = [plot] if metrics is None else [plot, metrics]
    return {
        "data": called.get(plot.data, plot.data),
        "columns": [called.get(each, each) for each in columns],
        "protection": protection,
        "shown": [" to ".join(numbers(each)(end) for end in each) for each in bounds],
        "price": total(each.loss for each in releases),
        "releases": releases,
        "called": called,
    }


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
