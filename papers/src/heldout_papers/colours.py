"""One colour for heldout and one for each method of the papers, in all pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from heldout.drawing.chart import INK, MUTED, PALETTE

__all__ = ["HELDOUT", "colour_of", "scale"]

HELDOUT = "heldout"
_FIXED = {
    HELDOUT: PALETTE[0],
    "heldout, from the class counts": PALETTE[5],
    "true": INK,
    "majority": MUTED,
    "Laplace": PALETTE[4],
    "Laplace, thresholds of the data": PALETTE[6],
    "FixedSpace": PALETTE[2],
    "PriROC-fix": PALETTE[2],
    "RecursiveMedians": PALETTE[1],
    "PriROC": PALETTE[1],
    "PriROC, HB": PALETTE[4],
    "PriROC, DAWA's public code": PALETTE[6],
    "PriROC-fix, HB": PALETTE[7],
    "PriRP": PALETTE[1],
    "SmoothS": PALETTE[3],
    "PTT": PALETTE[1],
    "NoisyCut": PALETTE[6],
    "Cluster 2014": PALETTE[2],
    "clusters of noisy counts": PALETTE[7],
    "score perturbation": PALETTE[3],
    "sparse vector": PALETTE[4],
    "all, sampled": PALETTE[5],
}


def colour_of(method: str) -> str | None:
    """The colour of a method, whatever score or mark follows its name; None for other series.

    >>> colour_of("PTT TC*") == colour_of("PTT")
    True
    """
    known = [name for name in _FIXED if re.match(rf"{re.escape(name)}([ *,]|$)", method)]
    return _FIXED[max(known, key=len)] if known else None


def scale(methods: Iterable[str]) -> Any:
    """An Altair scale: known methods have their own colour, other series take what is left.

    The first of the palette is heldout's and nobody else's.
    """
    import altair as alt

    names = list(dict.fromkeys(methods))
    taken = {colour_of(name) for name in names}
    left = iter([each for each in (*PALETTE[1:], MUTED) if each not in taken] * 2)
    return alt.Scale(domain=names, range=[colour_of(name) or next(left) for name in names])
