"""Gaps between groups: covered, rarely alarming where there are none, and seen where there are."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.data.description import ScoredRows
from heldout.data.groups import Groups
from heldout.metrics.groups import DecisionsByGroup
from heldout.privacy import Neighbours, Protection
from heldout.questions import Confusion
from heldout.release import Drawn

RUNS = 60


def released(cells: Any, *, epsilon: str, generator: np.random.Generator) -> DecisionsByGroup:
    """What is released of each group's true (tn, fp, fn, tp)."""
    groups = len(cells)
    about = ScoredRows(
        name="made up",
        protection=Protection(neighbours=Neighbours.REPLACE_ONE),
        rows=int(np.sum(cells)),
        label="y",
        score="p",
        groups={"g": Groups("g", tuple(f"g{i}" for i in range(groups - 1)))},
    )
    question = Confusion(epsilon=epsilon, by="g")
    p = math.exp(-float(Fraction(epsilon)) / 2)
    noise = generator.geometric(1 - p, 4 * groups) - generator.geometric(1 - p, 4 * groups)
    drawn = Drawn(question.request(about), np.ravel(cells) + noise, None, about, None)
    found = question.read(drawn)
    assert isinstance(found, DecisionsByGroup)
    return found


def drawn_cells(recalls: Any, rows: int, generator: np.random.Generator) -> Any:
    """Groups of as many rows, a fifth of them positive, with these recalls."""
    return [generator.multinomial(rows, [0.7, 0.1, 0.2 * (1 - r), 0.2 * r]) for r in recalls]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "rows", "epsilon"), [(2, 500, "1/2"), (6, 400, "1"), (20, 250, "1")]
)
def test_groups_that_do_not_differ_raise_an_alarm_in_one_of_twenty(
    groups: int, rows: int, epsilon: str
) -> None:
    generator = np.random.default_rng([groups, rows])
    runs = RUNS if groups < 20 else RUNS // 3
    alarms = [
        released(
            drawn_cells([0.7] * groups, rows, generator), epsilon=epsilon, generator=generator
        ).equal_opportunity.p_value
        < 0.05
        for _ in range(runs)
    ]
    assert np.mean(alarms) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.slow
def test_a_gap_of_a_tenth_is_seen_nearly_as_often_as_without_noise() -> None:
    generator = np.random.default_rng(2)
    private, plain = [], []
    for _ in range(RUNS):
        cells = np.array(drawn_cells([0.65, 0.75], 2500, generator))
        found = released(cells, epsilon="1", generator=generator)
        private.append(found.equal_opportunity.p_value < 0.05)
        right, positives = cells[:, 3], cells[:, 2] + cells[:, 3]
        pooled = right.sum() / positives.sum()
        z = np.subtract(*(right / positives)) / math.sqrt(
            pooled * (1 - pooled) * (1 / positives).sum()
        )
        plain.append(abs(z) > 1.96)
    assert np.mean(plain) > 0.8
    assert np.mean(private) >= np.mean(plain) - 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("recalls", "rows"), [((0.6, 0.8), 400), ((0.7, 0.7), 1500)])
def test_gaps_are_covered(recalls: Any, rows: int) -> None:
    generator = np.random.default_rng(rows)
    of_rows, of_all = [], []
    for _ in range(RUNS):
        cells = np.array(drawn_cells(recalls, rows, generator))
        gap = released(cells, epsilon="1", generator=generator).equal_opportunity
        own = np.ptp(cells[:, 3] / (cells[:, 2] + cells[:, 3]))
        low, high = gap.noise_interval()
        of_rows.append(low - 1e-9 <= own <= high + 1e-9)
        low, high = gap.interval()
        of_all.append(low <= max(recalls) - min(recalls) <= high)
    assert min(np.mean(of_rows), np.mean(of_all)) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / RUNS)


def test_equalised_odds_are_the_larger_gap_and_each_group_is_held_against_the_others() -> None:
    generator = np.random.default_rng(5)
    cells = [[500, 100, 60, 140], [300, 300, 60, 140], [450, 150, 50, 150]]
    found = released(cells, epsilon="1000", generator=generator)
    assert found.equalised_odds == found.gap_in("false positive rate")
    assert found.equalised_odds.p_value < 1e-6 < found.equal_opportunity.p_value
    against = found.against_rest("false positive rate")["g1"]
    assert against == pytest.approx(0.5 - (100 / 600 + 150 / 600) / 2, abs=1e-6)
    low, high = against.interval()
    assert 0 < low < against < high
    assert found.demographic_parity > 0
    assert found.predictive_parity.p_value < 0.05


def test_a_gap_is_tested_in_the_unit_of_its_measure_beyond_one_too() -> None:
    labels = np.tile([0, 1], 1000)
    wrong = np.where(np.arange(2000) % 5 < 3, 1 - labels, labels)
    table = {"y": labels, "p": 0.98 * wrong + 0.01, "g": np.repeat(["a", "b"], 1000)}
    data = ho.Dataset(table, label="y", score="p", groups={"g": ["a", "b"]})
    answer = ho.Session(data, budget=ho.Budget(epsilon=9)).log_loss(epsilon="8", by="g")
    assert answer.groups["a"].value > 1
    assert answer.p_value > 0.05, "both groups have the same losses"
