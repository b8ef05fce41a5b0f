"""Whatever comes in: a typed error in one line or a valid answer. Hypothesis looks for others.

`make test` draws few examples and the same each time. HELDOUT_FUZZ=deep draws thousands, others
each time, and puts every awkward value in the place of every argument; half an hour or so.
tools/fuzz.py does it guided by coverage.
"""

import contextlib
import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import heldout as ho
from heldout.audit import exposure
from heldout.cli import COMMANDS
from heldout.errors import HeldoutError
from heldout.kernel.events import Event

entries: Any = importlib.import_module("fuzz_entries")
inputs: Any = importlib.import_module("fuzz_inputs")
commands: Any = importlib.import_module("fuzz_commands")

ALL = {**entries.ENTRIES, **commands.ENTRIES}
CANARY = inputs.CANARY
DEEP = os.environ.get("HELDOUT_FUZZ") == "deep"
deep_only = pytest.mark.skipif(not DEEP, reason="HELDOUT_FUZZ=deep is not set")


def drawing(few: int, many: int) -> settings:
    return settings(
        max_examples=many if DEEP else few,
        derandomize=not DEEP,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],  # what fails is awkward enough as it is
    )


class Drawn:
    """Choices out of hypothesis."""

    def __init__(self, data: Any) -> None:
        self._draw = data.draw

    def whole(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def number(self) -> float:
        return float(self._draw(st.floats()))

    def text(self, most: int) -> str:
        return str(self._draw(st.text(max_size=most)))

    def octets(self, most: int) -> bytes:
        return bytes(self._draw(st.binary(max_size=most)))


@pytest.mark.parametrize("name", sorted(ALL))
def test_awkward_arguments_are_answered_or_refused(name: str) -> None:
    """Good ones are answered first: or a bad one would be refused for another one's sake."""
    entry = ALL[name]
    first = entries.refusal(entry, entry.good())
    assert first is None or name in commands.REFUSED, first

    @drawing(2, 1000)
    @given(data=st.data())
    def run(data: Any) -> None:
        entries.refusal(entry, inputs.spoilt(entry, Drawn(data)))

    run()


@deep_only
@pytest.mark.parametrize("name", sorted(ALL))
def test_every_awkward_value_in_the_place_of_every_argument(name: str) -> None:
    entry = ALL[name]
    for argument, (kind, _) in entry.arguments.items():
        for value in [*inputs.CATALOGUES[kind], *inputs.CATALOGUES["number"]]:
            entries.refusal(entry, {**entry.good(), argument: value})


def refused(action: Any) -> bool:
    """Whether it was refused, properly; anything else that is raised fails the test."""
    found: HeldoutError | None = None
    try:
        action()
    except HeldoutError as error:
        found = error
    if found is not None:
        assert "\n" not in str(found)
        assert CANARY not in f"{found} {found.__context__!r}"
    return found is not None


def ask(dataset: ho.Dataset) -> None:
    session = ho.Session(dataset, budget=ho.Budget(epsilon=100))
    for answer in (session.confusion(epsilon="1"), session.brier(epsilon="1")):
        assert CANARY not in json.dumps(answer.as_dict(), allow_nan=False)


@drawing(8, 3000)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_as_a_file(content: bytes, tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv", "a.parquet"):
        path = tmp_path / name
        path.write_bytes(content if name == "a.parquet" else b"y,p\n" + content)
        refused(lambda p=path: ask(ho.Dataset(p, label="y", score="p")))


@drawing(25, 5000)
@given(data=st.data())
def test_any_json_as_an_event(data: Any) -> None:
    content = inputs.anything(Drawn(data))
    shape = {"kind": content, "parameters": {"epsilon": content}, "version": 1}
    for each in (content, shape):
        refused(lambda e=each: Event.from_dict(e))
        with contextlib.suppress(TypeError, ValueError):
            text = json.dumps(each)
            refused(lambda t=text: Event.decode(t))


@drawing(12, 3000)
@given(content=st.binary(max_size=300))
def test_any_bytes_as_a_ledger(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    for each in tmp_path.iterdir():
        each.unlink()
    path.write_bytes(content)
    refused(lambda: ho.Ledger.open(path).close())  # or its files go while the next is made


OPTIONS = (
    "--label --score --epsilon --rows --list --json --help --version --table --out --unit --ledger "
    "--budget --name --k --observed --predicted --rival --metrics --threshold show verify auc"
)
words = st.lists(
    st.one_of(
        st.sampled_from([*COMMANDS, *OPTIONS.split(), "good.csv", "y", "p", "1"]),
        st.sampled_from([each for each in commands.WORDS if each is not None]),
        st.text(max_size=6),
    ),
    max_size=7,
)


@drawing(25, 20_000)
@given(words=words)
def test_any_words_on_the_command_line(words: list[str]) -> None:
    if words[:1] in (["reproduce"], ["audit"], ["demo"]) and "--list" not in words:
        return  # they may be answered, in minutes
    with contextlib.suppress(HeldoutError):
        out, err = commands.ran(words)
        assert CANARY not in out + err


@drawing(20, 2000)
@given(
    labels=st.lists(st.integers(0, 1), min_size=2, max_size=12),
    data=st.data(),
    metric=st.sampled_from(["auc", "average-precision", "roc"]),
    decimals=st.one_of(st.none(), st.integers(0, 15)),
)
def test_any_small_data_can_be_attacked(
    labels: list[int], data: Any, metric: str, decimals: int | None
) -> None:
    scores = data.draw(st.lists(st.floats(0, 1), min_size=len(labels), max_size=len(labels)))
    assert 0 <= exposure(labels, scores, metric=metric, decimals=decimals).recovered <= 1
