"""Labels and two models' scores whose truth is known: made up, and from data where present."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho

POPULATION = 200_000


@dataclass(frozen=True)
class Population:
    """Labels and two models' scores of the same rows."""

    name: str
    labels: Any
    own: Any
    rival: Any

    def sample(self, rows: int, random: Any) -> "Population":
        chosen = random.integers(0, len(self.labels), rows)
        return Population(self.name, self.labels[chosen], self.own[chosen], self.rival[chosen])

    def session(self) -> ho.Session:
        table = {"y": self.labels, "own": self.own, "rival": self.rival}
        dataset = ho.Dataset(table, label="y", score="own", rivals=["rival"])
        return ho.Session(dataset, budget=ho.Budget(epsilon=1000))

    def placements(self, scores: Any) -> tuple[Any, Any]:
        """Of the positives among the negatives, and of the negatives among the positives."""
        positives, negatives = scores[self.labels == 1], scores[self.labels == 0]
        return _mid_rank(negatives, positives), 1 - _mid_rank(positives, negatives)

    def difference(self) -> tuple[float, float]:
        """The rival's area less the first one's, and DeLong's variance of it."""
        pairs = zip(self.placements(self.own), self.placements(self.rival), strict=True)
        moved = [second - first for first, second in pairs]
        return float(moved[0].mean()), float(sum(each.var() / len(each) for each in moved))

    def of(self, metric: Callable[[Any, Any], Any]) -> float:
        return float(metric(self.own[self.labels == 1], self.own[self.labels == 0]))


def _mid_rank(among: Any, scores: Any) -> Any:
    ordered = np.sort(among)
    sides = [np.searchsorted(ordered, scores, side=side) for side in ("left", "right")]
    return (sides[0] + sides[1]) / (2 * len(among))


def _probability(latent: Any) -> Any:
    return 1 / (1 + np.exp(np.clip(-latent, -700, 700)))


def made_up() -> Iterator[Population]:
    random = np.random.default_rng(10)

    def pair(
        name: str,
        *,
        share: float,
        apart: tuple[float, float],
        alike: float = 0.8,
        tail: float | None = None,
        lost: float = 0.0,
        power: int = 1,
    ) -> Population:
        labels = (random.random(POPULATION) < share).astype(np.int64)
        noise = random.normal(size=(2, POPULATION))
        noise[1] = alike * noise[0] + math.sqrt(1 - alike**2) * noise[1]
        if tail is not None:
            noise = noise * np.sqrt(tail / random.chisquare(tail, POPULATION))
        found = labels * (random.random(POPULATION) >= lost)
        own, rival = (
            _probability(each + by * found - 1) ** power
            for each, by in zip(noise, apart, strict=True)
        )
        return Population(name, labels, own, rival)

    yield pair("normal, better by .02", share=0.22, apart=(1.35, 1.47))
    yield pair("normal, equal", share=0.22, apart=(1.35, 1.35), alike=0.9)
    yield pair("two degrees of freedom", share=0.22, apart=(1.9, 2.1), tail=2.0)
    yield pair("8% of positives lost", share=0.22, apart=(2.2, 2.5), lost=0.08)
    yield pair("rare and skewed", share=0.1, apart=(1.35, 1.47), power=6)


def from_data(data: Path) -> Iterator[Population]:
    """Logistic regression and naive Bayes, fitted on 6,000 rows and judged on the rest."""
    sets: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
        "adult": (lambda t: t["label"] == 1, {"label", "income", "split", "fnlwgt"}),
        "cps_march2000": (lambda t: t["earn"] > np.quantile(t["earn"], 0.8),
                          {"label", "earn", "id"}),
        "acs2018_gov_census": (lambda t: t["salary"] > np.quantile(t["salary"], 0.93),
                               {"label", "salary"}),
    }  # fmt: skip
    for name, (label, out) in sets.items():
        path = data / name / f"{name}.parquet"
        if path.exists():
            yield _scored(name, path, label, out)
        else:
            print(f"no {path.name}: left out")


def _scored(name: str, path: Path, label: Callable[[Any], Any], out: set[str]) -> Population:
    import pyarrow.parquet
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    read = pyarrow.parquet.read_table(path)
    table = {column: read[column].to_numpy() for column in read.column_names}
    labels = np.asarray(label(table)).astype(np.int64)
    columns = [_numbers(each) for column, each in table.items() if column not in out]
    features = np.stack(columns, axis=1)
    order = np.random.default_rng(1).permutation(len(labels))
    train, test = order[:6000], order[6000:]
    scaled = (features - features[train].mean(axis=0)) / (features[train].std(axis=0) + 1e-9)
    scores = [
        model.fit(scaled[train], labels[train]).predict_proba(scaled[test])[:, 1]
        for model in (LogisticRegression(max_iter=200), GaussianNB())
    ]
    return Population(name, labels[test], *scores)


def _numbers(column: Any) -> Any:
    if column.dtype.kind in "if":
        return np.nan_to_num(column.astype(np.float64), nan=-1.0)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)
