"""Where each point stands on which an answer once looked surer than it was, or lost to a histogram.

    PYTHONPATH=papers/src python -m benchmarks.points [--data DIR] [--runs 40] [--only 3 9]
        [--keep FILE] [--write docs/accuracy.md]

One small simulation a point; rows are drawn anew each
time. "Before" is what was reported from outside, on eight other sets. Points that are facts and not
rates (fair samples, ties, counts that add up, intervals that never widen) are tests, which the page
names. The errors of AUC and average precision against bins are in `benchmarks/beside.py`, with
separability.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gaps, quotes
from benchmarks.beside import binned, held_back
from benchmarks.populations import Population, from_data, made_up
from benchmarks.residual_plot import TAILED, _tailed
from heldout.kernel import exact
from heldout.kernel.ranking.sensitivity import area, average_precision
from heldout.kernel.statistic import Sealed
from heldout.questions.regression.plot_plan import PlotPlan
from heldout.questions.regression.table import ResidualTable
from heldout.questions.regression.verdict import Readings
from heldout.regression import metrics
from heldout_papers.chen_2016_residuals_data import Fitted, fitted
from heldout_papers.chen_2016_residuals_draw import PROTECTION, counted

START, END = "<!-- points: begin -->", "<!-- points: end -->"
NORMAL = 1.959964


@dataclass(frozen=True)
class Point:
    """One figure of one point: what was reported, what is wanted, what was measured."""

    number: int
    what: str
    before: str
    wanted: str
    measured: float
    error: float
    met: bool
    runs: int


def _share(hits: list[bool]) -> tuple[float, float]:
    mean = float(np.mean(hits))
    return mean, math.sqrt(max(mean * (1 - mean), 0.01) / len(hits))


def _point(
    number: int, what: str, before: str, measured: tuple[float, float], runs: int,
    *, low: float = -math.inf, high: float = math.inf,
) -> Point:  # fmt: skip
    ends = [f"at least {low:g}"] * (low > -math.inf) + [f"at most {high:g}"] * (high < math.inf)
    value, error = measured
    return Point(number, what, before, ", ".join(ends), value, error, low <= value <= high, runs)


# --- 3: the verdict of a residual plot -----------------------------------------------------------


def plot(fit: Fitted, epsilon: str, *, residual: tuple[float, float] | None) -> ResidualTable:
    """Draw it with the release's own steps, within declared bounds or searched ones."""
    plan = PlotPlan(
        epsilon=exact(epsilon, name="epsilon"), protection=PROTECTION, rows=fit.rows,
        expected_rows=None, scale=1.0, method="heldout", predicted=None, residual=residual,
        grid=None,
    )  # fmt: skip
    answers: dict[str, Any] = {}
    for name, booked in plan.staged().steps.items():
        step = booked.choose(answers)
        answers[name] = step.mechanism.sample(Sealed(counted(step.statistic, fit)))  # type: ignore[arg-type]
    return plan.table(answers)


def _residuals(data: Path | None) -> dict[str, Callable[[Any, Any], Any]]:
    """Residuals with mean 0 whatever the prediction, by name."""

    def tailed(kind: str) -> Callable[[Any, Any], Any]:
        return lambda u, random: _tailed(kind, u, random)

    laws = {kind: tailed(kind) for kind in TAILED}
    middle = math.exp(0.5)
    laws["lognormal, fanning out"] = lambda u, random: (
        (random.lognormal(0, 1, len(u)) - middle) * (0.5 + u)
    )
    path = None if data is None else data / "cps_march2000" / "cps_march2000.parquet"
    if path is not None and path.exists():
        own = _of_wages(path)
        laws["CPS wages (held back)"] = lambda u, random: random.choice(own, len(u))
        laws["CPS wages, fanning out (held back)"] = lambda u, random: (
            random.choice(own, len(u)) * (0.4 + 1.2 * u)
        )
    return laws


def _of_wages(path: Path) -> Any:
    """Residuals of wages by least squares on all other columns."""
    import pyarrow.parquet

    read = pyarrow.parquet.read_table(path)
    table = {name: read[name].to_numpy() for name in read.column_names}
    wages = table.pop("earn").astype(np.float64)
    columns = [np.ones(len(wages))]
    for name, column in table.items():
        if name not in ("label", "id"):
            is_number = column.dtype.kind in "if"
            coded = column if is_number else np.unique(column.astype(str), return_inverse=True)[1]
            columns.append(np.nan_to_num(coded.astype(np.float64)))
    features = np.stack(columns, axis=1)
    left = wages - features @ np.linalg.lstsq(features, wages, rcond=None)[0]
    return (left - left.mean()) / left.std()


def verdicts(data: Path | None, runs: int, random: Any) -> Iterator[Point]:
    laws = _residuals(data)

    def read(kind: str, rows: int, epsilon: str, bend: float, declared: bool) -> Readings:
        u = random.uniform(0, 1, rows)
        own = laws[kind](u, random)
        bent = (u - 0.5) ** 2 - 1 / 12
        bent *= bend / math.sqrt(1 - bend**2) * own.std() / bent.std()
        fit = fitted(kind, 10 * u, 10 * u + own + bent)
        reach = 5 * float(fit.residuals.std())
        return Readings(plot(fit, epsilon, residual=(-reach, reach) if declared else None))

    bends = (
        ("0.15, 5,000 rows, epsilon 0.5", 0.15, 5_000, "1/2", False, "0 (leans 1.00)"),
        (
            "0.15, 5,000 rows, epsilon 0.5, declared bounds of 5 deviations",
            0.15,
            5_000,
            "1/2",
            True,
            "0.35",
        ),
        ("0.25, 5,000 rows, epsilon 0.5", 0.25, 5_000, "1/2", False, "0.73"),
        (
            "0.25, 5,000 rows, epsilon 0.5, declared bounds of 5 deviations",
            0.25,
            5_000,
            "1/2",
            True,
            "-",
        ),
        ("0.5, 1,000 rows, epsilon 1", 0.5, 1_000, "1", False, "0.36 (leans 0.93)"),
    )
    for what, bend, rows, epsilon, declared, before in bends:
        found = [read("normal", rows, epsilon, bend, declared) for _ in range(runs)]
        leans, _ = _share([one.curvature.leans for one in found])
        seen, error = _share(["curvature" in one.verdict.faults for one in found])
        words = f"residual verdict, a bend of {what}: seen, over leaning ({leans:.2f})"
        ratio = (seen / max(leans, 1e-9), error / max(leans, 1e-9))
        yield _point(3, words, before, ratio, runs, low=0.9)
    alarms: dict[str, list[bool]] = {}
    for kind in laws:
        for rows, epsilon in ((1_000, "1"), (5_000, "1/2"), (50_000, "1")):
            for declared in (False, True):
                for _ in range(max(runs // 2, 5)):
                    faults = set(read(kind, rows, epsilon, 0.0, declared).verdict.faults)
                    alarms.setdefault(kind, []).append(bool({"curvature", "trend"} & faults))
    every = [alarm for several in alarms.values() for alarm in several]
    words = "residual verdict: false alarms, nine laws of residuals"
    yield _point(3, words, "0 of 840", _share(every), len(every), high=0.03)
    kind = max(alarms, key=lambda name: float(np.mean(alarms[name])))
    words = f"the same, the worst law ({kind})"
    yield _point(3, words, "0.03 wanted", _share(alarms[kind]), len(alarms[kind]), high=0.03)


# --- 4 and 5: areas of few rows ------------------------------------------------------------------


def _sets(data: Path | None) -> list[Population]:
    return [*made_up(), *(from_data(data) if data is not None else ()), *held_back()]


def clamped(data: Path | None, runs: int, random: Any) -> Iterator[Point]:
    """Coverage of the population, given that a number is shown, where noise is large."""
    hits, bare = [], []
    for population in _sets(data):
        truth = population.of(area)
        for rows, epsilon in ((300, "1"), (600, "1/2"), (1_000, "3/10")):
            for _ in range(max(runs // 8, 3)):
                drawn = population.sample(rows, random)
                if not 0 < drawn.labels.sum() < rows:
                    continue
                release = drawn.session().auc(epsilon=epsilon)
                low, high = release.interval()
                least, most = release.noise_interval()
                bare.append(low <= least + 1e-12 and most <= high + 1e-12)
                if release.headline.informative:
                    hits.append(low - 1e-9 <= truth <= high + 1e-9)
    words = "AUC at rows x epsilon = 300: interval holds, given that it is shown"
    yield _point(4, words, "0.84", _share(hits), len(hits), low=0.93, high=0.985)
    words = "the interval contains the noise interval"
    yield _point(4, words, "not when clamped", _share(bare), len(bare), low=1.0)


def small(data: Path | None, runs: int, random: Any) -> Iterator[Point]:
    """Error over that of 8 and of 16 bins of equal width, geometric mean of the sets."""
    own = {"AUC": area, "average precision": average_precision}
    sets = _sets(data)
    for rows, epsilon in ((300, "1/3"), (300, "1")):
        price = 1 / 3 if epsilon == "1/3" else 1.0
        errors: dict[str, list[Any]] = {name: [] for name in own}
        for population in sets:
            found: dict[str, list[Any]] = {name: [] for name in own}
            for _ in range(max(runs // 3, 4)):
                drawn = population.sample(rows, random)
                if not 0 < drawn.labels.sum() < rows:
                    continue
                door = drawn.session()
                by_bins = [binned(drawn.labels, drawn.own, b, 2 / price, random) for b in (8, 16)]
                for at, (name, metric) in enumerate(own.items()):
                    ask = door.auc if name == "AUC" else door.average_precision
                    value = ask(epsilon=epsilon).headline.value
                    several = np.array([value, *(both[at] for both in by_bins)])
                    found[name].append(np.abs(several - drawn.of(metric)))
            for name, runs_of_it in found.items():
                errors[name].append(np.mean(runs_of_it, axis=0))
        for name, means in errors.items():
            table = np.maximum(np.array(means), 1e-6)
            for at, bins in enumerate((8, 16), start=1):
                logs = np.log(table[:, 0] / table[:, at])
                mean = math.exp(float(logs.mean()))
                error = mean * float(logs.std()) / math.sqrt(len(logs))
                words = f"{name}, {rows} rows, epsilon {epsilon}: error over that of {bins} bins"
                count = max(runs // 3, 4) * len(sets)
                yield _point(5, words, "1.3 to 2.2", (mean, error), count, high=1.1)


# --- 7: regression metrics -----------------------------------------------------------------------


def regressions(data: Path | None, runs: int, random: Any) -> Iterator[Point]:
    """Coverage where bounds are searched; the noise itself is in tests."""
    laws: dict[str, Callable[[int], Any]] = {
        "normal": lambda size: random.normal(size=size),
        "t, 3 degrees": lambda size: random.standard_t(3, size),
        "lognormal": lambda size: random.lognormal(size=size) - math.exp(0.5),
    }
    before = {"normal": "0.91", "t, 3 degrees": "0.75", "lognormal": "0.75"}
    for name, law in laws.items():
        whole = law(2_000_000)
        scale, square = float(whole.std()), float(np.mean(whole**2))
        truths = {"R squared": 1 - square / (square + 2.25 * scale**2), "RMSE": math.sqrt(square)}
        hits: dict[str, list[bool]] = {measure: [] for measure in truths}
        for _ in range(runs):
            predicted = random.normal(0, 1.5 * scale, 5_000)
            table = {"y": predicted + law(5_000), "p": predicted}
            found = metrics(table, observed="y", predicted="p", epsilon="1")
            for measure, one in (("R squared", found.r_squared), ("RMSE", found.rmse)):
                low, high = one.interval()
                hits[measure].append(low <= truths[measure] <= high)
        for measure, several in hits.items():
            words = f"{measure}, searched bounds, {name}, 5,000 rows, epsilon 1: holds"
            own = before[name] if measure == "R squared" else "-"
            yield _point(7, words, own, _share(several), runs, low=0.93)


# --- 8 and 9: quotes, comparisons and gaps -------------------------------------------------------

REPORTED = {"precision": "1.19", "F1 score": "1.14", "Brier score": "1.30"}


def quoted(data: Path | None, runs: int, random: Any) -> Iterator[Point]:
    """Realised over quoted half-widths; those that are furthest from 1, by kind."""
    for kind in ("auc", "average-precision", "confusion", "brier", "log-loss", "compare"):
        for rows, epsilon in quotes.SIZES:
            lines = quotes.measure(kind, rows, epsilon, runs, random)
            shown = [line for line in lines if line[4]]
            if not shown:
                continue
            name, _, ratio, _, _ = max(shown, key=lambda line: abs(math.log(line[2])))
            words = f"{kind}, {rows:,} rows: realised over quoted width, furthest ({name})"
            before = REPORTED.get(name, "-")
            yield _point(8, words, before, (ratio, 0.0), runs, low=0.9, high=1.1)


def compared(data: Path | None, runs: int, random: Any) -> Iterator[Point]:
    """Comparisons at 1,000 rows and epsilon 1, beside an ideal that pays for nothing else."""
    ratios, hits, seen, best, ideal = [], [], [], [], []
    for population in made_up():
        truth = population.difference()[0]
        for _ in range(max(runs // 2, 5)):
            drawn = population.sample(1_000, random)
            plain, variance = drawn.difference()
            delong = math.sqrt(variance)
            smaller = min(int(drawn.labels.sum()), 1_000 - int(drawn.labels.sum()))
            # All of epsilon for the difference, whose noise has the scale 2/smaller.
            noise = -math.log(0.05) * 2 / smaller
            release = drawn.session().compare(score="rival", epsilon=1)
            low, high = release.interval()
            wide = math.hypot(NORMAL * delong, noise)
            ratios.append((high - low) / 2 / wide)
            hits.append(low <= truth <= high)
            if 0.015 < abs(truth) < 0.025:
                seen.append(bool(release.p_value < 0.05))
                best.append(abs(plain) > NORMAL * delong)
                ideal.append(abs(plain + random.laplace(0, 2 / smaller)) > wide)
    spread = 1.25 * float(np.subtract(*np.quantile(ratios, (0.75, 0.25)))) / 1.35
    words = (
        "compare, 1,000 rows, epsilon 1: width over the ideal's, median "
        f"(mean {np.mean(ratios):.2f})"
    )
    middle = float(np.median(ratios)), spread / math.sqrt(len(ratios))
    yield _point(9, words, "1.54", middle, len(ratios), high=1.3)
    yield _point(9, "the same: interval holds", "-", _share(hits), len(hits), low=0.93)
    words = (
        f"the same: power at 0.02, over the ideal's {np.mean(ideal):.2f} (DeLong's, without "
        f"privacy, {np.mean(best):.2f})"
    )
    share, error = _share(seen)
    most = max(float(np.mean(ideal)), 1e-9)
    yield _point(9, words, "0.18 of 0.74", (share / most, error / most), len(seen), low=0.9)
    gaps.RANDOM = random
    private, plain_power = gaps.power(3 * runs, gap=0.07)  # type: ignore[no-untyped-call]
    words = f"groups, a gap of 0.07 in recall: power, over {plain_power:.2f} without privacy"
    error = math.sqrt(private * (1 - private) / (3 * runs))
    ratio = (private / plain_power, error / plain_power)
    yield _point(9, words, "0.67 of 0.82", ratio, 3 * runs, low=0.9)


POINTS: dict[int, Callable[[Path | None, int, Any], Iterator[Point]]] = {
    3: verdicts,
    4: clamped,
    5: small,
    7: regressions,
    8: quoted,
    9: compared,
}


def table(points: list[Point]) -> str:
    rows = [
        "| point | what | reported before | wanted | measured (standard error) | runs | |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in sorted(points, key=lambda point: point.number):
        error = f" ({one.error:.3f})" if one.error else ""
        near = abs(one.measured - _edge(one)) < 2 * one.error if one.wanted else False
        word = "met" if one.met else "within error" if near else "missed"
        rows.append(
            f"| {one.number} | {one.what} | {one.before} | {one.wanted} | "
            f"{one.measured:.3f}{error} | {one.runs:,} | {word} |"
        )
    return "\n".join(rows)


def _edge(point: Point) -> float:
    """Return the end of what is wanted that is nearest to what was measured."""
    ends = [float(part.split()[-1]) for part in point.wanted.split(", ")]
    return min(ends, key=lambda end: abs(end - point.measured))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", type=int, nargs="*", default=list(POINTS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", type=Path)
    words = parser.parse_args()
    points: list[Point] = []
    if words.write is None:
        for number in words.only:
            for one in POINTS[number](words.data, words.runs, np.random.default_rng(37 + number)):
                print(table([one]).splitlines()[-1], flush=True)
                points.append(one)
                if words.keep is not None:
                    with words.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(one)) + "\n")
        return
    with words.keep.open(encoding="utf-8") as file:
        points = [Point(**json.loads(line)) for line in file]
    before, _, rest = words.write.read_text("utf-8").partition(START)
    _, _, after = rest.partition(END)
    words.write.write_text(f"{before}{START}\n{table(points)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
