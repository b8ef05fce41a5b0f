"""Chen et al., 2016, section III: figures 1 to 5 and table I, private residual plots.

Their relation is replace-one. PriRP is their method; ours is what `residual_plot` releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heldout.drawing.chart import INK, PALETTE
from heldout.questions.regression.table import ResidualTable
from heldout.questions.regression.verdict import Readings
from heldout_papers.chen_2016_residuals_census import ACS, CPS, income
from heldout_papers.chen_2016_residuals_data import KINDS, Fitted, dataset, private_model
from heldout_papers.chen_2016_residuals_draw import METHODS
from heldout_papers.chen_2016_residuals_pictures import histograms, panel, panels, separations
from heldout_papers.chen_2016_residuals_study import (
    Detection,
    Job,
    compared,
    detect,
    run,
    smallest,
)
from heldout_papers.colours import HELDOUT, colour_of
from heldout_papers.registry import Claim, Context, Reproduction, figure, table

_PAPER = "chen-2016"
_ROWS = 5_000
_EPSILONS = ("1", "0.1")
_PLOTS = 1_000
_PRODUCTS = (250, 500, 1_000, 2_500)
_SIZES = (500, 1_000, 2_000, 5_000)
_SEED = 2016
_NOTE = "Relation replace-one, as in the paper. The second argument of N(0, .) is a variance."
_POINTS = 2_000
_SHOWN = (HELDOUT, "PriRP")


@figure(paper=_PAPER, number="1", title="Confidential residual plots of three data sets")
def figure_1(context: Context) -> Reproduction:
    """5,000 rows each: ideal, heteroscedastic, nonlinear."""
    fits = _three()
    drawn = [panel(kind, fit.predicted, fit.residuals, colour=INK) for kind, fit in fits.items()]
    return Reproduction(
        title="Residual plots without privacy, 5,000 rows",
        table=[_exact_row(kind, fit) for kind, fit in fits.items()],
        charts=[panels(drawn)],
        description="An even band, a fan and a hook.",
        notes=[_NOTE],
        claims=_seen([_exact_row(kind, fit) for kind, fit in fits.items()], "exact", ""),
    )


@figure(paper=_PAPER, number="2", title="Private residual plots of the same data sets")
def figure_2(context: Context) -> Reproduction:
    """One plot of each method at epsilon 1 and 0.1."""
    found = _private(
        _three(),
        title="Private residual plots, 5,000 rows",
        notes=[_NOTE, "Points are scattered evenly over the cells."],
    )
    claims = [*_seen(found.table, "PriRP", "1"), *_seen(found.table, "PriRP", "0.1")[1:]]
    return replace(found, claims=claims)


@figure(
    paper=_PAPER, number="3", quick=60, title="Similarity of noisy plots to the real ideal plot"
)
def figure_3(context: Context) -> Reproduction:
    """Similarities of 1,000 noisy plots per case, and how far apart they are."""
    plots = context.repetitions or _PLOTS
    jobs = [
        Job(method, rows, f"{product / rows:g}", plots, _SEED)
        for method in METHODS
        for rows in _SIZES
        for product in _PRODUCTS
    ]
    found = dict(context.over(run, jobs, label="figure 3"))
    rows: list[dict[str, Any]] = []
    drawn = []
    for job in jobs:
        product = round(job.rows * float(job.epsilon))
        for each in compared(found[job], rows=job.rows, epsilon=job.epsilon):
            rows.append(
                {
                    "method": job.method,
                    "n": job.rows,
                    "n epsilon": product,
                    "data": each.kind,
                    "plots": plots,
                    "total variation": each.total_variation,
                    "by one cut": each.best_threshold,
                    "similarity, ideal": each.ideal,
                    "similarity": each.faulty,
                }
            )
        if job.method == HELDOUT and job.rows == _ROWS:
            drawn += [
                {
                    "group": f"heldout, n times epsilon = {product:,}",
                    "kind": kind,
                    "similarities": sample,
                }
                for kind, sample in found[job].items()
            ]
    groups = list(dict.fromkeys(row["group"] for row in drawn))
    shown = [row for row in rows if row["n"] == _ROWS]
    return Reproduction(
        title=f"Telling faulty from ideal data by {plots:,} noisy plots per case",
        table=rows,
        charts=[histograms(drawn, groups=groups), separations(shown)],
        description="Similarities of noisy plots to the real ideal plot; total variation.",
        notes=[
            _NOTE,
            "Total variation of histograms with 100 bins; one cut is a lower bound without bins.",
        ],
        claims=_told_apart(rows),
    )


@figure(paper=_PAPER, number="4", title="Residual plots of a private model")
def figure_4(context: Context) -> Reproduction:
    """Coefficients by output perturbation at epsilon 1 on ideal data."""
    random = np.random.default_rng(_SEED)
    fit = private_model(dataset("ideal", rows=_ROWS, random=random), epsilon=1.0, random=random)
    found = _private(
        {"private model": fit},
        title="Residual plots of a private model, 5,000 rows of ideal data",
        notes=[
            _NOTE,
            "Ridge regression with output perturbation at epsilon 1: it leans, and plots show it.",
        ],
    )
    leans = [_lean(fit.predicted, fit.residuals)]
    leans += [_lean(*METHODS["PriRP"](fit, each).points(_POINTS)) for each in _EPSILONS]
    real = panel("Private model, no noise in the plot", fit.predicted, fit.residuals)
    return Reproduction(
        title=found.title,
        table=[_exact_row("private model", fit), *found.table],
        charts=[panels([real, *_drawn(found)])],
        description="One confidential and four private plots of the same residuals.",
        notes=found.notes,
        claims=[
            Claim(
                "What the private model gets wrong is still evident in the noisy plots",
                "picture",
                f"correlation of residual and prediction {leans[0]:.2f}; in PriRP's plots "
                f"{leans[1]:.2f} and {leans[2]:.2f} at epsilon 1 and 0.1",
                min(abs(each) for each in leans[1:]) > 0.3 * abs(leans[0]),
                "One plot each.",
            )
        ],
    )


@figure(
    paper=_PAPER,
    number="5",
    title="Income and log income of the census files",
    needs_data=[CPS, ACS],
)
def figure_5(context: Context) -> Reproduction:
    """Income fans out; its logarithm less so."""
    assert context.data is not None
    rows: list[dict[str, Any]] = []
    drawn = []
    for source in (CPS, ACS):
        for logarithm in (False, True):
            fit = income(context.data, source, logarithm=logarithm)
            scale = 1.0 if logarithm else 1_000.0
            span = (_most(fit.predicted), _most(fit.residuals))
            drawn.append(panel(f"{fit.name}, real", fit.predicted, fit.residuals, span=span))
            rows.append(_exact_row(fit.name, fit))
            for epsilon in _EPSILONS:
                made = METHODS[HELDOUT](fit, epsilon, scale=scale)
                name = f"{fit.name}, epsilon {epsilon}"
                drawn.append(panel(name, *made.points(_POINTS), span=span))
                rows.append(_private_row(fit.name, HELDOUT, epsilon, made))
    return Reproduction(
        title="Residual plots of income and of log income",
        table=rows,
        charts=[panels(drawn)],
        description="Real and private plots; income fans out, its logarithm much less.",
        notes=[
            _NOTE,
            "Persons, not the paper's household heads; the 2000 survey has no marital status here.",
            "Scale 1,000 for income and 1 for its logarithm.",
        ],
        claims=_fans(rows),
    )


@table(paper=_PAPER, number="1", quick=40, title="Smallest violations that a plot shows")
def table_1(context: Context) -> Reproduction:
    """The least alpha and beta at which ideal and faulty data are 0.95 apart."""
    draws = context.repetitions or _PLOTS
    jobs = [
        Detection(None, rows, None, parameter, draws, _SEED)
        for rows in (500, 1_000, 2_000, 5_000)
        for parameter in ("alpha", "beta")
    ] + [
        Detection(method, _ROWS, f"{product / _ROWS:g}", parameter, draws, _SEED)
        for method in METHODS
        for product in _PRODUCTS
        for parameter in ("alpha", "beta")
    ]
    found = dict(context.over(detect, jobs, label="table 1"))
    rows = [
        {
            "panel": "without privacy" if job.method is None else "private",
            "method": job.method or "exact",
            "n": job.rows,
            "n epsilon": "" if job.epsilon is None else round(job.rows * float(job.epsilon)),
            "violation": job.parameter,
            "smallest, total variation": smallest(found[job], by="total variation"),
            "smallest, one cut": smallest(found[job], by="one cut"),
            "draws": draws,
        }
        for job in jobs
    ]
    return Reproduction(
        title=f"Smallest alpha and beta told apart at 0.95, {draws:,} draws",
        table=rows,
        notes=[
            _NOTE,
            "alpha: variance alpha x + 1; beta: y = x + beta x^2. By bisection in steps of a "
            "factor sqrt(2); empty if none of them is told apart.",
            "Shares of one private plot against the expected shares of ideal data.",
        ],
        claims=_least(rows),
    )


def _told_apart(rows: list[dict[str, Any]]) -> list[Claim]:
    """The lowest over all sizes and both faults; a histogram of few plots tells too much apart."""
    claims = []
    known = {row["n epsilon"] for row in rows}
    for product, least in ((500, 0.9), (1_000, 0.95)):
        if product not in known:
            continue
        lowest = {
            (method, measure): min(
                row[measure]
                for row in rows
                if (row["method"], row["n epsilon"]) == (method, product)
            )
            for method in METHODS
            for measure in ("total variation", "by one cut")
        }
        said = "; ".join(
            f"{method} {lowest[method, 'total variation']:.2f}, by one cut "
            f"{lowest[method, 'by one cut']:.2f}"
            for method in ("PriRP", HELDOUT)
        )
        claims.append(
            Claim(
                f"PriRP tells faulty from ideal data at n epsilon = {product:,}, all sizes",
                f"total variation at least {least}",
                said,
                lowest["PriRP", "total variation"] >= least,
                "Total variation of histograms, as in the paper; few plots make it too large, and "
                "one cut is a lower bound.",
            )
        )
    return claims


def _seen(rows: Sequence[Mapping[str, Any]], method: str, epsilon: str) -> list[Claim]:
    """Whether the fan and the hook stand out, in the numbers that a verdict reads."""
    here = {r["data"]: r for r in rows if (r["method"], r["epsilon"]) == (method, epsilon)}
    where = f" at epsilon {epsilon}" if epsilon else ""
    return [
        Claim(
            f"{said}{where}",
            "picture",
            f"{column} {here[kind][column]:.2f}, of ideal data {here['ideal'][column]:.2f}",
            here[kind][column] > abs(here["ideal"][column]) + 0.1,
            "One plot each.",
        )
        for said, kind, column in (
            ("Unequal variance shows as a fan", "heteroscedastic", "fan"),
            ("A curve shows as a hook", "nonlinear", "curvature"),
        )
    ]


def _lean(predicted: Any, residuals: Any) -> float:
    return float(np.corrcoef(predicted, residuals)[0, 1])


def _fans(rows: list[dict[str, Any]]) -> list[Claim]:
    """Of the 2000 survey, which is the paper's."""
    fan = {(r["data"], r["epsilon"]): r["fan"] for r in rows}
    claims = []
    for epsilon in ("", *_EPSILONS):
        income_, log = (fan[f"CPS 2000, {each}", epsilon] for each in ("income", "log income"))
        where = f"at epsilon {epsilon} (heldout)" if epsilon else "without privacy"
        claims.append(
            Claim(
                f"Income fans out and its logarithm much less, {where}",
                "picture",
                f"fan {income_:.2f} against {log:.2f}",
                income_ > 0.15 > abs(log),
            )
        )
    return claims


def _least(rows: list[dict[str, Any]]) -> list[Claim]:
    """The printed numbers are lost in the text that we have; what it says of them is not."""
    by = "smallest, one cut"
    exact = {
        name: [r[by] for r in rows if r["method"] == "exact" and r["violation"] == name]
        for name in ("alpha", "beta")
    }
    at = {
        (r["method"], r["n epsilon"], r["violation"]): (r["smallest, total variation"], r[by])
        for r in rows
    }
    private = [at.get(("PriRP", 1_000, name), (None, None)) for name in ("alpha", "beta")]
    known = [value for values in private for value in values if value is not None]
    return [
        Claim(
            "Without privacy, more rows show smaller violations",
            "table I",
            "; ".join(f"{name} {' '.join(_number(v) for v in vs)}" for name, vs in exact.items()),
            all(
                None not in values and values == sorted(values, reverse=True)
                for values in exact.values()
            ),
        ),
        Claim(
            "PriRP shows small violations at n epsilon = 1,000",
            "table I",
            "; ".join(
                f"{name} {_number(values[0])} by total variation, {_number(values[1])} by one cut"
                for name, values in zip(("alpha", "beta"), private, strict=True)
            ),
            len(known) == 4,
            "By none of the strengths that were tried.",
        ),
    ]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2g}"


def _three() -> dict[str, Fitted]:
    random = np.random.default_rng(_SEED)
    return {kind: dataset(kind, rows=_ROWS, random=random) for kind in KINDS}


def _private(fits: dict[str, Fitted], *, title: str, notes: list[str]) -> Reproduction:
    rows: list[dict[str, Any]] = []
    drawn = []
    for method in _SHOWN:
        draw = METHODS[method]
        for epsilon in _EPSILONS:
            for kind, fit in fits.items():
                made = draw(fit, epsilon)
                span = (_room(fit.predicted), _room(fit.residuals))
                name = f"{kind.capitalize()}, epsilon {epsilon}, {method}"
                points, colour = made.points(_POINTS), colour_of(method) or PALETTE[0]
                drawn.append(panel(name, *points, span=span, colour=colour))
                rows.append(_private_row(kind, method, epsilon, made))
    return Reproduction(
        title=title,
        table=rows,
        charts=[panels(drawn)],
        description="One private plot a data set, epsilon and method.",
        notes=notes,
    )


def _drawn(found: Reproduction) -> list[Any]:
    return list(found.charts[0].concat)


def _most(values: Any) -> tuple[float, float]:
    low, high = np.quantile(values, [0.002, 0.998])
    return float(low), float(high)


def _room(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low - 0.3 * (high - low), high + 0.3 * (high - low)


def _private_row(name: str, method: str, epsilon: str, made: ResidualTable) -> dict[str, Any]:
    readings = Readings(made)
    return {
        "data": name,
        "method": method,
        "epsilon": epsilon,
        "predicted": "{:.4g} to {:.4g}".format(*made.bounds.predicted),
        "residuals": "{:.4g} to {:.4g}".format(*made.bounds.residual),
        "curvature": readings.curvature.value,
        "fan": readings.fan.value,
        "faults": ", ".join(readings.verdict.faults) if made.unbiased else "no verdict",
    }


def _exact_row(name: str, fit: Fitted) -> dict[str, Any]:
    """What a plot without noise shows, as numbers; scores without the release's weights."""
    x = (fit.predicted - fit.predicted.mean()) / fit.predicted.std()
    bend = x**2 - 1 - np.mean(x**3) * x
    return {
        "data": name,
        "method": "exact",
        "epsilon": "",
        "predicted": f"{fit.predicted.min():.4g} to {fit.predicted.max():.4g}",
        "residuals": f"{fit.residuals.min():.4g} to {fit.residuals.max():.4g}",
        "curvature": float(np.corrcoef(bend, fit.residuals)[0, 1]),
        "fan": float(np.corrcoef(x, np.abs(fit.residuals))[0, 1]),
        "faults": "",
    }
