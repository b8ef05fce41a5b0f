"""Where there is nothing to tell apart the interval holds 0, and other scores mislead."""

import dataclasses

import numpy as np
import pytest

from heldout.questions.separability.score import separability
from heldout_papers.separability import one_trial


@pytest.mark.slow
def test_the_95_percent_interval_holds_0_and_detection_without_a_null_does_not():
    trials = [one_trial(seed) for seed in range(40)]
    holds = sum(trial["holds_0"] for trial in trials)
    assert holds >= 34  # of 40 at 95%: fewer has a chance of 0.3%
    assert abs(np.mean([trial["separability"] for trial in trials])) < 0.02
    assert sum(trial["detection_auc_in_sample_above"] for trial in trials) >= 12
    small = sum(trial["p_value"] < 0.1 for trial in trials)
    assert small <= 11  # of 40 at 2/21: more has a chance of 0.1%


def test_any_labelling_against_twenty_others_is_within_its_interval_at_the_level():
    """Where rows are alike the true labelling is one of the shuffles: take each in its place."""
    rng = np.random.default_rng(12)
    rows = rng.poisson(rng.gamma(0.3, 1, 12), (400, 12))
    found = separability(rows[:200], rows[200:], shuffles=250, random_state=1)
    accuracies = np.array(found.numbers.shuffled)
    holds = []
    for _ in range(1500):
        one, *others = rng.choice(accuracies, 21, replace=False).tolist()
        numbers = dataclasses.replace(found.numbers, accuracy=one, shuffled=tuple(others))
        low, high = dataclasses.replace(found, numbers=numbers).interval()
        holds.append(low <= 0 <= high)
    assert 0.93 < np.mean(holds) < 0.975
