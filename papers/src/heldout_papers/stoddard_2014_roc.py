"""Stoddard, Chen and Machanavajjhala, 2014, section 5.2: table 1 and figures 6, 7 and 8.

Their relation is add-remove. Their scores came from a privately trained model; ours from a fixed
logistic regression on the same words, so that a true curve differs from theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heldout_papers.registry import Context, Reproduction, figure, table
from heldout_papers.roc_pictures import curves, in_order, lines, text_sets, with_ours
from heldout_papers.roc_study import Job, Result, run
from heldout_papers.scored_sets import SMS, TWITTER

_PAPER = "stoddard-2014"
_EPSILONS = ("1", "0.5", "0.25", "0.1")
_RUNS = 10
_PRINTED = {
    ("Laplace", "SMS"): (0.218, 0.343, 0.372, 0.442),
    ("Laplace", "TWITTER"): (0.073, 0.108, 0.211, 0.340),
    ("FixedSpace", "SMS"): (0.034, 0.042, 0.079, 0.146),
    ("FixedSpace", "TWITTER"): (0.065, 0.094, 0.151, 0.229),
    ("RecursiveMedians", "SMS"): (0.023, 0.029, 0.054, 0.092),
    ("RecursiveMedians", "TWITTER"): (0.055, 0.063, 0.102, 0.203),
}
_SETTINGS = (10, 9, 8, 7)
"""t of Laplace and k of RecursiveMedians; FixedSpace has n/2^(10 - k) thresholds."""


@table(
    paper=_PAPER, number="1", title="Area between true and private ROC", needs_data=[SMS, TWITTER]
)
def table_1(context: Context) -> Reproduction:
    """Median error of 10 runs, the three methods at their largest number of thresholds."""
    results = _study(context, (10,), "table 1")
    found = _errors(results)
    for row in found:
        printed = _PRINTED.get((row["method"], row["data"]))
        row["in the paper"] = printed[_EPSILONS.index(row["epsilon"])] if printed else None
    return Reproduction(
        title="Median area between the true and the private ROC curve, beside the paper's table 1",
        table=found,
        charts=[lines(found, "epsilon", "epsilon")],
        description="Error by epsilon, one line a method, SMS and TWITTER.",
        notes=[*_NOTES, *_order(found)],
    )


@figure(paper=_PAPER, number="6", title="True and private ROC curves", needs_data=[SMS, TWITTER])
def figure_6(context: Context) -> Reproduction:
    """One private curve of recursive medians for each data set and epsilon."""
    methods: dict[str, tuple[str, Any]] = {"RecursiveMedians": ("recursive-medians", {})}
    jobs = [
        Job(cell, label, name, options, epsilon, "add-remove", 1)
        for cell in text_sets(context)
        for epsilon in _EPSILONS
        for label, (name, options) in with_ours(methods).items()
    ]
    return curves(context, jobs, "figure 6", notes=_NOTES)


@figure(paper=_PAPER, number="7", title="Error by method and thresholds", needs_data=[SMS, TWITTER])
def figure_7(context: Context) -> Reproduction:
    """Median error of 10 runs for four numbers of thresholds."""
    found = _errors(_study(context, _SETTINGS, "figure 7"))
    return Reproduction(
        title="Median area between the true and the private ROC curve by number of thresholds",
        table=found,
        charts=[
            lines(
                [row for row in found if row["setting"] in (setting, None)], "epsilon", str(setting)
            )
            for setting in _SETTINGS
        ],
        description="Error by epsilon; one picture a number of thresholds, one line a method.",
        notes=_NOTES,
    )


@figure(paper=_PAPER, number="8", title="Number of thresholds", needs_data=[SMS, TWITTER])
def figure_8(context: Context) -> Reproduction:
    """Recursive medians with 7 to 10 levels."""
    jobs = [
        Job(
            cell,
            "RecursiveMedians",
            "recursive-medians",
            {"levels": k},
            epsilon,
            "add-remove",
            runs,
        )
        for cell in text_sets(context)
        for epsilon in _EPSILONS
        for k in _SETTINGS
        for runs in [context.repetitions or _RUNS]
    ]
    found = _errors(list(context.over(run, jobs, label="figure 8")))
    return Reproduction(
        title="Median error of recursive medians by levels",
        table=found,
        charts=[lines(found, "setting", "levels", colour="epsilon")],
        description="Error by number of levels, one line an epsilon.",
        notes=[*_NOTES, _flat(found)],
    )


_NOTES = (
    "Relation add-remove, as in the paper. Scores of a fixed logistic regression on the presence "
    "of words; the paper's came from a private one.",
    "Laplace: even thresholds and sensitivity t + 1 a row; the paper has 2t + 1 and thresholds "
    "that may depend on the data. Medians: noise 2 S/epsilon, the paper 8 S/epsilon.",
)


def _study(context: Context, settings: tuple[int, ...], label: str) -> list[Result]:
    jobs = []
    for cell in text_sets(context):
        for epsilon in _EPSILONS:
            for setting in settings:
                thresholds = len(cell.labels) // 2 ** (10 - setting)
                methods: dict[str, tuple[str, Any]] = {
                    "Laplace": ("laplace", {"thresholds": setting}),
                    "FixedSpace": ("fixed-space", {"thresholds": thresholds}),
                    "RecursiveMedians": ("recursive-medians", {"levels": setting}),
                }
                if setting == settings[0]:
                    methods = with_ours(methods)
                jobs += [
                    Job(
                        cell,
                        name,
                        *methods[name],
                        epsilon,
                        "add-remove",
                        context.repetitions or _RUNS,
                    )
                    for name in methods
                ]
    return in_order(context.over(run, jobs, label=label), jobs)


def _errors(results: list[Result]) -> list[dict[str, Any]]:
    return [
        {
            "data": each.job.cell.name,
            "method": each.job.label,
            "epsilon": each.job.epsilon,
            "setting": _setting(each.job),
            "runs": each.job.runs,
            "median error": float(np.median(each.roc)),
            "mean error": float(np.mean(each.roc)),
        }
        for each in results
    ]


def _setting(job: Job) -> int | None:
    if job.name == "fixed-space":
        return 10 - round(math.log2(len(job.cell.labels) / job.options["thresholds"]))
    found = job.options.get("thresholds", job.options.get("levels"))
    return None if found is None else int(found)


def _order(found: list[dict[str, Any]]) -> list[str]:
    """How often the paper's order of the three methods comes out."""
    cells = {(row["data"], row["epsilon"]) for row in found}
    error = {(r["data"], r["epsilon"], r["method"]): r["median error"] for r in found}
    held = sum(error[(*cell, "RecursiveMedians")] < error[(*cell, "FixedSpace")] for cell in cells)
    return [f"Recursive medians beat fixed space in {held} of {len(cells)} cells; 8 in the paper."]


def _flat(found: list[dict[str, Any]]) -> str:
    best = [
        min(
            (r for r in found if (r["data"], r["epsilon"]) == cell), key=lambda r: r["median error"]
        )
        for cell in dict.fromkeys((r["data"], r["epsilon"]) for r in found)
    ]
    return f"Best number of levels by cell: {', '.join(str(row['setting']) for row in best)}."
