"""Chen et al., 2016, section IV: figures 6 to 9, private ROC curves and what they can tell apart.

Their relation is replace-one. PriROC is recursive medians with DAWA counts, PriROC-fix even
thresholds with DAWA counts, SmoothS the noisy area of Boyd et al. 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heldout_papers.registry import Claim, Context, Reproduction, figure
from heldout_papers.roc_pictures import curves, in_order, lines, text_sets, with_ours
from heldout_papers.roc_study import PUBLIC_CODE, SMOOTH, Job, Result, run
from heldout_papers.scored_sets import SMS, TWITTER, ScoredSet

_PAPER = "chen-2016"
_EPSILONS = ("1", "0.5", "0.25", "0.1")
_RUNS = 20
_PRIROC: dict[str, tuple[str, Any]] = {"PriROC": ("chen-2016-priroc", {})}
_METHODS: dict[str, tuple[str, Any]] = {
    **_PRIROC,
    "PriROC-fix": ("chen-2016-priroc-fix", {}),
    "PriROC, HB": ("chen-2016-priroc", {"counts": "hierarchical"}),
    "PriROC-fix, HB": ("chen-2016-priroc-fix", {"counts": "hierarchical"}),
    "SmoothS": (SMOOTH, {}),
}
_NOTE = (
    "Relation replace-one, as in the paper. Scores of a fixed logistic regression on the presence "
    "of words; the paper's came from a private one. PriROC has the constants that the paper "
    "prints, and the second stage of DAWA's own paper; HB in its place is drawn beside it."
)
_PUBLIC: dict[str, tuple[str, Any]] = {f"PriROC, {PUBLIC_CODE}": (PUBLIC_CODE, {})}
_AREAS = tuple(round(0.7 + 0.025 * step, 3) for step in range(11))
_ROWS = 2_000
_PRODUCTS = (250, 500, 1_000, 2_500)


@figure(paper=_PAPER, number="6", title="True and private ROC curves", needs_data=[SMS, TWITTER])
def figure_6(context: Context) -> Reproduction:
    """One private curve of PriROC at epsilon 1 and 0.1."""
    jobs = [
        Job(cell, label, name, options, epsilon, "replace-one", 1)
        for epsilon in ("1", "0.1")
        for cell in text_sets(context)
        for label, (name, options) in with_ours(_PRIROC).items()
    ]
    return curves(context, jobs, "figure 6", notes=[_NOTE])


@figure(paper=_PAPER, number="7", quick=6, title="Error of the AUC", needs_data=[SMS, TWITTER])
def figure_7(context: Context) -> Reproduction:
    """Mean |private AUC - true AUC| over 20 runs."""
    found = _table(_study(context, "figure 7"))
    return Reproduction(
        title="Mean error of the area under the private ROC curve",
        table=found,
        charts=[lines(found, "epsilon", "Epsilon", y="mean AUC error")],
        description="Error of the AUC by epsilon, one line a method, SMS and TWITTER.",
        notes=[_NOTE],
        claims=_claims(found, "mean AUC error"),
    )


@figure(paper=_PAPER, number="8", quick=6, title="Symmetric difference", needs_data=[SMS, TWITTER])
def figure_8(context: Context) -> Reproduction:
    """Mean area between the true and the private curve over 20 runs."""
    found = _table(_study(context, "figure 8"))
    return Reproduction(
        title="Mean area between the true and the private ROC curve",
        table=found,
        charts=[lines(found, "epsilon", "Epsilon", y="mean area between")],
        description="Area between the curves by epsilon, one line a method, SMS and TWITTER.",
        notes=[_NOTE],
        claims=_claims(found, "mean area between"),
    )


@figure(paper=_PAPER, number="9", quick=8, title="Discriminatory power")
def figure_9(context: Context) -> Reproduction:
    """The smallest difference of AUC that 20 noisy curves of each of two models tell apart."""
    runs = context.repetitions or _RUNS
    jobs = [
        Job(synthetic(area), label, name, options, epsilon, "replace-one", runs)
        for epsilon in (str(product / _ROWS) for product in _PRODUCTS)
        for area in _AREAS
        for label, (name, options) in with_ours(_PRIROC | _PUBLIC).items()
    ]
    results = in_order(context.over(run, jobs, label="figure 9"), jobs)
    found = [
        {"data": "synthetic", "n epsilon": product, "method": label, "runs": runs, **power}
        for product in _PRODUCTS
        for label in with_ours(_PRIROC | _PUBLIC)
        for power in [_power(results, label, str(product / _ROWS))]
    ]
    return Reproduction(
        title=f"Smallest difference of AUC that is told apart, {_ROWS:,} rows",
        table=found,
        charts=[lines(found, "n epsilon", "n times epsilon", y="difference")],
        description="Smallest difference of AUC with p < 0.05 in every pair, by n times epsilon.",
        notes=[
            f"Two-sample t-tests of {runs} noisy AUCs each, p < 0.05 for every pair.",
            "What is marked * is not private: the noise of DAWA's public code.",
        ],
        claims=_power_claims(found),
    )


def synthetic(area: float) -> ScoredSet:
    """Half positives; normal quantiles, shifted so that the curve has this area."""
    from scipy.special import ndtr, ndtri

    half = _ROWS // 2
    base = ndtri((np.arange(half) + 0.5) / half)
    shift = np.sqrt(2) * ndtri(area)
    scores = ndtr(np.concatenate([base, base + shift]) - shift / 2)
    return ScoredSet(f"AUC {area}", np.repeat([0, 1], half), scores)


def _power(results: list[Result], label: str, epsilon: str) -> dict[str, float | None]:
    """The least step in AUC for which all pairs differ, and its largest p-value."""
    from scipy.stats import ttest_ind

    mine = [r.areas for r in results if (r.job.label, r.job.epsilon) == (label, epsilon)]
    for step in range(1, len(_AREAS)):
        pairs = zip(mine, mine[step:], strict=False)
        worst = max(float(ttest_ind(low, high).pvalue) for low, high in pairs)
        if worst < 0.05:
            return {"difference": round(0.025 * step, 3), "largest p": worst}
    return {"difference": None, "largest p": None}


def _study(context: Context, label: str) -> list[Result]:
    """Figures 7 and 8 look at the same draws."""
    if _PAPER not in context.shared:
        jobs = [
            Job(cell, each, name, options, epsilon, "replace-one", context.repetitions or _RUNS)
            for cell in text_sets(context)
            for epsilon in _EPSILONS
            for each, (name, options) in with_ours(_METHODS).items()
        ]
        context.shared[_PAPER] = in_order(context.over(run, jobs, label=label), jobs)
    found: list[Result] = context.shared[_PAPER]
    return found


def _table(results: list[Result]) -> list[dict[str, Any]]:
    return [
        {
            "data": each.job.cell.name,
            "method": each.job.label,
            "epsilon": each.job.epsilon,
            "runs": each.job.runs,
            "mean AUC error": float(np.mean(each.auc)),
            "mean area between": float(np.mean(each.roc)),
        }
        for each in results
    ]


def _claims(found: list[dict[str, Any]], column: str) -> list[Claim]:
    value = {(r["data"], r["epsilon"], r["method"]): r[column] for r in found}
    cells = list(dict.fromkeys((row["data"], row["epsilon"]) for row in found))

    def below(one: str, two: str) -> int:
        return sum(value[(*cell, one)] < value[(*cell, two)] for cell in cells)

    def compared(said: str, one: str, two: str, why: str) -> Claim:
        count = below(one, two)
        return Claim(
            said, f"{len(cells)} of {len(cells)} cells", f"{count} of {len(cells)} cells",
            count == len(cells), why,
        )  # fmt: skip

    return [
        compared(
            "PriROC below SmoothS", "PriROC", "SmoothS",
            "The noise of DAWA: table IV-C has the same cells with that of its public code, which "
            "is not private under replace-one.",
        ),
        compared(
            "PriROC-fix below SmoothS", "PriROC-fix", "SmoothS",
            "As above.",
        ),
        compared(
            "PriROC below PriROC-fix", "PriROC", "PriROC-fix",
            "A mean of few runs of two methods that differ little.",
        ),
        compared(
            "DAWA better than HB", "PriROC", "PriROC, HB",
            "As above: its public code draws a quarter of the noise that the proof needs for the "
            "buckets (table IV-C).",
        ),
    ]  # fmt: skip


def _power_claims(found: list[dict[str, Any]]) -> list[Claim]:
    at = {(r["method"], r["n epsilon"]): r["difference"] for r in found}
    methods = dict.fromkeys(row["method"] for row in found)
    said = [
        f"{method} {', '.join(str(at[method, p] or 'none') for p in _PRODUCTS)}"
        for method in methods
    ]
    holds = all((at["PriROC", p] or 1) <= 0.025 for p in _PRODUCTS if p >= 1_000)
    return [
        Claim(
            "0.025 apart is told from n epsilon = 1,000 on",
            "0.025",
            f"at n epsilon {', '.join(f'{p:,}' for p in _PRODUCTS)}: {'; '.join(said)}",
            holds,
            f"With the printed constants the areas of {found[0]['runs']} curves vary more than "
            "that; with the noise of DAWA's public code, which is not private, less.",
        )
    ]
