import pytest

from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection


def test_an_unknown_relation_is_refused_with_the_names():
    names = "must be 'replace-one', 'add-remove' or 'label', got 'swap'"
    with pytest.raises(ArgumentError, match=names):
        Neighbours.parse("swap")


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("unit", [False, True])
def test_the_row_count_is_public_for_replace_one_without_units_and_for_labels(relation, unit):
    protection = Protection(neighbours=relation, unit=unit)
    public = relation == "label" or (relation == "replace-one" and not unit)
    assert protection.row_count_is_public == public


def test_without_a_unit_one_row_changes():
    replace = Protection(neighbours=Neighbours.REPLACE_ONE)
    other = Protection(neighbours=Neighbours.ADD_REMOVE)
    assert list(replace.changes()) == [(1, 1)]
    assert list(Protection(neighbours=Neighbours.LABEL).changes()) == [(1, 1)]
    assert list(other.changes()) == [(1, 0), (0, 1)]


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_unit_of_k_rows_is_k_single_row_steps_away(relation, most):
    protection = Protection(neighbours=relation, unit=True, rows_per_unit=most)
    changes = list(protection.changes())
    assert max(left for left, _ in changes) == most
    assert max(came for _, came in changes) == most
    assert max(max(change) for change in changes) == most
    assert any(left and came for left, came in changes) == protection.both_ways
    if protection.only_labels:
        assert changes == [(count, count) for count in range(1, most + 1)]
    else:
        assert len(changes) == ((most + 1) ** 2 - 1 if protection.both_ways else 2 * most)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_rows_per_unit_is_a_count(count):
    with pytest.raises(ArgumentError, match="rows_per_unit must be a whole number"):
        Protection(neighbours=Neighbours.ADD_REMOVE, unit=True, rows_per_unit=count)


def test_rows_per_unit_means_nothing_without_a_unit():
    with pytest.raises(ArgumentError, match="rows_per_unit must be 1 without a unit column"):
        Protection(neighbours=Neighbours.ADD_REMOVE, rows_per_unit=4)


def test_a_protection_says_what_it_protects():
    patient = Protection(neighbours="add-remove", unit=True, rows_per_unit=1, unit_name="patient")
    assert patient.describe() == (
        "add-remove neighbours, protecting each patient with at most 1 row"
    )
    assert patient.as_dict() == {
        "neighbours": "add-remove",
        "unit": True,
        "unit_name": "patient",
        "rows_per_unit": 1,
        "row_count_is_public": False,
    }
