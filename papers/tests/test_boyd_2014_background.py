"""The small figures and tables of the dissertation, and figure 1 of the 2015 paper."""

import pytest

from heldout_papers.altair_svg import to_svg
from heldout_papers.registry import Context, find

MADE = [
    ("boyd-2014", "figure", "2.1"),
    ("boyd-2014", "figure", "2.2"),
    ("boyd-2014", "table", "2.4"),
    ("boyd-2014", "table", "3.3"),
    ("boyd-2014", "figure", "5.2"),
    ("boyd-2014", "figure", "6.1"),
    ("boyd-2015", "figure", "1"),
]


@pytest.mark.parametrize(("paper", "kind", "number"), MADE)
def test_it_is_made_and_its_claims_come_out(paper: str, kind: str, number: str) -> None:
    made = find(paper=paper, kind=kind, number=number).run(Context())
    assert made.table
    assert all(claim.holds for claim in made.claims), made.claims
    assert bool(made.charts) == (kind == "figure")
    for chart in made.charts:
        assert to_svg(chart, title=made.title).startswith("<svg")


def test_neighbouring_curves_rise_from_corner_to_corner() -> None:
    rows = find(paper="boyd-2015", kind="figure", number="1").run(Context()).table
    for name, steps in (("D", 31), ("D'", 31)):
        curve = [(row["fpr"], row["tpr"]) for row in rows if row["curve"].split(",")[0] == name]
        assert len(curve) == steps
        assert (curve[0], curve[-1]) == ((0, 0), (1, 1))
        assert curve == sorted(curve)
