"""Boyd, 2014, figure 2.3 and tables 2.5 and 3.2: simulated stand-ins for data that are not public.

The mammography study and the scores of LSM on IMDB cannot be had. What the dissertation says of
them can be asked of simulated models with the printed areas, and that is all that is done here:
the areas are put in, what follows from them is found.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from heldout.drawing.chart import PALETTE
from heldout.precision_recall import auc, minimum_auc
from heldout.precision_recall.estimators import NormalScores
from heldout.precision_recall.estimators import precision as binormal_precision
from heldout_papers.altair_svg import rows
from heldout_papers.batches import exact_area
from heldout_papers.pr_space import axis, space
from heldout_papers.registry import Claim, Context, Reproduction, figure, table

_PAPER = "boyd-2014"
_PREVALENCE = 0.01
_FOLDS, _ROWS = 10, 6_500
_AGREEMENT = 0.6
"""The correlation of the two algorithms' scores within a class; not printed."""
_PRINTED = {"A": (0.948, 0.123), "B": (0.944, 0.101)}
_ABOVE = (0.5, 1.0)
_REPETITIONS = 200
_SEED = 20140203
_SIMULATED = (
    "Simulated: two normal laws a class, with the printed AUCROC and AUCPR above recall 0.5. Ten "
    f"folds of {_ROWS:,} rows and a correlation of {_AGREEMENT} between the two scores are ours."
)


@cache
def models() -> dict[str, NormalScores]:
    """Two normal laws with the printed areas, one pair of parameters an algorithm."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    def model(area: float, deviation: float) -> NormalScores:
        return NormalScores(float(ndtri(area)) * (1 + deviation**2) ** 0.5, deviation)

    return {
        name: model(area, float(brentq(lambda d: _upper(model(area, d)) - above, 0.5, 2)))  # noqa: B023
        for name, (area, above) in _PRINTED.items()
    }


def _upper(model: NormalScores) -> float:
    """The area under the PR curve above recall 0.5."""
    steps = 400
    recall = 0.5 + (np.arange(steps) + 0.5) / (2 * steps)
    return float(np.mean(binormal_precision(model, _PREVALENCE, recall))) / 2


@figure(paper=_PAPER, number="2.3", title="ROC and PR curves of two algorithms, simulated")
def two_algorithms(_: Context) -> Reproduction:
    """The same two models in both spaces."""
    import altair as alt
    from scipy.special import ndtr, ndtri

    recall = np.linspace(0.001, 0.999, 300)
    found: list[dict[str, Any]] = []
    for name, model in models().items():
        false = ndtr(-(model.mean + model.deviation * ndtri(1 - recall)))
        height = binormal_precision(model, _PREVALENCE, recall)
        found += [
            {"algorithm": name, "fpr": float(x), "recall": float(y), "precision": float(p)}
            for x, y, p in zip(false, recall, height, strict=True)
        ]
    names = list(_PRINTED)

    def lines(named: dict[str, str], x: Any, y: Any) -> Any:
        shown = [
            {**row, "algorithm": f"{row['algorithm']}{named[row['algorithm']]}"} for row in found
        ]
        labels = [f"{name}{named[name]}" for name in names]
        colour = alt.Scale(domain=labels, range=[PALETTE[1], PALETTE[2]])
        return (
            alt.Chart(rows(shown))
            .mark_line()
            .encode(x=x, y=y, color=alt.Color("algorithm:N", title="Algorithm", scale=colour))
        )

    left = lines(
        {name: f", AUC {each[0]}" for name, each in _PRINTED.items()},
        alt.X("fpr:Q", title="False positive rate", scale=alt.Scale(domain=[0, 1])),
        alt.Y("recall:Q", title="True positive rate", scale=alt.Scale(domain=[0, 1])),
    ).properties(width=270, height=270, title="ROC")
    right = (
        space(_PREVALENCE)
        + lines(
            {name: f", area above recall 0.5: {each[1]}" for name, each in _PRINTED.items()},
            axis("recall", "Recall"),
            axis("precision", "Precision"),
        )
    ).properties(width=270, height=270, title="Precision-recall, prevalence 0.01")
    at = [_precision_at(model, 0.9) for model in models().values()]
    return Reproduction(
        title="ROC and PR curves of two simulated algorithms with the printed areas",
        table=found,
        charts=[alt.hconcat(left, right).resolve_scale(color="independent")],
        description="Nearly one curve in ROC space, two in PR space.",
        notes=[_SIMULATED],
        claims=[
            Claim(
                "At recall 0.9 precision is about 10%",
                "10%",
                f"{at[0]:.0%} and {at[1]:.0%}",
                all(0.05 <= each <= 0.15 for each in at),
                "The curves are of two normal laws; the study's own are not public.",
                data="two simulated models for the mammography study",
            )
        ],
    )


def _precision_at(model: NormalScores, recall: float) -> float:
    return float(binormal_precision(model, _PREVALENCE, np.array([recall]))[0])


class _Job(NamedTuple):
    seed: Any


def compared(job: _Job) -> dict[str, float]:
    """One simulated cross-validation: areas of both algorithms by fold, and two paired t-tests."""
    from scipy.stats import ttest_rel
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(job.seed)
    areas: dict[str, list[list[float]]] = {"AUCROC": [], "AUCPR": []}
    labels = (np.arange(_ROWS) < _ROWS * _PREVALENCE).astype(int)
    for _ in range(_FOLDS):
        common = random.normal(size=_ROWS) * _AGREEMENT**0.5
        scores = []
        for model in models().values():
            own = common + random.normal(size=_ROWS) * (1 - _AGREEMENT) ** 0.5
            scores.append(np.where(labels == 1, model.mean + model.deviation * own, own))
        areas["AUCROC"].append([float(roc_auc_score(labels, each)) for each in scores])
        areas["AUCPR"].append([auc(labels, each, recall=_ABOVE) for each in scores])
    found: dict[str, float] = {}
    for measure, values in areas.items():
        first, second = np.array(values).T
        found |= {
            f"{measure} A": float(first.mean()),
            f"{measure} B": float(second.mean()),
            f"{measure} p": float(ttest_rel(first, second).pvalue),
        }
    return found


@table(paper=_PAPER, number="2.5", quick=20, title="AUCROC and AUCPR of two algorithms, simulated")
def two_areas(context: Context) -> Reproduction:
    """How often a paired t-test of ten folds finds the difference, in either space."""
    repetitions = context.repetitions or _REPETITIONS
    jobs = [_Job(each) for each in np.random.SeedSequence(_SEED).spawn(repetitions)]
    found = list(context.over(compared, jobs, label="table 2.5"))
    mean = {key: float(np.median([each[key] for each in found])) for key in found[0]}
    seen = {
        measure: float(np.mean([each[f"{measure} p"] < 0.05 for each in found]))
        for measure in ("AUCROC", "AUCPR")
    }
    return Reproduction(
        title="AUCROC and AUCPR above recall 0.5 of two simulated algorithms",
        table=[
            {
                "": name, "AUCROC": mean[f"AUCROC {key}"], "AUCPR (r > 0.5)": mean[f"AUCPR {key}"],
                "AUCROC in the paper": printed[0], "AUCPR in the paper": printed[1],
            }
            for name, key, printed in (
                ("A", "A", _PRINTED["A"]),
                ("B", "B", _PRINTED["B"]),
                ("p-value", "p", (0.3, "< 0.01")),
            )
        ],
        notes=[_SIMULATED, f"Medians over {repetitions} simulated cross-validations."],
        claims=[
            Claim(
                "A paired t-test finds the difference of AUCPR and not that of AUCROC",
                "p < 0.01 against 0.30",
                f"p {mean['AUCPR p']:.2g} against {mean['AUCROC p']:.2g}; found in "
                f"{seen['AUCPR']:.0%} against {seen['AUCROC']:.0%} of the cross-validations",
                mean["AUCPR p"] < 0.01 and mean["AUCROC p"] > 0.05,
                "The order is the printed one; how small p is depends on the folds' correlation, "
                "which is not printed.",
                data="two simulated models for the mammography study",
            )
        ],
    )  # fmt: skip


_PREDICATES = {
    "actor": (1.0, 1.0),
    "director": (1.0, 1.0),
    "gender": (0.509, 0.325),
    "genre": (0.624, 0.611),
    "movie": (0.267, 0.141),
    "workedUnder": (1.0, 1.0),
}


@table(paper=_PAPER, number="3.2", title="AUCPR and AUCNPR by predicate, simulated")
def predicates(_: Context) -> Reproduction:
    """The printed areas at the prevalence that the two printed columns imply."""
    found: list[dict[str, Any]] = []
    for name, (whole, normalised) in _PREDICATES.items():
        least = 0.0 if whole == 1 else (whole - normalised) / (1 - normalised)
        prevalence = _prevalence_with(least) if least else None
        model = None if prevalence is None else _model_with(whole, prevalence)
        value = 1.0 if model is None or prevalence is None else _simulated(model, prevalence)
        free = 0.0 if prevalence is None else minimum_auc(prevalence=prevalence)
        found.append(
            {
                "predicate": name, "implied prevalence": prevalence, "AUCPR": value,
                "AUCNPR": (value - free) / (1 - free), "AUCPR in the paper": whole,
                "AUCNPR in the paper": normalised,
            }
        )  # fmt: skip
    mean = {
        key: float(np.mean([row[key] for row in found]))
        for key in ("AUCPR", "AUCNPR", "AUCPR in the paper", "AUCNPR in the paper")
    }
    found.append({"predicate": "mean", "implied prevalence": None, **mean})
    at = {row["predicate"]: row["implied prevalence"] for row in found}
    return Reproduction(
        title="AUCPR and AUCNPR of simulated models with the printed areas, by predicate",
        table=found,
        notes=[
            "Simulated: 20,000 scores of two normal laws with the printed AUCPR, at the prevalence "
            "at which the printed AUCNPR follows from it. Perfect predicates are perfect at any."
        ],
        claims=[
            Claim(
                "The means of the columns", "0.733 and 0.680",
                f"{mean['AUCPR in the paper']:.3f} and {mean['AUCNPR in the paper']:.3f} of the "
                f"printed rows; {mean['AUCPR']:.3f} and {mean['AUCNPR']:.3f} simulated",
                round(mean["AUCPR in the paper"], 3) == 0.733
                and abs(mean["AUCNPR in the paper"] - 0.680) < 0.001,
            ),
            Claim(
                "Skews: gender near 0.5, genre nearer 0.05", "0.5 and 0.05",
                f"implied by the two columns: {at['gender']:.2f} and {at['genre']:.3f}",
                abs(at["gender"] - 0.5) < 0.07 and abs(at["genre"] - 0.05) < 0.02,
            ),
            Claim(
                "AUCNPR is the more conservative", "0.680 below 0.733",
                f"{mean['AUCNPR']:.3f} below {mean['AUCPR']:.3f}", mean["AUCNPR"] < mean["AUCPR"],
            ),
        ],
    )  # fmt: skip


def _prevalence_with(least: float) -> float:
    """The prevalence whose unachievable region has this area."""
    from scipy.optimize import brentq

    return float(brentq(lambda each: minimum_auc(prevalence=each) - least, 1e-4, 0.999))


def _model_with(area: float, prevalence: float) -> NormalScores:
    from scipy.optimize import brentq

    def off(mean: float) -> float:
        found = exact_area(mean=mean, deviation=1.0, prevalence=np.array([prevalence]))
        return float(found[0]) - area

    return NormalScores(float(brentq(off, -3, 6)), 1.0)


def _simulated(model: NormalScores, prevalence: float, rows: int = 20_000) -> float:
    random = np.random.default_rng(_SEED)
    labels = (np.arange(rows) < rows * prevalence).astype(int)
    return auc(labels, random.normal(model.mean * labels), estimator="average-precision")
