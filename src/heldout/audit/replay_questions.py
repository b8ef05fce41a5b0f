"""One or more examples of every kind of question, and rows to ask them of.

To add a kind: an entry of `EXAMPLES`, and where it is asked of new rows, one of `FAMILIES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from heldout import questions as q
from heldout.audit.doors import EVERYTHING
from heldout.audit.replay_tables import Column
from heldout.data import Dataset
from heldout.data.feature_matrix import FeatureMatrix
from heldout.data.regression_table import RegressionTable
from heldout.data.two_tables import Truth
from heldout.errors import ArgumentError
from heldout.questions import Question
from heldout.questions.session import PrivateSession, Session

__all__ = ["EXAMPLES", "FAMILIES", "Family", "examples_of"]

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """Rows of one kind: their columns, and how a session on them is opened."""

    of: str
    """The name of their description."""
    columns: Mapping[str, Column]
    open: Callable[..., PrivateSession]
    """Of a table, with what is declared of neighbours, unit and schema."""


def _share(random: Random) -> float:
    return random.random()


SCORES: Final = (0.0, 1.0, 0.5, 0.25, 0.75, 0.49999999999999994, 1 / 65536, 0.5 + 1 / 131072, 0.01)
"""At thresholds, at edges of the grid and beside them, and often tied."""
_SCORE = Column(SCORES, _share)
_GROUP = Column(("a", "b", "01", "x", None), kind="text")
_WEIGHT = Column((0.0, 1.0, 0.5, 0.3), _share)
_FLAG = Column((0, 1), kind="bigint")
_NUMBER = Column((0.0, 1.0, -1.0, 0.5, 1024.0, 1e6, -1e6, 1 / 3), lambda random: random.gauss(0, 3))
FLAGS: Final = tuple(f"f{place}" for place in range(5))
GROUPS: Final = {"g": ["a", "b", "01"]}
PUBLIC: Final[Mapping[str, Any]] = {
    "numbers": {"a": [0.0, 1.0, 0.5, 1.0, 2.0, 0.0] * 3, "b": [1.0, 0.0, 0.5, 1.0, 3.0, 1.0] * 3},
    "texts": {"t": ["x", "y", "x", "z", "y", "x"] * 3},
}
"""The privatized table of the separability."""


def _scored(table: Any, **custody: Any) -> PrivateSession:
    dataset = Dataset(
        table,
        label="y",
        score="p",
        rivals=["q"],
        groups=GROUPS,
        weight="w",
        largest_weight=1.0,
        name="made up",
        **custody,
    )
    return Session(dataset, budget=EVERYTHING)


def _classified(table: Any, **custody: Any) -> PrivateSession:
    dataset = Dataset(
        table,
        label="c",
        classes=["a", "b", "01"],
        scores=["pa", "pb", "pc"],
        groups=GROUPS,
        weight="w",
        largest_weight=1.0,
        name="made up",
        **custody,
    )
    return Session(dataset, budget=EVERYTHING)


def _fitted(table: Any, **custody: Any) -> PrivateSession:
    rows = RegressionTable(
        table, observed="o", predicted="e", groups=GROUPS, name="made up", **custody
    )
    return PrivateSession(rows, budget=EVERYTHING)


def _features(table: Any, **custody: Any) -> PrivateSession:
    rows = FeatureMatrix.from_table(
        table,
        label="y",
        features=FLAGS,
        features_per_row=3,
        most_rows=100,
        name="made up",
        **custody,
    )
    return PrivateSession(rows, budget=EVERYTHING)


def _truth(table: Any, **custody: Any) -> PrivateSession:
    rows = Truth(
        table, numbers=("a", "b"), texts=("t",), expected_rows=18, name="made up", **custody
    )
    return PrivateSession(rows, budget=EVERYTHING)


FAMILIES: Final = (
    Family(
        "ScoredRows", {"y": _FLAG, "p": _SCORE, "q": _SCORE, "g": _GROUP, "w": _WEIGHT}, _scored
    ),
    Family(
        "ClassifiedRows",
        {
            "c": Column(("a", "b", "01"), kind="text"),
            **dict.fromkeys(("pa", "pb", "pc"), _SCORE),
            "g": _GROUP,
            "w": _WEIGHT,
        },
        _classified,
    ),
    Family("FittedRows", {"o": _NUMBER, "e": _NUMBER, "g": _GROUP}, _fitted),
    Family(
        "FeatureRows",
        {"y": _FLAG, **dict.fromkeys(FLAGS, Column((0.0, 1.0, 2.5, None)))},
        _features,
    ),
    Family(
        "TruthRows",
        {
            **dict.fromkeys(("a", "b"), Column((0.0, 1.0, 9.0, -9.0, None), _share)),
            "t": Column(("x", "y", "new", None), kind="text"),
        },
        _truth,
    ),
)

_MEANS: Final[tuple[Fields, ...]] = ({}, {"by": "g"}, {"weighted": True})
_RANKED: Final[tuple[Fields, ...]] = (
    {},
    {"by": "g"},
    {"scores": "grid"},
    {"method": "polynomial-tail"},
    {"method": "cauchy"},
    {"smaller_class": 5},
)
EXAMPLES: Final[Mapping[str, tuple[Fields, ...]]] = {
    "auc": _RANKED,
    "average-precision": _RANKED,
    "brier": _MEANS,
    "class-auc": ({}, {"method": "polynomial-tail"}),
    "class-average-precision": ({},),
    "class-confusion": _MEANS,
    "compare": ({"score": "q"}, {"score": "q", "smaller_class": 5}),
    "confusion": (*_MEANS, {"threshold": 0.25}),
    "curves": (
        {},
        {"by": "g"},
        {"thresholds": [0.5, 0.25]},
        {"options": {"area_share": "1/2", "levels": 1}},
        {"options": {"levels": 3, "expected_rows": 40}},
        {"options": {"levels": 2, "heap_share": "1/2"}},
        {"method": "laplace", "options": {"thresholds": 4}},
        {"method": "recursive-medians", "options": {"levels": 3}},
        {"method": "fixed-space", "options": {"thresholds": 8, "counts": "dawa"}},
        {"method": "hierarchical-quantile", "options": {"quantiles": 4}},
        {"method": "chen-2016-priroc", "options": {"levels": 2}},
    ),
    "grid-ties": ({},),
    "log-loss": (*_MEANS, {"clip": 0.25}),
    "mean-absolute-error": _MEANS,
    "mean-squared-error": _MEANS,
    "ndcg": ({}, {"k": 1}),
    "precision-at-k": ({}, {"k": 1}),
    "regression-metrics": (
        {},
        {"by": "g"},
        {"bounds": {"residual": 2, "observed": [-2, 2]}},
        {"r_squared": False},
    ),
    "report": ({}, {"curves": True}, {"by": "g"}, {"weighted": True}),
    "residual-plot": (
        {},
        {"by": "g"},
        {"bounds": {"predicted": [-2, 2], "residual": 2}},
        {"method": "dawa", "grid": [4, 4]},
        {"method": "chen-2016-prirp", "grid": [4, 4]},
    ),
    "selection": (
        *({"method": method} for method in ("noisy-counts", "cluster", "score-perturbation")),
        *(
            {"method": method, "k": 2}
            for method in ("noisy-top-k", "permute-and-flip", "sparse-vector")
        ),
    ),
    "separability": ({"privatized": PUBLIC},),
    "top-k": _MEANS,
    "training": (
        {},
        {"classifier": "logistic"},
        {"select": "joint"},
        {"select": "noisy-top-k", "k": 2},
        {"select": "sparse-vector", "k": 2, "classifier": "logistic"},
    ),
}
"""Fields of each kind, beside its price."""


def examples_of(kind: str, epsilon: str = "1") -> list[Question[Any]]:
    """Questions of a kind; without an example it cannot be replayed, and that is an error."""
    if kind not in EXAMPLES:
        raise ArgumentError(
            f"No example of a question of kind {kind!r}. Add one to EXAMPLES in "
            "heldout/audit/replay_questions.py: without it the replay does not see the kind."
        )
    return [
        q.from_dict({"question": kind, "epsilon": epsilon, **fields}) for fields in EXAMPLES[kind]
    ]
