"""What each mechanism claims to cost, written down a second time: the ledger's price is that."""

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable, Iterable
from fractions import Fraction as F
from typing import Any

import pytest

import heldout.kernel
import heldout.questions
from heldout import questions as q
from heldout.kernel import Event, Loss, Protection, price
from heldout.kernel.curves.counted import CountedCurves
from heldout.kernel.curves.heldout import CountsWithArea
from heldout.kernel.curves.registry import METHODS as CURVES
from heldout.kernel.curves.registry import method
from heldout.kernel.curves.thresholds import CrowdedCells, MedianCuts
from heldout.kernel.noise.additive import DiscreteGaussian, DiscreteLaplace, NoiseShare
from heldout.kernel.noise.disjoint import Disjoint, EachGroup, SummedParts
from heldout.kernel.noise.fits import Block, ObjectivePerturbation, WishartDifference
from heldout.kernel.noise.mechanism import DeclaredFit, Primitive
from heldout.kernel.noise.selection import (
    AboveBar,
    NoisyTopK,
    PermuteAndFlip,
    Prepaid,
    SparseVector,
)
from heldout.kernel.noise.tied import TiedLaplace
from heldout.kernel.ranking.concordance import ConcordanceMechanism
from heldout.kernel.ranking.ladder import (
    Cauchy,
    CauchyBoyd2015,
    LaplaceBoyd2015,
    PiecewiseLaplace,
    PolynomialTail,
)
from heldout.kernel.ranking.mechanism import RankingMechanism
from heldout.kernel.ranking.sensitivity import AreaSensitivity
from heldout.kernel.regression import (
    BoundSearch,
    BoundSearchAsPrinted,
    CumulativeCounts,
    HilbertDawa,
    IntervalChoice,
)
from heldout.questions.thresholds import COUNT_SHARE, CutMechanism, QuantileChoice

ROWS = Protection(neighbours="replace-one")
ADDED = Protection(neighbours="add-remove")
LABELS = Protection(neighbours="label")
AREA = AreaSensitivity(protection=ROWS)
THIRD = F(1, 3)
TWO_BLOCKS = Block(F(1, 4), ((0,), (9,))), Block(F(3, 4), (tuple(range(1, 9)),))
CURVE = {"protection": ROWS, "rows": 500, "points": 65}

# The numbers are those of the contracts, worked out by hand.
CLAIMS: list[tuple[Any, Loss]] = [
    (DiscreteLaplace(scale=F(8), l1_sensitivity=2, dimension=4), Loss.pure(F(1, 4))),
    (TiedLaplace(scale=F(8), l1_sensitivity=2, dimension=4, cells=2), Loss.pure(F(1, 4))),
    (method("heldout", epsilon=THIRD, **CURVE | {"protection": LABELS}), Loss.pure(THIRD)),
    (DiscreteLaplace.for_epsilon(THIRD, l1_sensitivity=5, dimension=9), Loss.pure(THIRD)),
    (
        DiscreteGaussian.for_rho(THIRD, l2_sensitivity_squared=5, dimension=9),
        Loss.zcdp(THIRD),
    ),
    (SummedParts(epsilon=THIRD, parts=9, most=70, entries=2), Loss.pure(THIRD)),
    (WishartDifference.for_epsilon(THIRD, trace=7, size=3), Loss.pure(THIRD)),
    (
        CountsWithArea(epsilon=THIRD, area_epsilon=F(1, 5), moved=2, balanced=True),
        Loss.pure(THIRD),
    ),
    (
        NoiseShare(scale=F(8), l1_sensitivity=2, dimension=4, honest=3, hand_in=print),
        Loss.pure(F(1, 4)),
    ),
    (PolynomialTail(local=AREA, a=F(1, 2), beta=F(1, 10), nu=F(5)), Loss.pure(F(9, 10))),
    (PolynomialTail(local=AREA, a=F(1, 2), beta=F(1, 10), nu=F(3, 2)), Loss.pure(F(6, 10))),
    (Cauchy(local=AREA, a=F(1, 2), beta=F(1, 10)), Loss.pure(F(6, 10))),
    (CauchyBoyd2015(local=AREA, epsilon=THIRD), Loss.pure(THIRD)),
    (
        LaplaceBoyd2015(local=AREA, epsilon=THIRD, delta=F(1, 100)),
        Loss.approximate(THIRD, F(1, 100)),
    ),
    (
        Prepaid(DiscreteLaplace.for_epsilon(THIRD, l1_sensitivity=2, dimension=1), paid=7),
        Loss.pure(0),
    ),
    (PiecewiseLaplace(epsilon=THIRD, local=AREA, top=1024), Loss.pure(THIRD)),
    *(
        (
            RankingMechanism(metric=metric, epsilon=THIRD, rows=900, protection=ROWS, **words),
            Loss.pure(THIRD),
        )
        for metric in ("auc", "average-precision", "auc-difference")
        for words in ({}, {"smaller_class": 40}, {"method": "cauchy"}, {"share": F(1, 7)})
    ),
    (CountedCurves(epsilon=THIRD, protection=ADDED, points=65), Loss.pure(THIRD)),
    (
        EachGroup(
            epsilon=THIRD,
            moved=2,
            groups=3,
            one=RankingMechanism(metric="auc", epsilon=F(1, 6), protection=ADDED),
        ),
        Loss.pure(THIRD),
    ),
    (ConcordanceMechanism(epsilon=THIRD, protection=ROWS, rows=900), Loss.pure(THIRD)),
    (QuantileChoice(epsilon=THIRD, share=F(9, 10), protection=ROWS), Loss.pure(THIRD)),
    (
        CutMechanism(
            choice=QuantileChoice(
                epsilon=THIRD * (1 - COUNT_SHARE), share=F(9, 10), protection=ROWS
            ),
            classes=2,
            by_class=1,
            cells=64,
        ),
        Loss.pure(THIRD),
    ),
    (SparseVector(epsilon=THIRD, sensitivity=2, limit=3), Loss.pure(THIRD)),
    # What its bar costs is booked before.
    (AboveBar(SparseVector(THIRD, sensitivity=2, limit=3), 5, 1, 0), Loss.pure(0)),
    (NoisyTopK(THIRD, 2, k=3), Loss.pure(THIRD)),
    (PermuteAndFlip(THIRD, 2), Loss.pure(THIRD)),
    (BoundSearch(epsilon=THIRD, protection=ROWS, threshold=9), Loss.pure(THIRD)),
    (BoundSearchAsPrinted(epsilon=THIRD, protection=ROWS, threshold=9), Loss.pure(THIRD)),
    (IntervalChoice(epsilon=THIRD, protection=ROWS, cells=8, price=1), Loss.pure(THIRD)),
    (HilbertDawa(side=8, epsilon=THIRD, moved=2), Loss.pure(THIRD)),
    (CumulativeCounts(cells=64, epsilon=THIRD, moved=2), Loss.pure(THIRD)),
    (CrowdedCells(epsilon=THIRD, moved=2), Loss.pure(THIRD)),
    (MedianCuts(epsilon=THIRD, levels=3, moved=2, pseudo_rows=9), Loss.pure(THIRD)),
    (
        Disjoint(
            epsilon=THIRD, moved=2, first_row=48, first_slack=2, dimensions=(3, 2), then=max
        ),
        Loss.pure(THIRD),
    ),
    *(
        (
            ObjectivePerturbation(
                THIRD, moved=1, rows_per_unit=1, row=6, square=6, dimension=10, ridge=F(64),
                step=F(1, 2**20), slack=11, even=even, blocks=blocks,
            ),
            Loss.pure(THIRD),
        )
        for even, blocks in ((False, None), (True, None), (False, TWO_BLOCKS))
    ),
    (DeclaredFit(THIRD, print), Loss.pure(THIRD)),
    *((method(name, epsilon=THIRD, **CURVE), Loss.pure(THIRD)) for name in CURVES),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "claim"), CLAIMS, ids=[type(each).__name__ for each, _ in CLAIMS]
)
def test_the_price_of_what_is_booked_is_the_loss_that_is_claimed(
    mechanism: Any, claim: Loss
) -> None:
    assert price(mechanism.event()) == claim


def mechanisms() -> set[type]:
    """Return every class that books an event and draws."""
    found = set()
    rooms = (heldout.kernel, heldout.questions)
    walks = (pkgutil.walk_packages(room.__path__, f"{room.__name__}.") for room in rooms)
    for module in itertools.chain(*walks):
        for each in vars(importlib.import_module(module.name)).values():
            ours = each is not Primitive and getattr(each, "__module__", "") == module.name
            if inspect.isclass(each) and ours:
                protocol = getattr(each, "_is_protocol", False)
                draws = hasattr(each, "sample") or ".curves.methods." in module.name
                whole = not protocol and not inspect.isabstract(each)
                if hasattr(each, "event") and draws and whole:
                    found.add(each)
    return found


def priced(questions: Iterable[type[q.Question[Any]]], patch: pytest.MonkeyPatch) -> set[type]:
    """Check that a question of each kind costs its epsilon; return the mechanisms it is paid to."""
    met = set()

    def watched(event: Callable[[Any], Event]) -> Callable[[Any], Event]:
        def book(self: Any) -> Event:
            met.add(type(self))
            return event(self)

        return book

    for place in {part for each in mechanisms() for part in each.__mro__}:
        if "event" in vars(place):
            patch.setattr(place, "event", watched(vars(place)["event"]))
    for kind in questions:
        for case in kind.worst_cases():
            asked = kind.of_case(case, THIRD)
            about = case.make(case.pairs[0].first, case.pairs[0].options).description
            delta = getattr(asked, "delta", None)
            claimed = Loss.pure(THIRD) if delta is None else Loss.approximate(THIRD, F(delta))
            if case.in_rho:  # what a budget of rho takes for a pure loss
                claimed = Loss.zcdp(THIRD**2 / 2)
            assert price(asked.request(about).event()) == claimed, kind.kind
    return met


def test_every_kind_costs_its_price_and_every_mechanism_is_in_a_kind_or_in_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met = priced(q.registered(), monkeypatch)
    assert mechanisms() <= met | {type(each) for each, _ in CLAIMS}


def test_a_kind_that_costs_another_price_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(q.Brier, "request", lambda self, about: q.Auc(epsilon=1).request(about))
    with pytest.raises(AssertionError, match="brier"):
        priced([q.Brier], monkeypatch)
