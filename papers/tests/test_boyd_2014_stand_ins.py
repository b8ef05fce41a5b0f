"""The simulated stand-ins have the areas that the dissertation prints."""

import numpy as np
import pytest
from scipy.special import ndtr

from heldout.precision_recall import minimum_auc
from heldout_papers import boyd_2014_stand_ins as study
from heldout_papers.registry import Context


def test_the_two_algorithms_have_the_printed_areas() -> None:
    drawn = study.compared(study._Job(1))
    for name, (area, above) in {"A": (0.948, 0.123), "B": (0.944, 0.101)}.items():
        model = study.models()[name]
        assert ndtr(model.mean / np.hypot(1, model.deviation)) == pytest.approx(area, abs=1e-6)
        assert study._upper(model) == pytest.approx(above, abs=1e-6)
        assert drawn[f"AUCROC {name}"] == pytest.approx(area, abs=0.015)
        assert drawn[f"AUCPR {name}"] == pytest.approx(above, abs=0.03)


def test_the_printed_columns_of_table_3_2_imply_a_prevalence_and_follow_from_it() -> None:
    made = study.predicates(Context())
    for row in made.table:
        prevalence = row["implied prevalence"]
        if prevalence is not None:
            least = minimum_auc(prevalence=prevalence)
            found = (row["AUCPR in the paper"] - least) / (1 - least)
            assert found == pytest.approx(row["AUCNPR in the paper"], abs=1e-6)
            assert row["AUCPR"] == pytest.approx(row["AUCPR in the paper"], abs=0.03)
    assert all(claim.holds for claim in made.claims)


def test_what_is_simulated_says_so() -> None:
    made = [study.two_algorithms(Context()), study.two_areas(Context(repetitions=1, workers=1)),
            study.predicates(Context())]  # fmt: skip
    for each in made:
        assert "simulated" in each.title
        assert each.notes[0].startswith("Simulated:")
