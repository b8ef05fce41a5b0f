"""The probability of every vector of answers, exactly, for the sparse vector and its bad copies."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.chances import improbability, is_likelier, overlooked

from heldout.errors import ArgumentError
from heldout.kernel import Loss, price
from heldout.kernel.noise import selection as sparse_vector
from heldout.kernel.noise.selection import SparseVector, folded, unbounded_noise
from heldout.kernel.statistic import Sealed

Answers = tuple[bool, ...]


def mass(scale: float, reach: int) -> np.ndarray:
    """P(z) for |z| <= reach; scale 0 is no noise at all."""
    z = np.abs(np.arange(-reach, reach + 1))
    if scale == 0:
        return (z == 0).astype(float)
    p = math.exp(-1 / scale)
    return (1 - p) / (1 + p) * p**z


def above(scale: float, cut: np.ndarray) -> np.ndarray:
    """P(noise >= cut), in closed form."""
    if scale == 0:
        return (cut <= 0).astype(float)
    p = math.exp(-1 / scale)
    high = p ** np.maximum(cut, 1) / (1 + p)
    low = 1 - p ** np.maximum(1 - cut, 1) / (1 + p)
    return np.where(cut >= 1, high, low)


def law(
    queries: tuple[int, ...], *, threshold_scale: float, query_scale: float, limit: int
) -> dict[Answers, float]:
    """Every vector of answers with its probability, for a threshold of 0."""
    reach = max(2, int(45 * threshold_scale))
    z = np.arange(-reach, reach + 1)
    weight = mass(threshold_scale, reach)
    up = [above(query_scale, z - q) for q in queries]
    found: dict[Answers, float] = {}

    def go_on(place: int, said: Answers, density: np.ndarray) -> None:
        if place == len(queries) or sum(said) == limit:
            found[said] = float(density.sum())
            return
        go_on(place + 1, (*said, True), density * up[place])
        go_on(place + 1, (*said, False), density * (1 - up[place]))

    go_on(0, (), weight)
    return found


def loss(first: dict[Answers, float], second: dict[Answers, float]) -> float:
    """The largest log ratio, over answers that floating point can tell from impossible ones."""
    losses = [0.0]
    for said, probability in first.items():
        pair = sorted((probability, second[said]))
        if pair[1] > 1e-12:
            losses.append(math.inf if pair[0] <= 0 else math.log(pair[1] / pair[0]))
    return max(losses)


def scales(mechanism: SparseVector) -> dict[str, float]:
    return {
        "threshold_scale": float(mechanism.threshold_scale),
        "query_scale": float(mechanism.query_scale),
        "limit": mechanism.limit,
    }


def neighbours(length: int, sensitivity: int, monotone: bool):
    steps = range(0 if monotone else -sensitivity, sensitivity + 1)
    for first in itertools.product((0, 1), repeat=length):
        for move in itertools.product(steps, repeat=length):
            yield first, tuple(a + b for a, b in zip(first, move, strict=True))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("limit", "sensitivity"), [(1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(3)])
def test_no_answers_tell_small_neighbours_apart_by_more_than_epsilon(
    monotone: bool, limit: int, sensitivity: int, epsilon: Fraction
) -> None:
    mechanism = SparseVector(epsilon, sensitivity=sensitivity, limit=limit, monotone=monotone)
    known: dict[tuple[int, ...], dict[Answers, float]] = {}

    def of(queries: tuple[int, ...]) -> dict[Answers, float]:
        if queries not in known:
            known[queries] = law(queries, **scales(mechanism))
            assert math.isclose(sum(known[queries].values()), 1, abs_tol=1e-9)
        return known[queries]

    worst = max(loss(of(a), of(b)) for a, b in neighbours(3, sensitivity, monotone))
    for half in (1, 2, 3):
        a, b = (0,) * half + (1,) * half, (1,) * half + (0,) * half
        if not monotone:
            worst = max(worst, loss(of(a), of(b)))
    assert worst <= float(epsilon) * (1 + 1e-9)
    assert worst > float(epsilon) / 3, "a test that is far from the claim cannot fail"


# Many answers "below", all of which one shift of the threshold has to explain, then the positives.
MANY, FEW = 10**5, 2


def worst_case(mechanism: SparseVector, **changed: float) -> float:
    """0 ... 0, 1 ... 1 against 1 ... 1, 0 ... 0, answered below ... below, above ... above."""
    used = scales(mechanism) | changed
    reach = int(60 * used["threshold_scale"] + 60 * used["query_scale"])
    z = np.arange(-reach, reach + 1)
    chances = []
    for many, few in ((0, 1), (1, 0)):
        below = 1 - above(used["query_scale"], z - many)
        positive = above(used["query_scale"], z - few)
        chances.append((mass(used["threshold_scale"], reach) * below**MANY * positive**FEW).sum())
    return abs(math.log(chances[0] / chances[1]))


def test_each_half_of_the_noise_is_needed() -> None:
    mechanism = SparseVector(Fraction(2), sensitivity=1, limit=FEW)
    threshold, query = float(mechanism.threshold_scale), float(mechanism.query_scale)
    assert 1.8 < worst_case(mechanism) <= 2, "the claim is nearly attained"
    assert worst_case(mechanism, threshold_scale=threshold / 2) > 2
    assert worst_case(mechanism, query_scale=query / 2) > 2
    assert worst_case(mechanism, query_scale=query / FEW) > 2, "noise that forgets the limit"


def test_a_threshold_without_noise_charges_for_every_answer() -> None:
    """Private only by the number of queries, not by the limit."""
    quiet = {"threshold_scale": 0.0, "query_scale": 2.0, "limit": 1}
    losses = [loss(law((0,) * m, **quiet), law((-1,) * m, **quiet)) for m in (1, 4, 8)]
    assert losses[2] > losses[1] > 1 > losses[0]


def test_queries_without_noise_are_told_apart_for_certain() -> None:
    """Private Threshold Testing: equal counts, and a row that has the first feature only."""
    published = {"threshold_scale": 2.0, "query_scale": 0.0, "limit": 2}
    before, after = law((5, 5), **published), law((6, 5), **published)
    assert before[True, False] == 0 < after[True, False]
    assert loss(before, after) == math.inf


def test_answers_without_a_limit_cost_more_with_every_query() -> None:
    """NoisyCut: 0^c 1^c against 1^c 0^c, noise of scale 2/epsilon on everything."""
    cut = {"threshold_scale": 2.0, "query_scale": 2.0, "limit": 99}
    losses = [
        loss(law((0,) * c + (1,) * c, **cut), law((1,) * c + (0,) * c, **cut)) for c in (1, 2, 4)
    ]
    assert losses[0] < losses[1] < losses[2]
    assert losses[2] > 1


@pytest.mark.chance(8e-8, "seven outcomes of 1e-8 each, and 1e-8 for half of the noise")
@pytest.mark.parametrize("monotone", [False, True])
def test_answers_follow_the_law_that_the_proof_speaks_of(monotone: bool) -> None:
    mechanism = SparseVector(Fraction(2), sensitivity=1, limit=2, monotone=monotone)
    queries, runs = (-6, 6, 5), 2000
    expected = law(queries, **scales(mechanism))
    seen = dict.fromkeys(expected, 0)
    for _ in range(runs):
        seen[mechanism.answers([5 + q for q in queries], 5)] += 1
    for said, probability in expected.items():
        assert improbability(seen[said], runs, probability) > 1e-8
    half = law(queries, **(scales(mechanism) | {"query_scale": float(mechanism.query_scale) / 2}))
    assert overlooked(expected, half, runs) < 1e-8
    assert is_likelier(seen, expected, half), "half of the noise would have been seen"


def test_it_stops_after_the_limit() -> None:
    mechanism = SparseVector(Fraction(10**6), sensitivity=1, limit=2)
    assert mechanism.answers(np.array([0, 9, 0, 9, 9, 0]), 5) == (False, True, False, True)
    assert mechanism.answers([], 5) == ()
    above_five = SparseVector(Fraction(10**6), sensitivity=1, limit=2, threshold=5)
    assert above_five.sample(Sealed(np.array([0, 9, 9, 9]))) == (False, True, True)


def test_the_price_is_the_claim_and_the_halves_add_up() -> None:
    for limit, monotone in itertools.product((1, 2, 7, 500), (False, True)):
        mechanism = SparseVector(Fraction(1, 3), sensitivity=4, limit=limit, monotone=monotone)
        assert price(mechanism.event()) == Loss.pure(mechanism.epsilon)
        carried = limit * (1 if monotone else 2) * 4
        spent = 4 / mechanism.threshold_scale + carried / mechanism.query_scale
        assert spent == Fraction(1, 3)


@pytest.mark.chance(1e-7, "binomial tails beyond 6 deviations: 7.6e-8 at 9, all others 1e-8")
def test_noise_goes_on_where_64_bits_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held to a small end, the law without an end comes out all the same."""
    monkeypatch.setattr(sparse_vector, "_MOST", 3)
    monkeypatch.setattr(sparse_vector, "_LEAST", -4)
    true_sample = sparse_vector.DiscreteLaplace.sample
    monkeypatch.setattr(
        sparse_vector.DiscreteLaplace,
        "sample",
        lambda self, sealed: np.clip(true_sample(self, sealed), -4, 3),
    )
    runs, scale = 8_000, 2.0
    drawn = np.array(unbounded_noise(Fraction(2), runs))
    for cut in (1, 3, 4, 6, 9):
        for tail in (np.mean(drawn >= cut), np.mean(drawn <= -cut)):
            expected = float(above(scale, np.array(cut)))
            assert abs(tail - expected) < 6 * math.sqrt(expected / runs)


def test_folded_noise_is_geometric() -> None:
    scale = 3.0
    weight = mass(scale, 400)
    together = np.zeros(401)
    for z, each in zip(range(-400, 401), weight, strict=True):
        together[folded(z)] += each
    ratios = together[1:200] / together[:199]
    assert np.allclose(ratios, math.exp(-1 / scale))


@pytest.mark.parametrize(
    "words",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(1, 10**30)},
        {"sensitivity": 0},
        {"sensitivity": 1.0},
        {"limit": 0},
        {"limit": True},
        {"threshold": 0.5},
    ],
)
def test_what_is_not_a_positive_count_is_refused(words: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        SparseVector(**({"epsilon": Fraction(1), "sensitivity": 1} | words))


def test_queries_that_are_not_whole_are_refused_without_a_value() -> None:
    with pytest.raises(ArgumentError) as caught:
        SparseVector(Fraction(1), sensitivity=1).answers([987.5], 3)
    assert "987" not in str(caught.value)
