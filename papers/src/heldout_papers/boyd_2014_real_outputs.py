"""Boyd, 2014, section 6.1: how biased the estimators of AUCPR are on outputs of real classifiers.

The dissertation asks it of small test sets, and whether there is an estimator with less bias. The
candidate here is the jackknife of average precision over positives, at a fixed prevalence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heldout.precision_recall import ESTIMATORS
from heldout_papers.batches import areas, negatives_above
from heldout_papers.registry import Claim, Context, Reproduction, Verdict, table

_PAPER = "boyd-2014"
_SEED = 20140406
_REPETITIONS = 2_000
_POSITIVES = (5, 10, 20, 50)
_NEGATIVES_EACH = 9
JACKKNIFE = "average precision, jackknife"
_COMPARED = (
    "average-precision",
    "lower-trapezoid",
    "interpolated-median",
    JACKKNIFE,
)


class Outputs(NamedTuple):
    """A classifier's outputs for rows that it was not trained on."""

    name: str
    positives: Any
    negatives: Any

    def area(self) -> float:
        """Return average precision in the population, at the prevalence of the samples."""
        above = np.searchsorted(np.sort(-self.negatives), np.sort(-self.positives))
        rank = np.arange(1, self.positives.size + 1) / self.positives.size
        rate = above / self.negatives.size
        return float(np.mean(rank / (rank + _NEGATIVES_EACH * rate)))


@table(
    paper=_PAPER,
    number="6.1",
    quick=200,
    title="Bias of AUCPR estimators on small samples of real outputs",
)
def real_outputs(context: Context) -> Reproduction:
    """Samples of the outputs of three classifiers on two public data sets, prevalence 0.1."""
    repetitions = context.repetitions or _REPETITIONS
    random = np.random.default_rng(_SEED)
    rows: list[dict[str, Any]] = []
    for outputs in _outputs():
        truth = outputs.area()
        for n in _POSITIVES:
            m = _NEGATIVES_EACH * n
            up = random.choice(outputs.positives, (repetitions, n))
            down = random.choice(outputs.negatives, (repetitions, m))
            above = negatives_above(up, down)
            estimates = areas(above, m) | {JACKKNIFE: jackknife(above)}
            rows += [
                {
                    "outputs": outputs.name,
                    "positives": n,
                    "estimator": name,
                    "true_area": truth,
                    "bias_ratio": float(values.mean() / truth),
                    "root_mean_square_error": float(np.sqrt(np.mean((values - truth) ** 2))),
                }
                for name, values in estimates.items()
                if name in ESTIMATORS or name == JACKKNIFE
            ]
    return Reproduction(
        title=f"Bias of the estimators on samples of real outputs, {repetitions:,} samples a cell",
        table=rows,
        notes=[
            "Outputs for rows that a classifier was not trained on (five folds); a sample has nine "
            "negatives for every positive. The true area is that of all outputs.",
        ],
        claims=[
            _says("The bias of the recommended estimators on real outputs", "bias_ratio", rows),
            _says("Whether a jackknife errs less", "root_mean_square_error", rows),
        ],
    )


def jackknife(above: Any) -> Any:
    """Return the jackknife of average precision over positives, held to [0, 1].

    `above` counts the negatives above each positive, one row per sample. What is left out keeps
    the prevalence: the negatives are weighed down in proportion.
    """
    ordered = np.sort(above, axis=1).astype(float)
    n = ordered.shape[1]
    whole = _average_precision(ordered)
    without = [_average_precision(np.delete(ordered, k, axis=1) * (n - 1) / n) for k in range(n)]
    return np.clip(n * whole - (n - 1) * np.mean(without, axis=0), 0, 1)


def _average_precision(above: Any) -> Any:
    rank = np.arange(1, above.shape[1] + 1)
    return (rank / (rank + above)).mean(axis=1)


def _says(text: str, field: str, rows: list[dict[str, Any]]) -> Claim:
    parts = []
    for n in _POSITIVES:
        here = {
            name: [row[field] for row in rows if (row["estimator"], row["positives"]) == (name, n)]
            for name in _COMPARED
        }
        off = {
            name: float(np.mean(np.abs(np.array(values) - 1) if field == "bias_ratio" else values))
            for name, values in here.items()
        }
        parts.append(f"{n} positives: " + ", ".join(f"{k} {v:.3f}" for k, v in off.items()))
    shown = "|bias ratio - 1|" if field == "bias_ratio" else "root mean square error"
    return Claim(
        text, "an open question (section 6.1)", f"mean {shown}; " + "; ".join(parts), Verdict.OURS
    )


def _outputs() -> list[Outputs]:
    """Return cross-validated outputs on data sets that scikit-learn ships."""
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    tumours, digits = load_breast_cancer(), load_digits()
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "discriminant": LinearDiscriminantAnalysis(),
        "boosted stumps": GradientBoostingClassifier(max_depth=1, n_estimators=60, random_state=1),
    }
    sets = {
        "tumours, two features": (tumours.data[:, [1, 9]], tumours.target == 0),
        "digits, is it an 8": (digits.data, digits.target == 8),
    }
    made = []
    for set_name, (features, labels) in sets.items():
        for model_name, model in models.items():
            score = cross_val_predict(model, features, labels, cv=5, method="decision_function")
            made.append(Outputs(f"{set_name}, {model_name}", score[labels], score[~labels]))
    return made
