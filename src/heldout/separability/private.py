"""The separability for publication: a separator trained and counted privately, for one price."""

import math
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from heldout.data.engine import open_table
from heldout.data.truth import Truth
from heldout.data.two_tables import (
    Table,
    as_frame,
    names_of,
    numeric_columns,
    read_columns,
)
from heldout.errors import ArgumentError, EmptyTable
from heldout.measure import Interval, Measure
from heldout.mechanisms.disjoint import Disjoint
from heldout.metrics.ratio import NoisyCounts, Ratio
from heldout.privacy import Budget, Ledger, exact
from heldout.release import Drawn, Release, Request
from heldout.session import Epsilon, PrivateSession
from heldout.statistics.base import rows_moved
from heldout.statistics.recipe import Recipe
from heldout.statistics.separator import Separator, called_true, power_of_two

FLATTEST, STEEPEST = Fraction(1, 2**12), Fraction(1)


def private_separability(
    truth: Any,
    privatized: Any,
    *,
    epsilon: Epsilon,
    ignore: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] | None = None,
    unit: str | None = None,
    rows_per_unit: int = 1,
    row_key: str | None = None,
    neighbours: str = "replace-one",
    schema: Mapping[str, str] | None = None,
    name: str | None = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
) -> "SeparabilityRelease":
    """How well a separator tells the confidential truth from the public, privatized rows.

    Half of the true rows train a logistic regression, which is released with noise; how many of
    the other half it calls true is released with noise as well. A row is in one half only, so the
    two answers together cost `epsilon` once. Chance is 0: no shuffled fit is needed on rows held
    out. The noise weakens the separator, so a better one may exist: the value says that the data
    can be told apart at least so well.

    The privatized table must be public already: its rows, ranges and categories are used freely.
    Without `budget` the ledger's own is used, or for a ledger in memory exactly `epsilon`.

    Claim:       pure DP, epsilon.                                     [claim: separability]

    >>> rng = np.random.default_rng(5)
    >>> truth = rng.poisson(0.3, (4000, 4))
    >>> noisy = truth + rng.laplace(0, 2, truth.shape).clip(0)
    >>> found = private_separability(truth, noisy, epsilon="1")
    >>> 0.2 < found.value < 1, str(found.loss)
    (True, 'epsilon 1')
    """
    price = exact(epsilon, name="epsilon", minimum=0)
    keys = tuple(key for key in (unit, row_key) if key is not None)
    private = _public_table(
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
        unit=unit,
        rows_per_unit=rows_per_unit,
        row_key=row_key,
        neighbours=neighbours,
        schema=schema,
        name=name,
    )
    if budget is None and ledger is None:
        budget = Budget(epsilon=price)
    session = PrivateSession(dataset, budget=budget, ledger=ledger)
    recipe = Recipe.of(private)
    vectors, out = recipe.vectors(private)
    rows = dataset.public_rows
    expected = max(1, (private.rows if rows is None else rows) // 2)
    moved = rows_moved(dataset.protection)
    statistic = Separator(
        recipe=recipe,
        numbers=numbers,
        texts=texts,
        public=vectors[~out],
        expected=expected,
        ridge=ridge_for(price, moved=moved, expected=expected, dimension=vectors.shape[1]),
    )
    step = float(statistic.step)

    def count(answer: Any, held: Any) -> Any:
        return called_true(answer * step, held)

    mechanism = Disjoint(
        epsilon=price,
        moved=moved,
        first_row=statistic.row,
        first_slack=statistic.slack,
        dimensions=(statistic.dimension, 2),
        then=count,
    )
    parameters = {
        "ridge": str(statistic.ridge),
        "features": statistic.dimension,
        "privatized_rows": private.rows,
    }
    drawn = session._release(Request("separability", statistic, mechanism, parameters))
    return SeparabilityRelease(drawn, public=vectors[out])


def ridge_for(price: Fraction, *, moved: int, expected: int, dimension: int) -> Fraction:
    """So strong that noise moves a row's margin by about a half. Of public numbers alone."""
    wanted = Fraction(math.sqrt(2 * dimension)) * moved / (expected * price)
    return min(max(power_of_two(wanted), FLATTEST), STEEPEST)


class SeparabilityRelease(Release):
    """A noisy separator, and how well it tells rows apart that it was not trained on."""

    def __init__(self, drawn: Drawn, *, public: Any) -> None:
        super().__init__(drawn)
        statistic, mechanism = drawn.request.statistic, drawn.request.mechanism
        assert isinstance(statistic, Separator)
        assert isinstance(mechanism, Disjoint)
        answer, counts = drawn.values
        self.coefficients = dict(
            zip(statistic.recipe.features, (answer * float(statistic.step)).tolist(), strict=True)
        )
        """The released separator; positive speaks for the truth. Noisy, and free to use."""
        self._statistic = statistic
        self._called = called_true(answer * float(statistic.step), public)
        self._recall = Ratio(
            counts=NoisyCounts(
                estimate=np.asarray(counts, dtype=float),
                spread=np.eye(2),
                scale=mechanism.second.float_scale,
            ),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        wrong, right = (int(each) for each in self._called)
        share = right / max(wrong + right, 1)
        recall = self._recall

        def public(level: float) -> Interval:
            return _wilson(right, wrong + right, level)

        def noise(level: float) -> Interval:
            low, high = recall.noise_interval(level)
            return (low + share - 1, high + share - 1)

        def full(level: float) -> Interval:
            # Each side gets half of the error, so that both hold together at the level.
            each = (1 + level) / 2
            (low, high), (least, most) = recall.interval(each), public(each)
            return (low + least - 1, high + most - 1)

        def halved(make: Any) -> Any:
            return lambda level: tuple((1 + each) / 2 for each in make(level))

        value, terms = recall.value + share - 1, self._drawn.terms
        return {
            "separability": Measure(
                value, name="separability", terms=terms, noise_interval=noise, interval=full
            ),
            "accuracy": Measure(
                (1 + value) / 2,
                name="accuracy",
                terms=terms,
                noise_interval=halved(noise),
                interval=halved(full),
            ),
            "true rows called true": Measure(
                recall.value,
                name="true rows called true",
                terms=terms,
                noise_interval=recall.noise_interval,
                interval=recall.interval,
            ),
            "privatized rows called privatized": Measure(
                share,
                name="privatized rows called privatized",
                terms=terms,
                noise_interval=lambda level: (share, share),
                interval=public,
            ),
        }

    def _noisy(self) -> Any:
        answer, counts = self._drawn.values
        return {"coefficients": answer.tolist(), "called": counts.tolist()}

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        content = super().as_dict(level)
        content["lattice"] = str(self._statistic.step)
        content["coefficients"] = self.coefficients
        return content


def _public_table(source: Any, *, ignore: Sequence[str], categorical: Sequence[str]) -> Table:
    engine = open_table(as_frame(source))
    names = [name for name in engine.columns if name not in ignore]
    if not names:
        raise ArgumentError("privatized must have a column besides the ignored ones.")
    numbers = [n for n in names if n in numeric_columns(engine, names) and n not in categorical]
    texts = [name for name in names if name not in numbers]
    table = read_columns(engine, numbers=numbers, texts=texts, groups=())
    if table.rows < 2:
        raise EmptyTable("privatized must have at least two rows, got fewer. Check the file.")
    return table


def _wilson(hits: int, rows: int, level: float) -> Interval:
    from scipy.special import ndtri

    if rows == 0:
        return (0.0, 1.0)
    z = float(ndtri((1 + level) / 2))
    centre = (hits + z * z / 2) / (rows + z * z)
    half = z / (rows + z * z) * math.sqrt(hits * (rows - hits) / rows + z * z / 4)
    return (max(0.0, centre - half), min(1.0, centre + half))
