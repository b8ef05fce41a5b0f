"""How much the same epsilon says: widths, coverage and power, in one run, with standard errors.

    python -m benchmarks.accuracy [--data DIR] [--runs 60] [--tables compare bands]

Rows are drawn with replacement from a population whose truth is known: made-up scores, heavy-tailed
ones among them, and, where DIR has them, two models each on adult (which shares of epsilon were
tuned on), cps_march2000 and acs2018_gov_census (which they were not). Everything is asked through
`Session`, as an analyst asks it.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho
from benchmarks.figure import judge
from heldout.regression import metrics as regression_metrics
from heldout.statistics.ranking import area, average_precision

POPULATION = 200_000
NORMAL = 1.959964


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
        dataset = ho.Dataset(table, label="y", score="own")
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


def _share(hits: list[bool]) -> str:
    mean = float(np.mean(hits))
    return f"{mean:.3f} ±{math.sqrt(max(mean * (1 - mean), 0.01) / len(hits)):.3f}"


# --- the tables ----------------------------------------------------------------------------------


def compare(populations: list[Population], runs: int, random: Any) -> bool:
    print("\ncompare, 5,000 rows, epsilon 1; widths of 95% intervals")
    good, covered = True, []
    for each in populations:
        truth = each.difference()[0]
        hits, found, widths = [], [], []
        for _ in range(runs):
            rows = each.sample(5_000, random)
            door = rows.session()
            release = door.compare(score="rival", epsilon=1)
            low, high = release.interval()
            hits.append(low <= truth <= high)
            found.append(release.p_value < 0.05)
            delong = 2 * NORMAL * math.sqrt(rows.difference()[1])
            noise = release.noise_interval()
            apart = [_width(door.auc(epsilon="1/2").interval()) for _ in range(2)]
            widths.append((high - low, delong, _width(noise), math.hypot(*apart)))
        width, delong, alone, apart = np.mean(widths, axis=0)
        covered += hits
        print(
            f"  {each.name:24s} true {truth:+.3f}: width {width:.4f}, DeLong {delong:.4f}, "
            f"two areas {apart:.4f}, covers {_share(hits)}, p < .05 in {_share(found)}"
        )
        good &= judge("width / sqrt(DeLong^2 + noise^2)", width / math.hypot(delong, alone), 1.3)
        good &= judge("width / two separate areas", width / apart, 1.0)
    print(f"  all together: covers {_share(covered)}")
    return good & judge("distance of the coverage from .955", abs(np.mean(covered) - 0.955), 0.025)


def areas(populations: list[Population], runs: int, random: Any) -> bool:
    print("\nAUC and average precision, 5,000 rows, epsilon 2: how often the interval holds")
    good = True
    metrics = {"auc": area, "average_precision": average_precision}
    for each in populations:
        truths = {name: each.of(metric) for name, metric in metrics.items()}
        hits: dict[str, list[bool]] = {name: [] for name in metrics}
        for _ in range(runs):
            door = each.sample(5_000, random).session()
            for name, truth in truths.items():
                low, high = getattr(door, name)(epsilon=2).interval()
                hits[name].append(low <= truth <= high)
        print(f"  {each.name:24s} " + ", ".join(f"{n} {_share(h)}" for n, h in hits.items()))
        error = 2 * math.sqrt(0.05 * 0.95 / runs)
        for name, found in hits.items():
            good &= judge(f"{name}: distance from .955", abs(np.mean(found) - 0.955), 0.02 + error)
    return good


def regression(populations: list[Population], runs: int, random: Any) -> bool:
    print("\nRMSE and MAE, 5,000 rows, epsilon 1, bounds found by search")
    laws: dict[str, Callable[[int], Any]] = {
        "normal": lambda size: random.normal(size=size),
        "Laplace": lambda size: random.laplace(size=size),
        "lognormal": lambda size: random.lognormal(size=size) - math.exp(0.5),
    }
    good = True
    for name, law in laws.items():
        whole = law(2_000_000)
        truths = (float(np.sqrt(np.mean(whole**2))), float(np.abs(whole).mean()))
        hits: list[list[bool]] = [[], []]
        widths = []
        for _ in range(runs):
            residual, predicted = law(5_000), random.normal(10, 3, 5_000)
            table = {"observed": predicted + residual, "predicted": predicted}
            release = regression_metrics(
                table, observed="observed", predicted="predicted", epsilon=1, r_squared=False
            )
            for found, measure, truth in zip(
                hits, (release.rmse, release.mae), truths, strict=True
            ):
                low, high = measure.interval()
                found.append(low <= truth <= high)
            widths.append(_width(release.rmse.interval()) / truths[0])
        print(
            f"  {name:24s} RMSE {_share(hits[0])}, MAE {_share(hits[1])}, RMSE's width "
            f"{np.mean(widths):.3f} of it"
        )
        for what, found in zip(("RMSE", "MAE"), hits, strict=True):
            good &= judge(f"{what}: misses", 1 - float(np.mean(found)), 0.07 + 2 * 0.25 / runs**0.5)
    return good


def curves(populations: list[Population], runs: int, random: Any) -> bool:
    print("\ncurves, 5,000 rows, epsilon 1: the area off the curve, and recall at one half")
    good, covered, ratios = True, [], []
    for each in populations:
        errors, reach, named = [], [], []
        for _ in range(runs):
            rows = each.sample(5_000, random)
            door, truth = rows.session(), rows.of(area)
            released = door.curves(epsilon=1)
            recall = released.confusion(0.5).recall
            exact = float(np.mean(rows.own[rows.labels == 1] >= 0.5))
            low, high = recall.noise_interval()
            errors.append(
                (abs(released.auc.value - truth), abs(float(door.auc(epsilon=1)) - truth))
            )
            reach.append(((high - low) / 2, abs(recall.value - exact), low <= exact <= high))
            beforehand = door.curves(epsilon=1, thresholds=[0.5]).confusion(0.5).recall
            alone = door.confusion(threshold=0.5, epsilon=1).recall
            named.append([_width(one.noise_interval()) for one in (beforehand, alone)])
        ours, alone = np.mean(errors, axis=0)
        half, error, held = np.mean(reach, axis=0)
        known, whole = np.mean(named, axis=0)
        covered += [bool(hit) for _, _, hit in reach]
        print(
            f"  {each.name:24s} area's error {ours:.4f}, session.auc {alone:.4f}; recall's "
            f"half-width {half:.4f}, mean error {error:.4f}, holds {held:.3f}"
        )
        deviation = np.std(errors, axis=0) / np.mean(errors, axis=0)
        error = ours / alone * float(np.hypot(*deviation)) / math.sqrt(runs)
        ratios.append(ours / alone)
        what = f"area off the curve / session.auc (standard error {error:.2f})"
        good &= judge(what, ours / alone, 1.15 + 2 * error)
        good &= judge("recall: half-width / mean error", half / error, 4.0)
        good &= judge("named threshold: noise / confusion(t)", known / whole, 1.5)
    together = float(np.exp(np.log(ratios).mean()))
    good &= judge("area off the curve / session.auc, geometric mean of the sets", together, 1.15)
    print(f"  all together: recall's interval holds {_share(covered)}")
    return good & judge("distance of the coverage from .96", abs(np.mean(covered) - 0.96), 0.02)


def bands(populations: list[Population], runs: int, random: Any) -> bool:
    print("\nROC bands of level .95, simultaneous, 1,000 rows, epsilon 1: the population's curve")
    places, covered, widths = np.linspace(0.005, 0.995, 199), [], []
    for each in populations:
        positives = np.sort(each.own[each.labels == 1])
        cuts = np.quantile(each.own[each.labels == 0], 1 - places, method="higher")
        truth = 1 - np.searchsorted(positives, cuts, side="left") / len(positives)
        hits, wide = [], []
        for _ in range(runs):
            band = each.sample(1_000, random).session().curves(epsilon=1).roc.band(at=places)
            # A population of finitely many rows has steps.
            inside = (band.low <= truth + 2e-3) & (truth - 2e-3 <= band.high)
            hits.append(bool(inside.all()))
            wide.append(band.mean_width)
        covered += hits
        widths.append(float(np.mean(wide)))
        print(f"  {each.name:24s} holds {_share(hits)}, mean width {widths[-1]:.3f}")
    print(f"  all together: holds {_share(covered)}, mean width {np.mean(widths):.3f}")
    good = judge("distance of the coverage from .965", abs(np.mean(covered) - 0.965), 0.03)
    return good & judge("mean width (edges alone: about .5)", float(np.mean(widths)), 0.25)


def reports(populations: list[Population], runs: int, random: Any) -> bool:
    print(
        "\na report with curves, 2,000 rows, epsilon 1: widths over those of sections bought apart"
    )
    good = True
    for each in populations:
        ratios = []
        for _ in range(max(runs // 10, 3)):
            door = each.sample(2_000, random).session()
            joint, shares = door.report(epsilon=1, curves=True), (1 / 12, 1 / 6, 1 / 2)
            apart = [
                door.auc(epsilon=f"{shares[0]:.4f}"),
                door.confusion(threshold=0.5, epsilon=f"{shares[1]:.4f}").recall,
                door.curves(epsilon=f"{shares[2]:.4f}").roc.band(),
            ]
            together = [
                joint["auc"].headline,
                joint["confusion"].recall,
                joint["curves"].roc.band(),
            ]
            ratios.append(
                [_reach(one) / _reach(two) for one, two in zip(together, apart, strict=True)]
            )
        found = np.exp(np.log(ratios).mean(axis=0))
        print(
            f"  {each.name:24s} AUC {found[0]:.2f}, recall {found[1]:.2f}, ROC band {found[2]:.2f}"
        )
        good &= judge("geometric mean of the three", float(np.exp(np.log(found).mean())), 1.0)
    return good


def _reach(one: Any) -> float:
    return float(one.mean_width) if hasattr(one, "mean_width") else _width(one.interval())


def r_squared(populations: list[Population], runs: int, random: Any) -> bool:
    print("\nR squared, 1,000 rows, epsilon 1/2, declared bounds: its bias against these rows' own")
    laws: dict[str, Callable[[], Any]] = {
        "normal": lambda: random.normal(10, 3, 1_000),
        "skewed": lambda: random.lognormal(1, 0.6, 1_000),
        "uniform": lambda: random.uniform(0, 10, 1_000),
    }
    good = True
    for name, law in laws.items():
        for share in (0.3, 0.8):
            strays = []
            for _ in range(runs):
                predicted = law()
                noise = predicted.std() * math.sqrt(1 / share - 1)
                observed = predicted + random.normal(0, noise, 1_000)
                around = 4 * math.hypot(predicted.std(), noise)
                centre = float(predicted.mean())
                bounds = {"residual": 4 * noise, "observed": (centre - around, centre + around)}
                found = regression_metrics(
                    {"y": observed, "p": predicted},
                    observed="y",
                    predicted="p",
                    epsilon="1/2",
                    bounds=bounds,
                )
                true = 1 - np.mean((observed - predicted) ** 2) / observed.var()
                strays.append(found.r_squared.value - true)
            error = float(np.std(strays)) / math.sqrt(runs)
            print(f"  {name:10s} true {share:.1f}: bias {np.mean(strays):+.3f} ±{error:.3f}")
            good &= judge("size of the bias", abs(float(np.mean(strays))), 0.1 + 2 * error)
    return good


def separability(populations: list[Population], runs: int, random: Any) -> bool:
    print("\nseparability, 1,000-row pairs: alike, and with independent columns")
    told: dict[str, list[bool]] = {"alike": [], "independent columns": []}
    values: dict[str, list[float]] = {name: [] for name in told}
    for _ in range(max(runs // 3, 5)):
        first, second = (_joined(1_000, random) for _ in range(2))
        crude = np.stack([random.permutation(column) for column in second.T], axis=1)
        for name, copy in zip(told, (second, crude), strict=True):
            found = ho.separability(first, copy, progress=False)
            told[name].append(found.interval()[0] > 0)
            values[name].append(found.value)
    for name, hits in told.items():
        print(f"  {name:24s} told apart in {_share(hits)}, mean value {np.mean(values[name]):.2f}")
    good = judge("crude copies that are missed", 1 - np.mean(told["independent columns"]), 0.1)
    error = 2 * math.sqrt(0.05 * 0.95 / len(told["alike"]))
    return good & judge("alike tables told apart", float(np.mean(told["alike"])), 0.06 + error)


def _joined(rows: int, random: Any) -> Any:
    """Columns of which each has a plain distribution and that go together."""
    hidden = random.normal(size=rows)
    shown = [hidden + 0.7 * random.normal(size=rows) for _ in range(3)]
    return np.stack([*shown, random.poisson(np.exp(0.5 * hidden))], axis=1)


def learning(populations: list[Population], runs: int, random: Any) -> bool:
    print(
        "\na private classifier on made-up tables: AUC of the default, of noisy counts, no privacy"
    )
    from sklearn.linear_model import LogisticRegression

    shapes = {"2,000 x 10 flags": (2_000, 10, 2), "5,000 x 12 columns of 5": (5_000, 12, 5)}
    good = True
    for name, (rows, columns, bins) in shapes.items():
        for epsilon in ("1/2", "1", "3"):
            found = []
            for _ in range(max(runs // 10, 3)):
                X, y = _flagged(2 * rows, columns, bins, random)
                trained = ho.features.PrivatePipeline(epsilon=epsilon).fit(X[:rows], y[:rows])
                counted = _counted(X[:rows], y[:rows], 2 * columns / float(Fraction(epsilon)))
                plain = LogisticRegression(C=0.1, max_iter=500).fit(X[:rows], y[:rows])
                scores = (trained.decision_function(X[rows:]), X[rows:] @ counted(random))
                scores = (*scores, plain.decision_function(X[rows:]))
                held = y[rows:] == 1
                found.append([float(area(each[held], each[~held])) for each in scores])
            own, textbook, best = np.mean(found, axis=0)
            error = float(np.std(np.subtract(*np.transpose(found)[:2]))) / math.sqrt(len(found))
            print(f"  {name}, epsilon {epsilon}: {own:.3f}, {textbook:.3f}, {best:.3f}")
            good &= judge("noisy counts less ours", float(textbook - own), 2 * error)
    return good


def _flagged(rows: int, columns: int, bins: int, random: Any) -> tuple[Any, Any]:
    """Columns of a table that go together, each cut into bins of one flag each (two: one flag)."""
    hidden = random.normal(size=(rows, 1))
    cells = 0.6 * hidden + 0.8 * random.normal(size=(rows, columns))
    pull = cells @ (0.7 ** np.arange(columns)) - 1 + random.logistic(size=rows)
    places = np.searchsorted(np.linspace(-1.2, 1.2, bins + 1)[1:-1], cells)
    flags = (places[:, :, None] == np.arange(bins)).reshape(rows, -1)
    return (places if bins == 2 else flags).astype(np.int8), (pull > 0).astype(int)


def _counted(X: Any, y: Any, scale: float) -> Any:
    """Naive Bayes of noisy counts by label (Vaidya et al. 2013); the size of labels given free."""
    counts = [(X[y == label].sum(axis=0), (y == label).sum()) for label in (0, 1)]

    def weights(random: Any) -> Any:
        noisy = [
            np.log((np.maximum(own + random.laplace(0, scale, own.shape), 0) + 1) / rows)
            for own, rows in counts
        ]
        return noisy[1] - noisy[0]

    return weights


def _width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


TABLES = {
    each.__name__: each
    for each in (
        compare, areas, regression, r_squared, curves, bands, reports, separability,
        learning,
    )
}  # fmt: skip


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    chosen = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    populations = list(made_up())
    if chosen.data is not None:
        populations += from_data(chosen.data)
    random = np.random.default_rng()
    reached = [TABLES[name](populations, chosen.runs, random) for name in chosen.tables]
    return all(reached)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
