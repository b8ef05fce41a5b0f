"""Boyd, 2014, section 6.1: private cross-validation at one price for a row, an open question.

Rows are in folds by their row number; the number of rows is public (replace-one). A replaced row
stays at its number, so it is in the same fold on both sides, and only what uses that fold pays:
a model that trained on it (epsilon_train each) and the test that asked it (epsilon_test). A test
of another fold sees a released model and unchanged rows: no price. So tests compose in parallel,
trainings in sequence, and the price is the dearest row's sum. Nothing is claimed for folds that
depend on the rows (by class, by a hash of their contents), nor for add-remove, which shifts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from heldout.drawing.chart import MUTED, PALETTE
from heldout_papers.altair_svg import rows
from heldout_papers.registry import Claim, Context, Reproduction, Verdict, figure

__all__ = ["METHODS", "Fit", "Method", "compared", "price", "simulated"]

_PAPER, _NUMBER = "boyd-2014", "6.1-cross-validation"
_ROWS, _FRESH, _FEATURES, _FOLDS = 2_000, 20_000, 20, 5
_EPSILONS = (1, 4)
_REPETITIONS = 40
_SEED = 20140601
_WEIGHTS = np.where(np.arange(_FEATURES) < 10, 0.8 * (-1.0) ** np.arange(_FEATURES), 0.0)
"""Log-odds of the simulated label: ten features of twenty say something."""
_SET = 0.4


class Fit(NamedTuple):
    """One model: the row numbers that train and test it, and what each use costs a row."""

    train: Any
    test: Any
    epsilon_train: Fraction
    epsilon_test: Fraction


class Method(NamedTuple):
    """One way to train and test; `share` of the price is for the test where a row does both."""

    name: str
    kind: str
    share: Fraction = Fraction(0)

    def fits(self, rows: int, epsilon: Fraction) -> list[Fit]:
        """Which rows do what, and its price, so that no row pays more than epsilon."""
        if self.kind == "split":
            first, second = np.array_split(np.arange(rows), 2)
            return [Fit(first, second, epsilon, epsilon)]
        folds = np.array_split(np.arange(rows), _FOLDS)
        test = epsilon * self.share
        if self.kind == "chunks":
            return [
                Fit(fold, folds[(place + 1) % _FOLDS], epsilon - test, test)
                for place, fold in enumerate(folds)
            ]
        each = (epsilon - test) / (_FOLDS - 1)
        return [Fit(np.setdiff1d(np.arange(rows), fold), fold, each, test) for fold in folds]


METHODS = (
    Method("one split", "split"),
    Method("5 folds, test 1/4", "folds", Fraction(1, 4)),
    Method("5 folds, test 1/2", "folds", Fraction(1, 2)),
    Method("5 chunks, test 1/4", "chunks", Fraction(1, 4)),
    Method("5 chunks, test 1/2", "chunks", Fraction(1, 2)),
)


def price(fits: Iterable[Fit], rows: int) -> Fraction:
    """What the dearest row pays.

    >>> {str(price(each.fits(2000, Fraction(1)), 2000)) for each in METHODS}
    {'1'}
    """
    paid = np.full(rows, Fraction(0), dtype=object)
    for fit in fits:
        paid[fit.train] += fit.epsilon_train
        paid[fit.test] += fit.epsilon_test
    return Fraction(max(paid))


def simulated(rows: int, random: Any) -> tuple[Any, Any, Any]:
    """0/1 features, labels, and the log-odds that drew them."""
    features = (random.random((rows, _FEATURES)) < _SET).astype(np.int8)
    odds = (features - _SET) @ _WEIGHTS
    return features, (random.random(rows) < 1 / (1 + np.exp(-odds))).astype(int), odds


class _Job(NamedTuple):
    seed: Any
    epsilon: Fraction
    rows: int = _ROWS
    methods: tuple[Method, ...] = METHODS


def compared(job: _Job) -> list[dict[str, Any]]:
    """All methods on the same rows: areas on fresh rows, and the private estimates of them."""
    from sklearn.metrics import roc_auc_score as exact_area

    import heldout as ho
    from heldout.features import PrivateLogisticRegression

    random = np.random.default_rng(job.seed)
    features, labels, _ = simulated(job.rows, random)
    fresh, truth, odds = simulated(_FRESH, random)
    found = []
    for method in job.methods:
        charged, areas = [], []
        for fit in method.fits(job.rows, job.epsilon):
            model = PrivateLogisticRegression(epsilon=fit.epsilon_train)
            model.fit(features[fit.train], labels[fit.train])
            scores = model.predict_proba(features[fit.test])[:, 1]
            asked = ho.roc_auc_score(labels[fit.test], scores, epsilon=fit.epsilon_test)
            trained = model.release_.loss.epsilon
            assert asked.loss.epsilon is not None
            assert trained is not None
            charged.append(fit._replace(epsilon_train=trained, epsilon_test=asked.loss.epsilon))
            true = exact_area(truth, model.decision_function(fresh))
            areas.append((true, float(asked), exact_area(labels[fit.test], scores)))
        true, private, exact = np.mean(areas, axis=0)
        found.append(
            {
                "method": method.name, "epsilon": int(job.epsilon), "area": float(true),
                "error": abs(float(private - true)), "without noise": abs(float(exact - true)),
                "price": price(charged, job.rows), "best": float(exact_area(truth, odds)),
            }
        )  # fmt: skip
    return found


def _spread(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return float(np.mean(values)), float(error)


@figure(paper=_PAPER, number=_NUMBER, quick=6, title="Private cross-validation at one price")
def cross_validation(context: Context) -> Reproduction:
    """One split, k folds and disjoint chunks: the models' areas and the estimates' errors."""
    repetitions = context.repetitions or _REPETITIONS
    jobs = [
        _Job(seed, Fraction(epsilon))
        for seed in np.random.SeedSequence(_SEED).spawn(repetitions)
        for epsilon in _EPSILONS
    ]
    each = [row for found in context.over(compared, jobs, label=_NUMBER) for row in found]
    best = float(np.mean([row["best"] for row in each]))
    table: list[dict[str, Any]] = []
    for epsilon in _EPSILONS:
        for method in METHODS:
            part = [r for r in each if (r["method"], r["epsilon"]) == (method.name, epsilon)]
            fit = method.fits(_ROWS, Fraction(epsilon))[0]
            row: dict[str, Any] = {
                "method": method.name, "epsilon": epsilon,
                "price of a row": float(max(r["price"] for r in part)),
                "a training": f"{len(fit.train):,} rows at {fit.epsilon_train}",
                "a test": f"{len(fit.test):,} rows at {fit.epsilon_test}",
            }  # fmt: skip
            for name, key in (("AUC", "area"), ("error", "error"),
                              ("error without noise", "without noise")):  # fmt: skip
                row[name], row[f"{name} s.e."] = _spread([r[key] for r in part])
            table.append(row)
    return Reproduction(
        title="Private cross-validation of a simulated model, at one price for a row",
        table=table,
        charts=[_picture(table, best)],
        description="Left: mean AUC of the private models on fresh rows, dashed the best there is. "
        "Right: mean absolute error of the private estimate. Bars: two standard errors.",
        notes=[
            f"Simulated: {_ROWS:,} rows, {_FEATURES} features; the true areas on {_FRESH:,} fresh "
            f"rows; the best possible area is {best:.3f}. {repetitions} repetitions; all methods "
            "see the same rows. The noise is the operating system's: digits vary from run to run.",
            "The price of a row is summed from what each training and each test booked. 'Test 1/4' "
            "is the share of it that a row pays for being asked. The error is that of the mean of "
            "the private areas against the mean true area of the same models.",
            "Folds: fixed by row number, once. A new shuffle by public coins is as private but "
            "pays the whole price again, and so would a last model on all rows. With a learner "
            "that is not private one row may change a whole model, and these prices do not hold: "
            f"the mean area of {_FOLDS} chunks could move by 2/{_FOLDS}, that of folds by 1.",
        ],
        claims=_claims(table),
    )


def _claims(table: list[dict[str, Any]]) -> list[Claim]:
    """What is found of two questions that the dissertation leaves open."""
    areas: list[str] = []
    errors: list[str] = []
    for epsilon in _EPSILONS:
        split, *others = [row for row in table if row["epsilon"] == epsilon]
        for found, name in ((areas, "AUC"), (errors, "error")):
            said = ", ".join(f"{row[name]:.3f}" for row in others)
            found.append(f"epsilon {epsilon}: {split[name]:.3f} against {said}")
    return [
        Claim(
            "AUC of models trained on one split, against folds and chunks at the same price",
            "an open question", "; ".join(areas), Verdict.OURS,
            "In a short run the models at epsilon 4 lie within the spread of the repetitions.",
        ),
        Claim(
            "Error of the private estimate after one split, against folds and chunks",
            "an open question", "; ".join(errors), Verdict.OURS,
            "They ask every row, and here that outweighs the smaller share of the price.",
        ),
    ]  # fmt: skip


def _picture(table: list[dict[str, Any]], best: float) -> Any:
    import altair as alt

    names = [method.name for method in METHODS]
    hues = alt.Scale(domain=[str(each) for each in _EPSILONS], range=[PALETTE[1], PALETTE[0]])

    def panel(name: str, title: str, *, zero: bool, labels: bool) -> Any:
        shown = [
            {
                "method": row["method"], "epsilon": str(row["epsilon"]), "value": row[name],
                "low": max(0.0, row[name] - 2 * row[f"{name} s.e."]),
                "high": row[name] + 2 * row[f"{name} s.e."],
            }
            for row in table
        ]  # fmt: skip
        axis = alt.Axis(labels=labels, ticks=labels, minExtent=125 if labels else 0)
        base = alt.Chart(rows(shown)).encode(
            y=alt.Y("method:N", title=None, sort=names, axis=axis),
            yOffset=alt.YOffset("epsilon:N"),
            color=alt.Color("epsilon:N", title="Epsilon of a row", scale=hues),
        )
        place = alt.Scale(zero=zero, nice=True)
        bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=place), x2="high:Q")
        points = base.mark_point(size=50).encode(x=alt.X("value:Q", title=title, scale=place))
        return (bars + points).properties(width=270, height=210)

    line = (
        alt.Chart(rows([{"best": best}]))
        .mark_rule(color=MUTED, strokeDash=[4, 3])
        .encode(x="best:Q")
    )
    left = panel("AUC", "Mean true AUC of the models", zero=False, labels=True)
    right = panel("error", "Mean absolute error of the estimate", zero=True, labels=False)
    return alt.hconcat(line + left, right)
