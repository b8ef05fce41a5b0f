"""The four pictures of the separability paper: histograms, ROC curves, coefficients, probabilities.

The paper numbers none of them; here they are figures 3 to 6, on the simulated table of `baltimore`
with Laplace noise at the paper's epsilon of 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heldout.drawing.chart import INK, MUTED, PALETTE
from heldout_papers.altair_svg import rows
from heldout_papers.registry import Claim, Context, Reproduction, figure
from heldout_papers.separability import STAND_IN, Histograms, baltimore, laplace

_PAPER = "separability"
_SEED = 20210405
_EPSILON = 4.0
_SHOWN = 12
_TRUE, _PRIVATE = "true", "privatized"
_COLOURS = {_TRUE: INK, _PRIVATE: PALETTE[1], "epsilon 10": PALETTE[4], "epsilon 4": PALETTE[1]}


class _Fitted(NamedTuple):
    """A logistic regression that tells true rows from privatized ones, on the rows it saw."""

    truth: Histograms
    private: Any
    labels: Any
    probability: Any
    shuffled: Any
    shuffled_labels: Any
    coefficients: Any


@figure(paper=_PAPER, number="3", title="Normalised histograms of one area and month")
def one_histogram(_: Context) -> Reproduction:
    """The true histogram beside two privatized ones: zeros do not stay zeros."""
    import altair as alt

    rng = np.random.default_rng(_SEED)
    truth = baltimore(rng)
    place = int(np.argsort(truth.counts.sum(axis=1))[len(truth.counts) // 2])
    counts = {_TRUE: truth.counts[place]}
    for epsilon in (10.0, _EPSILON):
        counts[f"epsilon {epsilon:g}"] = laplace(truth, epsilon, rng)[place]
    table: list[dict[str, Any]] = [
        {"histogram": name, "type": kind, "share": float(each / max(values.sum(), 1))}
        for name, values in counts.items()
        for kind, each in enumerate(values)
    ]
    highest = float(np.ceil(max(row["share"] for row in table) * 20) / 20)
    panels = [
        alt.Chart(rows([r for r in table if r["histogram"] == name]), title=name.capitalize())
        .mark_bar(color=_COLOURS[name])
        .encode(
            x=alt.X("type:Q", title="Type of incident", scale=alt.Scale(domain=[0, 174])),
            y=alt.Y("share:Q", title="Share of calls", scale=alt.Scale(domain=[0, highest])),
        )
        .properties(width=230, height=180)
        for name in counts
    ]
    zeros = {name: float((values == 0).mean()) for name, values in counts.items()}
    said = ", ".join(f"{name} {share:.0%}" for name, share in zeros.items())
    return Reproduction(
        title="Normalised histograms of one area and month, true and privatized",
        table=table,
        charts=[alt.hconcat(*panels)],
        description="Shares of 174 types of incident; noise fills types that never occur.",
        claims=[
            Claim(
                "The true histogram is mostly zeros, and noise fills them",
                "picture",
                f"zeros: {said}",
                zeros[_TRUE] > 0.5 and zeros["epsilon 4"] < zeros[_TRUE] - 0.1,
            )
        ],
    )


@figure(paper=_PAPER, number="4", title="ROC curves of the classifier, true and shuffled labels")
def roc_curves(context: Context) -> Reproduction:
    """On the rows that it was fitted to, as the paper does."""
    import altair as alt
    from sklearn.metrics import accuracy_score, roc_auc_score, roc_curve

    fit = _fitted(context)
    found: dict[str, tuple[float, float]] = {}
    table: list[dict[str, Any]] = []
    for name, labels, score in (
        ("labels as they are", fit.labels, fit.probability),
        ("labels shuffled", fit.shuffled_labels, fit.shuffled),
    ):
        fpr, tpr, _ = roc_curve(labels, score)
        found[name] = (roc_auc_score(labels, score), accuracy_score(labels, score > 0.5))
        kept = np.linspace(0, len(fpr) - 1, min(len(fpr), 400)).astype(int)
        table += [
            {"labels": name, "fpr": float(fpr[k]), "tpr": float(tpr[k])}
            for k in dict.fromkeys(kept)
        ]
    named = {name: f"{name}, AUC {each[0]:.3f}" for name, each in found.items()}
    shown = [
        {**row, "labels": named[row["labels"]], "place": place} for place, row in enumerate(table)
    ]
    chart = (
        alt.Chart(rows(shown))
        .mark_line()
        .encode(
            x=alt.X("fpr:Q", title="False positive rate"),
            y=alt.Y("tpr:Q", title="True positive rate"),
            color=alt.Color(
                "labels:N",
                title=None,
                scale=alt.Scale(domain=list(named.values()), range=[PALETTE[1], MUTED]),
            ),
            order="place:Q",
        )
        .properties(width=280, height=280)
    )
    (area, accuracy), (other, chance) = found.values()
    return Reproduction(
        title="ROC curves of a logistic regression that tells true rows from privatized ones",
        table=table,
        charts=[chart],
        description="One curve for the labels as they are, one for shuffled labels.",
        notes=[f"Areas: {area:.3f}, and {other:.3f} with shuffled labels."],
        claims=[
            Claim(
                "It tells them apart perfectly, and shuffled labels hardly at all",
                "accuracy 1 against 0.55: separability 0.8",
                f"accuracy {accuracy:.3f} against {chance:.3f}: {accuracy / chance - 1:.2f}",
                accuracy > 0.99 and 0.5 <= chance < 0.6,
            )
        ],
    )


@figure(paper=_PAPER, number="5", title="Coefficients of the classifier, of both signs")
def coefficients(context: Context) -> Reproduction:
    """The strongest clues of either sign: below zero is the mark of a privatized row."""
    import altair as alt

    fit = _fitted(context)
    order = np.argsort(fit.coefficients)
    chosen = [*order[:_SHOWN], *order[-_SHOWN:]]
    often = fit.truth.counts.mean(axis=0)
    table = [
        {
            "type": f"type {place}",
            "coefficient": float(fit.coefficients[place]),
            "calls a month": float(often[place]),
            "speaks for": _TRUE if fit.coefficients[place] > 0 else _PRIVATE,
        }
        for place in chosen
    ]
    chart = (
        alt.Chart(rows(table))
        .mark_bar()
        .encode(
            y=alt.Y(
                "type:N",
                sort=[row["type"] for row in table],
                title=None,
                axis=alt.Axis(minExtent=60),
            ),
            x=alt.X("coefficient:Q", title="Coefficient, of standardised counts"),
            color=alt.Color(
                "speaks for:N",
                title="Speaks for",
                scale=alt.Scale(domain=[_TRUE, _PRIVATE], range=[INK, PALETTE[1]]),
            ),
        )
        .properties(width=320, height=16 * len(table))
    )
    rare, common = (often[fit.coefficients < 0], often[fit.coefficients > 0])
    return Reproduction(
        title="The strongest coefficients of either sign",
        table=table,
        charts=[chart],
        description="Bars to the left: more calls of this type speak for a privatized row.",
        claims=[
            Claim(
                "Coefficients are below zero for types that do not occur, above for frequent ones",
                "picture",
                f"median calls a month: {np.median(rare):.3g} below zero, "
                f"{np.median(common):.3g} above" if len(common) else "none is above zero",
                bool(len(common)) and float(np.median(rare)) < float(np.median(common)),
            )
        ],
    )  # fmt: skip


@figure(paper=_PAPER, number="6", title="Estimated probabilities of being true")
def probabilities(context: Context) -> Reproduction:
    """Of the privatized histograms at epsilon 4."""
    import altair as alt

    fit = _fitted(context)
    private = fit.probability[fit.labels == 0]
    counts, edges = np.histogram(private, bins=40, range=(0, 1))
    table = [
        {"from": float(a), "to": float(b), "share": float(n / len(private))}
        for n, a, b in zip(counts, edges, edges[1:], strict=False)
    ]
    chart = (
        alt.Chart(rows(table))
        .mark_bar(binSpacing=0, color=PALETTE[1])
        .encode(
            x=alt.X("from:Q", title="Estimated probability that a privatized row is true"),
            x2="to:Q",
            y=alt.Y("share:Q", title="Share of privatized rows", scale=alt.Scale(domain=[0, 1])),
            y2=alt.Y2Datum(0),
        )
        .properties(width=360, height=220)
    )
    mean, variance = float(private.mean()), float(private.var())
    return Reproduction(
        title="Estimated probabilities that privatized histograms are true, epsilon 4",
        table=table,
        charts=[chart],
        description="Nearly all are near 0.",
        claims=[
            Claim(
                "Nearly all privatized histograms are seen through",
                "mean probability 0.014",
                f"mean probability {mean:.3g}",
                mean < 0.05,
                data=STAND_IN,
            ),
            Claim(
                "The estimated probabilities vary",
                "variance 0.00567",
                f"variance {variance:.3g}",
                0.00567 / 3 < variance < 0.00567 * 3,
                "The simulated areas are all recognised; the challenge had areas that pass for "
                "true ones.",
                data=STAND_IN,
            ),
        ],
    )


def _fitted(context: Context) -> _Fitted:
    """Once a command: three pictures look at the same fit."""
    if "separability fit" in context.shared:
        known: _Fitted = context.shared["separability fit"]
        return known
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(_SEED)
    truth = baltimore(rng)
    private = laplace(truth, _EPSILON, rng)
    seen = StandardScaler().fit_transform(np.concatenate([truth.counts, private]).astype(float))
    labels = np.repeat([1, 0], len(truth.counts))
    mixed = rng.permutation(labels)
    model = LogisticRegression(max_iter=500).fit(seen, labels)
    other = LogisticRegression(max_iter=500).fit(seen, mixed)
    found = _Fitted(
        truth, private, labels, model.predict_proba(seen)[:, 1],
        other.predict_proba(seen)[:, 1], mixed, model.coef_[0],
    )  # fmt: skip
    context.shared["separability fit"] = found
    return found
