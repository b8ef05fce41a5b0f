"""Gaps between groups: covered, rarely alarming where there are none, and seen where there are."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.chances import louder

import heldout as ho
from heldout import questions as q
from heldout.data.description import Groups, ScoredRows
from heldout.errors import ArgumentError
from heldout.intervals.groups import DecisionsByGroup, _p_value
from heldout.intervals.measure import Measure
from heldout.intervals.noise import NoiseSum
from heldout.kernel import Neighbours, Protection
from heldout.kernel.door import Drawn
from heldout.questions import Confusion

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


def test_groups_of_few_rows_and_of_none_can_be_read_whatever_the_noise() -> None:
    generator = np.random.default_rng(3)
    for cells in ([[18, 1, 1, 10], [0, 0, 0, 0], [18, 1, 0, 11]], [[30, 0, 0, 0], [0, 0, 0, 30]]):
        for _ in range(4):
            found = released(cells, epsilon="2", generator=generator)
            assert all(math.isfinite(each.value) for each in found.measures.values())
            assert 0 <= found.p_value <= 1


def test_a_measure_of_groups_may_be_spelt_as_an_attribute_and_terms_are_printed_once() -> None:
    rows = {"y": [0, 1] * 400, "p": [0.2, 0.8] * 400, "g": ["a", "b", "c", "b"] * 200}
    table = ho.Dataset(rows, label="y", score="p", groups={"g": ["a", "b"]})
    found = ho.Session(table, budget=20).confusion(epsilon=20, by="g")
    assert found.gap_in("false_positive_rate") == found.gap_in("false positive rate")
    assert found.against_rest("f1_score").keys() == found.against_rest("F1 score").keys()
    with pytest.raises(ArgumentError, match=r"No measure 'recal'\. Did you mean 'recall'"):
        found.gap_in("recal")
    assert str(found).count("replace-one neighbours") == 1
    assert str(found).splitlines()[1].startswith("  a: selection rate ")
    assert f'<p class="lead">{found.finding()}' in found._repr_html_()


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


@pytest.mark.chance(louder(0, 14, 10))
def test_a_gap_is_tested_in_the_unit_of_its_measure_beyond_one_too() -> None:
    labels = np.tile([0, 1], 1000)
    wrong = np.where(np.arange(2000) % 5 < 3, 1 - labels, labels)
    table = {"y": labels, "p": 0.98 * wrong + 0.01, "g": np.repeat(["a", "b"], 1000)}
    data = ho.Dataset(table, label="y", score="p", groups={"g": ["a", "b"]})
    answer = ho.Session(data, budget=ho.Budget(epsilon=9)).log_loss(epsilon="8", by="g")
    assert answer.groups["a"].value > 1
    assert answer.p_value > 0.05, "both groups have the same losses"


@pytest.mark.chance(louder(0, 3, 40))
def test_what_is_said_first_of_groups_is_the_gap_that_is_surely_the_largest() -> None:
    generator = np.random.default_rng(5)
    cells = [[1400, 200, 40, 360], [1400, 200, 200, 200], [0, 0, 0, 0]]
    apart = released(cells, epsilon="4", generator=generator)
    said = apart.finding()
    assert said.startswith("The largest gap between the groups of g is in recall: 0.5")
    assert "for g1 and 0.9" in said
    low, high = apart.gap_in("recall").interval(1 - 0.05 / 5)
    assert f"{low:.3f} to {high:.3f}" in said
    assert str(apart).startswith(f"{said} {apart.terms[:1].upper()}{apart.terms[1:]}.\n")
    assert "\n  g1: recall 0.5" in str(apart)
    alike = [[1400, 200, 40, 360], [1400, 200, 40, 360], [0, 0, 0, 0]]
    assert released(alike, epsilon="4", generator=generator).finding().startswith("No gap between")
    empty = released([[0, 0, 0, 0]] * 3, epsilon="1/10", generator=generator)
    assert "fewer than two of the groups of g" in empty.finding()
    [first, *_] = apart.figures()
    assert "g: g0" in first.svg


def test_a_group_without_rows_is_not_read_at_any_price() -> None:
    """Noise is next to nothing here, and an area without rows is 1/2 by definition."""
    generator = np.random.default_rng(5)
    scores, member = generator.random(400), generator.choice(["a", "b"], 400)
    rows = {"y": (generator.random(400) < scores).astype(int), "p": scores, "g": member}
    for neighbours in ("replace-one", "add-remove"):
        declared = {"g": ["a", "b", "nobody"]}
        data = ho.Dataset(rows, label="y", score="p", groups=declared, neighbours=neighbours)
        session = ho.Session(data, budget=ho.Budget(epsilon=10**13))
        for question in (
            q.Confusion(epsilon=10**6, by="g"),
            q.Brier(epsilon=10**12, by="g"),
            q.LogLoss(epsilon=10**12, by="g"),
            q.Auc(epsilon=100, by="g"),
            q.AveragePrecision(epsilon=100, by="g"),
            q.Curves(epsilon=1000, by="g"),
        ):
            found = session.ask(question)
            assert found.drowned == ("nobody", "other")
            assert found.gap.between == ("a", "b")


@pytest.mark.parametrize(
    ("scale", "deviation", "apart"), [(1, 0, 3.6), (1, 0, 5.0), (0.01, 1, 3.0)]
)
def test_two_groups_are_held_against_the_noise_of_both(
    scale: float, deviation: float, apart: float
) -> None:
    """Laplace noise alone, where the law of the difference is known, and next to none."""
    law = NoiseSum(weights=(1.0,), scale=scale, deviation=deviation)
    half = law.quantile(0.95)

    def measure(value: float) -> Measure:
        ends = (value - half, value + half)
        return Measure(
            value, name="m", terms="", noise_interval=lambda _: ends, interval=lambda _: ends
        )

    def surprise(value: float) -> Callable[[float], float]:
        return lambda other: min(1.0, 2 * law.survival(abs(other - value)))

    places = (0.0, apart)
    found = _p_value([measure(each) for each in places], [surprise(each) for each in places])
    laplace = (1 + apart / 2) * math.exp(-apart)
    expected = math.erfc(apart / 2) if deviation else laplace
    assert found == pytest.approx(expected, rel=0.12)
