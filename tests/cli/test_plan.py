"""`heldout plan` answers without data."""

import json


def test_a_target_gives_an_epsilon(run):
    words = "plan --rows 5000 --positives 500 --metric recall --value 0.8 --target 0.02"
    outcome = run(*words.split())
    assert outcome.code == 0
    assert "epsilon 0.49 gives" in outcome.out
    assert "Sampling error alone" in outcome.out


def test_an_epsilon_gives_a_half_width(run):
    words = "plan --rows 5000 --metric accuracy --value 0.85 --epsilon 0.5 --json"
    content = json.loads(run(*words.split()).out)
    assert content["epsilon"] == "1/2"
    assert 0.001 < content["half_width"] < 0.005
    assert content["sampling_half_width"] > content["half_width"]
