"""`heldout demo` does the main job and leaves nothing behind."""

import json


def test_the_demo_evaluates_both_models_from_one_budget_and_writes_a_report(run, here):
    before = set(here.iterdir())
    outcome = run("demo", "--json")
    content = json.loads(outcome.out)
    assert list(content) == ["risk_a", "risk_b", "breast cancer"]
    assert content["risk_a"]["remaining"]["epsilon"] == "3/2"
    assert content["risk_b"]["remaining"]["epsilon"] == "0"
    assert content["breast cancer"]["remaining"]["epsilon"] == "0"
    assert set(here.iterdir()) == before
