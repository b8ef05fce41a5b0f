"""Answers beside the simplest private alternative and beside no privacy, on rows nobody tuned on.

    python -m benchmarks.accuracy --tables beside [--data DIR] [--part 1/3] [--keep FILE]
    python -m benchmarks.accuracy --write docs/accuracy.md --keep FILE

Rows are drawn anew from each population. Errors are mean distances from what the same rows give
without noise; the column "without privacy" is the distance of that from the population's value. The
alternatives are what a data scientist would write in ten lines: Laplace noise on counts by label in
8, 16 or 64 bins of equal width, negative counts set to 0; and noisy sums. They pay the same epsilon
under the same neighbours, are given declared bounds, and print no interval.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho
from benchmarks.populations import Population, from_data, made_up
from heldout.kernel.ranking.sensitivity import area, average_precision
from heldout.regression import metrics as regression_metrics

BINS = (8, 16, 64)
SIZES = ((300, "1/3"), (300, "1"), (1_000, "1"), (5_000, "1"))
START, END = "<!-- beside: begin -->", "<!-- beside: end -->"
LABEL, SCORE = "y", "own"


@dataclass(frozen=True)
class Line:
    """One measure on one set at one size: mean errors, and how often intervals hold."""

    measure: str
    place: str
    rows: int
    epsilon: str
    runs: int
    plain: float
    """Without privacy: the error of sampling."""
    simplest: dict[str, float]
    ours: float
    shown: float
    holds: float
    """The interval, where a number is shown."""
    noise_holds: float


# --- populations that nothing was tuned on -------------------------------------------------------


def held_back() -> Iterator[Population]:
    """Sets of scikit-learn, scored by a logistic regression on half of their rows; nasty scores."""
    from sklearn import datasets
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    random = np.random.default_rng(77)
    digits, cancer = datasets.load_digits(), datasets.load_breast_cancer()
    wine = datasets.load_wine()
    sets = {
        "digits, an eight or not": (digits.data[:, ::3], digits.target == 8),
        "breast cancer": (cancer.data[:, 4:10], cancer.target == 1),
        "wine, the third kind": (wine.data[:, :2], wine.target == 2),
    }
    for name, (features, labels) in sets.items():
        order = random.permutation(len(labels))
        half = len(order) // 2
        scaled = StandardScaler().fit_transform(features)
        model = LogisticRegression(max_iter=500).fit(scaled[order[:half]], labels[order[:half]])
        scores = model.predict_proba(scaled)[:, 1][order[half:]]
        own = labels[order[half:]].astype(np.int64)
        yield Population(f"{name} (held back)", own, scores, scores)
    rows = 100_000
    labels = (random.random(rows) < 0.2).astype(np.int64)
    latent = random.normal(size=rows) + 1.2 * labels - 0.6
    smooth = 1 / (1 + np.exp(-latent))
    nasty = {
        "ten tied scores": np.floor(smooth * 10) / 10,
        "heap at zero": np.where(latent < 0.2, 0.0, smooth),
        "perfect ranking": np.where(labels == 1, 0.6 + 0.4 * smooth, 0.5 * smooth),
        "ranks the wrong way": 1 - smooth,
        "3% positive": smooth,
    }
    rare = (labels == 0) | (random.random(rows) < 0.03 / 0.2)
    for name, scores in nasty.items():
        chosen = rare if name == "3% positive" else np.ones(rows, dtype=bool)
        own = scores[chosen]
        yield Population(f"{name} (held back)", labels[chosen], own, own)


# --- alternatives in ten lines -------------------------------------------------------------------


def binned(labels: Any, scores: Any, bins: int, scale: float, random: Any) -> tuple[float, float]:
    """AUC and average precision of noisy counts by label and bin of equal width."""
    edges = np.linspace(0, 1, bins + 1)
    counts = [np.histogram(scores[labels == label], edges)[0] for label in (0, 1)]
    negative, positive = (np.maximum(c + random.laplace(0, scale, bins), 0) for c in counts)
    n, m = positive.sum(), negative.sum()
    if n == 0 or m == 0:
        return 0.5, 0.5
    ranked = positive @ (np.cumsum(negative) - negative / 2) / (n * m)
    hits, alarms = np.cumsum(positive[::-1]), np.cumsum(negative[::-1])
    precision = hits / np.maximum(hits + alarms, 1e-9)
    return float(ranked), float(positive[::-1] @ precision / n)


def classifiers(
    population: Population, rows: int, epsilon: str, runs: int, random: Any
) -> Iterator[Line]:
    """AUC, average precision, recall, precision and Brier score of one set at one size."""
    price = float(eval_fraction(epsilon))
    own = {"AUC": area, "average precision": average_precision}
    truths = {name: population.of(metric) for name, metric in own.items()}
    truths |= _counted(population.labels, population.own)
    found: dict[str, list[Any]] = {name: [] for name in truths}
    for _ in range(runs):
        drawn = population.sample(rows, random)
        if not 0 < drawn.labels.sum() < rows:
            continue
        exact = {name: drawn.of(metric) for name, metric in own.items()}
        exact |= _counted(drawn.labels, drawn.own)
        door = drawn.session()
        confusion = door.confusion(threshold=0.5, epsilon=epsilon)
        ours = {
            "AUC": door.auc(epsilon=epsilon).headline,
            "average precision": door.average_precision(epsilon=epsilon).headline,
            "recall": confusion.recall,
            "precision": confusion.precision,
            "Brier score": door.brier(epsilon=epsilon).headline,
        }
        by_bins = {bins: binned(drawn.labels, drawn.own, bins, 2 / price, random) for bins in BINS}
        simplest: dict[str, dict[str, float]] = {
            name: {f"{bins} bins": both[at] for bins, both in by_bins.items()}
            for at, name in enumerate(own)
        }
        simplest |= _naive(drawn.labels, drawn.own, price, random)
        for name, measure in ours.items():
            found[name].append(_run(measure, exact[name], truths[name], simplest[name]))
    for name, several in found.items():
        if several:
            yield _line(name, population.name, rows, epsilon, several)


def _counted(labels: Any, scores: Any) -> dict[str, float]:
    called = scores >= 0.5
    hits = float((called & (labels == 1)).sum())
    return {
        "recall": hits / max(float((labels == 1).sum()), 1.0),
        "precision": hits / max(float(called.sum()), 1.0),
        "Brier score": float(np.mean((scores - labels) ** 2)),
    }


def _naive(labels: Any, scores: Any, price: float, random: Any) -> dict[str, dict[str, float]]:
    """Noise on the four counts, and on the sum of squared errors."""
    called = scores >= 0.5
    cells = [(called & (labels == 1)).sum(), (called & (labels == 0)).sum()]
    cells += [(~called & (labels == 1)).sum()]
    tp, fp, fn = np.maximum(np.array(cells) + random.laplace(0, 2 / price, 3), 0)
    squared = float(((scores - labels) ** 2).sum() + random.laplace(0, 1 / price)) / len(labels)
    return {
        "recall": {"naive sums": tp / max(tp + fn, 1.0)},
        "precision": {"naive sums": tp / max(tp + fp, 1.0)},
        "Brier score": {"naive sums": min(max(squared, 0.0), 1.0)},
    }


def _run(measure: Any, exact: float, truth: float, simplest: dict[str, float]) -> Any:
    low, high = measure.interval()
    least, most = measure.noise_interval()
    return (
        abs(exact - truth),
        {name: abs(value - exact) for name, value in simplest.items()},
        abs(measure.value - exact),
        bool(measure.informative),
        low - 1e-9 <= truth <= high + 1e-9,
        least - 1e-9 <= exact <= most + 1e-9,
    )


def _line(name: str, place: str, rows: int, epsilon: str, several: list[Any]) -> Line:
    plain, simplest, ours, shown, holds, noise = zip(*several, strict=True)
    visible = np.array(shown, dtype=bool)

    def share(hits: Any) -> float:
        return float(np.array(hits)[visible].mean()) if visible.any() else math.nan

    return Line(
        measure=name,
        place=place,
        rows=rows,
        epsilon=epsilon,
        runs=len(several),
        plain=float(np.mean(plain)),
        simplest={key: float(np.mean([one[key] for one in simplest])) for key in simplest[0]},
        ours=float(np.mean(ours)),
        shown=float(visible.mean()),
        holds=share(holds),
        noise_holds=share(noise),
    )


def regressions(rows: int, epsilon: str, runs: int, random: Any) -> Iterator[Line]:
    """RMSE (relative) and R squared with declared bounds, beside noisy sums of squares."""
    price = float(eval_fraction(epsilon))
    laws: dict[str, Callable[[int], Any]] = {
        "normal residuals": lambda size: random.normal(size=size),
        "t residuals, 5 degrees (held back)": lambda size: random.standard_t(5, size) / 1.29,
    }
    for name, law in laws.items():
        found: dict[str, list[Any]] = {"RMSE / its size": [], "R squared": []}
        for _ in range(runs):
            predicted, residual = random.normal(0, 1.5, rows), law(rows)
            observed = predicted + residual
            bounds = {"residual": 5.0, "observed": (-9.0, 9.0)}
            released = {
                measure: regression_metrics(
                    {"y": observed, "p": predicted}, observed="y", predicted="p", epsilon=epsilon,
                    bounds=bounds, measures=[measure],
                )
                for measure in ("rmse", "r_squared")
            }  # fmt: skip
            mse = float(np.mean(residual**2))
            explained = 1 - mse / float(observed.var())
            # All of epsilon for the one sum; for R squared a third for each of three.
            within, inside = np.clip(residual, -5, 5), np.clip(observed, -9, 9)
            clipped = float(np.mean(within**2))
            noisy = clipped + random.laplace(0, 25 / (price * rows))
            third = price / 3
            top = clipped + random.laplace(0, 25 / (third * rows))
            mean = float(inside.mean()) + random.laplace(0, 18 / (third * rows))
            second = float(np.mean(inside**2)) + random.laplace(0, 81 / (third * rows))
            spread = max(second - mean**2, 1e-3)
            naive = {
                "RMSE / its size": math.sqrt(max(noisy, 0.0)),
                "R squared": max(1 - max(top, 0.0) / spread, -1.0),
            }
            size = math.sqrt(mse)
            truth = {"RMSE / its size": 1.0, "R squared": 1 - 1 / 3.25}
            exact = {"RMSE / its size": size, "R squared": explained}
            for key, measure in (
                ("RMSE / its size", released["rmse"].rmse),
                ("R squared", released["r_squared"].r_squared),
            ):
                found[key].append(_run(measure, exact[key], truth[key], {"naive sums": naive[key]}))
        for key, several in found.items():
            yield _line(key, name, rows, epsilon, several)


def separations(data: Path | None, runs: int, random: Any) -> Iterator[Line]:
    """How often copies with shuffled columns are seen; "ours" and errors are of the power."""
    import pandas
    from sklearn import datasets

    tables = {"breast cancer (held back)": datasets.load_breast_cancer(as_frame=True).data}
    if data is not None and (data / "adult" / "adult.parquet").exists():
        adult = pandas.read_parquet(data / "adult" / "adult.parquet")
        tables["adult"] = adult.drop(columns=["split", "fnlwgt"])
    for name, table in tables.items():
        seen = []
        for _ in range(max(runs // 3, 4)):
            places = random.integers(0, len(table), 6_000)
            truth, copy = (
                table.iloc[part].reset_index(drop=True) for part in (places[:3_000], places[3_000:])
            )
            shuffled = copy.apply(lambda column: random.permutation(column.to_numpy()))
            powers = [
                ho.private_separability(truth, other, epsilon="1").interval()[0] > 0
                for other in (shuffled, copy)
            ]
            alone = ho.private_separability(truth, shuffled, epsilon="1", sees="columns")
            seen.append((*powers, alone.interval()[0] > 0))
        power, alarms, columns = np.mean(seen, axis=0)
        yield Line(
            measure="separability: shuffled copies missed",
            place=name,
            rows=3_000,
            epsilon="1",
            runs=len(seen),
            plain=math.nan,
            simplest={"single columns": float(1 - columns)},
            ours=float(1 - power),
            shown=1.0,
            holds=float(1 - alarms),
            noise_holds=math.nan,
        )


def eval_fraction(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


# --- a run, in parts if need be, and its table ---------------------------------------------------


def measure_all(
    data: Path | None, runs: int, random: Any, *, part: tuple[int, int], keep: Path | None
) -> list[Line]:
    """Measure every so-manieth set, and add the lines to the file."""
    sets = [*made_up(), *(from_data(data) if data is not None else ()), *held_back()]
    jobs: list[Callable[[], Iterator[Line]]] = [
        lambda population=population, rows=rows, epsilon=epsilon: classifiers(  # type: ignore[misc]
            population, rows, epsilon, runs, random
        )
        for population in sets
        for rows, epsilon in SIZES
    ]
    jobs += [
        lambda rows=rows, epsilon=epsilon: regressions(rows, epsilon, runs, random)  # type: ignore[misc]
        for rows, epsilon in SIZES[2:]
    ]
    jobs.append(lambda: separations(data, runs, random))
    lines = []
    for job in jobs[part[0] - 1 :: part[1]]:
        for line in job():
            lines.append(line)
            print(_words(line), flush=True)
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(line)) + "\n")
    return lines


def _words(line: Line) -> str:
    others = ", ".join(f"{name} {error:.3f}" for name, error in line.simplest.items())
    return (
        f"  {line.measure:20s} {line.place:34s} {line.rows:>6,} {line.epsilon:>4s}: ours "
        f"{line.ours:.3f}, {others}, sampling {line.plain:.3f}, shown {line.shown:.2f}, holds "
        f"{line.holds:.2f}"
    )


def table(lines: list[Line]) -> str:
    """One row a measure and size, over all sets: geometric means of ratios, worst sets named."""
    keys = list(dict.fromkeys((line.measure, line.rows, line.epsilon) for line in lines))
    rows = [
        "| measure | rows, epsilon | sets | error: ours | simplest alternative (best of them) | "
        "without privacy | ours / simplest: all sets, held back, worst | holds where shown: all, "
        "worst |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for measure, count, epsilon in keys:
        own = [ln for ln in lines if (ln.measure, ln.rows, ln.epsilon) == (measure, count, epsilon)]
        best = [min(line.simplest.items(), key=lambda one: one[1]) for line in own]
        ratios = [
            max(line.ours, 1e-6) / max(one[1], 1e-6) for line, one in zip(own, best, strict=True)
        ]
        aside = [r for r, line in zip(ratios, own, strict=True) if "held back" in line.place]
        worst = own[int(np.argmax(ratios))].place.replace(" (held back)", "")
        names = sorted({name for name, _ in best})
        holds = [line.holds for line in own if not math.isnan(line.holds)]
        shown = [line.shown * line.runs for line in own if not math.isnan(line.holds)]
        held = (
            f"{np.average(holds, weights=shown):.3f}, {min(holds):.2f}" if holds else "none shown"
        )
        rows.append(
            f"| {measure} | {count:,}, {epsilon} | {len(own)} | "
            f"{np.mean([line.ours for line in own]):.4f} | "
            f"{np.mean([one[1] for one in best]):.4f} ({', '.join(names)}) | "
            f"{_mean_of(own)} | {_middle(ratios)}, {_middle(aside)}, {max(ratios):.2f} ({worst}) | "
            f"{held} |"
        )
    return "\n".join(rows)


def _mean_of(lines: list[Line]) -> str:
    known = [line.plain for line in lines if not math.isnan(line.plain)]
    return f"{np.mean(known):.4f}" if known else "-"


def _middle(ratios: list[float]) -> str:
    return f"{math.exp(float(np.mean(np.log(ratios)))):.2f}" if ratios else "-"


def write(page: Path, keep: Path) -> None:
    """Put the table of a kept run into the page, between its marks."""
    with keep.open(encoding="utf-8") as file:
        lines = [Line(**json.loads(text)) for text in file]
    order = {name: at for at, name in enumerate(dict.fromkeys(line.measure for line in lines))}
    lines.sort(key=lambda line: (order[line.measure], line.rows, eval_fraction(line.epsilon)))
    before, _, rest = page.read_text("utf-8").partition(START)
    _, _, after = rest.partition(END)
    runs = f"{min(line.runs for line in lines)} to {max(line.runs for line in lines)} runs a set."
    page.write_text(f"{before}{START}\n{table(lines)}\n\n{runs}\n{END}{after}", "utf-8")
