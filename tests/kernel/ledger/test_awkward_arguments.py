"""Budgets, losses, events, ledgers and relations: what is none of them gets one typed line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.errors import ArgumentError, HeldoutError
from heldout.kernel import Event, Neighbours
from heldout.kernel.events import UnknownEvent


@pytest.mark.parametrize("content", [None, 7, "x", [], ["epsilon"], {1: 2}, np.zeros(2)])
def test_what_was_not_stored_is_no_budget_no_loss_and_no_event(content: Any) -> None:
    for read in (ho.Budget.from_dict, ho.Loss.from_dict):
        with pytest.raises(ArgumentError):
            read(content)
    for read_event in (Event.from_dict, Event.decode):
        with pytest.raises(UnknownEvent):
            read_event(content)


def test_an_event_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(UnknownEvent):
        Event.decode("[" * 100_000)


@pytest.mark.parametrize("budget", [[], float("nan"), ho.Loss.pure("1"), "a lot", -1])
def test_a_session_takes_a_budget_or_an_epsilon_and_nothing_like_it(budget: Any) -> None:
    dataset = ho.Dataset({"y": [1, 0], "p": [0.5, 0.1]}, label="y", score="p")
    with pytest.raises(ArgumentError, match="epsilon must be"):
        ho.Session(dataset, budget=budget)
    for plain in (1, "1", 1.0):
        assert str(ho.Session(dataset, budget=plain).remaining) == "epsilon 1"


@pytest.mark.parametrize("name", ["a\0b", "p" * 5000, "\ud800", "a\nb", "\x1b[31m"], ids=range(5))
def test_a_ledger_has_a_name_that_a_terminal_can_show(name: str, tmp_path: Path) -> None:
    for words in ({"where": tmp_path / name}, {"where": None, "witness": tmp_path / name}):
        with pytest.raises(ArgumentError) as caught:
            ho.Ledger.open(**words)
        assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [None, [], {}, np.zeros(2), "é\n", 7])
def test_a_relation_is_one_of_two_names(value: Any) -> None:
    with pytest.raises(ArgumentError, match="neighbours must be"):
        Neighbours.parse(value)


@pytest.mark.parametrize(
    "name", ["a\0.csv", "p" * 5000 + ".csv", "\ud800.csv", "a\nb.csv"], ids=range(4)
)
def test_a_path_that_cannot_be_one_is_a_file_that_does_not_exist(name: str) -> None:
    with pytest.raises(HeldoutError, match="No such file") as caught:
        ho.Dataset(name, label="y", score="p")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", [10**30, 10**5000, 1.5, "3", 0, True], ids=range(6))
def test_a_guess_beyond_all_rows_is_refused_and_costs_nothing(value: Any) -> None:
    dataset = ho.Dataset({"y": [1, 0], "p": [0.5, 0.1]}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon="1"))
    with pytest.raises(ArgumentError, match="smaller_class must be"):
        session.auc(epsilon="1", smaller_class=value)
    assert str(session.remaining) == "epsilon 1"


@pytest.mark.parametrize("value", [10**5000, None, "x", [], 1j], ids=range(5))
def test_numbers_that_no_double_holds_are_refused(value: Any) -> None:
    for ask in (
        lambda: ho.ScoreMap(value, 1),
        lambda: ho.ScoreMap(0, 1).image(value),
        lambda: ho.ScoreMap(0, 1).score(value),
        lambda: ho.Dataset(
            {"y": [1, 0], "p": [0.5, 0.1]}, label="y", score="p"
        ).description.threshold(value),
    ):
        with pytest.raises(ArgumentError) as caught:
            ask()
        assert str(caught.value).isprintable()
