"""Buys what a report needs: everything is checked and priced before anything is paid."""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn

from heldout.arguments import is_one_of, shown
from heldout.data import PrivateTable
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.metrics.auc_interval import Look
from heldout.metrics.confusion import ConfusionRelease
from heldout.metrics.ranking import RankingRelease
from heldout.privacy import Loss, compose, exact, fits, remaining
from heldout.ranking_request import LEAST_EPSILON, resolution_of
from heldout.release import Question, Release
from heldout.report.report import Report, Subject
from heldout.report.sections import ON_GRID, SECTIONS, WITH_CURVES, Options, Section, shared
from heldout.session import Session

if TYPE_CHECKING:
    from heldout.session import Epsilon


def build(
    session: Session,
    *,
    epsilon: "Epsilon",
    threshold: float | None = None,
    curves: bool = False,
    sections: Sequence[str] | None = None,
    scores: str | None = None,
) -> Report:
    """Release every section that applies, each at its own exact share of epsilon.

    `threshold` is the middle of the score range unless it is given; `curves` adds their section;
    `sections` are the names of those to buy, all but the curves if it is left out.
    A request that cannot be made or paid in full is refused before anything is charged. (If
    somebody else spends from the same budget in between, the ledger refuses the rest, and what
    was booked stays booked.)
    """
    if not isinstance(curves, bool):
        raise ArgumentError(f"curves must be True or False, got {shown(curves)}.")
    rows = session.dataset
    at = rows.threshold(rows.middle if threshold is None else threshold)
    options = Options(at, scores)
    total = exact(epsilon, name="epsilon", minimum=0)
    chosen = _chosen(sections, curves=curves)
    ranked = any(each.name == "auc" for each in chosen)
    grid = ON_GRID if ranked and resolution_of(rows, scores) == "grid" else ()
    reasons = {each.name: each.why_not(rows) for each in (*chosen, *grid)}
    wanted = [each for each in (*chosen, *grid) if reasons[each.name] is None]
    if not wanted:
        reason = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise ArgumentError(f"sections must have one that applies ({reason}). Name others.")
    shares = shared(total, {each.name: each.weight for each in wanted})
    if grid and shares[grid[0].name] < LEAST_EPSILON:  # too little to say anything
        wanted = [each for each in wanted if each not in grid]
        shares = shared(total, {each.name: each.weight for each in wanted})

    prices = [rehearsed(session, each, shares[each.name], options) for each in wanted]
    _refuse_unless_affordable(session, prices)
    releases = {each.name: each.ask(session, shares[each.name], options) for each in wanted}
    releases = _informed(releases)
    left_out = {name: why for name, why in reasons.items() if why is not None}
    return assembled(session, releases, epsilon=total, shares=shares, left_out=left_out)


def _informed(releases: Mapping[str, Release]) -> dict[str, Release]:
    """Rankings with the class counts that a confusion matrix tells beside them: narrower."""
    counts = [look for each in releases.values() for look in _class_counts(each)]
    return {
        name: each.told(counts) if isinstance(each, RankingRelease) else each
        for name, each in releases.items()
    }


def _class_counts(release: Release) -> tuple[Look, ...]:
    return release.class_counts() if isinstance(release, ConfusionRelease) else ()


def _chosen(names: Sequence[str] | None, *, curves: bool) -> tuple[Section, ...]:
    every = (*SECTIONS, *WITH_CURVES)
    if names is None:
        return every if curves else SECTIONS
    known = {each.name for each in every}
    given = [names] if isinstance(names, str) else list(names) if _is_listed(names) else []
    if not given or not all(is_one_of(each, known) for each in given):
        raise ArgumentError(
            f"sections must be some of {', '.join(each.name for each in every)}, got "
            f"{shown(names)}."
        )
    asked = {*given, "curves"} if curves else set(given)
    return tuple(each for each in every if each.name in asked)


def _is_listed(names: object) -> bool:
    return isinstance(names, Sequence | Set)


def assembled(
    session: Session,
    releases: Mapping[str, Release],
    *,
    epsilon: Fraction,
    shares: Mapping[str, Fraction],
    left_out: Mapping[str, str],
) -> Report:
    """The report of releases that are paid for already, by section."""
    return Report(
        subject=Subject.of(session.dataset),
        epsilon=epsilon,
        shares=shares,
        releases=releases,
        left_out=left_out,
        budget=session.budget,
        spent=session.spent,
        remaining=session.remaining,
        time=datetime.now(UTC),
    )


def rehearsed(session: Session, section: Section, share: Fraction, options: Options) -> Loss:
    """What the section will cost, by asking for it and stopping at the door."""
    try:
        section.ask(_Rehearsal(session), share, options)
    except _AtTheDoor as stop:
        return stop.request.privacy_map()
    raise AssertionError(f"section {section.name!r} must release through its session.")


class _Rehearsal(Session):
    """A session that checks a request as the real one does, and books and reads nothing."""

    def __init__(self, session: Session) -> None:
        self.__dict__.update(session.__dict__)

    def _release(self, request: Question, *, dataset: PrivateTable | None = None) -> NoReturn:
        raise _AtTheDoor(request)


class _AtTheDoor(Exception):
    def __init__(self, request: Question) -> None:
        super().__init__()
        self.request = request


def _refuse_unless_affordable(session: Session, prices: Iterable[Loss]) -> None:
    budget, spent = session.budget, session.spent
    total = compose(prices, budget=budget)
    if not fits(spent, total, budget):
        raise BudgetExceeded(
            f"The report must cost at most what is left ({remaining(spent, budget)}), got {total}. "
            "Nothing was charged; ask for less."
        )
