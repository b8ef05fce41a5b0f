"""`heldout pr`: a report on one's own, public, labelled scores."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.cli.output import Json, console, print_json, print_table
from heldout.errors import (
    ArgumentError,
    EmptyTable,
    InfiniteScore,
    MissingLabel,
    MissingScore,
    UnknownLabel,
    UnreadableTable,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from heldout.precision_recall import Curve

ENDINGS = (".csv", ".tsv", ".parquet")


def pr(
    file: Path,
    *,
    label: str,
    score: str,
    positive: str = "1",
    estimator: str = "lower-trapezoid",
    interval: str = "effective",
    confidence: float = 0.95,
    out: Path | None = None,
    title: str = "",
    as_json: Json = False,
) -> None:
    """Report the precision-recall curve of public data: all areas, interval, AUCNPR.

    For public data: nothing is private here and no budget is spent. Use `heldout evaluate` for
    data that must not be shown. Examples:

    ```
    heldout pr test.csv --label readmitted --score risk_a --out report.html
    heldout pr test.parquet --label readmitted --score risk_a --json
    ```

    Parameters
    ----------
    file
        A .csv, .tsv or .parquet file with one row an example.
    label
        Column of the labels: numbers, booleans or text, two different ones.
    score
        Column of the scores; larger means more likely positive.
    positive
        The label that counts as positive; 1 also stands for true.
    estimator
        Estimator of the area: average-precision, lower-trapezoid, upper-trapezoid,
        interpolated-max, interpolated-mean, interpolated-median, interpolated-convex, binormal.
    interval
        Interval: effective, logit, binomial, bootstrap, cross-validation.
    confidence
        Confidence of the interval.
    out
        Write a report to this .html file, or the picture of the curve to this .svg file.
    title
        The heading of the report, or the title of the picture.
    """
    from heldout.precision_recall import curve

    truth, scores = read(file, label=label, score=score, positive=positive)
    drawn = curve(truth, scores, estimator=estimator)
    facts = _facts(drawn, method=interval, confidence=confidence)
    if out is not None:
        facts["picture"] = _save(drawn, facts, out, name=file.name, title=title)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def read(
    file: Path, *, label: str, score: str, positive: str
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Read labels and scores of a public file, or raise one of the typed errors."""
    import numpy as np

    from heldout.data import sql
    from heldout.data.engine import open_table
    from heldout.data.validation import check_columns

    if file.suffix.lower() not in ENDINGS:
        raise UnreadableTable(
            f"file must end in {', '.join(ENDINGS)}, got {file.name}. Convert it first."
        )
    engine = open_table(file)
    check_columns(engine, (label, score))
    own = sql.column(score)
    given = (
        f"SELECT CAST({sql.column(label)} AS VARCHAR) AS label, {own} AS own, "
        f"TRY_CAST({own} AS DOUBLE) AS score FROM {engine.source} AS held"
    )
    counts = engine.fetch(
        "SELECT count(*) AS total, count(label) AS labels, count(own) AS own, "
        "count(score) AS scores, count(*) FILTER (isnan(score)) AS nans, "
        f"count(*) FILTER (isinf(score)) AS infinities FROM ({given})"
    )
    total, labels, filled, scores, nans, infinities = (int(count[0]) for count in counts.values())
    if not total:
        raise EmptyTable("file must have at least one row. Check the file.")
    if scores < filled:
        raise UnreadableTable(
            f"{score} must be numbers, got something else in {file.name}. Check --score."
        )
    if labels < total:
        raise MissingLabel(f"{label} must have a label in every row, got NULL. Remove such rows.")
    if filled < total or nans:
        raise MissingScore(f"{score} must have a score in every row, got NULL. Remove such rows.")
    if infinities:
        raise InfiniteScore(f"{score} must be finite, got inf. Replace or remove such rows.")
    spellings = engine.fetch(f"SELECT DISTINCT label FROM ({given}) LIMIT 100")["label"].tolist()
    kinds, wanted = sorted({_plain(text) for text in spellings}), _plain(positive)
    if wanted not in kinds or len(kinds) > 2:
        raise UnknownLabel(
            f"{label} must hold {wanted!r} and at most one other label, got "
            f"{', '.join(repr(kind) for kind in kinds[:5])}. Pass --positive with one of them."
        )
    ours = ", ".join(sql.text(text) for text in spellings if _plain(text) == wanted)
    columns = engine.fetch(f"SELECT label IN ({ours}) AS truth, score FROM ({given})")
    truth = np.asarray(columns["truth"], dtype=np.bool_)
    return truth, np.asarray(columns["score"], dtype=np.float64)


def _plain(value: object) -> str:
    """Return a label as text that compares: 1, 1.0, "1", true and TRUE are the same."""
    text = str(value).strip()
    lowered = text.lower()
    if lowered in ("true", "false"):
        return "1" if lowered == "true" else "0"
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number == int(number) else str(number)


def _facts(drawn: Curve, *, method: str, confidence: float) -> dict[str, Any]:
    from heldout.precision_recall import minimum_average_precision

    if not drawn.negatives:
        raise ArgumentError("label must hold both classes, got positives only. Check --positive.")
    ends = drawn.interval(confidence, method=method)
    areas = {name: None if isnan(value) else value for name, value in drawn.estimates.items()}
    return {
        "rows": drawn.positives + drawn.negatives,
        "positives": drawn.positives,
        "negatives": drawn.negatives,
        "prevalence": drawn.prevalence,
        "estimator": drawn.estimator,
        "area": drawn.auc,
        "interval": {
            "method": method,
            "confidence": confidence,
            "low": ends.low,
            "high": ends.high,
        },
        "normalised_area": drawn.normalised_auc,
        "area_of_guessing": drawn.prevalence,
        "area_for_free": drawn.minimum_auc,
        "average_precision_for_free": minimum_average_precision(
            positives=drawn.positives, negatives=drawn.negatives
        ),
        "areas": areas,
    }


def _save(drawn: Curve, facts: dict[str, Any], out: Path, *, name: str, title: str) -> str:
    from heldout.questions.report.report import precision_recall_page

    if out.suffix.lower() not in (".html", ".svg"):
        raise ArgumentError(
            f"out must end in .html or .svg, got {out.name}. Pass --out report.html."
        )
    alone = out.suffix.lower() == ".svg"
    svg = drawn.svg(confidence=facts["interval"]["confidence"], title=title if alone else "")
    whole = svg if alone else precision_recall_page(facts, name=name, svg=svg, title=title)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(whole, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"out must be a file that can be written, got {out.name} ({error.strerror})."
        ) from None
    return str(out)


def _print(facts: dict[str, Any]) -> None:
    from heldout.questions.report.report import REMARKS

    say, ends = console(), facts["interval"]
    say.print(
        f"{facts['rows']:,} rows, {facts['positives']:,} positive "
        f"(prevalence {facts['prevalence']:.4f}). Public data: nothing private was done."
    )
    say.print(
        f"Area under the precision-recall curve: {facts['area']:.4f}, "
        f"{ends['confidence']:.0%} interval {ends['low']:.4f} to {ends['high']:.4f} "
        f"({ends['method']}).",
        style="bold",
    )
    say.print(
        f"Of what can be achieved (AUCNPR): {facts['normalised_area']:.4f}. "
        f"Guessing has an area of {facts['area_of_guessing']:.4f}; the worst ranking still has "
        f"{facts['area_for_free']:.4f} for free."
    )
    rows = []
    for name, value in facts["areas"].items():
        number = "undefined" if value is None else f"{value:.4f}"
        chosen = " (chosen)" if name == facts["estimator"] else ""
        rows.append((name, number, REMARKS.get(name, "") + chosen))
    print_table(("estimator", "area", ""), rows, left=(0, 2))
    if "picture" in facts:
        print(f"Written: {facts['picture']}")
