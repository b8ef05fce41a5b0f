"""The studies that the 2015 paper and the dissertation share, each made once a command."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from heldout.kernel.ranking.sensitivity import AreaSensitivity, SmoothSensitivity
from heldout_papers.private_ranking import (
    METRICS,
    OURS,
    PROTECTION,
    THEIRS,
    Cell,
    Method,
    Release,
    World,
    errors,
    exact_draws,
    mechanism,
    worlds,
)
from heldout_papers.private_ranking_pictures import FLOOR, histogram_rows, histograms
from heldout_papers.registry import Claim, Context, Reproduction, Verdict

__all__ = [
    "DRAWS",
    "against_estimation",
    "agreement",
    "ahead",
    "draws_of",
    "error_table",
    "falling",
    "gains",
    "median_noise",
    "notes",
    "smooth_sensitivity",
]

SIZES = (30, 100, 300, 1000)
EPSILONS = ("0.05", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5", "0.6", "0.8", "1")
DRAWS = 2000
_REPETITIONS = 2000
_IN_DOUBLES = (
    "Noise for the errors is drawn in doubles from the laws that the exact sampler has; curves and "
    "histograms are drawn by the exact sampler."
)
_COUNTS = (
    "Ours is the whole release: its noisy class counts, for the intervals, are paid from epsilon."
)


# --- sensitivity and noise by class count --------------------------------------------------------


def smooth_sensitivity(
    size: int, positives: Any, betas: dict[str, Fraction | None]
) -> list[dict[str, Any]]:
    """The closed form, and beside it equation (9) by its loop over all class counts."""
    local = AreaSensitivity(protection=PROTECTION)
    counts = np.arange(size + 1)
    published = 1 / np.maximum(np.minimum(counts, size - counts), 1)
    table = []
    for name, beta in betas.items():
        for n in (int(each) for each in positives):
            rung = min(n, size - n)
            if beta is None:
                value, loop = local.upper(rung), float(published[n])
            else:
                value = SmoothSensitivity(local=local, beta=beta, rung=rung).approximate()
                loop = float(np.max(published * np.exp(-float(beta) * np.abs(counts - n))))
            table.append(
                {"quantity": "smooth sensitivity", "rows": size, "positives": n, "curve": name,
                 "value": value, "equation 9": loop}
            )  # fmt: skip
    return table


def agreement(table: list[dict[str, Any]]) -> Claim:
    """The paper's loop over all class counts and our closed form."""
    worst = max(abs(row["value"] - row["equation 9"]) for row in table)
    return Claim(
        "The smooth sensitivity of AUC is equation (9) (5.15 of the dissertation)",
        "the loop over all class counts",
        f"our closed form, without a loop, differs by {worst:.1g} at most",
        worst < 1e-9,
    )


def median_noise(size: int, positives: Any, epsilon: str) -> list[dict[str, Any]]:
    """The median of |noise| on each number of positives, by mechanism."""
    edges = np.geomspace(1e-6, 1e3, 3000)
    local = AreaSensitivity(protection=PROTECTION)
    table = []
    for method in (THEIRS[0], THEIRS[-1], OURS, None):
        label = method.label if method else FLOOR
        known: dict[int, float] = {}
        for n in (int(each) for each in positives):
            rung = min(n, size - n)
            if rung not in known and method is None:
                known[rung] = float(np.log(2)) * local.upper(rung) / float(epsilon)
            elif rung not in known and method is not None:
                release = mechanism("auc", method, epsilon=epsilon, rows=size)
                law = release.expected_law(positives=rung, negatives=size - rung)
                tails = law.survival(np.full(edges.shape, rung), edges)
                known[rung] = float(np.interp(-0.5, -tails, edges))
            table.append(
                {"quantity": "median noise", "rows": size, "positives": n, "curve": label,
                 "epsilon": epsilon, "value": known[rung]}
            )  # fmt: skip
    return table


# --- repeated releases ---------------------------------------------------------------------------


def draws_of(
    context: Context, world: World, cells: list[tuple[str, int]], *, label: str, columns: int
) -> Reproduction:
    """Repeated releases of one test set a cell, on the whole axis and close up."""
    random = np.random.default_rng(4)
    subsets = {size: world.subset(size, random) for _, size in cells}
    jobs = [
        Release(f"{METRICS[metric]}, n = m = {size:,}", *subsets[size], metric, method, "1",
                context.repetitions or DRAWS, seed)
        for seed, (metric, size) in enumerate(cells)
        for method in (THEIRS[-1], OURS)
    ]  # fmt: skip
    found = list(context.over(exact_draws, jobs, label=label))
    found.sort(
        key=lambda each: [(j.name, j.method) for j in jobs].index((each[0].name, each[0].method))
    )
    truths = {job.name: value for job, value, _ in found}
    whole, close = [], []
    for job, value, drawn in found:
        named = {"data": world.name, "panel": job.name, "method": job.method.label}
        whole += histogram_rows(drawn, low=0, high=1, bins=100, **named)
        theirs = next(d for j, _, d in found if j.name == job.name and j.method != OURS)
        reach = max(float(np.quantile(np.abs(theirs - value), 0.95)), 1e-3)
        low, high = max(0.0, value - reach), min(1.0, value + reach)
        close += histogram_rows(drawn, low=low, high=high, bins=40, **named)
    table = [{"axis": "whole", **row} for row in whole] + [
        {"axis": "close", **row} for row in close
    ]
    for row in table:
        row["value without noise"] = truths[row["panel"]]
    title = f"Private value, {world.name}"
    return Reproduction(
        title="Repeated private releases of one test set, epsilon 1",
        table=table,
        charts=[histograms(part, truths, columns=columns, title=title) for part in (whole, close)],
        description="Shares of releases by value; the dashed line is the value without noise.",
        notes=[*notes(context), *_spreads(found)],
        claims=_ends(found),
    )


def _ends(found: list[tuple[Release, float, Any]]) -> list[Claim]:
    """How many releases of average precision lie at 0 or 1, where they are cut off."""
    cut = {
        job.name: float(np.mean((drawn <= 0) | (drawn >= 1)))
        for job, _, drawn in found
        if job.method != OURS and job.metric == "average-precision"
    }
    sizes = sorted(cut, key=lambda name: int(name.split("= ")[-1].replace(",", "")))
    said = "; ".join(f"{name} {cut[name]:.2f}" for name in sizes)
    return [
        Claim(
            "With few rows many private values of AP are truncated to 0 or 1, with many none",
            "graph", said, cut[sizes[0]] > 0.1 > cut[sizes[-1]],
            "Many is taken to be more than one in ten.",
        )
    ]  # fmt: skip


def _spreads(found: list[tuple[Release, float, Any]]) -> list[str]:
    by_panel: dict[str, list[str]] = {}
    for job, value, drawn in found:
        error = float(np.mean(np.abs(drawn - value)))
        by_panel.setdefault(job.name, []).append(f"{job.method.label}: {error:.4f}")
    return [f"Mean absolute error, {name}: {'; '.join(each)}." for name, each in by_panel.items()]


# --- errors by epsilon ---------------------------------------------------------------------------


def error_table(context: Context, metric: str) -> list[dict[str, Any]]:
    """The study of figure 5, of 5.4 and of 5.5, made once a command."""
    key = f"private ranking errors {metric}"
    if key not in context.shared:
        cells = [
            Cell(world, metric, size, EPSILONS, context.repetitions or _REPETITIONS, 100 * i + size)
            for i, world in enumerate(worlds(context))
            for size in SIZES
        ]
        table = [row for part in context.over(errors, cells, label=metric) for row in part]
        names = [world.name for world in worlds(context)]
        table.sort(key=lambda row: (names.index(row["data"]), row["n"]))
        context.shared[key] = table
    found: list[dict[str, Any]] = context.shared[key]
    return found


def _at(table: list[dict[str, Any]], method: Method, error: str, **place: Any) -> float:
    """The mean over data sets of an error in one cell."""
    here = [
        row[error]
        for row in table
        if row["method"] == method.label and all(row[key] == each for key, each in place.items())
    ]
    return float(np.mean(here))


def falling(table: list[dict[str, Any]], error: str) -> list[Claim]:
    """What both texts say of private AUC and AP by epsilon and size."""
    last = {"epsilon": 1.0}
    sizes = [_at(table, THEIRS[-1], error, n=n, **last) for n in SIZES]
    cauchy, laplace = (_at(table, each, error, n=1000, **last) for each in (THEIRS[0], THEIRS[-1]))
    return [
        Claim(
            "The error falls as the data set grows",
            "graph",
            " ".join(f"{each:.3f}" for each in sizes) + " at n = m = 30, 100, 300, 1,000",
            sizes == sorted(sizes, reverse=True),
        ),
        Claim(
            "With Cauchy noise (delta 0) it falls more slowly than with Laplace noise",
            "graph",
            f"{cauchy:.4f} against {laplace:.4f} at n = m = 1,000, epsilon 1",
            cauchy > laplace,
        ),
    ]


def against_estimation(table: list[dict[str, Any]]) -> list[Claim]:
    """2015, figure 5: the noise beside what is not known anyway."""
    place = {"n": 1000, "epsilon": 1.0}
    noise = {
        name: [
            _at(table, each, "mean absolute error", metric=name, **place)
            for each in (THEIRS[-1], OURS)
        ]
        for name in METRICS.values()
    }
    known = {
        name: _at(table, OURS, "estimation error", metric=name, **place)
        for name in METRICS.values()
    }
    said = {
        name: f"{noise[name][0]:.4f} against {known[name]:.4f} (heldout {noise[name][1]:.4f})"
        for name in known
    }
    return [
        Claim(
            "With delta > 0 the noise of AUC is like or below the estimation error, at n = m = "
            "1,000 and epsilon 1",
            "graph", said["AUC"], noise["AUC"][0] < 1.2 * known["AUC"],
        ),
        Claim(
            "The noise of AP is much above its estimation error",
            "graph", said["AP"], noise["AP"][0] > 2 * known["AP"],
        ),
    ]  # fmt: skip


def gains(table: list[dict[str, Any]], error: str) -> list[str]:
    """How much smaller ours is than the best of theirs with the same privacy, and with delta."""
    keys = ("data", "metric", "n", "epsilon")
    by_cell: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in table:
        by_cell.setdefault(tuple(row[key] for key in keys), {})[row["method"]] = row[error]
    strong = [cell for (_, _, n, epsilon), cell in by_cell.items() if n * epsilon >= 100]
    said = []
    for theirs in (THEIRS[0], THEIRS[-1]):
        ratios = [cell[theirs.label] / cell[OURS.label] for cell in strong]
        said.append(
            f"{theirs.label}: {min(ratios):.1f} to {max(ratios):.1f} times our error where "
            "n epsilon is 100 or more."
        )
    return said


def ahead(table: list[dict[str, Any]], error: str) -> Claim:
    """Count the cells in which ours errs less than the best of theirs, with and without delta."""
    keys = ("data", "metric", "n", "epsilon")
    cells: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in table:
        cells.setdefault(tuple(row.get(key) for key in keys), {})[row["method"]] = row[error]
    below = sum(
        cell[OURS.label] < min(cell[method.label] for method in THEIRS) for cell in cells.values()
    )
    return Claim(
        "heldout errs less than the best of the published methods",
        "not in the paper",
        f"{below} of {len(cells)} cells",
        Verdict.OURS,
        data=_STAND_IN if any("diabetes" in str(key[0]) for key in cells) else "",
    )


_STAND_IN = "diabetes130 for the competition's set"


def notes(context: Context) -> list[str]:
    """What every figure of these two papers must say."""
    if context.data is None:
        source = "Scores are simulated (two normal laws); pass --data for adult and diabetes130."
    else:
        source = (
            "adult: logistic regression on its training split. diabetes130, in place of the "
            "competition's set: readmission within 30 days, one stay a patient, half to train."
        )
    return [source, _IN_DOUBLES, _COUNTS]
