"""Measures of a row, time to an event, thresholds: coverage of 95% intervals, and errors.

    python -m benchmarks.measures [repetitions] [names ...]

Rows and noise are simulated; the intervals are those of the releases. The last columns are ratios:
the interval's width over that of the same rows without noise (lifelines' where rows have times),
and the mean error over that of the simplest answer with Laplace noise: the mean with noise for its
own sensitivity; a histogram or a life table with noise in each cell, from which one interpolates or
multiplies; a concordance with noise for what one row moves it by in the worst table, 1; a threshold
that is read off curves at the same price.
"""

import math
import sys
from functools import cache
from itertools import product

import numpy as np
from lifelines import KaplanMeierFitter
from lifelines.utils import concordance_index

import heldout as ho
from benchmarks.class_coverage import HIGH, LOW, released
from heldout import questions as q
from heldout.data.description import MeasuredRows, SurvivalRows, ValueRange
from heldout.kernel import Protection
from heldout.kernel.door import Drawn
from heldout.kernel.ranking.concordance import pulls
from heldout.kernel.statistic import STEPS, Sealed
from heldout.questions.survival import LogRankRelease

RANDOM = np.random.default_rng(36)
GRID = tuple(product((300, 2_000, 20_000), ("1/4", "1", "4")))
NORMAL = 1.959964


def described(rows: int) -> MeasuredRows:
    values = {"a": ValueRange(0.0, 1.0), "b": ValueRange(0.0, 1.0)}
    relation = Protection(neighbours="replace-one")
    return MeasuredRows(name="made up", protection=relation, rows=rows, values=values)


def beta(rows: int):
    """Dice scores of a good model: mean .8, skewed."""
    return RANDOM.beta(8, 2, rows)


def costs(rows: int):
    """Costs of which most are small: mean .05."""
    return np.minimum(RANDOM.exponential(0.05, rows), 1.0)


def sums(numbers):
    """Return what `ValueSums` gives of numbers from 0 to 1, where their count is public."""
    steps = np.floor(numbers * STEPS + 0.5).astype(np.int64)
    return np.array([steps.sum(), (steps * (STEPS - steps) // STEPS).sum()])


def cases():
    """Yield a name, a question, and a draw: exact vector, own value, population's, deviation."""

    def mean(draw, truth):
        def of(rows):
            x = draw(rows)
            return sums(x), x.mean(), truth, x.std()

        return of

    def difference(rows):
        first = beta(rows)
        second = np.clip(first + RANDOM.normal(0.02, 0.1, rows), 0, 1)
        return (
            sums((second - first + 1) / 2),
            (second - first).mean(),
            APART,
            (second - first).std(),
        )

    def share(rows):
        x = (beta(rows) >= 0.7).astype(float)
        return sums(x), x.mean(), ABOVE, x.std()

    yield "mean, Dice", lambda e: q.Mean(epsilon=e, column="a"), mean(beta, 0.8), 1
    yield "mean, costs", lambda e: q.Mean(epsilon=e, column="a"), mean(costs, COST), 1
    yield "B minus A", lambda e: q.Mean(epsilon=e, column="b", minus="a"), difference, 2
    yield "share", lambda e: q.ShareAbove(epsilon=e, column="a", at_least=0.7), share, 1


_BIG = RANDOM.beta(8, 2, 4_000_000)
ABOVE = float((_BIG >= 0.7).mean())
MEDIAN = float(np.median(_BIG))
COST = 0.05 * (1 - math.exp(-20))
APART = float((np.clip(_BIG + RANDOM.normal(0.02, 0.1, _BIG.size), 0, 1) - _BIG).mean())


def edged_medians(rows: int, epsilon: str, repetitions: int):
    return medians(rows, epsilon, repetitions, smooth=False)


def medians(rows: int, epsilon: str, repetitions: int, smooth: bool = True):
    """Return coverage of the median's interval, the width's ratio and the error's."""
    question, about = q.Histogram(epsilon=epsilon, column="a", bins=40), described(rows)
    covered, widths, errors, simple = [], [], [], []
    edges = np.arange(41) / 40
    for _ in range(repetitions):
        x = beta(rows)
        exact = np.histogram(x, edges)[0]
        found = released(question, about, exact).quantile(0.5, smooth=smooth)
        low, high = found.interval()
        covered.append(low <= MEDIAN <= high)
        widths.append((high - low) / (2 * NORMAL * 1.2533 * x.std() / math.sqrt(rows)))
        errors.append(abs(found.value - np.median(x)))
        noisy = np.maximum(exact + RANDOM.laplace(0, 2 / float(number(epsilon)), 40), 0)
        reached = np.concatenate([[0], np.cumsum(noisy) / noisy.sum()])
        simple.append(abs(np.interp(0.5, reached, edges) - np.median(x)))
    return np.mean(covered), np.median(widths), np.mean(errors) / np.mean(simple)


def number(epsilon: str) -> float:
    top, _, below = epsilon.partition("/")
    return float(top) / float(below or 1)


def passes(rows: int, epsilon: str, repetitions: int):
    """Return coverage, width and error of pass@2 from five samples of prompts that differ."""
    values = {"right": ValueRange(0.0, 5.0)}
    relation = Protection(neighbours="replace-one")
    about = MeasuredRows(name="made up", protection=relation, rows=rows, values=values)
    question = q.PassAtK(epsilon=epsilon, right="right", samples=5, k=2)
    chances = RANDOM.beta(2, 3, 4_000_000)
    truth = float((1 - (1 - chances) ** 2).mean())
    covered, widths, errors = [], [], []
    for _ in range(repetitions):
        right = RANDOM.binomial(5, RANDOM.beta(2, 3, rows))
        x = 1 - (5 - right) * (4 - right) / 20
        release = released(question, about, sums(x))
        low, high = release.interval()
        covered.append(low <= truth <= high)
        widths.append((high - low) / (2 * NORMAL * x.std() / math.sqrt(rows)))
        errors.append(abs(release.value - x.mean()))
    simple = 1 / (rows * number(epsilon))
    return np.mean(covered), np.median(widths), np.mean(errors) / simple


# --- Time to an event ----------------------------------------------------------------------------

TIMES = np.linspace(0.1, 2.0, 20)


def lives(rows: int, lost: float):
    """Return times, events and risks: Weibull times, exponential losses, a risk with noise."""
    risk = RANDOM.normal(size=rows)
    time = RANDOM.weibull(1.3, rows) * np.exp(-0.5 * risk)
    end = RANDOM.exponential(lost, rows)
    return np.minimum(time, end), time <= end, risk + 0.7 * RANDOM.normal(size=rows), risk


_MANY = RANDOM.weibull(1.3, 2_000_000) * np.exp(-0.5 * RANDOM.normal(size=2_000_000))
SURVIVAL = np.array([(time < _MANY).mean() for time in TIMES])


def timed(rows: int | None) -> SurvivalRows:
    relation = Protection(neighbours="replace-one")
    values = {"a": ValueRange(0.0, 1.0)}
    return SurvivalRows(
        name="made up",
        protection=relation,
        rows=rows,
        time="t",
        event="e",
        score="p",
        values=values,
    )


def cells(time, event, times=TIMES):
    place = np.searchsorted(times, time, side="left")
    last = 2 * len(times)
    return np.bincount(np.where(place == len(times), last, 2 * place + event), minlength=last + 1)


def kaplan_meier(rows: int, epsilon: str, repetitions: int, lost: float = 2.0):
    """Return pointwise coverage, width over Greenwood's by lifelines, and error over Laplace's."""
    question, about = q.KaplanMeier(epsilon=epsilon, grid=TIMES.tolist()), timed(rows)
    covered, bands, widths, errors, simple = [], [], [], [], []
    for _ in range(repetitions):
        time, event, _, _ = lives(rows, lost)
        exact = cells(time, event)
        release = released(question, about, exact)
        shown = len(release.shown)
        if not shown:
            continue
        fit = KaplanMeierFitter().fit(time, event)
        own = fit.survival_function_at_times(TIMES[:shown]).to_numpy()
        ends = np.array([release.at(time).interval() for time in release.shown])
        low, high = release.band()
        inside = (ends[:, 0] <= SURVIVAL[:shown]) & (ends[:, 1] >= SURVIVAL[:shown])
        covered.append(inside.mean())
        bands.append(np.all((low <= SURVIVAL[:shown]) & (SURVIVAL[:shown] <= high)))
        plain = fit.confidence_interval_survival_function_
        at = np.searchsorted(plain.index, TIMES[:shown], side="right") - 1
        without = plain.to_numpy()[at]
        widths.append(np.median((ends[:, 1] - ends[:, 0]) / (without[:, 1] - without[:, 0])))
        values = np.array([release.at(time).value for time in release.shown])
        errors.append(np.mean((values - own) ** 2))
        noisy = exact + RANDOM.laplace(0, 2 / number(epsilon), exact.size)
        reach = rows - np.concatenate([[0], np.cumsum(noisy)[1::2]])[: len(TIMES)]
        risk = np.maximum(reach - noisy[:-1:2] / 2, 1)
        table = np.cumprod(1 - np.clip(noisy[1::2] / risk, 0, 1))[:shown]
        simple.append(np.mean((table - own) ** 2))
    print(f"  band {np.mean(bands):.3f}, RMSE {math.sqrt(np.mean(errors)):.4f}")
    return np.mean(covered), np.median(widths), math.sqrt(np.mean(errors) / np.mean(simple))


def heavy_losses(rows: int, epsilon: str, repetitions: int):
    return kaplan_meier(rows, epsilon, repetitions, lost=0.8)


@cache
def ranked_in_truth(lost: float) -> float:
    return float(np.mean([float(pulls(*lives(4000, lost)[:3]).value) for _ in range(200)]))


def concordance(rows: int, epsilon: str, repetitions: int, lost: float = 0.8):
    """Return coverage, width over the rows' own error, and error over the sampling error."""
    question, about = q.find("concordance")(epsilon=epsilon), timed(rows)
    request = question.request(about)
    truth = ranked_in_truth(lost)
    covered, widths, errors, plain = [], [], [], []
    for _ in range(repetitions):
        time, event, score, _ = lives(rows, lost)
        exact = pulls(time, event, score)
        if rows <= 300:
            assert abs(concordance_index(time, -score, event) - float(exact.value)) < 1e-12
        values = request.mechanism.sample(Sealed(exact))
        release = question.read(Drawn(request, values, None, about, None))
        low, high = release.interval()
        covered.append(low <= truth <= high)
        deviation = math.sqrt(float(exact.pull(exact.value))) / (exact.pairs / 2 / (rows - 1))
        widths.append((high - low) / (2 * NORMAL * deviation))
        errors.append(abs(release.value - float(exact.value)))
        plain.append(min(abs(RANDOM.laplace(0, 1 / number(epsilon))), 1))
    print(f"  mean noise {np.mean(errors):.4f}")
    return np.mean(covered), np.median(widths), np.mean(errors) / np.mean(plain)


def log_rank(rows: int, epsilon: str, repetitions: int):
    """Return how often the test does not reject groups that are alike."""
    question, about = q.LogRank(epsilon=epsilon, grid=TIMES[::2].tolist(), between="g"), timed(rows)
    covered = []
    for _ in range(repetitions):
        time, event, _, _ = lives(rows, 2.0)
        group = RANDOM.random(rows) < 0.4
        exact = [cells(time[own], event[own], TIMES[::2]) for own in (group, ~group)]
        exact.append(np.zeros_like(exact[0]))
        asked = question.request(_with_groups(about))
        noisy = np.concatenate(exact) + _noise(asked.mechanism)
        release = LogRankRelease(Drawn(asked, noisy, None, about, None))
        covered.append(release.p_value >= 0.05)
    return np.mean(covered), float("nan"), float("nan")


def _with_groups(about: SurvivalRows) -> SurvivalRows:
    from dataclasses import replace

    from heldout.data.description import declared_groups

    return replace(about, groups=declared_groups({"g": ["a", "b"]}))


def _noise(mechanism):
    p = np.exp(-1 / mechanism.float_scale)
    draws = RANDOM.geometric(1 - p, (2, mechanism.dimension))
    return draws[0] - draws[1]


HORIZON = 1.0


def _risks(risk):
    """Return the true risk of the event by the horizon."""
    return 1 - np.exp(-((HORIZON * np.exp(0.5 * risk)) ** 1.3))


def brier(rows: int, epsilon: str, repetitions: int):
    """Return coverage of the Brier score at a horizon, and its width over that of a rough guess."""
    question = q.SurvivalBrier(epsilon=epsilon, column="a", horizon=HORIZON)
    big = _risks(RANDOM.normal(size=2_000_000))
    truth = float((big * (1 - big)).mean())
    covered, errors, widths = [], [], []
    for _ in range(repetitions):
        time, event, _, risk = lives(rows, 2.0)
        table = {"t": time, "e": event.astype(int), "a": _risks(risk)}
        dataset = ho.Dataset(table, time="t", event="e", values={"a": (0, 1)})
        release = ho.Session(dataset, budget=ho.Budget(epsilon=epsilon)).ask(question)
        low, high = release.interval()
        covered.append(low <= truth <= high)
        deviation = (big * (1 - big)).std() + 0.15
        widths.append((high - low) / (2 * NORMAL * deviation / math.sqrt(rows)))
        errors.append(abs(release.value - truth))
    return np.mean(covered), np.median(widths), float("nan")


def calibration(rows: int, epsilon: str, repetitions: int):
    """Return coverage of the observed risk by predicted risk, over the bins that are shown."""
    question, about = (
        q.SurvivalCalibration(epsilon=epsilon, column="a", horizon=HORIZON),
        timed(rows),
    )
    times = HORIZON * np.arange(1, 5) / 4
    big = _risks(RANDOM.normal(size=2_000_000))
    place = np.minimum((big * 5).astype(int), 4)
    truth = np.array([big[place == bin_].mean() for bin_ in range(5)])
    covered, widths = [], []
    for _ in range(repetitions):
        time, event, _, risk = lives(rows, 2.0)
        own = np.minimum((_risks(risk) * 5).astype(int), 4)
        exact = [cells(time[own == bin_], event[own == bin_], times) for bin_ in range(5)]
        release = released(question, about, np.concatenate(exact))
        for bin_, measure in enumerate(release.measures.values()):
            if measure.informative:
                low, high = measure.interval()
                covered.append(low <= truth[bin_] <= high)
                widths.append(high - low)
    return np.mean(covered) if covered else float("nan"), np.median(widths or [1]), float("nan")


# --- Thresholds with a promise -------------------------------------------------------------------


def recall(rows: int, epsilon: str, repetitions: int):
    """Return coverage of recall at the chosen threshold, and its distance over a curve's.

    Printed above: the same over that of a noisy histogram of the positives, the best of three.
    """
    covered, widths, chosen, read = [], [], [], []
    plain: dict[int, list[float]] = {16: [], 64: [], 256: []}
    for _ in range(repetitions):
        positive = RANDOM.random(rows) < 0.2
        score = 1 / (1 + np.exp(-RANDOM.normal(size=rows) - 1.3 * positive))
        table = {"y": positive.astype(int), "p": score}
        dataset = ho.Dataset(table, label="y", score="p")
        session = ho.Session(dataset, budget=ho.Budget(epsilon=100))
        release = session.threshold_for(recall=0.9, epsilon=epsilon)
        at = min(max(release.threshold, 1e-12), 1 - 1e-12)
        truth = 0.5 * math.erfc((math.log(at / (1 - at)) - 1.3) / math.sqrt(2))
        low, high = release.recall.interval()
        covered.append(low <= truth <= high)
        widths.append((high - low) / (2 * NORMAL * math.sqrt(0.09 / positive.sum())))
        chosen.append(abs(np.mean(score[positive] >= release.threshold) - 0.9))
        off = session.curves(epsilon=epsilon).threshold_for(recall=0.9)
        read.append(abs(np.mean(score[positive] >= off) - 0.9))
        for bins, far in plain.items():
            edges = np.linspace(0, 1, bins + 1)
            counts = np.histogram(score[positive], edges)[0]
            noisy = np.maximum(counts + RANDOM.laplace(0, 2 / number(epsilon), bins), 0)
            reached = np.concatenate([[0], np.cumsum(noisy) / max(noisy.sum(), 1e-9)])
            at = np.interp(0.1, reached, edges)
            far.append(abs(np.mean(score[positive] >= at) - 0.9))
    best = min(np.mean(far) for far in plain.values())
    print(f"  distance {np.mean(chosen):.4f}, over a histogram's {np.mean(chosen) / best:.2f}")
    return np.mean(covered), np.median(widths), np.mean(chosen) / np.mean(read)


def conformal(rows: int, epsilon: str, repetitions: int):
    """Return the share of new rows that is covered where 0.9 is promised: 0.9 or more."""
    covered = []
    fresh = RANDOM.beta(2, 5, 20_000)
    for _ in range(repetitions):
        dataset = ho.Dataset({"a": RANDOM.beta(2, 5, rows)}, values={"a": (0, 1)})
        session = ho.Session(dataset, budget=ho.Budget(epsilon=epsilon))
        covered.append(np.mean(fresh <= session.conformal("a", epsilon=epsilon).threshold))
    return np.mean(covered), float("nan"), float("nan")


FAMILIES = {
    "median, 40 bins": edged_medians,
    "median, 40 bins, smooth": medians,
    "pass@2": passes,
    "Kaplan-Meier": kaplan_meier,
    "Kaplan-Meier, heavy losses": heavy_losses,
    "concordance": concordance,
    "log-rank, alike": log_rank,
    "Brier at a horizon": brier,
    "calibration at a horizon": calibration,
    "recall at its threshold": recall,
    "conformal, 0.9 promised": conformal,
}


def main(repetitions: str = "400", *names: str) -> bool:
    missed, runs = [], int(repetitions)
    print("| what | rows | epsilon | covers | width / without noise | error / Laplace |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, ask, draw, width in cases():
        if names and name not in names:
            continue
        for rows, epsilon in GRID:
            missed += _row(
                name, rows, epsilon, values(ask(epsilon), draw, width, rows=rows, runs=runs)
            )
    for name, family in FAMILIES.items():
        if names and name not in names:
            continue
        for rows, epsilon in GRID:
            missed += _row(name, rows, epsilon, family(rows, epsilon, runs))
    print("outside:", "; ".join(missed) or "none")
    return not missed


def values(question, draw, width, *, rows, runs):
    about, covered, widths, errors = described(rows), [], [], []
    for _ in range(runs):
        exact, own, whole, deviation = draw(rows)
        release = released(question, about, exact)
        low, high = release.interval()
        covered.append(low <= whole <= high)
        widths.append((high - low) / (2 * NORMAL * max(deviation, 1e-9) / math.sqrt(rows)))
        errors.append(abs(release.value - own))
    simple = width / (rows * float(question.price))  # the mean size of Laplace noise
    return np.mean(covered), np.median(widths), np.mean(errors) / simple


def _row(name, rows, epsilon, row) -> list[str]:
    covers, width, error = row
    print(
        f"| {name} | {rows:,} | {epsilon} | {covers:.3f} | {width:.2f} | {error:.2f} |", flush=True
    )
    bad = not LOW <= covers <= HIGH or error > 1.1
    return [f"{name}, {rows:,} rows, epsilon {epsilon}: {covers:.3f}, {error:.2f}"] if bad else []


if __name__ == "__main__":
    raise SystemExit(0 if main(*sys.argv[1:]) else 1)
