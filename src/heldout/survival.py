"""Time to an event on private rows, for one-off use: a frame in, a release out.

Each call is a session of its own with a budget of exactly `epsilon` and a ledger in memory: nobody
keeps count across calls. For rows that are asked more than once make a `heldout.Dataset` with
`time=` and `event=`, and ask a `heldout.Session`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from heldout.arguments import no_attribute
from heldout.data.dataset import Dataset
from heldout.data.table import Custody
from heldout.intervals.groups import ByGroup
from heldout.kernel import Budget, exact
from heldout.questions import find
from heldout.questions.session import Epsilon, Session
from heldout.questions.survival import (
    CalibrationRelease,
    ConcordanceRelease,
    LogRankRelease,
    SurvivalRelease,
)
from heldout.questions.survival_brier import SurvivalBrierRelease

__all__ = ["brier_score", "calibration", "concordance", "kaplan_meier", "log_rank"]

Declared = Mapping[str, Sequence[Any]]


def _ask(kind: str, rows: Any, declared: Mapping[str, Any], **fields: Any) -> Any:
    """Return the answer of one question to rows with a time and an event."""
    options = {name: value for name, value in declared.items() if value is not None}
    question = find(kind)(**{name: value for name, value in fields.items() if value is not None})
    budget = Budget(epsilon=exact(fields["epsilon"], name="epsilon"))
    return Session(Dataset(rows, **options), budget=budget).ask(question)


def kaplan_meier(
    rows: Any,
    /,
    *,
    time: str,
    event: str,
    grid: Sequence[float],
    epsilon: Epsilon,
    groups: Declared | None = None,
    by: str | None = None,
    **custody: Unpack[Custody],
) -> SurvivalRelease | ByGroup[SurvivalRelease]:
    """Return the share without the event past each of some public times, censoring allowed for.

    Parameters
    ----------
    rows
        Anything that `heldout.Dataset` opens.
    time, event
        The column with the time, from 0, and the one that has 1 where the event came then and 0
        where the row was last seen without it.
    grid
        Public times, in the unit of the column.
    groups, by
        Declared values by column, and the column to ask by; then there is a curve for each group.
    custody
        As of `heldout.Dataset`: neighbours, unit, rows_per_unit and so on.

    >>> rows = {"days": [5.0, 20.0, 40.0] * 300, "died": [1, 0, 1] * 300}
    >>> curve = kaplan_meier(rows, time="days", event="died", grid=[10, 30], epsilon=100)
    >>> round(curve.at(10).value, 1)
    0.7
    """
    declared = {"time": time, "event": event, "groups": groups, **custody}
    answer: SurvivalRelease | ByGroup[SurvivalRelease] = _ask(
        "kaplan-meier", rows, declared, grid=list(grid), epsilon=epsilon, by=by
    )
    return answer


def log_rank(
    rows: Any,
    /,
    *,
    time: str,
    event: str,
    groups: Declared,
    between: str,
    grid: Sequence[float],
    epsilon: Epsilon,
    **custody: Unpack[Custody],
) -> LogRankRelease:
    """Return hazard ratios of declared groups, and the p-value of the log-rank test.

    `between` is the column of `groups` whose values are compared; the rest is as in `kaplan_meier`.
    """
    declared = {"time": time, "event": event, "groups": groups, **custody}
    answer: LogRankRelease = _ask(
        "log-rank", rows, declared, grid=list(grid), between=between, epsilon=epsilon
    )
    return answer


def calibration(
    rows: Any,
    /,
    *,
    time: str,
    event: str,
    risk: str,
    horizon: float,
    epsilon: Epsilon,
    bounds: tuple[float, float] = (0.0, 1.0),
    bins: int = 5,
    **custody: Unpack[Custody],
) -> CalibrationRelease:
    """Return the share with the event by a horizon, by bins of the risk that was predicted.

    `risk` is the column with the predicted risk of the event by `horizon`, within `bounds`.
    """
    declared = {"time": time, "event": event, "values": {risk: bounds}, **custody}
    answer: CalibrationRelease = _ask(
        "survival-calibration",
        rows,
        declared,
        column=risk,
        horizon=horizon,
        bins=bins,
        epsilon=epsilon,
    )
    return answer


def concordance(
    rows: Any,
    /,
    *,
    time: str,
    event: str,
    score: str,
    epsilon: Epsilon,
    groups: Declared | None = None,
    by: str | None = None,
    **custody: Unpack[Custody],
) -> ConcordanceRelease | ByGroup[ConcordanceRelease]:
    """Return Harrell's C: how often the row whose event comes first has the higher `score`."""
    declared = {"time": time, "event": event, "score": score, "groups": groups, **custody}
    answer: ConcordanceRelease | ByGroup[ConcordanceRelease] = _ask(
        "concordance", rows, declared, epsilon=epsilon, by=by
    )
    return answer


def brier_score(
    rows: Any,
    /,
    *,
    time: str,
    event: str,
    risk: str,
    horizon: float,
    epsilon: Epsilon,
    **custody: Unpack[Custody],
) -> SurvivalBrierRelease:
    """Return the Brier score of predicted risks by a horizon, weighted for rows lost before it.

    `risk` is the column with the predicted risk of the event by `horizon`, from 0 to 1.
    """
    declared = {"time": time, "event": event, "values": {risk: (0.0, 1.0)}, **custody}
    answer: SurvivalBrierRelease = _ask(
        "survival-brier", rows, declared, column=risk, horizon=horizon, epsilon=epsilon
    )
    return answer


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise no_attribute("module 'heldout.survival'", name, __all__)
