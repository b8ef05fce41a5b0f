"""A model from outside: what it takes and gives, and whether it is proven."""

import hashlib
import itertools
import json
import math
import os
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.arguments import is_one_of, shown
from heldout.errors import ArgumentError, MissingDependency, UnusableModel
from heldout.models.calls import Problem
from heldout.models.isolate import check_sandbox, looked_at
from heldout.models.keeper import Field, Task

# A linear model as JSON: coefficients by column, an intercept and a link.
if TYPE_CHECKING:
    from heldout.models.calls import Array

MOST_TERMS = 4096
_INTERCEPTS = ("(Intercept)", "Intercept", "const", "intercept")
_KEYS = {"coefficients", "intercept", "link", "levels"}


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else 1 - 1 / (1 + math.exp(value))


LINKS: dict[str, Callable[[float], float]] = {
    "identity": lambda value: value,
    "logit": _logistic,
    "probit": statistics.NormalDist().cdf,
    "log": math.exp,
}
"""The mean as a function of the linear score."""


@dataclass(frozen=True)
class LinearModel:
    """Numbers alone, so that nothing has to be proven: each row is a sum over its own columns.

    >>> model = LinearModel.parse({"coefficients": {"(Intercept)": -1.0, "age": 0.5, "sexM": 1.0},
    ...                            "levels": {"sex": ["F", "M"]}, "link": "logit"})
    >>> model.intercept, model.numbers, model.levels
    (-1.0, {'age': 0.5}, {'sex': {'F': 0.0, 'M': 1.0}})
    """

    intercept: float
    numbers: Mapping[str, float]
    levels: Mapping[str, Mapping[str, float]]
    link: str
    steps: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(default_factory=dict)
    """Of a number: edges between bins, and a weight for each bin."""

    @classmethod
    def parse(cls, content: str | bytes | Mapping[str, Any]) -> "LinearModel":
        """Read what `coef()` in R or `params` in statsmodels prints, with the levels of factors.

        A coefficient is a number by column, one per level: `"sex": {"F": 0, "M": 0.4}`, or one per
        bin of a number: `"age": {"edges": [40, 60], "weights": [0, 0.3, 0.5]}`. With
        `"levels": {"sex": ["F", "M"]}` the names that R and statsmodels give are understood too:
        `sexM`, `sex[T.M]` and `C(sex)[T.M]`; a level without a coefficient counts 0. Nothing but
        numbers by column, `{"intercept": 2, "age": 0.5}`, is a model with the identity link.
        """
        data = content if isinstance(content, Mapping) else _parsed(content)
        if data and all(type(value) in (int, float) for value in data.values()):
            data = {"coefficients": data}
        unknown = sorted(set(data) - _KEYS)
        if unknown or not isinstance(data.get("coefficients"), Mapping):
            raise UnusableModel(
                'A linear model needs "coefficients", and may have "intercept", "link" and '
                f'"levels"{f", not {shown(unknown[0])}" if unknown else ""}.'
            )
        link = data.get("link", "identity")
        if not isinstance(link, str) or link not in LINKS:
            raise UnusableModel(f"link must be one of {', '.join(LINKS)}, got {shown(link)}.")
        levels = _levels(data.get("levels", {}))
        named = {
            name: (factor, level)
            for factor, table in levels.items()
            for level in table
            for name in (f"{factor}{level}", f"{factor}[T.{level}]", f"C({factor})[T.{level}]")
        }
        steps = {n: _steps(v, n) for n, v in data["coefficients"].items() if _has_bins(v)}
        plain = {n: v for n, v in data["coefficients"].items() if n not in steps}
        intercept, numbers = data.get("intercept"), {}
        for name, value in plain.items():
            if name in _INTERCEPTS and intercept is None:
                intercept = value
            elif isinstance(value, Mapping):
                if name in levels:
                    raise UnusableModel(f"The levels of {shown(name)} are given twice.")
                levels[name] = {level: _number(weight, name) for level, weight in value.items()}
            elif name in named:
                factor, level = named[name]
                levels[factor][level] = _number(value, name)
            else:
                numbers[name] = _number(value, name)
        both = sorted((set(numbers) | set(steps)) & set(levels))
        if both:
            raise UnusableModel(f"{shown(both[0])} is a number and a factor: leave one out.")
        if not numbers and not levels and not steps:
            raise UnusableModel("A linear model needs at least one coefficient of a column.")
        several = [*levels.values(), *(weights for _, weights in steps.values())]
        if len(numbers) + sum(map(len, several)) > MOST_TERMS:
            raise UnusableModel(f"A linear model may have at most {MOST_TERMS:,} coefficients.")
        return cls(
            _number(0 if intercept is None else intercept, "intercept"),
            numbers,
            levels,
            link,
            steps,
        )

    def score(self, block: Mapping[str, "Array"], rows: int) -> "Array":
        """The scores of a block, one column; NaN where a row has a level that is not declared.

        Sums and products of doubles are the same wherever a row stands; the link is applied to
        one number at a time, since a vector's last elements may be rounded in another way.
        """
        import numpy as np

        total = np.full(rows, self.intercept)
        with np.errstate(all="ignore"):
            for name, weight in self.numbers.items():
                total += weight * block[name].reshape(-1)
            for name, (edges, weights) in self.steps.items():
                column = block[name].reshape(-1)
                # Beyond all edges is the last bin; what is no number has no score.
                own = np.array(weights)[np.searchsorted(np.array(edges), column, side="right")]
                total += np.where(np.isnan(column), math.nan, own)
            for name, table in self.levels.items():
                texts = [
                    text.decode("utf-8", "replace") for text in block[name].reshape(-1).tolist()
                ]
                total += np.array([table.get(text, math.nan) for text in texts])
        mean = LINKS[self.link]
        return np.array([_or_nan(mean, value) for value in total.tolist()]).reshape(rows, 1)


def _or_nan(mean: Callable[[float], float], value: float) -> float:
    try:
        return mean(value)
    except (OverflowError, ValueError):
        return math.nan


def _parsed(content: str | bytes) -> Mapping[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            raise UnusableModel("A name is given twice in the linear model.")
        return members

    if len(content) > 2**20:
        raise UnusableModel("A linear model must be smaller than 1 MB.")
    try:
        parsed = json.loads(content, object_pairs_hook=once)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise UnusableModel("The linear model is not valid JSON.")
    return parsed


def _levels(given: Any) -> dict[str, dict[str, float]]:
    zeros: dict[str, dict[str, float]] = {}
    for name, levels in given.items() if isinstance(given, Mapping) else [("levels", None)]:
        texts = isinstance(levels, list | tuple) and all(isinstance(level, str) for level in levels)
        if not texts or not levels or len(set(levels)) < len(levels):
            raise UnusableModel(
                f"The levels of {shown(name)} must be a list of distinct texts, such as "
                '{"sex": ["F", "M"]}.'
            )
        zeros[name] = dict.fromkeys(levels, 0.0)
    return zeros


def _has_bins(value: Any) -> bool:
    lists = isinstance(value, Mapping) and set(value) == {"edges", "weights"}
    return lists and all(isinstance(listed, list | tuple) for listed in value.values())


def _steps(given: Mapping[str, Any], name: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    lists = (given["edges"], given["weights"])
    edges, weights = (tuple(_number(value, name) for value in listed) for listed in lists)
    if len(weights) != len(edges) + 1 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise UnusableModel(
            f"The edges of {shown(name)} must rise, with a weight for each bin: one more."
        )
    return edges, weights


def _number(value: Any, name: Any) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        number = float(value) if plain else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise UnusableModel(f"The coefficient of {shown(name)} must be a finite number.")
    return number


MEMORY = 2**30
LOADING = 60  # seconds of processor time


@dataclass(frozen=True)
class Model:
    """Describes a model; reading it never looked at a row.

    `row_wise` is True if it is proven that every score is a function of its own row, without
    state. Otherwise `why_not` says why, node by node, and how to mend it.
    """

    name: str
    inputs: tuple[Field, ...]
    width: int
    classes: tuple[str, ...]
    problems: tuple[Problem, ...]
    digest: str
    output: str | None = None
    content: bytes = field(default=b"", repr=False)
    linear: LinearModel | None = field(default=None, repr=False)

    @property
    def row_wise(self) -> bool:
        return not self.problems

    @property
    def why_not(self) -> str | None:
        return None if self.row_wise else "\n".join(map(str, self.problems))

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "name": self.name,
            "sha256": self.digest,
            "inputs": [
                {"name": field.name, "type": field.kind, "width": field.width}
                for field in self.inputs
            ],
            "scores": self.width,
            "classes": list(self.classes),
            "row_wise": self.row_wise,
            "problems": [
                {"node": problem.node, "why": problem.why, "mend": problem.mend}
                for problem in self.problems
            ],
        }


def load(
    source: str | os.PathLike[str] | bytes | Mapping[str, Any],
    /,
    *,
    output: str | None = None,
    isolation: str = "sandbox",
) -> Model:
    """Read a model from an ONNX file, or a linear model from JSON; no row is needed.

    Parameters
    ----------
    source
        A path, the file's bytes, or a linear model as a dict; see `heldout.models.LinearModel`.
    output
        Which output of an ONNX model is the score, where several hold numbers.
    isolation
        "sandbox": the file is read in a process without files or network. "none": in a process
        of its own only, for a file that you trust.

    >>> load({"coefficients": {"age": 0.02}, "intercept": -1, "link": "logit"}).row_wise
    True
    """
    if not is_one_of(isolation, ("sandbox", "none")):
        raise ArgumentError(f"isolation must be 'sandbox' or 'none', got {shown(isolation)}.")
    if isinstance(source, Mapping):
        return _linear("model", LinearModel.parse(source), repr(source).encode())
    name, content = ("model", source) if isinstance(source, bytes) else _file(source)
    if content.lstrip()[:1] == b"{":
        return _linear(name, LinearModel.parse(content), content)
    _check_runtime()
    report = looked_at(
        Task(
            content=content,
            output=output,
            sandboxed=check_sandbox(isolation),
            memory=MEMORY,
            seconds=LOADING,
        )
    )
    return _from_report(report, name=name, content=content, output=output)


def _from_report(report: Mapping[str, Any], *, name: str, content: bytes, output: Any) -> Model:
    """The keeper's words are taken as far as they have the form that a keeper gives them."""
    if "unreadable" in report:
        raise UnusableModel(f"The model cannot be used: {words(report['unreadable'])}.")
    if not report.get("loads"):
        raise UnusableModel(
            "The model cannot be used: onnxruntime does not load it. Check it with "
            "onnx.checker.check_model, and export it with a current version."
        )
    try:
        return Model(
            name=name,
            inputs=tuple(
                Field(str(field), str(kind), int(width), int(rank))
                for field, kind, width, rank in report["inputs"]
            ),
            width=min(max(int(report["width"]), 1), 2**12),
            classes=tuple(str(label) for label in report["classes"]),
            problems=tuple(Problem(*map(words, problem)) for problem in report["problems"]),
            digest=hashlib.sha256(content).hexdigest(),
            output=output,
            content=content,
        )
    except (KeyError, TypeError, ValueError):
        raise UnusableModel("The model cannot be used: its reader gave no answer.") from None


def words(text: Any) -> str:
    """A sentence that may quote names out of the file: on one line, printable, not endless."""
    line = "".join(character if character.isprintable() else "?" for character in str(text))
    return line if len(line) <= 300 else line[:297] + "..."


def _linear(name: str, model: LinearModel, content: bytes) -> Model:
    columns = dict.fromkeys([*model.numbers, *model.steps])
    numbers = [Field(column, "float64", 1, 1) for column in columns]
    texts = [Field(column, "string", 1, 1) for column in model.levels]
    return Model(
        name=name,
        inputs=(*numbers, *texts),
        width=1,
        classes=(),
        problems=(),
        digest=hashlib.sha256(content).hexdigest(),
        linear=model,
    )


def _file(source: Any) -> tuple[str, bytes]:
    from heldout.models.graph import MOST_BYTES

    try:
        path = Path(source)
        if path.stat().st_size <= MOST_BYTES:
            return path.name, path.read_bytes()
    except (OSError, TypeError, ValueError):
        raise ArgumentError(f"No readable model file {shown(source)}. Check the path.") from None
    raise UnusableModel(f"The model file is larger than {MOST_BYTES // 2**20} MB.")


def _check_runtime() -> None:
    from importlib.util import find_spec

    if find_spec("onnx") is None or find_spec("onnxruntime") is None:
        raise MissingDependency(
            "Reading an ONNX model requires onnx and onnxruntime: pip install 'heldout[models]'."
        )
