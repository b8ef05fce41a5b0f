"""Boyd, 2014, figures 4.5 and 4.6: how far the eight estimators are from the true area."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heldout.drawing.chart import MUTED
from heldout.precision_recall import ESTIMATORS
from heldout_papers.altair_svg import rows
from heldout_papers.batches import areas, binormal_areas, negatives_above
from heldout_papers.colours import scale
from heldout_papers.registry import Claim, Context, Reproduction, figure
from heldout_papers.scenarios import SCENARIOS, scenario

_PAPER = "boyd-2014"
_REPETITIONS = 10_000
_SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_PREVALENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_ROWS_A_JOB = 1_000_000
_SEED = 20140405


class _Job(NamedTuple):
    scenario: str
    size: int
    prevalence: float
    repetitions: int
    seed: Any


class _Sums(NamedTuple):
    scenario: str
    size: int
    prevalence: float
    repetitions: int
    total: dict[str, float]
    squares: dict[str, float]


@figure(paper=_PAPER, number="4.5", quick=60, title="Bias ratio by data set size")
def bias_by_size(context: Context) -> Reproduction:
    """Mean estimate over true area at prevalence 0.1, 100 to 10,000 examples."""
    cells = [(size, 0.1) for size in _SIZES]
    table = _study(context, cells, "figure 4.5")
    return Reproduction(
        title="Bias ratio of the estimators by number of examples (prevalence 0.1)",
        table=table,
        charts=[_panels(table, "examples", "Examples (n + m)")],
        description="Mean estimate over true area, by number of examples, three scenarios.",
        notes=[_converged(table, max(_SIZES))],
        claims=[_convergence(table), *_orders(table, "examples", min(_SIZES))],
    )


@figure(paper=_PAPER, number="4.6", quick=60, title="Bias ratio by prevalence")
def bias_by_prevalence(context: Context) -> Reproduction:
    """Mean estimate over true area with 1,000 examples, prevalence 0.01 to 0.5."""
    table = _study(context, [(1_000, pi) for pi in _PREVALENCES], "figure 4.6")
    return Reproduction(
        title="Bias ratio of the estimators by prevalence (1,000 examples)",
        table=table,
        charts=[_panels(table, "prevalence", "Prevalence")],
        description="Mean estimate over true area, by prevalence, three scenarios.",
        notes=["The fewer positives, the more the estimators disagree."],
        claims=[_balance(table), *_orders(table, "prevalence", min(_PREVALENCES))],
    )


def simulate(job: _Job) -> _Sums:
    """One batch of data sets: sums of every estimator."""
    from numpy.random import default_rng

    world = scenario(job.scenario)
    n = round(job.size * job.prevalence)
    up, down = world.draw(default_rng(job.seed), job.repetitions, n, job.size - n)
    found = areas(negatives_above(up, down), job.size - n)
    found["binormal"] = binormal_areas(up, down)
    return _Sums(
        job.scenario,
        job.size,
        job.prevalence,
        job.repetitions,
        {name: float(values.sum()) for name, values in found.items()},
        {name: float(np.square(values).sum()) for name, values in found.items()},
    )


def _study(context: Context, cells: list[tuple[int, float]], label: str) -> list[dict[str, Any]]:
    from numpy.random import SeedSequence

    repetitions = context.repetitions or _REPETITIONS
    plan = [
        (world.name, size, pi, part)
        for world in SCENARIOS
        for size, pi in cells
        for part in _parts(repetitions, max(1, _ROWS_A_JOB // size))
    ]
    seeds = SeedSequence(_SEED).spawn(len(plan))
    jobs = [_Job(*cell, seed) for cell, seed in zip(plan, seeds, strict=True)]
    jobs.sort(key=lambda job: -job.size * job.repetitions)
    results = list(context.over(simulate, jobs, label=label))
    return [
        row
        for world in SCENARIOS
        for size, pi in cells
        for row in _rows(world.name, size, pi, results)
    ]


def _rows(name: str, size: int, prevalence: float, results: list[_Sums]) -> list[dict[str, Any]]:
    mine = [r for r in results if (r.scenario, r.size, r.prevalence) == (name, size, prevalence)]
    count = sum(r.repetitions for r in mine)
    truth = scenario(name).area(prevalence)
    table = []
    for estimator in ESTIMATORS:
        mean = sum(r.total[estimator] for r in mine) / count
        square = sum(r.squares[estimator] for r in mine) / count
        deviation = float(np.sqrt(max(square - mean * mean, 0.0)))
        table.append(
            {
                "scenario": name,
                "examples": size,
                "prevalence": prevalence,
                "estimator": estimator,
                "repetitions": count,
                "true_area": truth,
                "mean_estimate": mean,
                "bias_ratio": mean / truth,
                "bias_ratio_standard_error": deviation / truth / count**0.5,
                "standard_deviation": deviation,
            }
        )
    return table


def _parts(total: int, most: int) -> list[int]:
    whole, rest = divmod(total, most)
    return [most] * whole + ([rest] if rest else [])


def _converged(table: list[dict[str, Any]], size: int) -> str:
    worst = {
        name: max(
            abs(row["bias_ratio"] - 1.0)
            for row in table
            if row["estimator"] == name and row["examples"] == size
        )
        for name in ESTIMATORS
    }
    said = ", ".join(f"{name} {value:.3f}" for name, value in worst.items())
    return f"Largest |bias ratio - 1| at {size:,} examples: {said}."


def _off(table: list[dict[str, Any]], estimator: str, field: str, place: float) -> float:
    """The mean |bias ratio - 1| over the scenarios."""
    here = [r for r in table if (r["estimator"], r[field]) == (estimator, place)]
    return float(np.mean([abs(row["bias_ratio"] - 1) for row in here]))


def _convergence(table: list[dict[str, Any]]) -> Claim:
    last = [row for row in table if row["examples"] == max(_SIZES)]
    wrong = {
        name: max(abs(row["bias_ratio"] - 1) for row in last if row["estimator"] == name)
        for name in ESTIMATORS
    }
    others = max(value for name, value in wrong.items() if name != "binormal")
    return Claim(
        "With many examples all converge but the binormal one, where scores are not normal",
        "graph",
        f"at 10,000 examples the others are off by {others:.3f} at most, binormal by "
        f"{wrong['binormal']:.3f}",
        others < 0.05 < wrong["binormal"],
    )


def _balance(table: list[dict[str, Any]]) -> Claim:
    skewed, even = (_off(table, "binormal", "prevalence", each) for each in (0.01, 0.5))
    return Claim(
        "The binormal estimator's bias falls as the classes become even",
        "graph",
        f"off by {skewed:.3f} at prevalence 0.01, {even:.3f} at 0.5",
        even < skewed,
    )


def _orders(table: list[dict[str, Any]], field: str, place: float) -> list[Claim]:
    """What the dissertation says of related estimators where data are sparse."""
    off = {name: _off(table, name, field, place) for name in ESTIMATORS}
    better, worse = (
        ("interpolated-mean", "interpolated-median"),
        ("interpolated-max", "interpolated-convex"),
    )
    return [
        Claim(
            "The lower trapezoid is more accurate than the upper",
            "graph",
            f"off by {off['lower-trapezoid']:.3f} against {off['upper-trapezoid']:.3f}",
            off["lower-trapezoid"] < off["upper-trapezoid"],
        ),
        Claim(
            "Interpolating by mean or median is better than by maximum or convex hull",
            "graph",
            ", ".join(f"{name.split('-')[1]} {off[name]:.3f}" for name in (*better, *worse)),
            max(off[name] for name in better) < min(off[name] for name in worse),
        ),
    ]


def _panels(table: list[dict[str, Any]], field: str, title: str) -> Any:
    import altair as alt

    places = sorted({row[field] for row in table} - {0.3, 0.4})  # which have no room in a log axis
    ticks = alt.Axis(values=places, format="~g" if field == "prevalence" else "~s")
    x = alt.X(f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False), axis=ticks)
    shown = ("scenario", field, "estimator", "bias_ratio")
    panels = []
    for world in SCENARIOS:
        part = [{key: row[key] for key in shown} for row in table if row["scenario"] == world.name]
        ratios = [row["bias_ratio"] for row in part]
        low, high = min(0.9, *ratios), max(1.1, *ratios)
        y = alt.Y(
            "bias_ratio:Q",
            title="Bias ratio",
            scale=alt.Scale(domainMin=low, domainMax=high, nice=5, zero=False),
            axis=alt.Axis(tickCount=5),
        )
        colour = alt.Color("estimator:N", title="Estimator", scale=scale(ESTIMATORS))
        lines = (
            alt.Chart(rows(part))
            .mark_line(point={"size": 22}, strokeWidth=1.6)
            .encode(x=x, y=y, color=colour)
        )
        one = (
            alt.Chart(rows([{"y": 1.0}]))
            .mark_rule(color=MUTED, strokeWidth=2)
            .encode(y=alt.Y("y:Q", scale=alt.Scale(zero=False)))
        )
        panels.append((one + lines).properties(title=world.name, width=270, height=260))
    return alt.hconcat(*panels)
