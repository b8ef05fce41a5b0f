"""A model from outside: what it takes and gives, and whether it is proven."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heldout.arguments import is_one_of, shown
from heldout.errors import ArgumentError, MissingDependency, UnusableModel
from heldout.models.calls import Problem
from heldout.models.isolate import check_sandbox, looked_at
from heldout.models.keeper import Field, Task
from heldout.models.linear import LinearModel

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
    numbers = [Field(column, "float64", 1, 1) for column in model.numbers]
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
