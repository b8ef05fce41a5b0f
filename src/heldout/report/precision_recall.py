"""The page on a public precision-recall curve, as one file that needs nothing from elsewhere."""

from collections.abc import Mapping
from html import escape
from typing import Any

from heldout.report.pieces import cards, document, facts, figures, section, table
from heldout.report.sections import Figure

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


def page(found: Mapping[str, Any], *, name: str, svg: str) -> str:
    """The whole document; `found` is what `heldout pr --json` prints."""
    ends = found["interval"]
    percent = f"{ends['confidence'] * 100:g}%"
    between = f"{ends['low']:.3f} to {ends['high']:.3f}"
    lead = (
        f"The area under the precision-recall curve is {found['area']:.3f}; in the population that "
        f"these rows come from it lies, with {percent} confidence, between "
        f"{between.replace(' to ', ' and ')}."
    )
    head = (
        '<header>\n<p class="eyebrow">Public data: nothing private was done</p>\n'
        f"<h1>Precision and recall on {escape(name)}</h1>\n"
        f'<p class="lead">{escape(lead)}</p>\n{_facts(found)}\n</header>'
    )
    shown = cards(
        [
            ("area", f"{found['area']:.3f}", between, f"{percent} interval, {ends['method']}"),
            ("of what can be achieved", f"{found['normalised_area']:.3f}", "0 to 1", "AUCNPR"),
            ("guessing", f"{found['area_of_guessing']:.3f}", "", "the prevalence"),
            ("for free", f"{found['area_for_free']:.3f}", "", "the worst ranking still has it"),
        ]
    )
    caption = (
        f"Drawn as {found['estimator']} takes it, with a {percent} band at each recall. Grey: what "
        "no ranking of these rows can reach. Dashed: guessing."
    )
    body = "\n".join(
        [
            section("What was found", shown + figures([Figure(svg, caption)])),
            section("All estimators", _estimators(found)),
        ]
    )
    return document(f"Precision and recall on {name}", f"{head}\n<main>\n{body}\n</main>")


def _facts(found: Mapping[str, Any]) -> str:
    return facts(
        [
            ("Rows", f"{found['rows']:,}"),
            ("Positive", f"{found['positives']:,} (prevalence {found['prevalence']:.4f})"),
            ("Estimator", escape(found["estimator"])),
        ]
    )


def _estimators(found: Mapping[str, Any]) -> str:
    rows = []
    for name, value in found["areas"].items():
        area = "undefined" if value is None else f"{value:.4f}"
        chosen = " (chosen)" if name == found["estimator"] else ""
        rows.append([escape(name.replace("-", " ")), area, REMARKS.get(name, "") + chosen])
    least = found["average_precision_for_free"]
    return (
        "<p>Eight ways to join the same points. They differ where positives are few.</p>\n"
        f"{table('Area under the curve by estimator', ('Estimator', 'Area', ''), rows)}\n"
        f'<p class="note">The least average precision that these class sizes allow is {least:.4f}.'
        "</p>"
    )
