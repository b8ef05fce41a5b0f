"""Where there is nothing to tell apart the interval holds 0, and other scores mislead."""

import numpy as np
import pytest

from heldout.reproduce.separability import one_trial


@pytest.mark.slow
def test_the_95_percent_interval_holds_0_and_detection_without_a_null_does_not():
    trials = [one_trial(seed) for seed in range(40)]
    holds = sum(trial["holds_0"] for trial in trials)
    assert holds >= 34  # of 40 at 95%: fewer has a chance of 0.3%
    assert abs(np.mean([trial["separability"] for trial in trials])) < 0.02
    assert sum(trial["detection_auc_in_sample_above"] for trial in trials) >= 12
    small = sum(trial["p_value"] < 0.1 for trial in trials)
    assert small <= 11  # of 40 at 2/21: more has a chance of 0.1%
