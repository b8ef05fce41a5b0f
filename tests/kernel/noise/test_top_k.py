"""The probability of every answer of the two selections, exactly."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from tests.chances import improbability, is_likelier, overlooked

from heldout.errors import ArgumentError
from heldout.kernel import Loss, price
from heldout.kernel.noise.selection import NoisyTopK, PermuteAndFlip
from heldout.kernel.statistic import Sealed

REACH = 26
Law = dict[tuple[int, ...], float]


def noisy_top_k(scores: tuple[int, ...], scale: float, k: int) -> Law:
    """Sums over all noise of three scores up to REACH, whose tail is below exp(-26)."""
    weight = np.exp(-np.arange(REACH) / scale)
    weight /= weight.sum()
    grids = np.meshgrid(*[np.arange(REACH)] * 3, indexing="ij")
    chance = np.einsum("i,j,k->ijk", weight, weight, weight).ravel()
    # Ties go to the first: a third of a step is less than any difference of whole numbers.
    sums = np.stack(
        [g.ravel() + q - i / 4 for i, (g, q) in enumerate(zip(grids, scores, strict=True))]
    )
    order = np.argsort(-sums, axis=0)[:k]
    code = (order * 3 ** np.arange(k)[:, None]).sum(axis=0)
    total = np.bincount(code, weights=chance, minlength=3**k)
    return {
        answer: float(total[sum(a * 3**i for i, a in enumerate(answer))])
        for answer in itertools.permutations(range(3), k)
    }


def permute_and_flip(scores: tuple[int, ...], scale: float, k: int) -> Law:
    """Every order and every coin, written out."""

    def first(left: tuple[int, ...]) -> dict[int, float]:
        largest = max(scores[i] for i in left)
        found = dict.fromkeys(left, 0.0)
        for order in itertools.permutations(left):
            none_yet = 1.0
            for i in order:
                accept = math.exp(-(largest - scores[i]) / scale)
                found[i] += none_yet * accept / math.factorial(len(left))
                none_yet *= 1 - accept
        return found

    law: Law = {(): 1.0}
    for _ in range(k):
        law = {
            (*said, i): chance * p
            for said, chance in law.items()
            for i, p in first(tuple(i for i in range(len(scores)) if i not in said)).items()
        }
    return law


LAWS = {NoisyTopK: noisy_top_k, PermuteAndFlip: permute_and_flip}


def loss(first: Law, second: Law) -> float:
    return max(abs(math.log(first[a] / second[a])) for a in first)


def worst(kind: type, scale: float, k: int, sensitivity: int, monotone: bool) -> float:
    law = cache(lambda scores: LAWS[kind](scores, scale, k))
    steps = range(0 if monotone else -sensitivity, sensitivity + 1)
    found = 0.0
    for scores in ((0, 0, 0), (0, 0, 1), (2, 0, 1), (1, 3, 1), (0, 4, 4)):
        for move in itertools.product(steps, repeat=3):
            moved = tuple(a + b for a, b in zip(scores, move, strict=True))
            found = max(found, loss(law(scores), law(moved)))
    return found


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("k", "sensitivity"), [(1, 1), (2, 1), (1, 2)])
def test_no_answer_tells_small_neighbours_apart_by_more_than_epsilon(
    kind: type, monotone: bool, k: int, sensitivity: int
) -> None:
    epsilon = 3 * k * sensitivity
    mechanism = kind(Fraction(epsilon), sensitivity=sensitivity, k=k, monotone=monotone)
    found = worst(kind, float(mechanism.scale), k, sensitivity, monotone)
    assert found <= epsilon * (1 + 1e-9)
    assert found > epsilon / 2, "a test that is far from the claim cannot fail"


@pytest.mark.parametrize("kind", LAWS)
def test_less_noise_than_claimed_is_caught(kind: type) -> None:
    for monotone in (False, True):
        mechanism = kind(Fraction(4), sensitivity=1, k=2, monotone=monotone)
        assert worst(kind, float(mechanism.scale) / 2, 2, 1, monotone) > 4
    assert worst(kind, float(kind(Fraction(4), 1, 2, True).scale), 2, 1, False) > 4, (
        "the noise for monotone scores is not enough for others"
    )


@pytest.mark.chance(7e-8, "six outcomes of 1e-8 each, and 1e-8 for a third of the noise")
@pytest.mark.parametrize("kind", LAWS)
def test_answers_follow_the_law_that_the_proofs_speak_of(kind: type) -> None:
    scores, runs = (3, 0, 3), 1000
    mechanism = kind(Fraction(4), sensitivity=1, k=2)
    expected = LAWS[kind](scores, float(mechanism.scale), 2)
    seen = Counter(mechanism.sample(Sealed(np.array(scores))) for _ in range(runs))
    assert set(seen) <= set(expected)
    for answer, p in expected.items():
        assert improbability(seen[answer], runs, p) > 1e-8
    third = LAWS[kind](scores, float(mechanism.scale) / 3, 2)
    assert overlooked(expected, third, runs) < 1e-8
    assert is_likelier(seen, expected, third), "a third of the noise would have been seen"


@pytest.mark.parametrize("kind", LAWS)
def test_without_noise_to_speak_of_the_largest_come_out_in_order(kind: type) -> None:
    mechanism = kind(Fraction(10**9), sensitivity=1, k=3)
    assert mechanism.sample(Sealed(np.array([5, 90, 70, 80, 5]))) == (1, 3, 2)
    assert mechanism.sample(Sealed(np.array([5, 90]))) == (1, 0), "no more than there are"
    assert price(mechanism.event()) == Loss.pure(mechanism.epsilon)
    assert "scale" in mechanism.describe()


def test_ties_go_to_the_first_in_one_and_are_drawn_in_the_other() -> None:
    level = Sealed(np.zeros(4, dtype=np.int64))
    first = NoisyTopK(Fraction(10**9), sensitivity=1, k=2)
    assert first.sample(level) == (0, 1)
    drawn = PermuteAndFlip(Fraction(10**9), sensitivity=1, k=1)
    assert len({drawn.sample(level) for _ in range(100)}) == 4


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("words", [{"epsilon": Fraction(0)}, {"k": 0}, {"sensitivity": -1}])
def test_what_is_not_positive_is_refused(kind: type, words: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        kind(**({"epsilon": Fraction(1), "sensitivity": 1, "k": 1} | words))
