"""Pictures of a separability report show something, or are left out."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import heldout as ho
from heldout.questions.separability.deep_dive import Feature, Histogram
from heldout.questions.separability.result import clue_figures, group_figure, histogram_figures


@pytest.fixture(scope="module")
def dive():
    draw = np.random.default_rng(8)
    truth = {
        "pay": draw.exponential(size=300),
        "age": draw.normal(size=300),
        "area": ["a", "b"] * 150,
    }
    copy = {**truth, "pay": truth["pay"] + draw.normal(size=300)}
    return ho.separability(truth, copy, shuffles=3, groups=["area"], random_state=1).deep_dive


def test_bars_of_both_signs_start_at_zero(dive):
    (figure,) = clue_figures(dive)
    root = ElementTree.fromstring(figure.svg)
    bars = [each for each in root.iter() if each.tag.endswith("rect") and each.get("x")]
    assert len(bars) >= len([clue for clue in dive.clues if clue.weight])
    assert "pay" in figure.svg


def test_a_chart_without_a_weight_is_left_out(dive):
    silent = replace(dive, clues=tuple(replace(each, weight=0.0) for each in dive.clues))
    assert clue_figures(silent) == []


def test_groups_of_the_same_short_name_are_drawn(dive):
    (grouping,) = dive.groups
    long = tuple(replace(each, name=f"{'x' * 40}{each.name}") for each in grouping.groups)
    ElementTree.fromstring(group_figure(replace(grouping, groups=long)).svg)


def test_histograms_stand_side_by_side_for_numbers_that_tell(dive):
    assert dive.histograms[0].name == "pay"
    for histogram, figure in zip(dive.histograms, histogram_figures(dive), strict=True):
        assert sum(histogram.true) == pytest.approx(1)
        assert sum(histogram.privatized) == pytest.approx(1)
        assert len(histogram.edges) == len(histogram.true) + 1
        assert "rows would have to move" in figure.caption


def test_whole_numbers_have_a_bin_each():
    of = Histogram.of(Feature("visits", None), [np.array([0.0, 0, 5]), np.array([0.0, 1, 5])])
    assert of.edges == (-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
    assert of.true == (2 / 3, 0, 0, 0, 0, 1 / 3)
    assert of.privatized == (1 / 3, 1 / 3, 0, 0, 0, 1 / 3)
