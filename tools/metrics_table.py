"""Prints the documentation's table of metrics from the registry; `--write` puts it in its page.

python tools/metrics_table.py            print
python tools/metrics_table.py --write    renew docs/reference.md
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from heldout.intervals import contrasts, registered

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
BETWEEN = re.compile(r"(<!-- metrics, from the registry -->\n).*?(<!-- to here -->)", re.DOTALL)
CELLS = ("TP", "FP", "FN", "TN")


def table() -> str:
    """One line for each registered metric."""
    lines = ["| metric | meaning | formula | scikit-learn |", "|---|---|---|---|"]
    for name, metric in registered().items():
        formula = f"{_sum(metric.numerator)} / {_sum(metric.denominator)}"
        theirs = f"`{metric.scikit_learn}`" if metric.scikit_learn else ""
        lines.append(f"| {name} | {metric.meaning} | {formula} | {theirs} |")
    for name, contrast in contrasts().items():
        theirs = f"`{contrast.scikit_learn}`" if contrast.scikit_learn else ""
        lines.append(f"| {name} | {contrast.meaning} | {contrast.formula} | {theirs} |")
    return "\n".join(lines) + "\n"


def _sum(weights: Sequence[float]) -> str:
    if len(set(weights)) == 1 and weights[0] == 1:
        return "all"
    terms = [
        cell if weight == 1 else f"{weight:g} {cell}"
        for cell, weight in zip(CELLS, weights, strict=True)
        if weight
    ]
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def page(before: str) -> str:
    """The page with the table renewed."""
    return BETWEEN.sub(lambda match: match[1] + "\n" + table() + "\n" + match[2], before)


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
