"""Pictures and tables that the two ROC papers share."""

from __future__ import annotations

from typing import Any

import numpy as np

from heldout_papers.altair_svg import rows
from heldout_papers.colours import HELDOUT, scale
from heldout_papers.registry import Context, Reproduction
from heldout_papers.roc_study import OURS, Job, Result, known, run, true_curves
from heldout_papers.scored_sets import ScoredSet, sms, twitter

__all__ = ["corners", "curves", "in_order", "lines", "text_sets", "with_ours"]


_TITLES = {
    "median error": "Median area between the ROC curves",
    "mean AUC error": "Mean error of the AUC",
    "mean area between": "Mean area between the ROC curves",
    "difference": "Difference of AUC told apart",
}


def curves(context: Context, jobs: list[Job], label: str, *, notes: Any) -> Reproduction:
    """One true and one private curve a panel, as points and as charts."""
    import altair as alt

    results = in_order(context.over(run, jobs, label=label), jobs)
    points: list[dict[str, Any]] = []
    panels = []
    for data, epsilon in dict.fromkeys((r.job.cell.name, r.job.epsilon) for r in results):
        here = [r for r in results if (r.job.cell.name, r.job.epsilon) == (data, epsilon)]
        drawn = [("true", true_curves(here[0].job.cell)), *((r.job.label, r.last) for r in here)]
        part = [
            {
                "data": data,
                "epsilon": epsilon,
                "curve": name,
                "area": float(np.trapezoid(curve.roc[1], curve.roc[0])),
                "fpr": x,
                "tpr": y,
            }
            for name, curve in drawn
            for x, y in corners(*curve.roc)
        ]
        points += part
        shown = [{**row, "place": place} for place, row in enumerate(part)]
        said = [f"{n} {curve.auc:.3f}" for n, curve in drawn]
        lines_ = [f"AUC: {said[0]}", ", ".join(said[1:])]
        heading = alt.Title(f"{data}, epsilon {epsilon}", subtitle=lines_, subtitleFontSize=10)
        panels.append(
            alt.Chart(rows(shown), title=heading, width=230, height=200)
            .mark_line(strokeWidth=1.6)
            .encode(
                x=alt.X("fpr:Q", title="False positive rate"),
                y=alt.Y("tpr:Q", title="True positive rate"),
                color=alt.Color("curve:N", title="Curve", scale=scale(n for n, _ in drawn)),
                order="place:Q",
            )
        )
    errors = "; ".join(
        f"{r.job.cell.name} {r.job.epsilon} {r.job.label} {r.roc[-1]:.3f}" for r in results
    )
    return Reproduction(
        title="True and private ROC curves",
        table=points,
        charts=[alt.concat(*panels, columns=4)],
        description="One panel a data set and epsilon: the true curve and one private draw.",
        notes=[*notes, f"Areas between the curves: {errors}."],
    )


def text_sets(context: Context) -> list[ScoredSet]:
    if "text test sets" not in context.shared:
        assert context.data is not None
        context.shared["text test sets"] = [sms(context.data), twitter(context.data)]
    found: list[ScoredSet] = context.shared["text test sets"]
    return found


def with_ours(methods: dict[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    return {**methods, HELDOUT: (OURS, {})} if known(OURS) else methods


def in_order(results: Any, jobs: list[Job]) -> list[Result]:
    """Workers finish in any order; tables do not."""
    keys = [_key(job) for job in jobs]
    return sorted(results, key=lambda result: keys.index(_key(result.job)))


def _key(job: Job) -> tuple[Any, ...]:
    return (job.cell.name, job.label, job.epsilon, str(job.options), job.runs)


def lines(
    found: list[dict[str, Any]],
    x: str,
    title: str,
    *,
    y: str,
    detail: str = "",
    colour: str = "method",
) -> Any:
    """One panel a data set, one line a method (or what `colour` names); axes from zero."""
    import altair as alt

    kind = "Q" if "epsilon" in x else "O"
    shown = [{**row, x: float(row[x])} if kind == "Q" else dict(row) for row in found]
    names = list(dict.fromkeys(row[colour] for row in found))
    places = sorted({row[x] for row in shown})
    across = alt.X(
        f"{x}:{kind}",
        title=title,
        scale=alt.Scale(type="log", nice=False, padding=12) if kind == "Q" else alt.Undefined,
        axis=alt.Axis(values=places, format="~g" if kind == "Q" else "", labelAngle=0),
    )
    panels = [
        alt.Chart(
            rows([row for row in shown if row["data"] == data]),
            title=f"{data}{detail}",
            width=260,
            height=220,
        )
        .mark_line(point=True)
        .encode(
            x=across,
            y=alt.Y(f"{y}:Q", title=_TITLES.get(y, y), scale=alt.Scale(domainMin=0)),
            color=alt.Color(
                f"{colour}:N",
                title=colour.capitalize(),
                scale=scale(str(name) for name in names),
                legend=alt.Legend(labelLimit=240),
            ),
        )
        for data in dict.fromkeys(row["data"] for row in shown)
    ]
    return alt.hconcat(*panels)


def corners(x: Any, y: Any) -> list[tuple[float, float]]:
    """A curve without the points inside a straight piece; its area stays what it is.

    Points that repeat the one before go first: beside a step of no length nothing seems to turn.

    >>> corners([0, 0, 0, 0, 0.5, 1], [0, 0.5, 1, 1, 1, 1])
    [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    """
    points = np.stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)], axis=1)
    points = points[np.append(True, np.any(np.diff(points, axis=0) != 0, axis=1))]
    run, rise = np.diff(points, axis=0).T
    turns = np.abs(run[:-1] * rise[1:] - run[1:] * rise[:-1])
    sharp = turns > 1e-9 * np.hypot(run[:-1], rise[:-1]) * np.hypot(run[1:], rise[1:])
    kept = points[np.concatenate([[True], sharp, [True]])] if len(points) > 1 else points
    return [(float(across), float(up)) for across, up in kept]
