"""An un-noised statistic stays out of everything that shows, stores or compares values."""

import ast
import copy
import io
import json
import logging
import math
import operator
import pickle
import pprint
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.source import PACKAGE, module_of, trees

import heldout as ho
from heldout.errors import AnswerLost, SealedError
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import Sealed, compute
from heldout.questions.counts import ThresholdCounts

SECRET = 8675309
CONTENTS = [SECRET, [SECRET, 1], np.array([SECRET, 1]), {"a": SECRET}, float(SECRET)]

ATTEMPTS: dict[str, Callable[[Any], object]] = {
    "str": str,
    "format": format,
    "f-string": lambda sealed: f"{sealed}",
    "percent": lambda sealed: "%s" % sealed,  # noqa: UP031
    "print": lambda sealed: print(sealed, file=io.StringIO()),
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "not": operator.not_,
    "index": operator.index,
    "round": round,
    "abs": abs,
    "negative": operator.neg,
    "floor": math.floor,
    "equal": lambda sealed: sealed == SECRET,
    "equal itself": lambda sealed: sealed == sealed,  # noqa: PLR0124
    "not equal": lambda sealed: sealed != SECRET,
    "less": lambda sealed: sealed < SECRET,
    "more": lambda sealed: sealed >= SECRET,
    "the other side": lambda sealed: SECRET < sealed,  # noqa: SIM300
    "hash": hash,
    "in a set": lambda sealed: {sealed},
    "in a dict": lambda sealed: {sealed: 1},
    "len": len,
    "iterate": list,
    "unpack": lambda sealed: (*sealed,),
    "index 0": lambda sealed: sealed[0],
    "slice": lambda sealed: sealed[:],
    "contains": lambda sealed: SECRET in sealed,
    "call": lambda sealed: sealed(),
    "add": lambda sealed: sealed + 0,
    "add to": lambda sealed: 0 + sealed,
    "subtract": lambda sealed: sealed - 0,
    "subtract from": lambda sealed: 0 - sealed,
    "multiply": lambda sealed: sealed * 1,
    "multiply by array": lambda sealed: np.ones(2) * sealed,
    "divide": lambda sealed: sealed / 1,
    "divide by": lambda sealed: 1 / sealed,
    "modulo": lambda sealed: sealed % 7,
    "power": lambda sealed: sealed**1,
    "sum": lambda sealed: sum([sealed]),
    "max": lambda sealed: max(sealed, 0),
    "sorted": lambda sealed: sorted([sealed, sealed]),
    "json": json.dumps,
    "json in a list": lambda sealed: json.dumps([sealed]),
    "pickle": pickle.dumps,
    "its state": lambda sealed: sealed.__getstate__(),
    "its parts": lambda sealed: sealed.__reduce__(),
    "pickle in a list": lambda sealed: pickle.dumps([sealed]),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "array": np.asarray,
    "float array": lambda sealed: np.array([sealed], dtype=float),
    "numpy function": np.sum,
    "numpy equality": lambda sealed: np.equal(sealed, SECRET),
    "pandas": lambda sealed: pd.Series([1.0, 2.0]) + sealed,
    "vars": vars,
    "dict": lambda sealed: sealed.__dict__,
    "set an attribute": lambda sealed: setattr(sealed, "shown", 1),
    "bytes": bytes,
    "memory": memoryview,
    "weak": lambda sealed: __import__("weakref").ref(sealed),
}


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: type(content).__name__)
@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_sealed_statistic_refuses(attempt: Callable[[Any], object], content: Any) -> None:
    with pytest.raises((SealedError, TypeError, AttributeError)) as caught:
        attempt(Sealed(content))
    assert str(SECRET) not in "".join(traceback.format_exception(caught.value))


def test_what_a_sealed_statistic_shows_is_the_same_for_all_content() -> None:
    shown = set()
    for content in CONTENTS:
        sealed = Sealed(content)
        parts = [repr(sealed), f"{sealed!r}", f"{[sealed]}", pprint.pformat({"s": sealed})]
        parts.append(str(object.__repr__(sealed)).split(" at ")[0])
        parts.append(str(sorted(each for each in dir(sealed))))
        parts.append(str(sys.getsizeof(sealed)))
        shown.add("|".join(parts))
    assert len(shown) == 1
    assert str(SECRET) not in shown.pop()


@pytest.mark.parametrize("style", ["%s", "%r", "%d", "{}"])
def test_a_log_line_does_not_show_it(style: str, caplog: pytest.LogCaptureFixture) -> None:
    raised, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        logging.getLogger("heldout.test").warning("sealed: " + style, Sealed(SECRET))
    except SealedError:
        pass  # pytest's own handler raises what logging would swallow
    finally:
        logging.raiseExceptions = raised
    assert str(SECRET) not in caplog.text


def test_what_is_computed_is_sealed_and_a_mechanism_opens_it() -> None:
    dataset = ho.Dataset({"y": [1, 0, 1], "p": [0.5, 0.25, 1]}, label="y", score="p")
    sealed = compute(ThresholdCounts(thresholds=()), dataset)
    assert type(sealed) is Sealed
    assert unseal(sealed).tolist() == [1, 2]


# --- tracebacks with local variables -------------------------------------------------------------


def _shown_with_locals(error: BaseException) -> str:
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(report.format())


def test_a_failing_draw_shows_no_count_in_the_frames_of_the_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tools that print local variables see the frames between the rows and the noise.

    What `read` and `sample` hold while they run is bare: that is where the limit lies, and
    docs/security.md says so. The frames that stay on the stack around them hold envelopes.
    """
    rows = 1729
    table = {"y": [1] * rows, "p": [0.5] * rows}
    dataset = ho.Dataset(table, label="y", score="p", neighbours="add-remove")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    del table

    def fail(self: DiscreteLaplace, sealed: Sealed[Any]) -> Any:
        raise RuntimeError("the machine stops")

    monkeypatch.setattr(DiscreteLaplace, "sample", fail)
    with pytest.raises(AnswerLost, match="The price stays booked") as caught:
        session.confusion(epsilon=1)
    error = caught.value
    assert error.__context__ is None
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # this test's own frame knows the number
    shown = _shown_with_locals(error)
    assert "the machine stops" not in shown
    assert str(rows) not in shown


# --- who may open it, in the source --------------------------------------------------------------

# Simulations, made-up patients, and arithmetic on data that is public or stays with its custodian.
SIMULATED = (
    "heldout.audit",
    "heldout.examples",
    "heldout.precision_recall",
    "heldout.questions.separability",
)


@cache
def modules() -> list[tuple[str, list[ast.AST]]]:
    """Each module's name and all nodes of its source: they are walked many times."""
    return [(module_of(path), list(ast.walk(tree))) for path, tree in trees().items()]


def names_used(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # getattr(sealed, "_content")


@cache
def all_names() -> dict[str, set[str]]:
    return {module: set(names_used(nodes)) for module, nodes in modules()}


def users_of(name: str) -> set[str]:
    return {module for module, names in all_names().items() if name in names}


MECHANISM = {"sample", "describe"}
OPENERS = {
    "heldout.audit.tape": "watches noise on made-up rows",
    "heldout.kernel.noise.mechanism": "defines the key; shows what is not private, by name",
    "heldout.kernel.statistic": "defines the envelope",
}


def openings(tree: ast.Module) -> Iterator[bool]:
    """For every use of the key: does it stand in the `sample` of a class that is a mechanism?"""
    lawful = {
        id(inner)
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef)
        and {one.name for one in kind.body if isinstance(one, ast.FunctionDef)} >= MECHANISM
        for one in kind.body
        if isinstance(one, ast.FunctionDef) and one.name == "sample"
        for inner in ast.walk(one)
    }
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value  # getattr(sealed, "_content")
        if name in ("unseal", "_content"):
            yield id(node) in lawful


def test_only_the_sample_of_a_mechanism_opens_the_envelope() -> None:
    for path, tree in trees().items():
        if module_of(path) not in OPENERS:
            assert all(openings(tree)), path


def test_an_opening_elsewhere_would_be_noticed() -> None:
    lawful = "class M:\n def describe(self): ...\n def sample(self, s): unseal(s)"
    assert list(openings(ast.parse(lawful))) == [True]
    assert list(openings(ast.parse(f"{lawful}\n def sample_too(self, s): unseal(s)"))) == [
        True,
        False,
    ]
    assert list(openings(ast.parse("def sample(s): return s._content"))) == [False]


MECHANISMS = re.compile(
    r"heldout\.kernel(\.| import )(noise|ranking|curves|regression|statistic|door)\b"
)


def test_no_shell_imports_a_mechanism() -> None:
    looked_at = []
    for path in trees():
        # The doctor draws once, of zeros, to see whether it works.
        if path.startswith(("cli/", "server/", "client", "drawing/")) and path != "cli/first.py":
            assert not MECHANISMS.search((PACKAGE / path).read_text(encoding="utf-8")), path
            looked_at.append(path)
    assert {"cli/ask.py", "server/worker.py", "client.py", "drawing/page.py"} <= set(looked_at)


def test_a_mechanism_in_a_shell_would_be_noticed() -> None:
    assert MECHANISMS.search((PACKAGE / "cli" / "first.py").read_text(encoding="utf-8"))
    assert MECHANISMS.search("from heldout.kernel import noise")
    assert not MECHANISMS.search("from heldout.kernel.ledger.ledger import Ledger")


def test_only_statistics_ask_for_exact_columns() -> None:
    outside = {each for each in users_of("_fetch") if not each.startswith("heldout.kernel.")}
    # A feature matrix puts its rows beside what the base gives it; rows with values take the base's
    # own way. The audit's own attack looks at the rows, for the custodian's eyes.
    tables = {f"heldout.data.{name}" for name in ("dataset", "feature_matrix", "measured")}
    assert outside <= {*tables, "heldout.audit.attacks"}


def test_only_the_data_room_runs_statements_over_rows() -> None:
    outside = {
        each
        for each in users_of("_engine") | users_of("fetchnumpy")
        if not each.startswith(("heldout.data.", "heldout.kernel.", *SIMULATED))
    }
    assert not outside


def test_no_random_generator_of_python_or_numpy_is_on_a_production_path() -> None:
    found = []
    for module, nodes in modules():
        if module.startswith((*SIMULATED, "heldout.testing")):  # which no other module imports
            continue
        for node in nodes:
            if isinstance(node, ast.Import):
                found += [module for alias in node.names if alias.name.split(".")[0] == "random"]
                found += [module for alias in node.names if alias.name == "numpy.random"]
            elif isinstance(node, ast.ImportFrom):
                found += [module] if node.module in ("random", "numpy.random") else []
            elif isinstance(node, ast.Attribute) and node.attr == "random":
                found += [module] if isinstance(node.value, ast.Name) else []
    assert found == []
