"""Boyd, 2014: the small figures and tables of chapters 2, 3 and 5, and its open summary PR curve.

Figure 5.2 is figure 1 of Boyd, Lantz and Page 2015. Table 3.3's model and data are not public: its
question, how areas change when negatives are left out, is asked of a binormal model instead.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from heldout.drawing.chart import INK, MUTED, PALETTE
from heldout.precision_recall import minimum_auc, minimum_precision
from heldout.precision_recall.estimators import NormalScores
from heldout.precision_recall.estimators import precision as binormal_precision
from heldout_papers.altair_svg import rows
from heldout_papers.batches import exact_area
from heldout_papers.pr_space import axis, space, words
from heldout_papers.registry import Claim, Context, Reproduction, Verdict, figure, table

_PAPER = "boyd-2014"
_SIDE = {"width": 300, "height": 300}
_MODEL = NormalScores(mean=1.5, deviation=1.0)


@figure(paper=_PAPER, number="2.1", title="A ROC curve and guessing")
def sample_roc(_: Context) -> Reproduction:
    """The curve of a symmetric binormal model, the diagonal, and the notable points."""
    from heldout.questions.ranking.release import binormal_roc

    fpr = np.linspace(0, 1, 101)
    curve = binormal_roc(0.85, fpr)
    found = [{"curve": "a model, AUC 0.85", "fpr": float(x), "tpr": float(y)}
             for x, y in zip(fpr, curve, strict=True)]  # fmt: skip
    found += [{"curve": "guessing", "fpr": each, "tpr": each} for each in (0.0, 1.0)]
    notable = [
        {"fpr": 0.0, "tpr": 1.0, "text": "ideal"},
        {"fpr": 0.0, "tpr": 0.0, "text": "all called negative"},
        {"fpr": 1.0, "tpr": 1.0, "text": "all called positive"},
    ]
    return Reproduction(
        title="A sample ROC curve and the curve of guessing",
        table=found,
        charts=[_roc(found, ["a model, AUC 0.85", "guessing"], [PALETTE[0], MUTED], notable)],
        description="True against false positive rate; the diagonal is guessing.",
    )


@figure(paper=_PAPER, number="2.2", title="A precision-recall curve and guessing")
def sample_pr(_: Context) -> Reproduction:
    """Ten negatives for every positive."""
    import altair as alt

    prevalence, recall = 1 / 11, np.linspace(0.01, 1, 100)
    curve = binormal_precision(_MODEL, prevalence, recall)
    found = [{"recall": float(x), "precision": float(y)}
             for x, y in zip(recall, curve, strict=True)]  # fmt: skip
    line = (
        alt.Chart(rows(found))
        .mark_line(color=PALETTE[0])
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), order="recall:Q")
    )
    return Reproduction(
        title="A sample precision-recall curve and guessing, 10 negatives for every positive",
        table=found,
        charts=[
            (space(prevalence) + line + words([(0.3, 0.72, "a model"), (0.05, 0.13, "guessing")]))
            .properties(**_SIDE)
        ],
        description="The level of guessing is the prevalence, 0.09.",
        claims=[
            Claim(
                "It ends at the prevalence", "(1, 0.09)", f"(1, {found[-1]['precision']:.2f})",
                abs(found[-1]["precision"] - prevalence) < 0.005,
            )
        ],
    )  # fmt: skip


@table(paper=_PAPER, number="2.4", title="A confusion matrix of a skewed data set")
def skewed_confusion(_: Context) -> Reproduction:
    """A false positive rate of 0.1 and a true positive rate of 0.9 at prevalence 0.01."""
    positives, negatives = 100, 9_900
    true, false = round(0.9 * positives), round(0.1 * negatives)
    precision = true / (true + false)
    return Reproduction(
        title="Confusion matrix at prevalence 0.01",
        table=[
            {"called": "positive", "positive": true, "negative": false},
            {"called": "negative", "positive": positives - true, "negative": negatives - false},
        ],
        claims=[Claim("Precision", "0.08", f"{precision:.2f}", round(precision, 2) == 0.08)],
    )


@table(paper=_PAPER, number="3.3", title="Areas when negatives are left out, of a simulated model")
def downsampled(_: Context) -> Reproduction:
    """One binormal model, from one negative a positive to the original 24."""
    from scipy.optimize import brentq

    printed = {1: (0.851, 0.785), 2: (0.740, 0.680), 3: (0.678, 0.627), 4: (0.701, 0.665),
               5: (0.599, 0.560), 10: (0.383, 0.352), 24: (0.363, 0.349)}  # fmt: skip

    def area(mean: float, ratio: int) -> float:
        found = exact_area(mean=mean, deviation=1.0, prevalence=np.array([1 / (1 + ratio)]))
        return float(found[0])

    mean = float(brentq(lambda each: area(each, 24) - printed[24][0], 0.1, 4))
    found: list[dict[str, Any]] = []
    for ratio, (whole, normalised) in printed.items():
        least = minimum_auc(prevalence=1 / (1 + ratio), recall=(0, 1))
        value = area(mean, ratio)
        found.append({
            "ratio": f"1:{ratio}", "AUCPR": value, "AUCNPR": (value - least) / (1 - least),
            "AUCPR in the paper": whole, "AUCNPR in the paper": normalised,
        })  # fmt: skip
    spread = [float(np.var([row[name] for row in found])) for name in ("AUCPR", "AUCNPR")]
    rise = found[0]["AUCPR"] / found[-1]["AUCPR"]
    return Reproduction(
        title="AUCPR and AUCNPR of one model by ratio of positives to negatives",
        table=found,
        notes=["A binormal model with the printed area at 1:24; SAYU's scores are not public."],
        claims=[
            Claim(
                "AUCNPR varies less with the skew than AUCPR",
                "text",
                f"variances {spread[1]:.3f} and {spread[0]:.3f}",
                spread[1] < spread[0],
            ),
            Claim(
                "At 1:1 the area is more than twice that of the original skew",
                "2.3 times",
                f"{rise:.1f} times",
                rise > 2,
            ),
        ],
    )


@figure(paper=_PAPER, number="5.2", title="ROC curves of two neighbouring databases")
def neighbours_2014(_: Context) -> Reproduction:
    """15 positives and 15 negatives; one negative becomes a positive with a new score."""
    return _neighbours()


@figure(paper="boyd-2015", number="1", title="ROC curves of two neighbouring databases")
def neighbours_2015(_: Context) -> Reproduction:
    """The same figure in the paper."""
    return _neighbours()


@figure(paper=_PAPER, number="6.1", title="Summary PR curves over skews")
def summary_curves(_: Context) -> Reproduction:
    """Vertical averages, and averages of what is achieved of the achievable, at a chosen skew."""
    import altair as alt

    recall = np.linspace(0.005, 1, 200)
    skews, chosen = (0.01, 0.05, 0.1, 0.5), 0.1
    curves = {f"prevalence {each:g}": binormal_precision(_MODEL, each, recall) for each in skews}
    least = {
        each: np.asarray(minimum_precision(recall=recall, prevalence=each))
        for each in (*skews, chosen)
    }
    achieved = np.mean(
        [(curve - least[each]) / (1 - least[each])
         for each, curve in zip(skews, curves.values(), strict=True)], axis=0,
    )  # fmt: skip
    rates = np.mean(
        [(1 / curve - 1) * recall * each / (1 - each)
         for each, curve in zip(skews, curves.values(), strict=True)], axis=0,
    )  # fmt: skip
    curves["vertical average"] = np.mean(list(curves.values()), axis=0)
    curves["pr.summary_curve, at 0.1"] = chosen * recall / (chosen * recall + (1 - chosen) * rates)
    curves["achieved, at 0.1"] = least[chosen] + achieved * (1 - least[chosen])
    found = [
        {"curve": name, "recall": float(x), "precision": float(y)}
        for name, curve in curves.items()
        for x, y in zip(recall, curve, strict=True)
    ]
    names = list(curves)
    colours = [*("#c9d1d9", "#aab4be", "#8b97a3", MUTED), PALETTE[1], PALETTE[2], PALETTE[0]]
    chart = (
        alt.Chart(rows(found))
        .mark_line()
        .encode(
            x=axis("recall", "Recall"), y=axis("precision", "Precision"),
            color=alt.Color("curve:N", title=None, scale=alt.Scale(domain=names, range=colours)),
        )
        .properties(width=340, height=300)
    )  # fmt: skip
    areas = {name: float(np.trapezoid(curve, recall)) for name, curve in curves.items()}
    true = areas["prevalence 0.1"]
    return Reproduction(
        title="Three ways to sum up curves of one model at four skews",
        table=found,
        charts=[chart],
        description="Grey: the model at prevalence 0.01 to 0.5. Colours: three summaries.",
        notes=[
            "One binormal model, so that the curve at prevalence 0.1 is what a summary at 0.1 "
            f"should be: area {true:.3f}. The vertical average has "
            f"{areas['vertical average']:.3f}, the mean of what is achieved "
            f"{areas['achieved, at 0.1']:.3f}: neither has it. Achievement itself "
            "changes with the skew, so an average of it over skews is no property of the model. "
            "False positive rates do not change with the skew: their mean at each recall, put back "
            "at prevalence 0.1 (`pr.summary_curve`), has it.",
        ],
        claims=[
            Claim(
                "A summary curve that is right for one model at several skews",
                "an open question (section 6.1)",
                f"area {areas['pr.summary_curve, at 0.1']:.3f} by mean false positive "
                f"rates where {true:.3f} is right; {areas['achieved, at 0.1']:.3f} by "
                f"what is achieved, {areas['vertical average']:.3f} by vertical average",
                Verdict.OURS,
            )
        ],
    )


def _neighbours() -> Reproduction:
    (first, second), areas = _like_the_paper()
    found: list[dict[str, Any]] = []
    names = [f"{name}, AUC {area:.3f}" for name, area in zip(("D", "D'"), areas, strict=True)]
    for name, (labels, scores) in zip(names, (first, second), strict=True):
        order = np.argsort(-scores, kind="stable")
        up = np.concatenate([[0], np.cumsum(labels[order]) / labels.sum()])
        across = np.concatenate([[0], np.cumsum(1 - labels[order]) / (1 - labels).sum()])
        found += [{"curve": name, "fpr": float(x), "tpr": float(y)}
                  for x, y in zip(across, up, strict=True)]  # fmt: skip
    return Reproduction(
        title="ROC curves of two neighbouring databases",
        table=found,
        charts=[_roc(found, names, [INK, PALETTE[1]], [])],
        description="One negative of D is a positive with another score in D'.",
        notes=["The scores are made up so that the areas are those of the paper."],
        claims=[
            Claim(
                "Areas of D (15 and 15 rows) and D' (16 and 14)",
                "0.796 and 0.772",
                f"{areas[0]:.3f} and {areas[1]:.3f}",
                (round(areas[0], 3), round(areas[1], 3)) == (0.796, 0.772),
            )
        ],
    )


@cache
def _like_the_paper() -> tuple[Any, tuple[float, float]]:
    """The first seed whose two data sets have the printed areas."""
    from heldout.kernel.ranking.sensitivity import area

    for seed in range(20_000):
        random = np.random.default_rng(seed)
        labels = np.repeat([1, 0], 15)
        scores = random.normal(1.1 * labels)
        changed, other = labels.copy(), scores.copy()
        changed[-1], other[-1] = 1, random.normal(-1)
        pairs = (labels, scores), (changed, other)
        found = tuple(float(area(s[y == 1], s[y == 0])) for y, s in pairs)
        if (round(found[0], 3), round(found[1], 3)) == (0.796, 0.772):
            return pairs, (found[0], found[1])
    raise AssertionError("no seed has these areas")


def _roc(
    found: list[dict[str, Any]], names: list[str], colours: list[str], notable: list[dict[str, Any]]
) -> Any:
    import altair as alt

    x = alt.X("fpr:Q", title="False positive rate", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("tpr:Q", title="True positive rate", scale=alt.Scale(domain=[0, 1]))
    shown = [{**row, "place": place} for place, row in enumerate(found)]
    lines = (
        alt.Chart(rows(shown))
        .mark_line()
        .encode(
            x=x, y=y, order="place:Q",
            color=alt.Color("curve:N", title=None, scale=alt.Scale(domain=names, range=colours)),
        )
    )  # fmt: skip
    if not notable:
        return lines.properties(**_SIDE)
    points = alt.Chart(rows(notable)).mark_point(color=INK, size=60).encode(x=x, y=y)
    low = [each for each in notable if each["tpr"] < 0.5]
    left = [each for each in notable if each["fpr"] < 0.5 and each not in low]
    right = [each for each in notable if each["fpr"] >= 0.5]
    texts = [
        alt.Chart(rows(each))
        .mark_text(align=align, dx=dx, dy=dy, color=INK)
        .encode(x=x, y=y, text="text:N")
        for each, align, dx, dy in (
            (left, "left", 8, 14), (low, "left", 24, -8), (right, "right", 0, -10),
        )
    ]  # fmt: skip
    return alt.layer(lines, points, *texts).properties(**_SIDE)
