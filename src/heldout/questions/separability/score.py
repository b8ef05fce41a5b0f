"""The separability of privatized from true data, after the paper of that name."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import Whole
from heldout.arrays import one_thread
from heldout.data.engine import open_table
from heldout.data.table import Custody
from heldout.data.two_tables import (
    Table,
    Truth,
    as_frame,
    names_of,
    numeric_columns,
    read_columns,
    read_pair,
    without_index,
)
from heldout.errors import ArgumentError, EmptyTable
from heldout.kernel import Budget, Ledger, exact
from heldout.questions.separability.deep_dive import DeepDive, Encoding
from heldout.questions.separability.fits import (
    Fit,
    Roc,
    auc,
    choose,
    fit,
    fit_forest,
    held_out,
    mean_squared_propensity,
    no_fit,
)
from heldout.questions.separability.questions import BOTH as EVERYTHING
from heldout.questions.separability.questions import Separability as SeparabilityQuestion
from heldout.questions.separability.questions import as_columns
from heldout.questions.separability.result import FitNumbers, Separability
from heldout.questions.separability.separator import SeparabilityRelease
from heldout.questions.session import Epsilon, PrivateSession

BOTH = "both"
Step = Callable[[], None]


def separability(
    truth: Any,
    privatized: Any,
    *,
    classifier: Any = BOTH,
    shuffles: int = 20,
    groups: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] | None = None,
    random_state: int | None = None,
    progress: bool | None = None,
) -> Separability:
    """Return how well a classifier tells true from privatized rows, against shuffled labels.

    0: no better than on shuffled labels. 1: it never errs, and shuffled labels are a coin toss.
    Reads the ground truth without noise: **for the custodian only**. For a number to publish use
    `private_separability`.

    Parameters
    ----------
    truth, privatized
        Paths (.csv, .tsv, .parquet), pandas, Polars or Arrow tables, DuckDB relations, or arrays
        of two dimensions, with the same columns. The numbers of rows may differ: both sides weigh
        the same. (For a classifier that takes no weights, the longer side is thinned at random.)
    classifier
        "both" (the default): a logistic regression, scored as in the paper, and beside it a random
        forest on rows held out; the verdict goes by the stronger. "logistic", "tree" (of depth 5),
        or any scikit-learn classifier: that one alone.
    shuffles
        How often labels are shuffled and the classifier is fitted anew. One shuffle is noise.
    groups
        Columns that name a row (area, month): no features, but the deep dive goes by them.
    ignore, categorical
        Columns to leave out (keys); numbers that are codes.
    random_state
        For the shuffles and folds. None gives other ones each time.
    progress
        A bar on the terminal. None: if there is a terminal.

    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> truth = rng.poisson(0.3, (400, 6))
    >>> noisy = truth + rng.laplace(0, 2, truth.shape).clip(0)
    >>> found = separability(truth, noisy, random_state=1)
    >>> found.value > 0.4, found.p_value < 0.05
    (True, True)
    """
    advice = "One shuffle is noise; use 20, or 200 for a finer p-value."
    shuffles = Whole(2, advice=advice)(shuffles, "shuffles")
    group_names = names_of(groups, name="groups")
    from numpy.random import default_rng

    rng = default_rng(None if random_state is None else Whole(0)(random_state, "random_state"))
    seed = int(rng.integers(2**31))
    both = isinstance(classifier, str) and classifier == BOTH
    chosen = choose("logistic" if both else classifier, seed=seed)
    true, private = read_pair(
        truth,
        privatized,
        groups=group_names,
        ignore=names_of(ignore, name="ignore"),
        categorical=names_of(categorical, name="categorical"),
    )
    dropped = 0
    if not chosen.weighted and true.rows != private.rows:
        dropped = abs(true.rows - private.rows)
        true, private = thinned(true, private, rng), thinned(private, true, rng)
    encoding = Encoding.of(true, private)
    features = np.concatenate([encoding.matrix(true), encoding.matrix(private)])
    is_true = np.arange(len(features)) < true.rows

    def one(labels: Any) -> Fit:
        return fit(chosen, features, labels) if encoding.features else no_fit(labels)

    with progress_bar(shuffles + 3, shown=progress) as step, one_thread():
        ensemble = fit_forest(features, is_true, seed=seed) if both and encoding.features else None
        step()
        real = one(is_true)
        step()
        apart = held_out(chosen, features, is_true, seed=seed) if encoding.features else None
        step()
        shuffled, accuracies, propensities = None, [], []
        for _ in range(shuffles):
            labels = rng.permutation(is_true)
            again = one(labels)
            accuracies.append(again.accuracy)
            propensities.append(mean_squared_propensity(again.scores, labels))
            shuffled = shuffled or (again, labels)
            step()
    assert shuffled is not None
    numbers = FitNumbers(
        accuracy=real.accuracy,
        shuffled=tuple(accuracies),
        held_out=None if apart is None else tuple(apart.accuracies.tolist()),
        detection_auc=None if apart is None else auc(apart.scores, is_true),
        detection_auc_in_sample=auc(real.scores, is_true),
        propensity=mean_squared_propensity(real.scores, is_true) if chosen.probabilities else None,
        propensity_shuffled=float(np.mean(propensities)) if chosen.probabilities else None,
        rows=(true.rows, private.rows),
    )
    result = Separability(
        numbers=numbers,
        ensemble=ensemble,
        classifier=chosen.name,
        columns=len(true.numbers) + len(true.texts),
        features=len(encoding.features),
        dropped_rows=dropped,
        left_out=true.left_out,
        roc={
            "true labels": Roc.of(real.scores, is_true),
            "shuffled labels": Roc.of(shuffled[0].scores, shuffled[1]),
        },
        deep_dive=DeepDive.of(
            true, private, encoding=encoding, fit=real, features=features, is_true=is_true
        ),
    )
    return result if result.stronger is None else _by_forest(result, true, private, encoding)


def _by_forest(
    result: Separability, true: Table, private: Table, encoding: Encoding
) -> Separability:
    """Look into the rows that the forest was not fitted to, where the headline is the forest's."""
    forest = result.stronger
    assert forest is not None
    assert forest.fit is not None
    assert forest.tested is not None
    count = forest.rows[0]
    sides = (
        chosen_rows(true, forest.tested[:count]),
        chosen_rows(private, forest.tested[count:] - true.rows),
    )
    dive = DeepDive.of(
        *sides,
        encoding=encoding,
        fit=forest.fit,
        features=np.concatenate([encoding.matrix(side) for side in sides]),
        is_true=np.arange(len(forest.tested)) < count,
    )
    return replace(result, deep_dive=replace(dive, hints=result.deep_dive.hints))


def thinned(table: Table, other: Table, rng: Any) -> Table:
    """As many rows as the other table, chosen at random, if it has more."""
    if table.rows <= other.rows:
        return table
    return chosen_rows(table, np.sort(rng.choice(table.rows, other.rows, replace=False)))


def chosen_rows(table: Table, places: NDArray[np.intp]) -> Table:
    """Return these rows of a table."""

    def pick(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: values[places] for name, values in columns.items()}

    return replace(
        table,
        numbers=pick(table.numbers),
        texts=pick(table.texts),
        groups=pick(table.groups),
        rows=len(places),
    )


@contextmanager
def progress_bar(steps: int, *, shown: bool | None) -> Iterator[Step]:
    """A bar on standard error while the classifier is fitted over and over."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("fitting"), BarColumn(), TimeRemainingColumn(), console=Console(stderr=True),
        transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=steps)
        yield lambda: bar.advance(task)


def private_separability(
    truth: Any,
    privatized: Any,
    *,
    epsilon: Epsilon,
    ignore: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] | None = None,
    sees: str = EVERYTHING,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    account: str | None = None,
    **custody: Unpack[Custody],
) -> SeparabilityRelease:
    """Return how well a separator tells the confidential truth from the public, privatized rows.

    Half of the true rows train a logistic regression, which is released with noise; how many of
    the other half it calls true is released with noise as well. A row is in one half only, so the
    two answers together cost `epsilon` once. Chance is 0: no shuffled fit is needed on rows held
    out. A second separator, released the same way, looks at which columns go together; each gets
    half of `epsilon`, and the value is that of the stronger. `sees` may name one of them alone,
    "columns" or "pairs". The value is a lower bound: another separator may tell more.

    The privatized table must be public already: its rows, ranges and categories are used freely.
    Without `budget` the ledger's own is used, or for a ledger in memory exactly `epsilon`;
    `account` names the registered account that pays.

    Claim:       pure DP, epsilon.               [claim: separability], [claim: joint-separability]

    >>> import numpy as np
    >>> rng = np.random.default_rng(5)
    >>> truth = rng.poisson(0.3, (4000, 4))
    >>> noisy = truth + rng.laplace(0, 2, truth.shape).clip(0)
    >>> found = private_separability(truth, noisy, epsilon="20")
    >>> 0.2 < found.value < 1, str(found.loss)
    (True, 'epsilon 20')
    """
    price = exact(epsilon, name="epsilon", minimum=0)
    named = (custody.get("unit"), custody.get("row_key"))
    keys = tuple(key for key in named if key is not None)
    private = public_table(
        privatized,
        ignore=(*names_of(ignore, name="ignore"), *keys),
        categorical=names_of(categorical, name="categorical"),
    )
    numbers, texts = tuple(private.numbers), tuple(private.texts)
    dataset = Truth(
        truth,
        numbers=numbers,
        texts=texts,
        expected_rows=private.rows,
        **custody,
    )
    if budget is None and ledger is None:
        budget = Budget(epsilon=price)
    session = PrivateSession(dataset, budget=budget, ledger=ledger, account=account)
    asked = SeparabilityQuestion(epsilon=price, privatized=as_columns(private), sees=sees)
    released: SeparabilityRelease = session.ask(asked)
    return released


def public_table(source: Any, *, ignore: Sequence[str], categorical: Sequence[str]) -> Table:
    """Read the privatized table, which is public: its columns of numbers, and of texts."""
    engine = open_table(as_frame(source))
    names = [n for n in without_index(engine.columns, named=categorical) if n not in ignore]
    if not names:
        raise ArgumentError("privatized must have a column besides the ignored ones.")
    numbers = [n for n in names if n in numeric_columns(engine, names) and n not in categorical]
    texts = [name for name in names if name not in numbers]
    table = read_columns(engine, numbers=numbers, texts=texts, groups=())
    if table.rows < 2:
        raise EmptyTable("privatized must have at least two rows. Check the file.")
    return table
