"""Boyd, 2014: theorems 3.5, 4.1 and 4.2 and corollary 3.6, checked against what they describe."""

from __future__ import annotations

from typing import Any

import numpy as np

from heldout.precision_recall import (
    auc,
    interpolate,
    interpolated_area,
    minimum_auc,
    minimum_average_precision,
)
from heldout_papers.registry import Claim, Context, Reproduction, table

_PAPER = "boyd-2014"
_EXACT = 1e-9


@table(paper=_PAPER, number="theorems", title="Theorems of chapters 3 and 4, by brute force")
def theorems(_: Context) -> Reproduction:
    """Each closed form beside the ranking, the integral or the ROC segment that it stands for."""
    checks = {
        "3.5": ("The minimum average precision is the worst ranking's", _worst_rankings()),
        "3.6": ("The minimum area over a range of recall, as printed", _minimum_areas()),
        "4.1": ("Interpolation is a straight line in ROC space at every skew", _interpolation()),
        "4.2": ("The area under the interpolation, as printed", _interpolated_areas()),
    }
    return Reproduction(
        title="Closed forms of chapters 3 and 4 beside brute force",
        table=[
            {"theorem": number, "cases": len(gaps), "largest difference": max(gaps)}
            for number, (_, gaps) in checks.items()
        ],
        claims=[
            Claim(
                f"Theorem {number}: {text}",
                "proof",
                f"{max(gaps):.1g} apart at most in {len(gaps)} cases",
                max(gaps) < _EXACT,
            )
            for number, (text, gaps) in checks.items()
        ],
    )


def _worst_rankings() -> list[float]:
    """All negatives ranked above all positives."""
    gaps = []
    for n in (1, 2, 5, 20):
        for m in (1, 3, 50):
            labels, scores = [0] * m + [1] * n, list(range(n + m, 0, -1))
            worst = auc(labels, scores, estimator="average-precision")
            gaps.append(abs(worst - minimum_average_precision(positives=n, negatives=m)))
    return gaps


def _minimum_areas() -> list[float]:
    """Corollary 3.6 as printed, beside ours, which does not cancel at small prevalences."""
    return [
        abs(
            b - a + (1 - pi) / pi * np.log((pi * (a - 1) + 1) / (pi * (b - 1) + 1))
            - minimum_auc(prevalence=pi, recall=(a, b))
        )
        for pi in (0.01, 0.1, 0.5, 0.9)
        for a, b in ((0.0, 1.0), (0.5, 1.0), (0.2, 0.7))
    ]  # fmt: skip


_PAIRS = (((0.25, 0.5), (1.0, 0.4)), ((0.1, 0.9), (0.6, 0.7)), ((0.5, 0.2), (0.8, 0.3)))


def _interpolation() -> list[float]:
    """Equations (4.6) to (4.8), at three skews."""
    gaps = []
    for (r1, p1), (r2, p2) in _PAIRS:
        r = np.linspace(r1, r2, 7)
        ours = np.asarray(interpolate(r, start=(r1, p1), stop=(r2, p2)))
        for pi in (0.05, 0.3, 0.7):
            s1, s2 = ((1 - p) * pi * x / (p * (1 - pi)) for x, p in ((r1, p1), (r2, p2)))
            rate = s1 + (r - r1) / (r2 - r1) * (s2 - s1)
            gaps.append(float(np.abs(pi * r / (pi * r + (1 - pi) * rate) - ours).max()))
    return gaps


def _interpolated_areas() -> list[float]:
    """Equation (4.9) as printed and a quadrature, beside ours."""
    from scipy.integrate import quad

    gaps: list[float] = []
    for start, stop in _PAIRS:
        (r1, p1), (r2, p2) = start, stop
        ours = interpolated_area(start=start, stop=stop)
        one, two = (1 - p1) * r1 / p1, (1 - p2) * r2 / p2
        a = 1 + (two - one) / (r2 - r1)
        b = one - (two - one) * r1 / (r2 - r1)

        def whole(r: float, a: float = a, b: float = b) -> Any:
            return (a * r - b * np.log(a * r + b)) / a**2

        def height(r: float, a: float = a, b: float = b) -> float:
            return r / (a * r + b)

        gaps += [abs(whole(r2) - whole(r1) - ours), abs(quad(height, r1, r2)[0] - ours)]
    return gaps
