"""The separability for publication: a separator trained and counted privately, for one price."""

import os
from collections.abc import Sequence
from typing import Any, Unpack

from heldout.data.engine import open_table
from heldout.data.table import Custody
from heldout.data.two_tables import Table, Truth, as_frame, names_of, numeric_columns, read_columns
from heldout.errors import ArgumentError, EmptyTable
from heldout.kernel import Budget, Ledger, exact
from heldout.questions.separability.questions import Separability, as_columns
from heldout.questions.separability.separator import SeparabilityRelease
from heldout.questions.session import Epsilon, PrivateSession


def private_separability(
    truth: Any,
    privatized: Any,
    *,
    epsilon: Epsilon,
    ignore: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] | None = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    account: str | None = None,
    **custody: Unpack[Custody],
) -> SeparabilityRelease:
    """How well a separator tells the confidential truth from the public, privatized rows.

    Half of the true rows train a logistic regression, which is released with noise; how many of
    the other half it calls true is released with noise as well. A row is in one half only, so the
    two answers together cost `epsilon` once. Chance is 0: no shuffled fit is needed on rows held
    out. The noise weakens the separator, so a better one may exist: the value says that the data
    can be told apart at least so well.

    The privatized table must be public already: its rows, ranges and categories are used freely.
    Without `budget` the ledger's own is used, or for a ledger in memory exactly `epsilon`;
    `account` names the registered account that pays.

    Claim:       pure DP, epsilon.                                     [claim: separability]

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
    asked = Separability(epsilon=price, privatized=as_columns(private))
    released: SeparabilityRelease = session.ask(asked)
    return released


def public_table(source: Any, *, ignore: Sequence[str], categorical: Sequence[str]) -> Table:
    """Read the privatized table, which is public: its columns of numbers, and of texts."""
    engine = open_table(as_frame(source))
    names = [name for name in engine.columns if name not in ignore]
    if not names:
        raise ArgumentError("privatized must have a column besides the ignored ones.")
    numbers = [n for n in names if n in numeric_columns(engine, names) and n not in categorical]
    texts = [name for name in names if name not in numbers]
    table = read_columns(engine, numbers=numbers, texts=texts, groups=())
    if table.rows < 2:
        raise EmptyTable("privatized must have at least two rows. Check the file.")
    return table
