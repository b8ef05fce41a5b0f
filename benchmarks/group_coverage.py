"""How often 95% intervals of regression by group cover, and how often equal groups raise an alarm.

    python -m benchmarks.group_coverage [repetitions]

Whole sessions on made-up rows with declared bounds, replace-one neighbours. Each cell has two
shares: the noise interval with the number of these rows, and the interval with the population's.
Every interval counts, also of a number that could not be read; a cell of which noise left fewer
than half to read is called drowned. Gaps count where both groups could be read.
"""

import sys
from itertools import product

import numpy as np

import heldout as ho
from heldout.regression import RegressionSession, RegressionTable

RANDOM = np.random.default_rng(12)
GRID = tuple(product((300, 2_000, 20_000), ("1/4", "1", "4")))
SHIFT, SPREADS = (0.3, 0.0), (1.2, 1.0)  # of the residuals of two groups, which are normal
REACH, ERRORS = 5.0, {"residual": 5, "observed": (-10, 10)}
PLOT = {"residual": 5, "predicted": (-6, 6)}
NAMES = ("MAE", "RMSE", "mean residual", "R squared", "plot: mean", "plot: spread")
GAPS = ("gap MAE", "gap RMSE", "gap mean", "gap plot: mean", "gap plot: spread")
LOW, HIGH = 0.93, 0.985


def opened(rows, groups, shift=SHIFT, spreads=SPREADS):
    member = np.arange(rows) % groups
    predicted = RANDOM.normal(0, 2, rows)
    residual = RANDOM.normal(np.resize(shift, groups)[member], np.resize(spreads, groups)[member])
    table = {"y": predicted + residual, "p": predicted, "g": member}
    private = RegressionTable(table, observed="y", predicted="p", groups={"g": list(range(groups))})
    return RegressionSession(private, budget=ho.Budget(epsilon=100)), member, predicted, residual


def population(shift, spread):
    draws = np.clip(np.random.default_rng(1).normal(shift, spread, 10**6), -REACH, REACH)
    mean_square = float((draws**2).mean())
    return (
        float(np.abs(draws).mean()),
        mean_square**0.5,
        shift,
        1 - mean_square / (4 + spread**2),
        shift,
        spread,
    )


TRUTH = [population(*each) for each in zip(SHIFT, SPREADS, strict=True)]


def measures(errors, plot):
    first = (errors.mae, errors.rmse, errors.mean_residual, errors.r_squared)
    return (*first, plot.mean_residual, plot.spread)


def rows_own(residual, observed, plot):
    """What the same numbers are without noise; a plot's rows stand in the middle of their cells."""
    clipped = np.clip(residual, -REACH, REACH)
    counts, edges = np.histogram(residual, plot.residual_edges)
    middle = (edges[:-1] + edges[1:]) / 2
    mean = counts @ middle / counts.sum()
    square = counts @ (middle - mean) ** 2 / counts.sum() - np.diff(edges)[0] ** 2 / 12
    squares = float((clipped**2).mean())
    return (
        float(np.abs(clipped).mean()),
        squares**0.5,
        float(clipped.mean()),
        1 - squares / float(observed.var()),
        float(mean),
        float(square) ** 0.5,
    )


def held(interval, number):
    return interval[0] - 1e-4 <= number <= interval[1] + 1e-4


def print_coverage(runs):
    print("| rows | epsilon |", " | ".join((*NAMES, *GAPS)), "|")
    print("|---" * (2 + len(NAMES) + len(GAPS)) + "|")
    outside = []
    for rows, epsilon in GRID:
        found = {name: [] for name in (*NAMES, *GAPS)}
        read_of = dict.fromkeys(found, 0)
        for _ in range(runs):
            session, member, predicted, residual = opened(rows, 2)
            errors = session.metrics(epsilon=epsilon, by="g", bounds=ERRORS)
            plots = session.residual_plot(epsilon=epsilon, by="g", bounds=PLOT)
            own = []
            for group, truth in enumerate(TRUTH):
                mine, plot = member == group, plots.groups[str(group)]
                own.append(rows_own(residual[mine], (predicted + residual)[mine], plot))
                read = measures(errors.groups[str(group)], plot)
                for name, each, exact, whole in zip(NAMES, read, own[-1], truth, strict=True):
                    read_of[name] += each.informative / 2
                    found[name].append(
                        (held(each.noise_interval(), exact), held(each.interval(), whole))
                    )
            gaps = [errors.gap_in(each) for each in errors.compared[:3]]
            gaps += [plots.gap_in(each) for each in plots.compared]
            for name, place, gap in zip(GAPS, (0, 1, 2, 4, 5), gaps, strict=True):
                if len(gap.between) == 2:
                    read_of[name] += 1
                    exact, whole = (abs(each[0][place] - each[1][place]) for each in (own, TRUTH))
                    found[name].append(
                        (held(gap.noise_interval(), exact), held(gap.interval(), whole))
                    )
        cells = {
            name: np.mean(each, axis=0) for name, each in found.items() if 2 * read_of[name] >= runs
        }
        shown = [
            f"{cells[n][0]:.2f}, {cells[n][1]:.2f}" if n in cells else "drowned" for n in found
        ]
        print(f"| {rows:,} | {epsilon} |", " | ".join(shown), "|", flush=True)
        outside += [
            f"{rows:,}, {epsilon}, {name}"
            for name, pair in cells.items()
            if not all(LOW <= each <= HIGH for each in pair)
        ]
    print(f"\noutside {LOW} to {HIGH}: {len(outside)}:", "; ".join(outside), flush=True)


def print_alarms(runs):
    print("\n| groups | rows in each | epsilon |", " | ".join(GAPS), "| runs |")
    print("|---" * (4 + len(GAPS)) + "|")
    for groups, rows, epsilon in (
        (2, 2_500, "1"),
        (5, 1_000, "1"),
        (10, 500, "4"),
        (20, 1_000, "4"),
    ):
        some = max(runs * 4 // groups, 20)
        alarms = []
        for _ in range(some):
            session, *_ = opened(rows * groups, groups, (0.0,), (1.0,))
            errors = session.metrics(epsilon=epsilon, by="g", bounds=ERRORS, r_squared=False)
            plots = session.residual_plot(epsilon=epsilon, by="g", bounds=PLOT)
            gaps = [errors.gap_in(each) for each in errors.compared]
            gaps += [plots.gap_in(each) for each in plots.compared]
            alarms.append([each.p_value < 0.05 for each in gaps])
        shares = " | ".join(f"{each:.2f}" for each in np.mean(alarms, axis=0))
        print(f"| {groups} | {rows:,} | {epsilon} | {shares} | {some} |", flush=True)


def main(runs=None):
    runs = int(sys.argv[1]) if runs is None and len(sys.argv) > 1 else runs or 40
    print_coverage(runs)
    print_alarms(runs)


if __name__ == "__main__":
    main()
