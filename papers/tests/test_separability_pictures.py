"""The four pictures of the separability paper, on the simulated table."""

import pytest

from heldout_papers.altair_svg import to_svg
from heldout_papers.registry import Context, Reproduction, find
from heldout_papers.separability import baltimore


@pytest.fixture(scope="module")
def made() -> dict[str, Reproduction]:
    context = Context(workers=1)
    return {
        number: find(paper="separability", kind="figure", number=number).run(context)
        for number in ("3", "4", "5", "6")
    }


def test_every_claim_of_the_pictures_comes_out(made: dict[str, Reproduction]) -> None:
    for each in made.values():
        assert each.claims
        differ = [claim.text for claim in each.claims if claim.verdict != "reproduced"]
        assert differ in ([], ["The estimated probabilities vary"])
        assert to_svg(each.charts[0], title=each.title).startswith("<svg")


def test_clues_of_both_signs_are_in_the_chart(made: dict[str, Reproduction]) -> None:
    signs = {row["speaks for"] for row in made["5"].table}
    assert signs == {"true", "privatized"}
    values = [row["coefficient"] for row in made["5"].table]
    assert min(values) < 0 < max(values)


def test_four_fifths_of_the_simulated_cells_are_empty() -> None:
    import numpy as np

    counts = baltimore(np.random.default_rng(20210405)).counts
    assert (counts == 0).mean() == pytest.approx(0.8, abs=0.02)
    assert counts.sum() == pytest.approx(1_500_000, rel=0.01)
