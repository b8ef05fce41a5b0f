"""How much the same epsilon says: widths, coverage and power, in one run, with standard errors.

    python -m benchmarks.accuracy [--data DIR] [--runs 40] [--tables compare beside] [--part 1/3]
        [--keep FILE] [--write docs/accuracy.md]

Rows are drawn with replacement from a population whose truth is known: made-up scores, heavy-tailed
ones among them, and, where DIR has them, two models each on adult (which shares of epsilon were
tuned on), cps_march2000 and acs2018_gov_census (which they were not). Everything is asked through
`Session`, as an analyst asks it. At the end one table: what was wanted and what was measured. The
table `beside` has the simplest private alternative and no privacy in columns of their own, on
held-back sets too (`benchmarks/beside.py`); on shared cores it runs in parts. About ten minutes on
one idle core.
"""

import argparse
import math
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho
from benchmarks import beside as alternatives
from benchmarks import roc_error
from benchmarks.figure import Rows
from benchmarks.populations import Population, from_data, made_up
from heldout.kernel.ranking.sensitivity import area, average_precision
from heldout.regression import metrics as regression_metrics

NORMAL = 1.959964


def _mean(values: Any) -> tuple[float, float]:
    """A mean and its standard error."""
    return float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values))


def _share(hits: list[bool]) -> tuple[float, float]:
    """How often, and the standard error of that."""
    mean = float(np.mean(hits))
    return mean, math.sqrt(max(mean * (1 - mean), 0.01) / len(hits))


def _said(hits: list[bool]) -> str:
    return "{:.3f} ±{:.3f}".format(*_share(hits))


def _width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


# --- the tables ----------------------------------------------------------------------------------


def compare(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\ncompare, 5,000 rows, epsilon 1; widths of 95% intervals")
    covered, alarms, ratios, apart_ratios, powers = [], [], [], [], []
    for each in populations:
        truth = each.difference()[0]
        equal = abs(truth) < 0.003
        hits, found, widths = [], [], []
        for _ in range(4 * runs if equal else runs):  # false alarms are rare
            rows = each.sample(5_000, random)
            door = rows.session()
            release = door.compare(score="rival", epsilon=1)
            low, high = release.interval()
            hits.append(low <= truth <= high)
            found.append(bool(release.p_value < 0.05))
            delong = 2 * NORMAL * math.sqrt(rows.difference()[1])
            apart = [_width(door.auc(epsilon="1/2").interval()) for _ in range(2)]
            best = math.hypot(delong, _width(release.noise_interval()))
            widths.append((high - low, delong, best, math.hypot(*apart)))
        width, delong, best, apart = np.mean(widths, axis=0)
        covered += hits[:runs]
        ratios.append(width / best)
        apart_ratios.append(width / apart)
        print(
            f"  {each.name:24s} true {truth:+.3f}: width {width:.4f}, DeLong {delong:.4f}, "
            f"two areas {apart:.4f}, covers {_said(hits)}, p < .05 in {_said(found)}"
        )
        if equal:
            alarms += found
        elif 0.015 < abs(truth) < 0.025:
            powers.append((each, found))
    out.add("compare: width / sqrt(DeLong^2 + noise^2), mean of the sets", *_mean(ratios), high=1.3)
    out.add(
        "compare: width / two separate areas, largest of the sets",
        max(apart_ratios),
        0.02,
        high=1.0,
    )
    out.add("compare: coverage, all sets", *_share(covered), low=0.94, high=0.97)
    out.add("compare: false alarms where models are equal", *_share(alarms), low=0.03, high=0.06)
    for each, found in powers:
        what = f"compare: power at {each.difference()[0]:.3f}, {each.name}"
        out.add(what, *_share(found), low=0.8, high=math.inf)
        ours, best = [], []
        for _ in range(max(runs // 4, 3)):
            rows = each.sample(20_000, random)
            seen, variance = rows.difference()
            best.append(abs(seen) > NORMAL * math.sqrt(variance))
            released = rows.session().compare(score="rival", epsilon=1)
            ours.append(bool(released.p_value < 0.05))
        share, error = _share(ours)
        most = max(float(np.mean(best)), 1e-9)
        out.add(
            f"the same at 20,000 rows, over DeLong's {most:.2f}",
            share / most,
            error / most,
            low=0.9,
            high=math.inf,
        )


def areas(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\nAUC and average precision, 5,000 rows, epsilon 2: how often the interval holds")
    metrics = {"auc": area, "average_precision": average_precision}
    found: dict[str, list[list[bool]]] = {name: [] for name in metrics}
    for each in populations:
        truths = {name: each.of(metric) for name, metric in metrics.items()}
        hits: dict[str, list[bool]] = {name: [] for name in metrics}
        for _ in range(runs):
            door = each.sample(5_000, random).session()
            for name, truth in truths.items():
                low, high = getattr(door, name)(epsilon=2).interval()
                hits[name].append(low <= truth <= high)
        print(f"  {each.name:24s} " + ", ".join(f"{n} {_said(h)}" for n, h in hits.items()))
        for name, one in hits.items():
            found[name].append(one)
    for name, sets in found.items():
        everything = [hit for one in sets for hit in one]
        out.add(f"{name}: interval holds, all sets", *_share(everything), low=0.935, high=0.975)
        worst = min(sets, key=lambda one: float(np.mean(one)))
        out.add(f"{name}: the worst set", *_share(worst), low=0.935, high=math.inf)


def regression(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\nRMSE and MAE, 5,000 rows, epsilon 1, bounds found by search")
    laws: dict[str, Callable[[int], Any]] = {
        "normal": lambda size: random.normal(size=size),
        "Laplace": lambda size: random.laplace(size=size),
        "lognormal": lambda size: random.lognormal(size=size) - math.exp(0.5),
    }
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
        print(f"  {name:24s} RMSE's width {np.mean(widths):.3f} of it")
        for what, found in zip(("RMSE", "MAE"), hits, strict=True):
            out.add(
                f"{what}, searched bounds, {name}: holds", *_share(found), low=0.93, high=math.inf
            )


def curves(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\ncurves, 5,000 rows, epsilon 1: the area off the curve, and recall at one half")
    covered, ratios, halves, knowns = [], [], [], []
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
        ratios.append(ours / alone)
        halves.append(half / error)
        knowns.append(known / whole)
        print(
            f"  {each.name:24s} area's error {ours:.4f}, session.auc {alone:.4f}; recall's "
            f"half-width {half:.4f}, mean error {error:.4f}, holds {held:.3f}"
        )
    logs = np.log(ratios)
    error = float(np.exp(logs.mean()) * logs.std() / math.sqrt(len(logs)))
    out.add(
        "curves: area off the curve / session.auc, geometric mean",
        float(np.exp(logs.mean())),
        error,
        high=1.15,
    )
    out.add("curves.confusion(.5): recall's half-width / mean error", *_mean(halves), high=4.0)
    out.add("curves.confusion(.5): holds", *_share(covered), low=0.94, high=0.98)
    out.add("named threshold: width / confusion(t)", *_mean(knowns), high=1.5)


def bands(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    places = np.linspace(0.005, 0.995, 199)
    for rows, widest in ((1_000, 0.22), (5_000, math.inf)):
        print(f"\nROC bands of level .95, simultaneous, {rows:,} rows, epsilon 1")
        covered, widths = [], []
        for each in populations:
            positives = np.sort(each.own[each.labels == 1])
            cuts = np.quantile(each.own[each.labels == 0], 1 - places, method="higher")
            truth = 1 - np.searchsorted(positives, cuts, side="left") / len(positives)
            hits, wide = [], []
            for _ in range(runs):
                band = each.sample(rows, random).session().curves(epsilon=1).roc.band(at=places)
                # A population of finitely many rows has steps.
                inside = (band.low <= truth + 2e-3) & (truth - 2e-3 <= band.high)
                hits.append(bool(inside.all()))
                wide.append(band.mean_width)
            covered.append(hits)
            widths.append(float(np.mean(wide)))
            print(f"  {each.name:24s} holds {_said(hits)}, mean width {widths[-1]:.3f}")
        everything = [hit for hits in covered for hit in hits]
        what = f"ROC bands, {rows:,} rows"
        out.add(f"{what}: hold the whole curve", *_share(everything), low=0.95, high=0.98)
        worst = min(covered, key=lambda hits: float(np.mean(hits)))
        out.add(f"{what}: the worst set", *_share(worst), low=0.9, high=math.inf)
        if widest < math.inf:
            out.add(f"{what}: mean width", *_mean(widths), high=widest)


def methods(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\nROC and PR error over the best published method's and the best quantile tree's")
    for neighbours in ("replace-one", "add-remove"):
        print(f"  {neighbours}", flush=True)
        roc_error.compared(_DATA[0], max(runs // 5, 4), neighbours, out)


def reports(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print(
        "\na report with curves, 2,000 rows, epsilon 1: widths over those of sections bought apart"
    )
    together_all = []
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
        together_all.append(found)
        print(
            f"  {each.name:24s} AUC {found[0]:.2f}, recall {found[1]:.2f}, ROC band {found[2]:.2f}"
        )
    for index, name in enumerate(("AUC", "recall", "ROC band")):
        logs = np.log(np.array(together_all)[:, index])
        error = float(np.exp(logs.mean()) * logs.std() / math.sqrt(len(logs)))
        out.add(
            f"report: width of {name} / bought apart", float(np.exp(logs.mean())), error, high=1.0
        )


def _reach(one: Any) -> float:
    return float(one.mean_width) if hasattr(one, "mean_width") else _width(one.interval())


def r_squared(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\nR squared, 1,000 rows, epsilon 0.5, declared bounds: its bias against these rows' own")
    laws: dict[str, Callable[[], Any]] = {
        "normal": lambda: random.normal(10, 3, 1_000),
        "skewed": lambda: random.lognormal(1, 0.6, 1_000),
        "uniform": lambda: random.uniform(0, 10, 1_000),
    }
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
            out.add(
                f"R squared, 1,000 rows, epsilon 0.5, {name}, true {share:.1f}: bias",
                float(np.mean(strays)),
                error,
                low=-0.1,
                high=0.1,
            )


def separability(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print("\nseparability, 1,000-row pairs: alike, a good copy, and independent columns")
    told: dict[str, list[bool]] = {"alike": [], "crude": [], "good": []}
    values: dict[str, list[float]] = {name: [] for name in told}
    for turn in range(3 * runs):
        first, second = (_joined(1_000, random) for _ in range(2))
        copies = {"alike": second}
        if turn < max(runs // 3, 5):
            columns = [random.permutation(column) for column in second.T]
            copies["crude"] = np.stack(columns, axis=1)
            # A good copy has every tenth row so, and the others joined as they should be.
            tenth = np.arange(1_000)[:, None] % 10 == 0
            copies["good"] = np.where(tenth, copies["crude"], second)
        for name, copy in copies.items():
            found = ho.separability(first, copy, progress=False)
            told[name].append(found.interval()[0] > 0)
            values[name].append(found.value)
    for name, hits in told.items():
        print(f"  {name:8s} told apart in {_said(hits)}, mean value {np.mean(values[name]):.2f}")
    out.add("separability: alike tables told apart", *_share(told["alike"]), low=0.04, high=0.06)
    out.add("separability: crude copies seen", *_share(told["crude"]), low=0.9, high=math.inf)
    better = [good < crude for good, crude in zip(values["good"], values["crude"], strict=True)]
    out.add("separability: good copy above the crude", *_share(better), low=0.9, high=math.inf)


def _joined(rows: int, random: Any) -> Any:
    """Columns of which each has a plain distribution and that go together."""
    hidden = random.normal(size=rows)
    shown = [hidden + 0.7 * random.normal(size=rows) for _ in range(3)]
    return np.stack([*shown, random.poisson(np.exp(0.5 * hidden))], axis=1)


def learning(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    print(
        "\na private classifier on made-up tables: AUC of the default, of noisy counts, no privacy"
    )
    from sklearn.linear_model import LogisticRegression

    shapes = {"2,000 x 10 flags": (2_000, 10, 2), "5,000 x 12 columns of 5": (5_000, 12, 5)}
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
            what = f"learning, {name}, epsilon {epsilon}: textbook's AUC minus ours"
            out.add(what, float(textbook - own), error, high=0.0)


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


def beside(populations: list[Population], runs: int, random: Any, out: Rows) -> None:
    """Add a line a measure: our error over that of the best simple alternative, all sets."""
    print("\nbeside the simplest alternative and no privacy")
    lines = alternatives.measure_all(_DATA[0], runs, random, part=_PART[0], keep=_KEEP[0])
    for measure in dict.fromkeys(line.measure for line in lines):
        ratios = [
            max(line.ours, 1e-6) / max(min(line.simplest.values()), 1e-6)
            for line in lines
            if line.measure == measure
        ]
        logs = np.log(ratios)
        middle = float(np.exp(logs.mean()))
        error = middle * float(logs.std()) / math.sqrt(len(logs))
        out.add(f"{measure}: error / simplest alternative's", middle, error, high=1.1)


_DATA: list[Path | None] = [None]
_KEEP: list[Path | None] = [None]
_PART: list[tuple[int, int]] = [(1, 1)]
TABLES = {
    each.__name__: each
    for each in (
        compare, areas, regression, r_squared, curves, bands, methods, reports, separability,
        learning, beside,
    )
}  # fmt: skip


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--part", default="1/1", help="of the table beside, such as 2/3")
    parser.add_argument("--keep", type=Path, help="file for the lines of that table")
    parser.add_argument("--write", type=Path, help="page that gets the table of the kept lines")
    chosen = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    if chosen.write is not None:
        alternatives.write(chosen.write, chosen.keep)
        return True
    first, _, whole = chosen.part.partition("/")
    _PART[0], _KEEP[0] = (int(first), int(whole)), chosen.keep
    populations = list(made_up())
    if chosen.data is not None:
        populations += from_data(chosen.data)
        _DATA[0] = chosen.data
    random, out = np.random.default_rng(), Rows()
    for name in chosen.tables:
        start, before = time.perf_counter(), len(out.lines)
        TABLES[name](populations, chosen.runs, random, out)
        print("\n".join(out.lines[before:]))
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    out.show()
    return out.missed == 0


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
