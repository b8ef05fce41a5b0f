"""DAWA's first stage: costs, partitions, and the exact probability of each on tiny tables."""

import math
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from tests.chances import improbability

from heldout.errors import ArgumentError
from heldout.kernel.events import Event, price
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.dawa import Dawa, cheapest_partition, scaled_costs


def _partitions(bins: int) -> list[list[int]]:
    """Edges of every partition into intervals of 1, 2, 4, ... bins."""
    found = []
    for size in range(bins):
        for inner in combinations(range(1, bins), size):
            edges = [0, *inner, bins]
            if all((b - a).bit_count() == 1 for a, b in pairwise(edges)):
                found.append(edges)
    return found


def _total(costs: list[Any], edges: list[int]) -> int:
    parts = pairwise(edges)
    return sum(int(costs[(b - a).bit_length() - 1][a]) for a, b in parts)


@pytest.mark.parametrize("bins", [2, 3, 4])
def test_one_row_moves_the_cost_of_any_partition_by_less_than_two(bins: int) -> None:
    multiple, largest = 4, 0
    for counts in product(range(4), repeat=bins):
        costs = scaled_costs(np.array(counts), multiple=multiple)
        for place in range(bins):
            more = np.array(counts)
            more[place] += 1
            others = scaled_costs(more, multiple=multiple)
            for edges in _partitions(bins):
                largest = max(largest, abs(_total(costs, edges) - _total(others, edges)))
    assert multiple <= largest < 2 * multiple


def test_costs_are_the_deviations_from_the_mean_times_the_multiple() -> None:
    counts = np.array([5, 0, 2, 2, 7])
    costs = scaled_costs(counts, multiple=8)
    for power, each in enumerate(costs):
        for start, cost in enumerate(each):
            part = counts[start : start + 2**power]
            assert cost == pytest.approx(8 * np.abs(part - part.mean()).sum())


def test_the_partition_is_the_cheapest_of_all() -> None:
    generator = np.random.default_rng(3)
    for bins in (1, 2, 5, 8):
        lengths = [2**k for k in range(bins.bit_length())]
        for _ in range(30):
            costs = [generator.integers(-9, 9, bins - length + 1) for length in lengths]
            found = cheapest_partition(costs, bins=bins).tolist()
            assert _total(costs, found) == min(_total(costs, each) for each in _partitions(bins))


def _noise(scale: float, reach: int) -> Any:
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(z) / scale)
    return z, mass / mass.sum()


def _three_bins(counts: tuple[int, ...], dawa: Dawa, reach: int = 48) -> dict[str, float]:
    """Exact probabilities of the partitions of three bins: {1,1,1}, {2,1} and {1,2}.

    A, B, C are their noisy costs. Given the noise of the first and the last bin they are
    independent; equal costs go as in `cheapest_partition`.
    """
    pair = [int(c) for c in scaled_costs(np.array(counts), multiple=dawa.multiple)[1]]
    penalty = dawa.bucket_cost
    z, mass = _noise(float(dawa.cost_scale), reach)
    tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)

    def at_least(value: Any) -> Any:
        """P(noise >= value)."""
        return tail[np.clip(value + reach, 0, len(mass))]

    one, last = z[:, None, None], z[None, :, None]
    weight = mass[:, None, None] * mass[None, :, None] * mass[None, None, :]
    own = z[None, None, :]
    # The best of the first two bins is decided first, one bin at a time winning ties; then the
    # last bin alone wins ties against a last pair.
    a_before, b_before = one + own + penalty, pair[0] + own
    c_rest = penalty + one + pair[1]
    single = weight * at_least(a_before - pair[0]) * at_least(a_before + last + penalty - c_rest)
    first = (
        weight
        * at_least(b_before + 1 - one - penalty)
        * at_least(b_before + last - c_rest + penalty)
    )
    return {
        "1,1,1": float(single.sum()),
        "2,1": float(first.sum()),
        "1,2": 1.0 - float(single.sum()) - float(first.sum()),
    }


def _loss(dawa: Dawa) -> float:
    """The largest log-ratio over all pairs of tiny tables that differ in one row."""
    known = {c: _three_bins(c, dawa) for c in product(range(3), repeat=3)}
    worst = 0.0
    for counts, here in known.items():
        for place in range(3):
            other = tuple(c + (i == place) for i, c in enumerate(counts))
            if other in known:
                there = known[other]
                worst = max(worst, *(abs(math.log(here[k] / there[k])) for k in here))
    return worst


@pytest.mark.parametrize("penalty", [0, 2])
def test_the_probability_of_each_partition_changes_by_at_most_the_claim(penalty: int) -> None:
    dawa = Dawa(bins=3, epsilon=Fraction(8), moved=1, penalty=penalty)
    claimed = float(dawa.share * dawa.epsilon)
    worst = _loss(dawa)
    assert 0.1 * claimed < worst <= claimed


@pytest.mark.chance(1e-7, "a binomial tail")
def test_the_probabilities_are_those_that_are_drawn() -> None:
    dawa, counts = Dawa(bins=3, epsilon=Fraction(8), moved=1), (6, 1, 1)
    expected = _three_bins(counts, dawa)
    drawn = [len(dawa._partition(np.array(counts))) == 4 for _ in range(1200)]
    assert improbability(sum(drawn), len(drawn), expected["1,1,1"]) > 1e-7


@pytest.mark.parametrize("moved", [1, 2, 6])
def test_both_stages_cost_epsilon_together(moved: int) -> None:
    dawa = Dawa(bins=16, epsilon=Fraction(3, 7), moved=moved)
    assert price(Event.composed(dawa.events(classes=1))).as_dict()["epsilon"] == "3/7"
    assert 4 * dawa.multiple * moved / dawa.cost_scale == dawa.share * dawa.epsilon


@pytest.mark.chance(1e-9, "means 7 and 10 deviations away; five rows of noise at scale 0.14")
def test_buckets_keep_the_sum_and_are_fewer_with_a_penalty() -> None:
    counts = np.full(64, 5)
    dear, cheap = (Dawa(bins=64, epsilon=Fraction(10), moved=1, penalty=k) for k in (2, 0))
    few, many = (
        np.mean([len(each._partition(counts)) for _ in range(20)]) for each in (dear, cheap)
    )
    assert few < 20
    assert many > 30
    drawn = dear.draw(counts)
    # Of whole numbers: a noise of 1 comes in 7 of 1,000 runs, and is up to 15 deviations.
    assert abs(drawn.counts.sum() - 320) < 5
    assert 0 < drawn.above_deviation[0] < 0.2
    assert not drawn.unbiased


def test_too_many_bins_and_an_impossible_share_are_refused() -> None:
    with pytest.raises(ArgumentError, match="4096"):
        Dawa(bins=5000, epsilon=Fraction(1), moved=1)
    with pytest.raises(ArgumentError, match="share"):
        Dawa(bins=5, epsilon=Fraction(1), moved=1, share=Fraction(1))
    with pytest.raises(ArgumentError, match="penalty"):
        Dawa(bins=5, epsilon=Fraction(1), moved=1, penalty=-1)


def test_noise_beyond_64_bits_makes_a_bucket_dear_and_never_cheap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The price of a bucket, added to noise at the end of 64 bits, would wrap to below zero."""
    dawa = Dawa(bins=4, epsilon=Fraction(1), moved=1)
    most = np.iinfo(np.int64).max

    def drawn(self: DiscreteLaplace, sealed: Any) -> Any:
        noise = np.zeros(self.dimension, dtype=np.int64)
        noise[:4] = most  # the intervals of one bin
        return noise

    monkeypatch.setattr(DiscreteLaplace, "sample", drawn)
    assert dawa._partition(np.zeros(4, dtype=np.int64)).tolist() == [0, 4]
