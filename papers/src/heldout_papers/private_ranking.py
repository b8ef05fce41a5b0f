"""Private AUC and average precision by the noise of Boyd, Lantz and Page 2015 and by ours.

The scores come from a fixed logistic regression on public data or, without data, from a
simulation. A test set is a subset of a pool with as many positives as negatives; the whole pool
is the population.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.ranking.ladder import NoiseLaw
from heldout.kernel.ranking.mechanism import RankingMechanism
from heldout.kernel.ranking.sensitivity import area, average_precision_negatives_first
from heldout.kernel.ranking.statistic import RankingStatistic
from heldout.kernel.statistic import Sealed
from heldout_papers.registry import Context
from heldout_papers.scored_sets import ADULT, adult

__all__ = [
    "DIABETES",
    "METRICS",
    "OURS",
    "THEIRS",
    "Cell",
    "Method",
    "Release",
    "World",
    "errors",
    "exact_draws",
    "mechanism",
    "noise",
    "worlds",
]

DIABETES = "diabetes130/diabetes130.parquet"
PROTECTION = Protection(neighbours=Neighbours.REPLACE_ONE)
METRICS: dict[str, str] = {"auc": "AUC", "average-precision": "AP"}
_VALUE: dict[str, Callable[[Any, Any], Fraction]] = {
    "auc": area,
    "average-precision": average_precision_negatives_first,
}
_SEED = 2015
_POOL = 20_000
_SIMULATED = {"simulation, AUC 0.90": 1.8124, "simulation, AUC 0.65": 0.5449}
"""Distances of two normal laws: as good as a model of adult, and of the hospital stays."""


class Method(NamedTuple):
    """One way to a private value."""

    label: str
    name: str
    delta: str = "0"


THEIRS = (
    Method("Cauchy 2015, delta 0", "boyd-2015-cauchy"),
    Method("Laplace 2015, delta 1e-6", "boyd-2015-laplace", "1e-6"),
    Method("Laplace 2015, delta 1e-4", "boyd-2015-laplace", "1e-4"),
    Method("Laplace 2015, delta 0.01", "boyd-2015-laplace", "0.01"),
)
OURS = Method("heldout, delta 0", "piecewise-laplace")


class World(NamedTuple):
    """Scores of all positive and of all negative rows that test sets are drawn from."""

    name: str
    positives: Any
    negatives: Any

    def subset(self, size: int, random: Any) -> tuple[Any, Any]:
        """Scores of so many positives and as many negatives."""
        return (
            random.choice(self.positives, size, replace=False),
            random.choice(self.negatives, size, replace=False),
        )

    def population(self, metric: str) -> float:
        """The pool's value where both classes are equally frequent."""
        if metric == "auc":
            return float(area(self.positives, self.negatives))
        rising, down = np.sort(self.positives), np.sort(self.negatives)
        true = 1 - np.searchsorted(rising, rising, side="left") / rising.size
        false = 1 - np.searchsorted(down, rising, side="left") / down.size
        return float(np.mean(true / (true + false)))


def worlds(context: Context) -> list[World]:
    """adult and diabetes130 from the data folder, or two simulations where none was named."""
    if "private ranking" not in context.shared:
        found = _simulated() if context.data is None else _trained(context.data)
        context.shared["private ranking"] = found
    kept: list[World] = context.shared["private ranking"]
    return kept


def _simulated() -> list[World]:
    random = np.random.default_rng(_SEED)
    return [
        World(name, random.normal(shift, 1, _POOL), random.normal(0, 1, _POOL))
        for name, shift in _SIMULATED.items()
    ]


def _trained(data: Path) -> list[World]:
    missing = [name for name in (ADULT, DIABETES) if not (data / name).exists()]
    if missing:
        raise ArgumentError(
            f"data must hold {', '.join(missing)}, got {data}. Pass the folder that has it, or "
            "leave --data out for a simulation."
        )
    everything = adult(data, rows=10**6)
    first = World(
        "adult",
        everything.scores[everything.labels == 1],
        everything.scores[everything.labels == 0],
    )
    return [first, _diabetes(data / DIABETES)]


def _diabetes(file: Path) -> World:
    """Readmission within 30 days, one stay a patient; half of the patients train the model."""
    from pyarrow.parquet import read_table
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    read = read_table(file)
    table = {name: read[name].to_numpy() for name in read.column_names}
    _, stays = np.unique(table["patient_nbr"], return_index=True)
    labels = table["label"][stays].astype(np.int64)
    skipped = {"label", "readmitted", "encounter_id", "patient_nbr", "weight"}
    names = [name for name in table if name not in skipped]
    columns = np.stack([table[name][stays].astype(object) for name in names], axis=1)
    words = [
        i for i, name in enumerate(names) if table[name].dtype == object or name.endswith("_id")
    ]
    columns[:, words] = columns[:, words].astype(str)
    numbers = [i for i in range(len(names)) if i not in words]
    # The paper kept the 50 most common drugs, diagnoses and tests.
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=51)
    model = make_pipeline(
        make_column_transformer((encoder, words), (StandardScaler(), numbers)),
        LogisticRegression(max_iter=300),
    )
    train = np.random.default_rng(_SEED).random(labels.size) < 0.5
    model.fit(columns[train], labels[train])
    scores, truth = model.predict_proba(columns[~train])[:, 1], labels[~train]
    return World("diabetes130", scores[truth == 1], scores[truth == 0])


# --- many releases, in doubles -------------------------------------------------------------------


def mechanism(metric: str, method: Method, *, epsilon: str, rows: int) -> RankingMechanism:
    """The whole release as a session makes it; ours buys its noisy counts out of epsilon."""
    return RankingMechanism(
        metric=metric,
        epsilon=Fraction(epsilon),
        protection=PROTECTION,
        rows=rows,
        method=method.name,
        delta=Fraction(method.delta) or None,
    )


def noise(release: RankingMechanism, size: int, random: Any, draws: int) -> Any:
    """The value's noise in so many releases with `size` rows of either class.

    Drawn in doubles from the laws that the exact sampler has.
    """
    rung = release.local.rung(positives=size, negatives=size)
    if release.first_look is None:
        return _inverted(release.law_after(()), rung, random, draws)
    leave = -math.expm1(-1 / float(release.first_look.scale))
    counts = size + random.geometric(leave, draws) - random.geometric(leave, draws)
    different, which = np.unique(counts, return_inverse=True)
    shares = np.array([float(release.second_share((int(each),))) for each in different])[which]
    found = np.empty(draws)
    for share in np.unique(shares):
        here = shares == share
        law = release.law_after((int(counts[here][0]),))
        found[here] = _inverted(law, rung, random, int(here.sum()))
    return found


def _inverted(law: NoiseLaw, rung: int, random: Any, draws: int) -> Any:
    edges = np.concatenate([[0.0], np.geomspace(1e-8, 1e4, 6000)])
    tails = law.survival(np.full(edges.shape, rung), edges)
    size = np.interp(-random.random(draws), -tails, edges)
    return size * random.choice([-1.0, 1.0], draws)


class Cell(NamedTuple):
    """Many test sets of one size, each with one release a method and epsilon."""

    world: World
    metric: str
    size: int
    epsilons: tuple[str, ...]
    repetitions: int
    seed: int


def errors(cell: Cell) -> list[dict[str, Any]]:
    """DP error (release against test set) and estimation error (test set against population)."""
    random = np.random.default_rng([_SEED, cell.seed])
    function = _VALUE[cell.metric]
    values = np.array(
        [float(function(*cell.world.subset(cell.size, random))) for _ in range(cell.repetitions)]
    )
    estimation = values - cell.world.population(cell.metric)
    table = []
    for method in (*THEIRS, OURS):
        for epsilon in cell.epsilons:
            release = mechanism(cell.metric, method, epsilon=epsilon, rows=2 * cell.size)
            drawn = values + noise(release, cell.size, random, cell.repetitions)
            error = np.clip(drawn, 0, 1) - values
            table.append(
                {
                    "data": cell.world.name,
                    "metric": METRICS[cell.metric],
                    "n": cell.size,
                    "method": method.label,
                    "delta": method.delta,
                    "epsilon": float(epsilon),
                    "mean absolute error": float(np.mean(np.abs(error))),
                    "root mean square error": float(np.sqrt(np.mean(error**2))),
                    "estimation error": float(np.mean(np.abs(estimation))),
                    "repetitions": cell.repetitions,
                }
            )
    return table


# --- releases by the exact sampler ---------------------------------------------------------------


class Release(NamedTuple):
    """Repeated releases of one test set by one method."""

    name: str
    positives: Any
    negatives: Any
    metric: str
    method: Method
    epsilon: str
    draws: int
    seed: int


def exact_draws(job: Release) -> tuple[Release, float, Any]:
    """The true value, and what came out each time, clamped to [0, 1]."""
    random = np.random.default_rng([_SEED, job.seed])
    value = _VALUE[job.metric](job.positives, job.negatives)
    n, m = len(job.positives), len(job.negatives)
    release = mechanism(job.metric, job.method, epsilon=job.epsilon, rows=n + m)
    sealed = Sealed(RankingStatistic(value, n, m))
    drawn = [release.sample(sealed, randomness=random.bytes).value for _ in range(job.draws)]
    return job, float(value), np.array(drawn)
