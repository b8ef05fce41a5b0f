"""The attack of the 2015 paper, on made-up scores."""

from heldout.audit.attacks import most_success
from heldout_papers.boyd_2015_attack import _attacked, _Job, _scores
from heldout_papers.registry import Context, find


def test_the_figure_of_the_paper_is_made_without_its_data() -> None:
    entry = find(paper="boyd-2015", kind="figure", number="2")
    assert find(paper="boyd-2014", kind="figure", number="5.1").title == entry.title
    positives, negatives, source = _scores(Context())
    assert "made-up" in source
    found = _attacked(_Job(50, 25, positives, negatives, 5))
    assert found.series["7 digits"] > 0.8
    assert found.series["7 digits"] >= found.series["2 digits"]
    assert found.series["heldout, from the AUC"] < most_success(1.0) + 4 * 0.5 / 5
