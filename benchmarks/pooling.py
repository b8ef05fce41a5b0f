"""How often pooled 95% intervals cover, over 2 to 20 sites of unequal size.

    python -m benchmarks.pooling [repetitions] [--areas]

Intervals but those of random effects take longer: they are looked at in every fourth repetition.
`--areas` leaves confusion matrices out.

Site sizes are log-uniform from 200 to 5,000 rows, a quarter of them positive. `between` is the
standard deviation between sites on the logit scale. Noise and rows are simulated; the intervals
are those of `ho.pool`.
"""

import sys
import warnings

import numpy as np

from heldout.intervals.ratio import Ratio
from heldout.intervals.readings import registered
from heldout.pooling.answer import Effects, PooledConfusion
from heldout.pooling.site import Site

SITES = (2, 3, 5, 10, 20)
RATIOS = ("accuracy", "F1 score", "precision", "recall")
MIDDLE = np.log(4)  # of the areas, on the logit scale: 0.8
RANDOM = np.random.default_rng(20)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def sizes(sites):
    return np.exp(RANDOM.uniform(np.log(200), np.log(5000), sites)).astype(int)


def sampling_variance(area, positives, negatives):
    """Of an estimated area (Hanley and McNeil 1982)."""
    both = (positives - 1) * (area / (2 - area) - area**2)
    both += (negatives - 1) * (2 * area**2 / (1 + area) - area**2)
    return (area * (1 - area) + both) / (positives * negatives)


def mean_area(between):
    """Over all sites of which these are some."""
    places, weights = np.polynomial.hermite_e.hermegauss(40)
    return np.average(logistic(MIDDLE + between * places), weights=weights)


def areas(sites, *, epsilon, between, exact):
    """Whether random effects, fixed effect, noise and prediction intervals cover."""
    rows = sizes(sites)
    positives, negatives = rows / 4, 3 * rows / 4
    true = logistic(MIDDLE + between * RANDOM.normal(size=sites))
    scales = 1 / (positives * epsilon)
    deviation = np.sqrt(sampling_variance(true, positives, negatives))
    sample = true + deviation * RANDOM.normal(size=sites)
    seen = sample + scales * RANDOM.laplace(size=sites)
    stated = np.sqrt(sampling_variance(np.clip(seen, 0.05, 0.98), positives, negatives))
    found = Effects(seen, scales, stated)
    another = logistic(MIDDLE + between * RANDOM.normal())
    covered = inside(mean_area(between), found.random_interval(0.95))
    if not exact:
        return [covered, np.nan, np.nan, np.nan]
    predicted = found.prediction_interval(0.95)
    weights = found.weights()
    return [
        covered,
        np.nan if predicted is None else inside(another, predicted),
        inside(weights @ true, found.fixed_interval(0.95)),
        inside(weights @ sample, found.noise_interval(0.95, random=False)),
    ]


def counts(sites, *, epsilon, between, public):
    """Whether the ratios of pooled confusion matrices cover, population then noise."""
    rows = sizes(sites)
    base = np.array([0.15, 0.1, 0.1, 0.65])  # in the order of CELLS
    cells = base * np.exp(between * RANDOM.normal(size=(sites, 4)))
    cells /= cells.sum(axis=1, keepdims=True)
    truth = np.array([RANDOM.multinomial(n, p) for n, p in zip(rows, cells, strict=True)])
    scale = 2 / epsilon
    noise = RANDOM.geometric(1 - np.exp(-1 / scale), (2, sites, 4))
    noisy = truth + noise[0] - noise[1]
    pooled = PooledConfusion(
        [
            site(k, noisy[k].tolist(), scale=scale, rows=int(rows[k]) if public else None)
            for k in range(sites)
        ]
    )
    expected, covered = rows @ cells, []
    for name in RATIOS:
        top, bottom = (np.array(each, float) for each in ratio_of(name))
        ratio = Ratio(counts=pooled._counts, numerator=top, denominator=bottom)
        for totals, survives in (
            (expected, ratio.survives(0.95)),
            (truth.sum(axis=0), ratio.survives_noise(0.95)),
        ):
            covered.append(survives(float(top @ totals / (bottom @ totals))))
    return covered


def ratio_of(name):
    metric = registered()[name]
    return metric.numerator, metric.denominator


def site(number, cells, *, scale, rows):
    tp, fp, fn, tn = cells
    content = {
        "release": "confusion",
        "noisy": [tn, fp, fn, tp],
        "rows": rows,
        "mechanism": {"scale": repr(scale)},
        "parameters": {"threshold": 0.5},
        "protection": {"neighbours": "replace-one"},
        "loss": {"epsilon": "1", "delta": "0"},
    }
    return Site(f"site {number}", content)


def inside(value, ends):
    return ends[0] <= value <= ends[1]


def table(title, head, rows):
    print(f"\n{title}\n{'':34}" + "".join(f"{each:>11}" for each in head))
    for name, shares in rows:
        print(f"{name:34}" + "".join(f"{share:11.3f}" for share in shares))


def main(repetitions=2000, *, only_areas=False):
    cases = [(e, b) for e in (1, 0.2) for b in (0, 0.1, 0.3)]
    rows = []
    for epsilon, between in cases:
        for sites in SITES:
            found = [
                areas(sites, epsilon=epsilon, between=between, exact=k % 4 == 0)
                for k in range(repetitions)
            ]
            label = f"epsilon {epsilon}, between {between}, {sites} sites"
            with warnings.catch_warnings(action="ignore"):  # two sites predict nothing
                rows.append((label, np.nanmean(np.array(found, dtype=float), axis=0)))
    table(f"areas, {repetitions} repetitions", ("random", "another", "fixed", "noise"), rows)
    if only_areas:
        return
    head = [f"{each.split()[0][:5]}{kind}" for each in RATIOS for kind in ("", " noise")]
    for public in (True, False):
        rows = []
        for epsilon, between in cases[::2]:
            for sites in SITES:
                found = [
                    counts(sites, epsilon=epsilon, between=between, public=public)
                    for _ in range(repetitions // 2)
                ]
                label = f"epsilon {epsilon}, between {between}, {sites} sites"
                rows.append((label, np.mean(np.array(found, dtype=float), axis=0)))
        kind = "public" if public else "private"
        table(f"confusion matrices, {kind} row counts, {repetitions // 2} repetitions", head, rows)


if __name__ == "__main__":
    asked = [each for each in sys.argv[1:] if each != "--areas"]
    main(*map(int, asked), only_areas="--areas" in sys.argv)
