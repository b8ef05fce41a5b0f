from fractions import Fraction

import pytest

from heldout.errors import ArgumentError, PrivacyError
from heldout.kernel.loss import Budget, Loss

LOSSES = [
    Loss.pure("1/3"),
    Loss.pure(0),
    Loss.approximate(1, "1e-6"),
    Loss.zcdp("1/8"),
    Loss.zcdp("1/8", "1e-9"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_loss_survives_its_own_text(loss):
    assert Loss.from_dict(loss.as_dict()) == loss
    assert all(isinstance(text, str) for text in loss.as_dict().values())


def test_the_kind_follows_from_the_numbers():
    assert [loss.kind for loss in LOSSES] == ["pure", "pure", "approximate", "zcdp", "zcdp"]
    assert Loss.approximate(1, 0) == Loss.pure(1)
    assert Loss.zcdp(1).epsilon is None
    assert Loss.pure(1).rho is None


def test_a_float_of_a_loss_is_rounded_up():
    third = Loss.pure("1/3").float_epsilon()
    assert Fraction(third) > Fraction(1, 3)
    assert Loss.pure("1/2").float_epsilon() == 0.5


def test_zcdp_has_no_epsilon_without_a_delta():
    with pytest.raises(PrivacyError, match="epsilon_of_zcdp"):
        Loss.zcdp(1).float_epsilon()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"rho": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1},
        {"epsilon": True},
        {"epsilon": "lots"},
    ],
)
def test_a_budget_without_meaning_is_refused(arguments):
    with pytest.raises(ArgumentError):
        Budget(**arguments)


def test_a_budget_is_frozen_and_exact():
    budget = Budget(epsilon=0.1, delta="1e-6")
    assert budget == Budget.from_dict(budget.as_dict())
    assert budget == Budget(epsilon="1/10", delta="1/1000000")
    assert len({budget, Budget(epsilon="0.1", delta=1e-6)}) == 1
    assert str(Budget(epsilon=3)) == "epsilon 3"
    with pytest.raises(AttributeError):
        budget.epsilon = Fraction(2)
    assert Budget(3) == Budget(epsilon="3"), "epsilon is what most budgets are in"
    with pytest.raises(TypeError):
        Budget(3, None)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"epsilon": "1"},
        {"epsilon": "1", "rho": "1", "delta": "0"},
        {"epsilon": "2/4", "delta": "0"},
        {"epsilon": "-1", "delta": "0"},
        {"epsilon": "1", "delta": "1"},
        {"epsilon": "1/0", "delta": "0"},
        {"epsilon": None, "delta": "0"},
    ],
)
def test_a_loss_is_read_from_canonical_text_only(content):
    with pytest.raises(ArgumentError):
        Loss.from_dict(content)
