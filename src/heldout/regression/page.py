"""A released residual plot as one HTML page that needs nothing from anywhere else."""

import os
import platform
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import heldout
from heldout.regression.pictures import figures
from heldout.regression.readings_verdict import Finding
from heldout.report import pieces
from heldout.report.page import NOT_PROTECTED
from heldout.report.place import write_page
from heldout.report.words import amount, belief, protection_in_words, spread

if TYPE_CHECKING:
    from heldout.regression.release import ResidualPlot

__all__ = ["page", "save"]

_ANSWERS: Final = {
    "seen": "seen",
    "not seen": "no sign at this epsilon",
    "too noisy": "too noisy to tell",
    "too coarse": "too coarse to tell",
    "no verdict": "no verdict",
}


def page(plot: "ResidualPlot", *, level: float = 0.95) -> str:
    """The whole document."""
    parts = [
        _findings(plot, level),
        _bands(plot, level),
        _reading(level),
        _price(plot),
        _limits(plot),
    ]
    body = f"{_header(plot)}\n<main>\n{chr(10).join(parts)}\n</main>\n{_foot(plot)}"
    return pieces.document("Private residual plot", body)


def save(plot: "ResidualPlot", path: str | os.PathLike[str], *, level: float = 0.95) -> Path:
    """Write the page to a file."""
    return write_page(path, lambda: page(plot, level=level))


def _header(plot: "ResidualPlot") -> str:
    about = plot.as_dict()["parameters"]
    spans = []
    for bounds in (plot.bounds.predicted, plot.bounds.residual):
        number = pieces.numbers(bounds)
        spans.append(" to ".join(number(each) for each in bounds))
    names = [f"<code>{escape(str(about[each]))}</code>" for each in _COLUMNS if each in about]
    rows = plot.rows if plot.table.rows_scale is None else None
    told = f"{plot.rows:,}" + (" (noisy)" if rows is None else "")
    listed = [
        ("Data", escape(plot.data)),
        ("Rows", told),
        *([("Columns", " as predicted by ".join(names))] if names else []),
        ("Shown", f"predictions {spans[0]}, residuals {spans[1]}"),
        ("Price", escape(amount(plot.loss))),
        ("Protection", escape(protection_in_words(plot.protection, rows))),
    ]
    return (
        '<header>\n<p class="eyebrow">Private residual plot</p>\n<h1>Does the model fit?</h1>\n'
        f'<p class="lead">{escape(str(plot.verdict))}</p>\n{pieces.facts(listed)}\n</header>'
    )


_COLUMNS: Final = ("observed", "predicted")


def _findings(plot: "ResidualPlot", level: float) -> str:
    listed = []
    for name, finding in plot.verdict.findings.items():
        value, interval, _ = spread(finding.score, level)
        listed.append((name, value, interval, _ANSWERS[finding.answer]))
    value, interval, _ = spread(plot.outside, level)
    listed.append(("rows outside", _percent(value), _percent_range(interval), "beyond the bounds"))
    note = (
        f'<p class="note">Under each value: its {level * 100:g}% interval. Scores are '
        "correlations from -1 to 1; 0 is no fault.</p>"
    )
    drawn = pieces.figures(figures(plot, level=level))
    return pieces.section("What was found", f"{pieces.cards(listed)}\n{note}\n{drawn}")


def _bands(plot: "ResidualPlot", level: float) -> str:
    means, spreads = plot.mean_by_prediction, plot.spread_by_prediction
    columns = zip(
        means.edges[:-1],
        means.edges[1:],
        means.rows,
        means.values,
        *means.interval(level),
        spreads.values,
        *spreads.interval(level),
        strict=True,
    )
    edge, number = pieces.numbers(means.edges), pieces.numbers(plot.residual_edges)
    rows = [
        [
            f"{edge(left)} to {edge(right)}",
            f"{held:,.0f}",
            number(mean),
            f"{number(low)} to {number(high)}",
            number(deviation),
            f"{number(least)} to {number(most)}",
        ]
        for left, right, held, mean, low, high, deviation, least, most in columns
    ]
    percent = f"{level * 100:g}%"
    head = ("Predicted", "Rows", "Mean residual", percent, "Standard deviation", percent)
    found = "".join(_score(each, level) for each in plot.verdict.findings.values())
    scores = f'<ul class="plain">{found}</ul>'
    table = pieces.table("Residuals in bands of predictions, read off the noisy table", head, rows)
    return pieces.section("All numbers", f"{scores}\n{table}")


def _score(finding: Finding, level: float) -> str:
    value, interval, noise = spread(finding.score, level)
    return (
        f"<li><strong>{escape(finding.score.name.capitalize())}</strong> {value} ({interval}; "
        f"noise alone {noise}): {escape(finding.sentence)}.</li>"
    )


def _reading(level: float) -> str:
    percent = f"{level * 100:g}%"
    return pieces.section(
        "How to read it",
        "<p>A residual is what was observed less what was predicted. If the model fits, residuals "
        "scatter evenly around 0 wherever the prediction lies. A bend says that the mean is wrong "
        "in places; a fan says that some predictions are much surer than others, so that standard "
        "errors and intervals of the regression are wrong.</p>\n"
        "<p>A plot can show that a model is wrong, never that it is right. “No sign at this "
        f"epsilon” means that a plain fault would have shown: the {percent} interval of the score "
        "is narrow. “Too noisy to tell” means that it might not have.</p>\n"
        '<p class="note">On data without a fault, about 1 plot in 20 shows one. Rows stand in the '
        "middle of their cell; rows beyond the bounds are counted, but neither shown nor in the "
        "means.</p>",
    )


def _price(plot: "ResidualPlot") -> str:
    bet = belief(plot.loss, plot.protection)
    receipt = plot.receipt
    listed = [
        ["Release", escape(plot.name)],
        ["Price", escape(amount(plot.loss))],
        ["Entry", f"{receipt.sequence}"],
        ["Receipt", f"<code>{escape(receipt.hash)}</code>"],
    ]
    return pieces.section(
        "What was paid",
        f"<p>All of this page cost {escape(amount(plot.loss))}, booked before any noise was drawn. "
        f"{escape(bet)}</p>\n{pieces.table('The booking in the ledger', ('', ''), listed)}",
    )


def _limits(plot: "ResidualPlot") -> str:
    items = "".join(f"<li>{escape(each)}</li>" for each in NOT_PROTECTED[:3])
    public = (
        "<li>The words on this page: the names of columns, the unit of the scale and the price are "
        "public.</li>"
    )
    return pieces.section("What is not protected", f'<ul class="plain">{items}{public}</ul>')


def _foot(plot: "ResidualPlot") -> str:
    return (
        f'<footer>\n<p class="note">heldout {escape(heldout.__version__)}, Python '
        f"{platform.python_version()}. {escape(plot.terms)}.</p>\n</footer>"
    )


def _percent(text: str) -> str:
    return f"{float(text):.1%}"


def _percent_range(text: str) -> str:
    return " to ".join(_percent(each) for each in text.split(" to "))
