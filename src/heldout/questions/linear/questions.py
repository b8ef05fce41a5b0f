"""Questions about linear models of declared columns."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arrays import Ints
from heldout.data import Dataset
from heldout.data.description import Description, MeasuredRows
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval
from heldout.kernel import Budget, Ledger
from heldout.kernel.door import Drawn, Staged
from heldout.kernel.loss import Rational
from heldout.kernel.statistic import STEPS
from heldout.questions.base import OneOf, Question, Text
from heldout.questions.linear.claims import ClaimText, meaning_of, parse_claim
from heldout.questions.linear.conclusion import ConclusionRelease, MomentsPlan, PartsPlan
from heldout.questions.linear.design import Design, Formula, Terms, parse_term
from heldout.questions.linear.fit import GAUSSIAN, PURE, FitPlan, LinearFit
from heldout.questions.quote import Guess
from heldout.questions.worst_cases import PERSON, REMOVE, Pair, WorstCase

__all__ = ["Conclusion", "LinearRegression", "fit"]


@dataclass(frozen=True, kw_only=True)
class LinearRegression(Question[LinearFit]):
    """The least-squares fit of a declared column to terms of others."""

    kind = "linear-regression"
    title = "linear regression"
    asks = "How does an outcome change with other columns?"
    tells = (
        "Coefficients of a least-squares fit, with intervals that include sampling error and noise."
    )
    of = (MeasuredRows,)
    cannot_pool = "fits of several sites are not combined yet"
    needs_columns = (
        2,
        "it needs two columns or more: declare values={'pay': (0, 200000), ...}",
    )
    example: ClassVar[Mapping[str, Any]] = {"outcome": "a", "features": ("b",)}
    # A fit to a dozen rows is nothing but noise at epsilon 1: then no row has influence on it.
    replayed = ({}, {"features": ("b", "b^2")}, {"noise": GAUSSIAN}, {"epsilon": "30"})
    outcome: Annotated[str, Text("a column"), "The declared column to explain."]
    features: Annotated[
        Any, Terms(), "Terms: declared columns, squares such as age^2, products such as age:sex."
    ]
    noise: Annotated[
        str,
        OneOf((PURE, GAUSSIAN)),
        "gaussian is less noise for a budget of rho, at rho = epsilon^2/2; pure suits any budget.",
    ] = PURE

    @classmethod
    def suggested(cls, about: Description) -> Mapping[str, object]:
        names = list(about.values) if isinstance(about, MeasuredRows) else []
        return {"outcome": names[-1], "features": names[:-1]} if len(names) > 1 else {}

    def plan(self, about: MeasuredRows) -> FitPlan:
        """Return what is asked of the rows, from public facts."""
        terms = [parse_term(term) for term in self.features]
        return FitPlan(
            design=Design.of(self.outcome, terms, about),
            epsilon=self.price,
            protection=about.protection,
            rows=about.rows,
            noise=self.noise,
        )

    def request(self, about: MeasuredRows) -> Staged:
        return self.plan(about).staged()

    def read(self, drawn: Drawn) -> LinearFit:
        return LinearFit(drawn)

    def typical(self, about: MeasuredRows, guess: Guess) -> dict[str, Ints]:
        """Return moments of columns that spread evenly, and of residuals of a quarter of that."""
        plan, rows = self.plan(about), sum(guess.counts)
        design = plan.design
        matrix = np.diag([1.0, *[1 / 3] * len(design.terms), 1 / 12]) * rows
        matrix *= np.outer(design.steps, design.steps)
        moments = np.round(matrix[np.triu_indices(design.size + 1)]).astype(np.int64)
        fitted = plan.fitted({"moments": moments})
        whole = np.full(design.size, rows / fitted.times * STEPS)
        return {"moments": moments, "influences": np.round(whole).astype(np.int64)}

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> Interval:
        """Return the slope from end to end of both columns, either way."""
        bounds = parameters["bounds"]
        low, high = bounds[parameters["outcome"]]
        first = parse_term(parameters["terms"][0]).factors[0]
        steep = (high - low) / (bounds[first][1] - bounds[first][0])
        return (-steep, steep)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        why = "noise for all moments of a row at once, of which one is at its worst"
        pure = WorstCase(pairs=_pairs(), make=_table, why=why, epsilon="4")
        fields = {"noise": GAUSSIAN}
        return (pure, replace(pure, name="gaussian", fields=fields, in_rho=True))


@dataclass(frozen=True, kw_only=True)
class Conclusion(Question[ConclusionRelease]):
    """Ask whether a claim that was obtained elsewhere holds on these rows."""

    kind = "conclusion"
    title = "conclusion"
    asks = "Does this conclusion hold?"
    tells = "A verdict on a claim about a coefficient, means or errors."
    of = (MeasuredRows,)
    cannot_pool = "verdicts of several sites are not combined yet"
    example: ClassVar[Mapping[str, Any]] = {"claim": "coefficient('b') > 0", "formula": "a ~ b"}
    replayed = (
        {"method": "parts"},
        {"method": "moments"},
        {"claim": "-1 < coefficient('b') < 1", "method": "parts"},
        {"claim": "mean('a') > 0.5", "formula": None},
        {"claim": "mean('a', b=0) < mean('a', b=1)", "formula": None, "method": "parts"},
        {"claim": "root_mean_squared_error('a', 'b') < 0.5", "formula": None},
    )
    claim: Annotated[
        str,
        ClaimText(),
        "The claim, such as coefficient('sex') < 0, significant('sex'), mean('pay', sex=1) < "
        "mean('pay', sex=0) or mean_absolute_error('pay', 'guess') < 9.",
    ]
    formula: Annotated[
        Any, Formula(), "The model of a claim about a coefficient, such as pay ~ age + sex."
    ] = None
    method: Annotated[
        str,
        OneOf(("auto", "parts", "moments")),
        "Test random parts of the rows, or fit noisy moments; auto picks one to suit the claim.",
    ] = "auto"

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        if why is None and about.remote:
            why = "rows are split into parts in memory: copy them out of their database"
        return why

    def plan(self, about: MeasuredRows) -> PartsPlan | MomentsPlan:
        """Return what is asked of the rows, from public facts.

        A model of no term or of one (a mean, two groups) has little noise in its moments, and a
        skewed outcome makes its parts lean; more terms are for parts.
        """
        meaning = meaning_of(parse_claim(self.claim), self.formula, about)
        rows = about.rows if meaning.design.only is None else None
        few = meaning.design.size <= 2 and not meaning.two_sided
        if self.method == "moments" or (self.method == "auto" and few):
            plan = FitPlan(
                design=meaning.design,
                epsilon=self.price,
                protection=about.protection,
                rows=rows,
            )
            return MomentsPlan(meaning=meaning, fit=plan)
        return PartsPlan(
            meaning=meaning, epsilon=self.price, protection=about.protection, rows=rows
        )

    def request(self, about: MeasuredRows) -> Staged:
        plan = self.plan(about)
        chosen = "parts" if isinstance(plan, PartsPlan) else "moments"
        named = {"claim": self.claim, "formula": self.formula, "method": chosen}
        return plan.staged({name: value for name, value in named.items() if value is not None})

    def read(self, drawn: Drawn) -> ConclusionRelease:
        return ConclusionRelease(drawn)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        why = "one part of several moves, from end to end only where it has few rows"
        cases = []
        for method in ("parts", "moments"):
            case = WorstCase(
                name=method, pairs=_pairs(), make=_table, fields={"method": method}, why=why
            )
            cases.append(case)
        return tuple(cases)


def fit(
    frame: Any,
    *,
    outcome: str,
    features: Mapping[str, Any],
    bounds: tuple[float, float],
    epsilon: Rational,
    terms: Sequence[str] | None = None,
    noise: str = PURE,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    **declared: Any,
) -> LinearFit:
    """Fit a linear model to private rows, in one call.

    `features` are columns with their bounds, {"age": (16, 90), "sex": {"F": 1, "M": 0}}, and
    `bounds` those of the outcome: public, never read off the data. `terms` may add squares and
    products: ["age", "age^2", "sex"]; left out, they are the features. With noise="gaussian" the
    price is rho = epsilon^2/2, for much less noise and a budget of rho. `declared` is what
    `heldout.Dataset` takes: unit, rows_per_unit, row_key, neighbours, out_of_range, name. Without a
    ledger nobody keeps count across calls, and the budget is `epsilon`.

    >>> rows = {"x": [0.0, 0.25, 0.5, 1.0] * 1000, "y": [1.0, 1.5, 2.0, 3.0] * 1000}
    >>> model = fit(rows, outcome="y", features={"x": (0, 1)}, bounds=(0, 4), epsilon="100")
    >>> abs(model.coefficients["x"] - 2) < 0.2, abs(model.predict({"x": 1}) - 3) < 0.2
    (True, True)
    """
    from heldout.questions.session import PrivateSession

    if not isinstance(features, Mapping):
        raise ArgumentError("features must be bounds by column, such as {'age': (16, 90)}.")
    question = LinearRegression(
        outcome=outcome,
        features=list(features) if terms is None else list(terms),
        noise=noise,
        epsilon=epsilon,
    )
    rows = Dataset(frame, values={**features, outcome: bounds}, **declared)
    price = question.price
    own = Budget(epsilon=price) if noise == PURE else Budget(rho=price**2 / 2)
    paid = own if budget is None else budget
    return PrivateSession(rows, budget=paid, ledger=ledger).ask(question)


# --- audited -------------------------------------------------------------------------------------

Rows = list[tuple[float, float]]
_OTHERS: Final[Rows] = [(0.8, 0.6), (0.6, 0.6), (0.3, 0.9), (0.7, 0.1), (0.4, 0.4), (0.2, 0.5)]


def _table(content: Any, options: Mapping[str, Any]) -> Dataset:
    return Dataset(content, values={"a": (0, 1), "b": (0, 1)}, name="neighbour", **options)


def _pairs() -> tuple[Pair, ...]:
    def pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
        def of(own: Rows) -> dict[str, Any]:
            content = [*own, *_OTHERS]
            people = [*[0] * len(own), *range(1, len(_OTHERS) + 1)]
            columns = {"a": [a for a, _ in content], "b": [b for _, b in content]}
            return {**columns, "u": people, "k": list(range(len(content)))}

        return Pair(name, of(first), of(second), options)

    return (
        pair("a row goes to the opposite corner", [(0.0, 0.0)], [(1.0, 0.0)]),
        pair("a row at a corner leaves", [(1.0, 1.0)], [], **REMOVE),
        pair("two rows of a person change", [(0.0, 0.0)] * 2, [(1.0, 0.0)] * 2, **PERSON),
    )
