"""Boyd, 2014, figures 4.7 to 4.9: coverage, width and location of the intervals.

The dissertation's four methods and this package's own (`effective`). One study serves the three
figures; ask for them in one command and it is run once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.drawing.chart import INK, PALETTE
from heldout.precision_recall.intervals import effective_size, score_interval
from heldout.precision_recall.levels import Levels
from heldout_papers.altair_svg import rows
from heldout_papers.batches import (
    STUDIED,
    bootstrap_areas,
    fold_areas,
    negatives_above,
    studied_areas,
)
from heldout_papers.registry import Claim, Context, Reproduction, figure
from heldout_papers.scenarios import SCENARIOS, scenario

_PAPER = "boyd-2014"
_REPETITIONS = 10_000
_REPLICATES = 1_000
_FOLDS = 10
_SIZES = (200, 500, 1_000, 5_000, 10_000)
_PREVALENCE = 0.1
_CONFIDENCE = 0.95
_SEED = 20140407
METHODS = ("binomial", "logit", "bootstrap", "cross-validation", "effective")
_HUES = dict(zip(METHODS, [*PALETTE[1:5], PALETTE[0]], strict=True))
"""`effective` is this package's own, in the colour of heldout."""

Floats = NDArray[np.float64]


class _Job(NamedTuple):
    scenario: str
    size: int
    repetitions: int
    seed: Any


class _Found(NamedTuple):
    """Arrays over repetitions; `intervals` are (low, high, location) by estimator and method."""

    scenario: str
    size: int
    estimates: dict[str, Floats]
    intervals: dict[tuple[str, str], tuple[Floats, Floats, Floats]]


@figure(paper=_PAPER, number="4.7", quick=120, title="Coverage of the intervals")
def coverage(context: Context) -> Reproduction:
    """How often 95% intervals hold the true area."""
    table = study(context)
    return Reproduction(
        title="Coverage of 95% intervals (prevalence 0.1)",
        table=table,
        charts=[_panels(table, "examples", "coverage", "Examples (n + m)", "Coverage", rule=0.95)],
        description="Share of intervals that hold the true area, by size, estimator, scenario.",
        notes=_verdicts(table),
        claims=_covering(table),
    )


@figure(paper=_PAPER, number="4.8", quick=120, title="Width of the intervals against coverage")
def width(context: Context) -> Reproduction:
    """Mean width over the ideal width, against coverage."""
    table = study(context)
    return Reproduction(
        title="Width of 95% intervals over the ideal width (prevalence 0.1)",
        table=table,
        charts=[
            _panels(
                table,
                "width_ratio",
                "coverage",
                "Mean width / ideal width",
                "Coverage",
                rule=0.95,
                lines=False,
            )
        ],
        description="Each point is a size; to the left is narrower, above 0.95 is valid.",
        notes=[*_verdicts(table), *_narrower(table)],
        claims=[_narrowest(table)],
    )


@figure(paper=_PAPER, number="4.9", quick=120, title="Location of the intervals")
def location(context: Context) -> Reproduction:
    """Mean location of the intervals over the true area."""
    table = study(context)
    # binomial, logit and effective are all built around the estimate itself.
    shown = [row for row in table if row["method"] not in ("logit", "effective")]
    return Reproduction(
        title="Location of the intervals over the true area (prevalence 0.1)",
        table=table,
        charts=[
            _panels(
                shown, "examples", "location_ratio", "Examples (n + m)", "Location ratio", rule=1.0
            )
        ],
        description="Mean location of the interval over the true area, by size.",
        notes=["logit and effective are built around the same estimate as binomial."],
        claims=[_places(table)],
    )


def study(context: Context) -> list[dict[str, Any]]:
    """The whole study, once a command."""
    key = "boyd-2014 intervals"
    if key not in context.shared:
        context.shared[key] = _run(context)
    table: list[dict[str, Any]] = context.shared[key]
    return table


def simulate(job: _Job) -> _Found:
    """One batch of data sets: estimates and all intervals."""
    from numpy.random import default_rng

    random = default_rng(job.seed)
    n = round(job.size * _PREVALENCE)
    m = job.size - n
    up, down = scenario(job.scenario).draw(random, job.repetitions, n, m)
    above = negatives_above(up, down)
    estimates = studied_areas(above, m)
    intervals: dict[tuple[str, str], tuple[Floats, Floats, Floats]] = {}
    boots = _bootstraps(above, m, random)
    folds = fold_areas(up, down, _FOLDS)
    for name in STUDIED:
        value = estimates[name]
        intervals[name, "binomial"] = (*_binomial(value, n), value)
        intervals[name, "logit"] = (*_logit(value, n), value)
        intervals[name, "effective"] = (*_effective(value, above, m), value)
        intervals[name, "bootstrap"] = boots[name]
        intervals[name, "cross-validation"] = _cross_validation(folds[name])
    return _Found(job.scenario, job.size, estimates, intervals)


def _bootstraps(
    above: NDArray[np.int64], m: int, random: Any
) -> dict[str, tuple[Floats, Floats, Floats]]:
    levels = [0.5 - _CONFIDENCE / 2, 0.5 + _CONFIDENCE / 2, 0.5]
    found: dict[str, list[Floats]] = {name: [] for name in STUDIED}
    for row in above:
        areas = bootstrap_areas(row, m, _REPLICATES, random)
        for name in STUDIED:
            found[name].append(np.quantile(areas[name], levels))
    columns = {name: np.array(values).T for name, values in found.items()}
    return {name: (c[0], c[1], c[2]) for name, c in columns.items()}


def _binomial(value: Floats, n: int) -> tuple[Floats, Floats]:
    from scipy.special import ndtri

    half = ndtri(0.5 + _CONFIDENCE / 2) * np.sqrt(value * (1.0 - value) / n)
    return value - half, value + half


def _logit(value: Floats, n: int) -> tuple[Floats, Floats]:
    from scipy.special import expit, logit, ndtri

    inside = np.clip(value, 1e-12, 1.0 - 1e-12)
    half = ndtri(0.5 + _CONFIDENCE / 2) / np.sqrt(n * inside * (1.0 - inside))
    return expit(logit(inside) - half), expit(logit(inside) + half)


def _effective(value: Floats, above: NDArray[np.int64], m: int) -> tuple[Floats, Floats]:
    from scipy.special import stdtrit

    rows_, n = above.shape
    tp, fp = np.arange(1.0, n + 1.0), np.arange(m + 1.0)
    ends = np.empty((rows_, 2))
    for k, first in enumerate(above):
        last = np.append(first[1:], m)
        levels = Levels(n, m, tp, fp, first, last, float(first[0]))
        size = effective_size(levels, float(value[k]))
        degrees = min(size.degrees_of_freedom, 1e9)
        quantile = float(stdtrit(degrees, 0.5 + _CONFIDENCE / 2))
        ends[k] = score_interval(float(value[k]), size.positives, quantile)
    return ends[:, 0], ends[:, 1]


def _cross_validation(folds: Floats) -> tuple[Floats, Floats, Floats]:
    from scipy.special import stdtrit

    centre = folds.mean(axis=1)
    scale = folds.std(axis=1, ddof=1) / np.sqrt(folds.shape[1])
    half = float(stdtrit(folds.shape[1] - 1, 0.5 + _CONFIDENCE / 2)) * scale
    return centre - half, centre + half, centre


def _run(context: Context) -> list[dict[str, Any]]:
    from numpy.random import SeedSequence

    repetitions = context.repetitions or _REPETITIONS
    plan = []
    for world in SCENARIOS:
        for size in _SIZES:
            batch = max(1, 50_000 // size)
            whole, rest = divmod(repetitions, batch)
            plan += [
                (world.name, size, part) for part in [batch] * whole + ([rest] if rest else [])
            ]
    seeds = SeedSequence(_SEED).spawn(len(plan))
    jobs = [_Job(*cell, seed) for cell, seed in zip(plan, seeds, strict=True)]
    jobs.sort(key=lambda job: -job.size * job.repetitions)
    found = list(context.over(simulate, jobs, label="intervals (figures 4.7 to 4.9)"))
    return [
        row
        for world in SCENARIOS
        for size in _SIZES
        for row in _rows(
            world.name, size, [f for f in found if (f.scenario, f.size) == (world.name, size)]
        )
    ]


def _rows(name: str, size: int, found: list[_Found]) -> list[dict[str, Any]]:
    truth = scenario(name).area(_PREVALENCE)
    table = []
    for estimator in STUDIED:
        estimates = np.concatenate([f.estimates[estimator] for f in found])
        tails = np.quantile(estimates, [0.5 - _CONFIDENCE / 2, 0.5 + _CONFIDENCE / 2])
        ideal = float(tails[1] - tails[0])
        for method in METHODS:
            low, high, place = (
                np.concatenate([f.intervals[estimator, method][k] for f in found]) for k in range(3)
            )
            table.append(
                {
                    "scenario": name,
                    "examples": size,
                    "prevalence": _PREVALENCE,
                    "estimator": estimator,
                    "method": method,
                    "repetitions": int(low.size),
                    "true_area": truth,
                    "coverage": float(np.mean((low <= truth) & (truth <= high))),
                    "mean_width": float(np.mean(high - low)),
                    "ideal_width": ideal,
                    "width_ratio": float(np.mean(high - low)) / ideal,
                    "location_ratio": float(np.mean(place)) / truth,
                }
            )
    return table


def _verdicts(table: list[dict[str, Any]]) -> list[str]:
    said = []
    for method in METHODS:
        mine = [row for row in table if row["method"] == method]
        worst = min(mine, key=lambda row: float(row["coverage"]))
        below = sum(row["coverage"] < _CONFIDENCE for row in mine)
        said.append(
            f"{method}: lowest coverage {worst['coverage']:.3f} ({worst['scenario']}, "
            f"{worst['estimator']}, {worst['examples']:,} examples); below 0.95 in {below} of "
            f"{len(mine)} cells."
        )
    return said


def _mean(table: list[dict[str, Any]], method: str, column: str) -> float:
    return float(np.mean([row[column] for row in table if row["method"] == method]))


def _covering(table: list[dict[str, Any]]) -> list[Claim]:
    cover = {method: _mean(table, method, "coverage") for method in METHODS}
    runs = min(row["repetitions"] for row in table)
    slack = 2 * (0.95 * 0.05 / runs / len(SCENARIOS) / len(_SIZES)) ** 0.5
    small = {
        method: min(
            row["coverage"]
            for row in table
            if row["method"] == method and row["examples"] == min(_SIZES)
        )
        for method in METHODS
    }
    return [
        Claim(
            "Formula intervals cover 0.95 or more",
            "consistently above 0.95",
            f"binomial {cover['binomial']:.3f} and logit {cover['logit']:.3f} on average",
            min(cover["binomial"], cover["logit"]) > _CONFIDENCE - slack,
        ),
        Claim(
            "Bootstrap and cross-validation cover less, most of all with few examples",
            "below 0.95",
            f"{cover['bootstrap']:.3f} and {cover['cross-validation']:.3f} on average, "
            f"{small['bootstrap']:.3f} and {small['cross-validation']:.3f} in the worst cell of "
            "200 examples",
            max(cover["bootstrap"], cover["cross-validation"])
            < min(cover["binomial"], _CONFIDENCE),
            "On average over all sizes one of them is at 0.95 or more; see the worst cell.",
        ),
    ]


def _narrowest(table: list[dict[str, Any]]) -> Claim:
    wide = {method: _mean(table, method, "width_ratio") for method in METHODS}
    return Claim(
        "Bootstrap intervals are the narrowest, those by formula the widest",
        "graph",
        ", ".join(f"{method} {value:.2f}" for method, value in wide.items()),
        wide["bootstrap"] == min(wide[m] for m in METHODS[:4])
        and wide["cross-validation"] < max(wide["binomial"], wide["logit"]),
        "Few repetitions: the ideal width is itself estimated.",
    )


def _places(table: list[dict[str, Any]]) -> Claim:
    off = {
        method: float(
            np.mean([abs(r["location_ratio"] - 1) for r in table if r["method"] == method])
        )
        for method in ("binomial", "bootstrap", "cross-validation")
    }
    return Claim(
        "Cross-validation looks in the wrong place, bootstrap a little",
        "graph",
        ", ".join(f"{method} off by {value:.3f}" for method, value in off.items()),
        off["binomial"] <= off["bootstrap"] + 0.005 < off["cross-validation"],
    )


def _narrower(table: list[dict[str, Any]]) -> list[str]:
    cells = {
        (row["scenario"], row["examples"], row["estimator"], row["method"]): row["mean_width"]
        for row in table
    }
    said = []
    for other in METHODS[:-1]:
        ratios = [
            width / cells[scenario_, size, estimator, other]
            for (scenario_, size, estimator, method), width in cells.items()
            if method == "effective"
        ]
        said.append(
            f"effective is {np.mean(ratios):.3f} of the width of {other} on average "
            f"({min(ratios):.3f} to {max(ratios):.3f})."
        )
    return said


def _panels(
    table: list[dict[str, Any]],
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    *,
    rule: float,
    lines: bool = True,
) -> Any:
    import altair as alt

    shown = {x, y, "method"}
    floor = 0.75 if y == "coverage" else None
    y_title = f"{y_title} (0.75: or less)" if floor else y_title
    by_size = x == "examples"
    scale = alt.Scale(type="log", nice=False) if by_size else alt.Scale(zero=False)
    ticks = {"axis": alt.Axis(values=list(_SIZES), format="~s")} if by_size else {}
    grid = []
    for world in SCENARIOS:
        panels = []
        for estimator in STUDIED:
            part = [
                {key: row[key] for key in shown}
                for row in table
                if (row["scenario"], row["estimator"]) == (world.name, estimator)
            ]
            for row in part:
                row[y] = max(row[y], floor) if floor else row[y]
            domain = alt.Scale(domain=[0.75, 1.0]) if floor else alt.Scale(zero=False)
            present = [m for m in METHODS if any(row["method"] == m for row in part)]
            hues = [_HUES[m] for m in present]  # the same in every figure
            colour = alt.Color(
                "method:N", title="Interval", scale=alt.Scale(domain=present, range=hues)
            )
            base = alt.Chart(rows(part)).encode(
                x=alt.X(f"{x}:Q", title=x_title, scale=scale, **ticks),
                y=alt.Y(f"{y}:Q", title=y_title, scale=domain),
                color=colour,
            )
            marks = (
                base.mark_line(point={"size": 26}, strokeWidth=1.6)
                if lines
                else base.mark_point(size=40, shape="circle")
            )
            level = (
                alt.Chart(rows([{"v": rule}]))
                .mark_rule(color=INK, strokeWidth=1.6)
                .encode(y=alt.Y("v:Q", scale=domain))
            )
            panels.append(
                (level + marks).properties(
                    title=f"{world.name}, {estimator.replace('-', ' ')}", width=235, height=150
                )
            )
        grid.append(alt.hconcat(*panels))
    return alt.vconcat(*grid)
