"""Areas at other prevalences, and one score for several folds or tasks.

Areas from data of different prevalence do not have the same range, so their mean favours the
tasks where more comes for free. AUCNPR has the same range everywhere; average that.

Reference: Boyd, 2014, section 3.4.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heldout.arguments import as_numbers
from heldout.errors import ArgumentError
from heldout.precision_recall.arguments import Floats, fraction
from heldout.precision_recall.normalised import normalised_auc

_SAME = 0.01  # a difference of minimum areas that one would see in a table


class PrevalenceWarning(UserWarning):
    """Areas were averaged over data of different prevalence."""


@dataclass(frozen=True)
class Aggregate:
    """One score for several folds or tasks; `normalised_auc` is the one to report."""

    normalised_auc: float
    mean_auc: float
    normalised_aucs: tuple[float, ...]
    prevalences: tuple[float, ...]


def aggregate(
    aucs: Sequence[float],
    *,
    prevalences: Sequence[float],
    weights: Sequence[float] | None = None,
) -> Aggregate:
    """The (weighted) mean AUCNPR of several areas; warns when their prevalences differ.

    AUCNPR removes the difference in range, not all of the influence of prevalence: carry the
    curves to one prevalence (`auc(..., prevalence=...)`) when the scores are at hand.

    >>> result = aggregate([0.6, 0.7], prevalences=[0.2, 0.2])
    >>> round(result.mean_auc, 3), round(result.normalised_auc, 3)
    (0.65, 0.608)
    """
    areas = as_numbers(aucs, name="aucs")
    shares = as_numbers(prevalences, name="prevalences")
    if areas.ndim != 1 or areas.shape != shares.shape or not areas.size:
        raise ArgumentError(
            f"prevalences must be as many as aucs, got {shares.size} for {areas.size}. "
            "Pass the prevalence of each fold or task."
        )
    share = np.ones(areas.size) if weights is None else as_numbers(weights, name="weights")
    if share.shape != areas.shape or not (share >= 0).all() or not 0 < share.sum() < np.inf:
        raise ArgumentError(
            "weights must be as many as aucs, finite, non-negative and not all 0. Leave them out "
            "for a plain mean."
        )
    pis = tuple(fraction("prevalence", p) for p in shares)
    if max(pis) - min(pis) > _SAME:
        warnings.warn(
            f"prevalences run from {min(pis):.3g} to {max(pis):.3g}: a mean of areas favours the "
            "tasks where more comes for free; report the mean AUCNPR.",
            PrevalenceWarning,
            stacklevel=2,
        )
    scores = tuple(
        normalised_auc(fraction("auc", a), prevalence=p) for a, p in zip(areas, pis, strict=True)
    )
    return Aggregate(
        normalised_auc=float(np.average(scores, weights=share)),
        mean_auc=float(np.average(areas, weights=share)),
        normalised_aucs=scores,
        prevalences=pis,
    )


def precision_at_prevalence(
    precision: ArrayLike, *, prevalence: float, new_prevalence: float
) -> Floats | float:
    """The precision of the same classifier (same ROC point) at another prevalence.

    The odds of the precision scale with the odds of the prevalence.

    >>> round(precision_at_prevalence(0.8, prevalence=0.5, new_prevalence=0.1), 6)
    0.307692
    """
    old, new = fraction("prevalence", prevalence), fraction("new_prevalence", new_prevalence)
    if old in (0.0, 1.0):
        raise ArgumentError(
            f"prevalence must lie strictly between 0 and 1, got {old:g}. With one class there "
            "is nothing to carry over."
        )
    p = as_numbers(precision, name="precision")
    if not np.all((p >= 0) & (p <= 1)):
        raise ArgumentError("precision must lie in [0, 1]. Give proportions.")
    true, false = p * new * (1.0 - old), (1.0 - p) * (1.0 - new) * old
    total = true + false
    carried = np.where(total > 0, true / np.where(total > 0, total, 1.0), p)
    return float(carried) if carried.ndim == 0 else carried
