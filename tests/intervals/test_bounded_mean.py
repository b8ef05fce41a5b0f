"""Means of bounded errors: scikit-learn's when epsilon is huge, on any declared range."""

import numpy as np
import pytest
from sklearn import metrics as reference

import heldout as ho
from heldout import questions as q
from heldout.kernel.door import Drawn

GENERATOR = np.random.default_rng(23)
SHARES = GENERATOR.random(500)
LABELS = (GENERATOR.random(500) < SHARES).astype(int)
HUGE = "1000000"


def session(low: float, high: float, neighbours: str) -> ho.Session:
    scores = np.clip(low + SHARES * (high - low), low, high)
    dataset = ho.Dataset(
        {"y": LABELS, "p": scores},
        label="y",
        score="p",
        score_range=(low, high),
        neighbours=neighbours,
    )
    return ho.Session(dataset, budget=ho.Budget(epsilon="10000000"))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_with_a_huge_epsilon_the_brier_score_is_that_of_scikit_learn(neighbours: str) -> None:
    release = session(0, 1, neighbours).brier(epsilon=HUGE)
    exact = reference.brier_score_loss(LABELS, SHARES)
    # The lattice has 2^20 steps, so the mean is off by half a step at most.
    assert float(release) == pytest.approx(exact, abs=2**-21 + 1e-9)
    assert release.noise_interval()[0] <= exact + 2**-21
    assert exact - 2**-21 <= release.noise_interval()[1]


@pytest.mark.parametrize("score_range", [(0, 1), (-1, 1), (-10, 30), (1e6, 1e6 + 8), (0, 1e-9)])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_errors_are_measured_on_the_declared_range(
    score_range: tuple[float, float], neighbours: str
) -> None:
    low, high = score_range
    door = session(low, high, neighbours)
    scores = low + SHARES * (high - low)
    truth = np.where(LABELS == 1, high, low)
    for release, exact, largest in (
        (
            door.mean_absolute_error(epsilon=HUGE),
            reference.mean_absolute_error(truth, scores),
            high - low,
        ),
        (
            door.mean_squared_error(epsilon=HUGE),
            reference.mean_squared_error(truth, scores),
            (high - low) ** 2,
        ),
    ):
        assert float(release) == pytest.approx(exact, abs=2e-6 * largest)
        assert 0 <= release.interval()[0] <= release.interval()[1] <= largest


@pytest.mark.chance(1e-15, "noise must make up 500 rows, which is 50 times its scale")
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_noise_on_one_row_leaves_an_honest_interval(neighbours: str) -> None:
    dataset = ho.Dataset({"y": [1], "p": [0.5]}, label="y", score="p", neighbours=neighbours)
    door = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    for _ in range(8):
        release = door.brier(epsilon="1/10")
        low, high = release.interval()
        assert 0 <= low <= float(release) <= high <= 1
        assert high - low > 0.05  # noise made up 150 rows and 0.2 once in 30,000 runs


def test_a_mean_says_what_it_is() -> None:
    release = session(0, 1, "replace-one").brier(epsilon="1/2")
    assert str(release).startswith("Brier score 0.")
    assert str(release).endswith("epsilon 0.5, replace-one neighbours")


@pytest.mark.parametrize("question", [q.Brier(epsilon="1/50"), q.LogLoss(epsilon="1/50")])
def test_noise_from_none_to_what_a_guess_errs_by_leaves_nothing_to_read(
    question: q.Question,
) -> None:
    """Brier 1/4 and log loss ln 2 are those of a coin: most of the range above is never seen."""
    about = ho.Dataset({"y": LABELS, "p": SHARES}, label="y", score="p").description
    step = 2**20
    for error, informative in ((0.02, False), (0.5, True)):
        noisy = np.array([error * 500 * step, 0.1 * 500 * step]).astype(int)
        found = question.read(Drawn(question.request(about), noisy, None, about, None))
        assert found.headline.informative is informative
