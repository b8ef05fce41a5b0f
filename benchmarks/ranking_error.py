"""Error, coverage and speed of private ranking metrics, cell by cell, with PASS or MISS.

Noise is drawn in doubles from the same laws that the exact sampler has; the last table checks the
exact sampler against them.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from heldout.intervals.areas import (
    Belief,
    is_plausible,
    noise_interval,
    population_interval,
)
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.ranking.ladder import NoiseLaw
from heldout.kernel.ranking.mechanism import RankingDraw, RankingMechanism, choose, sensitivity_for
from heldout.kernel.ranking.sensitivity import area, average_precision
from heldout.kernel.ranking.statistic import RankingStatistic
from heldout.kernel.statistic import Sealed

SIZES = (100, 300, 1000)
EPSILONS = ("0.1", "0.25", "0.5", "1")
DRAWS = 20_000
SAMPLES = 2_000
ROWS = Protection(neighbours=Neighbours.REPLACE_ONE)
NORMAL = NormalDist()


@dataclass
class Verdicts:
    """Counts what was reached."""

    passed: int = 0
    missed: list[str] = field(default_factory=list)

    def judge(self, holds: bool, what: str) -> str:
        if holds:
            self.passed += 1
            return "PASS"
        self.missed.append(what)
        return "MISS"


def noise(law: NoiseLaw, rung: int, source: Any, draws: int) -> Any:
    """Draws of the law by inverting its tail in doubles."""
    edges = np.concatenate([[0.0], np.geomspace(1e-8, 1e4, 8000)])
    tails = law.survival(np.full(edges.shape, rung), edges)
    return np.interp(-source.random(draws), -tails, edges) * source.choice([-1.0, 1.0], draws)


def clipped_error(value: float, noises: Any) -> float:
    return float(np.mean(np.abs(np.clip(value + noises, 0, 1) - value)))


def errors(metric: str, value: float, n: int, epsilon: Fraction, source: Any) -> dict[str, float]:
    """Mean absolute error by method; `ours` is the whole release, count share included."""
    local = sensitivity_for(metric, protection=ROWS)
    floor = source.laplace(0, local.upper(n) / float(epsilon), DRAWS)
    found = {"floor": clipped_error(value, floor)}
    methods: dict[str, tuple[str, Fraction | None]] = {
        "Cauchy 2015": ("boyd-2015-cauchy", None),
        "Laplace 1e-6": ("boyd-2015-laplace", Fraction(1, 10**6)),
        "Laplace 1e-2": ("boyd-2015-laplace", Fraction(1, 100)),
        "polynomial": ("polynomial-tail", None),
        "value alone": ("piecewise-laplace", None),
    }
    for name, (method, delta) in methods.items():
        bound = sensitivity_for(metric, protection=ROWS, method=method)
        law = choose(method, epsilon=epsilon, local=bound, rows=2 * n, delta=delta)
        found[name] = clipped_error(value, noise(law, n, source, DRAWS))
    release = RankingMechanism(metric=metric, epsilon=epsilon, protection=ROWS, rows=2 * n)
    found["ours"] = clipped_error(value, released(release, n, n, source))
    return found


def looks(release: RankingMechanism, n: int, m: int, source: Any, draws: int) -> list[Any]:
    """Noisy counts of so many releases, in doubles' time: (first, second, law) of each."""
    assert release.first_look is not None
    public = release.protection.row_count_is_public
    counts = np.array([n] if public else [n, m])

    def noisy(scale: float) -> tuple[int, ...]:
        stay = math.exp(-1 / scale)
        size = counts.size
        moved = source.geometric(1 - stay, size) - source.geometric(1 - stay, size)
        return tuple(int(each) for each in counts + moved)

    found = []
    for _ in range(draws):
        first = noisy(float(release.first_look.scale))
        second_look = release.second_look(first)
        second = () if second_look is None else noisy(float(second_look.scale))
        found.append((first, second, release.second_share(first)))
    return found


def released(release: RankingMechanism, n: int, m: int, source: Any, draws: int = DRAWS) -> Any:
    """The value's noise in so many releases; its law depends on the first look."""
    rung = release.local.rung(positives=n, negatives=m)
    shares: dict[Any, list[tuple[int, ...]]] = {}
    for first, _, share in looks(release, n, m, source, draws):
        shares.setdefault(share, []).append(first)
    drawn = [
        noise(release.law_after(firsts[0]), rung, source, len(firsts)) for firsts in shares.values()
    ]
    return np.concatenate(drawn)


def error_table(metric: str, value: float, verdicts: Verdicts) -> None:
    source = np.random.default_rng(2015)
    print(f"\n{metric}: mean absolute error, {DRAWS:,} draws, true value {value:.3f}, clipped")
    names = ["floor", "Cauchy 2015", "Laplace 1e-6", "Laplace 1e-2", "polynomial", "value alone"]
    header = "".join(f"{name:>13}" for name in [*names, "ours"])
    print(f"{'n = m':>6}{'epsilon':>8}{header}{'to floor':>10}{'to Cauchy':>10}  figures")
    for n in SIZES:
        for text in EPSILONS:
            epsilon = Fraction(text)
            found = errors(metric, value, n, epsilon, source)
            to_floor = found["ours"] / found["floor"]
            to_cauchy = found["ours"] / found["Cauchy 2015"]
            strength = n * epsilon
            cell = f"{metric} n = {n} epsilon = {text}"
            judged = [
                f"<= {most:.4g} {verdicts.judge(ratio <= most, f'{cell}: {name}')}"
                for name, ratio, most, least in figures(metric, found, to_floor, to_cauchy)
                if strength >= least
            ]
            numbers = "".join(f"{found[name]:>13.5f}" for name in [*names, "ours"])
            ratios = f"{to_floor:>10.3f}{to_cauchy:>10.3f}"
            print(f"{n:>6}{text:>8}{numbers}{ratios}  {', '.join(judged)}")


def figures(
    metric: str, found: dict[str, float], to_floor: float, to_cauchy: float
) -> list[tuple[str, float, float, int]]:
    """(name, ratio, at most, from which n epsilon on)."""
    wanted = [("floor", to_floor, 1.5, 100), ("floor", to_floor, 1.2, 500)]
    if metric == "auc":
        wanted += [("Cauchy", to_cauchy, 1 / 5, 50), ("Cauchy", to_cauchy, 1 / 8, 150)]
        wanted += [("Laplace 1e-2", found["ours"] / found["Laplace 1e-2"], 1.0, 100)]
    else:
        wanted += [("Cauchy", to_cauchy, 1 / 10, 150)]
    return wanted


def coverage_table(metric: str, verdicts: Verdicts) -> None:
    source = np.random.default_rng(2016)
    print(f"\n{metric}: 95% noise intervals, 10,000 draws, and their width to the true law's")
    for n in SIZES:
        for text in EPSILONS:
            release = RankingMechanism(
                metric=metric, epsilon=Fraction(text), protection=ROWS, rows=2 * n
            )
            covered, width, share = noise_coverage(release, n, source)
            verdict = verdicts.judge(0.94 <= covered <= 0.97, f"{metric} coverage {n} {text}")
            print(
                f"{n:>6}{text:>8}  share for counts {share:.3f}  covers {covered:.4f}  "
                f"width x {width:.3f}  {verdict}"
            )


def noise_coverage(release: RankingMechanism, n: int, source: Any) -> tuple[float, float, float]:
    """Coverage over 10,000 draws: 500 beliefs, each with 20 draws of the value."""
    held, widths, shares = [], [], []
    known = Belief.known(release, n, n)
    for first, second, share in looks(release, n, n, source, 500):
        draw = RankingDraw(release, 0, first, second)
        reach = noise_interval(draw)[1]
        noises = noise(draw.law, n, source, 20)
        held.append(np.mean((np.abs(noises) <= reach) | (reach >= 1)))
        widths.append(reach / noise_interval(draw, known=known)[1])
        shares.append(float(share) + 0.02)
    return float(np.mean(held)), float(np.mean(widths)), float(np.mean(shares))


def population_table(metric: str, verdicts: Verdicts) -> None:
    print(f"\n{metric}: 95% population intervals on binormal data, 2,000 samples a cell")
    function = area if metric == "auc" else average_precision
    for n, m in ((50, 50), (100, 100), (300, 300), (1000, 1000), (50, 1000)):
        for text in ("1", "0.5", "0.25"):
            for true_area in (0.7, 0.9):
                cell = (n, m, text, true_area)
                covered, ratio = population_cell(metric, function, cell)
                name = f"{metric} population {n} {m} {text} {true_area}"
                first = verdicts.judge(covered >= 0.94, name + " coverage")
                second = verdicts.judge(ratio <= 1.15, name + " width")
                print(
                    f"{n:>6} + {m:<6}{text:>5}  AUC {true_area}  covers {covered:.3f} {first}  "
                    f"width x {ratio:.3f} {second}"
                )


def population_cell(
    metric: str, function: Callable[..., Fraction], cell: tuple[int, int, str, float]
) -> tuple[float, float]:
    n, m, text, true_area = cell
    source = np.random.default_rng(2017)
    release = RankingMechanism(metric=metric, epsilon=Fraction(text), protection=ROWS, rows=n + m)
    shift = math.sqrt(2) * NORMAL.inv_cdf(true_area)
    truth = true_area if metric == "auc" else binormal_precision(shift, n, m)
    rung = release.local.rung(positives=n, negatives=m)
    draws, held = [], 0
    tables: dict[Any, Any] = {}
    for first, second, share in looks(release, n, m, source, SAMPLES):
        if share not in tables:
            tables[share] = iter(noise(release.law_after(first), rung, source, SAMPLES))
        value = float(function(source.normal(shift, 1, n), source.normal(0, 1, m)))
        units = round((value + next(tables[share])) / float(LATTICE))
        draws.append(RankingDraw(release, units, first, second))
        held += is_plausible(draws[-1], truth)
    known = Belief.known(release, n, m)
    widths = [np.diff(population_interval(draw))[0] for draw in draws[:40]]
    best = [np.diff(population_interval(draw, known=known, centre=truth))[0] for draw in draws[:40]]
    return held / SAMPLES, float(np.mean(widths) / np.mean(best))


def binormal_precision(shift: float, n: int, m: int) -> float:
    """The population's area under the precision-recall curve."""
    recall = (np.arange(4000) + 0.5) / 4000
    false = np.array([1 - NORMAL.cdf(shift - NORMAL.inv_cdf(each)) for each in recall])
    prevalence = n / (n + m)
    return float(np.mean(prevalence * recall / (prevalence * recall + (1 - prevalence) * false)))


def speed_table(metric: str, verdicts: Verdicts) -> None:
    source = np.random.default_rng(2018)
    label = source.random(10_000) < 0.3
    score = source.normal(size=10_000) + label
    function = area if metric == "auc" else average_precision
    release = RankingMechanism(metric=metric, epsilon=Fraction(1), protection=ROWS, rows=10_000)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        positives, negatives = score[label], score[~label]
        statistic = RankingStatistic(function(positives, negatives), positives.size, negatives.size)
        release.sample(Sealed(statistic))
        times.append(time.perf_counter() - start)
    median = float(np.median(times)) * 1000
    verdict = verdicts.judge(median < 2, f"{metric} speed")
    print(f"\n{metric}: one release of 10,000 rows, ledger aside: {median:.2f} ms  {verdict}")


def exact_table(metric: str, verdicts: Verdicts) -> None:
    print(f"\n{metric}: the exact sampler against the law, 4,000 draws, Kolmogorov-Smirnov")
    for n, text in ((100, "1"), (1000, "0.1")):
        release = RankingMechanism(
            metric=metric, epsilon=Fraction(text), protection=ROWS, rows=2 * n
        )
        law = release.expected_law(positives=n, negatives=n)
        points = [float(law.sample(Fraction(0), rung=n) * LATTICE) for _ in range(4000)]
        tails = np.sort(law.survival(np.full(4000, n), np.abs(points)))
        distance = float(np.max(np.abs(tails - (np.arange(4000) + 0.5) / 4000)) * math.sqrt(4000))
        verdict = verdicts.judge(distance < 2.0, f"{metric} sampler {n} {text}")
        print(f"{n:>6}{text:>8}  {distance:.2f} (2.0 has probability 0.0007)  {verdict}")


def run(metric: str, value: float) -> int:
    """Print every table; the number of figures missed."""
    verdicts = Verdicts()
    error_table(metric, value, verdicts)
    coverage_table(metric, verdicts)
    population_table(metric, verdicts)
    speed_table(metric, verdicts)
    exact_table(metric, verdicts)
    print(f"\n{metric}: {verdicts.passed} figures reached, {len(verdicts.missed)} missed")
    for what in verdicts.missed:
        print(f"  missed: {what}")
    return len(verdicts.missed)
