"""Are the residuals normal? Their quantiles against a normal law's, read off a table for free."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.intervals.fieller import ratio_bounds, single_quantile
from heldout.intervals.measure import checked_level
from heldout.questions.regression.table import ResidualTable

__all__ = ["QuantilePlot", "quantile_plot"]

_EDGE = 1e-6  # a share of 0 or 1 has no normal quantile


@dataclass(frozen=True, eq=False)
class QuantilePlot:
    """A QQ plot: at each residual, which normal quantile the share of rows below it has.

    Shares are of the rows within the bounds of the table. Normal residuals lie on the line through
    the quartiles.
    """

    residual: Any
    """Edges of the cells, where shares are known without any assumption."""
    share: Any
    """Of the rows within the bounds, below each of them."""
    _counts: Any
    """Noisy counts below and above, their variances, and the rows."""

    @property
    def theoretical(self) -> Any:
        """Normal quantiles of the shares."""
        return _quantile(self.share)

    @property
    def line(self) -> tuple[float, float]:
        """Centre and spread of the normal law with the same quartiles."""
        from scipy.special import ndtri

        first, third = np.interp([0.25, 0.75], self.share, self.residual)
        return float((first + third) / 2), float((third - first) / (2 * ndtri(0.75)))

    def interval(
        self, level: float = 0.95, *, noise_only: bool = False, simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Low and high ends of the normal quantiles, each for itself or all at once."""
        below, above, below_variance, above_variance, rows = self._counts
        low, high = ratio_bounds(
            below,
            above,
            top_variance=below_variance,
            rest_variance=above_variance,
            rows=0.0 if noise_only else rows,
            quantile=single_quantile(
                checked_level(level), of=len(self.share) if simultaneous else 1
            ),
        )
        return _quantile(np.minimum(low, self.share)), _quantile(np.maximum(high, self.share))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        low, high = self.interval(level)
        return {
            "residual": self.residual.tolist(),
            "theoretical": self.theoretical.tolist(),
            "level": level,
            "interval": [low.tolist(), high.tolist()],
        }


def quantile_plot(table: ResidualTable) -> QuantilePlot:
    """From the noisy counts by residual cell, whatever the prediction."""
    noisy, variance = table.noisy.sum(axis=1), (table.cell_deviation**2).sum(axis=1)
    if table.scale is None:  # noise that hangs together may add up in full
        variance = table.cell_deviation.sum(axis=1) ** 2 * table.noisy.shape[0]
    kept = np.cumsum(table.density.sum(axis=1))
    total = max(float(kept[-1]), 1e-9)
    below, below_variance = np.cumsum(noisy)[:-1], np.cumsum(variance)[:-1]
    counts = (
        below,
        noisy.sum() - below,
        below_variance,
        variance.sum() - below_variance,
        total + np.sqrt(variance.sum()),
    )
    return QuantilePlot(table.residual_edges[1:-1], kept[:-1] / total, counts)


def _quantile(share: Any) -> Any:
    from scipy.special import ndtri

    return ndtri(np.clip(share, _EDGE, 1 - _EDGE))
