"""The page on a public precision-recall curve, as one file that needs nothing from elsewhere."""

from collections.abc import Mapping
from typing import Any

from heldout.drawing.chart import Figure
from heldout.drawing.page import rendered

__all__ = ["REMARKS", "page"]

REMARKS: Mapping[str, str] = {
    "lower-trapezoid": "recommended",
    "average-precision": "recommended",
    "interpolated-median": "recommended",
    "upper-trapezoid": "too high",
    "interpolated-max": "a little high",
    "interpolated-convex": "too high",
    "binormal": "right only for normal scores",
}
"""What Boyd (2014, chapter 4) found of each estimator of the area."""


def page(found: Mapping[str, Any], *, name: str, svg: str, title: str = "") -> str:
    """The whole document; `found` is what `heldout pr --json` prints."""
    estimator = found["estimator"]
    caption = (
        f"Drawn as {estimator} takes it, with a {found['interval']['confidence'] * 100:g}% band at "
        "each recall. Grey: what no ranking of these rows can reach. Dashed: guessing."
    )
    return rendered(
        "precision_recall.html",
        title=title or f"Precision and recall on {name}",
        found=found,
        drawn=[Figure(svg, caption)],
        areas=[
            (
                each.replace("-", " "),
                "undefined" if value is None else f"{value:.4f}",
                REMARKS.get(each, "") + (" (chosen)" if each == estimator else ""),
            )
            for each, value in found["areas"].items()
        ],
    )
