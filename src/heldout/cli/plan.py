"""Commands on public numbers, which read no private row: `heldout plan`, `board`, `pool`, `pr`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from heldout.cli.output import (
    Json,
    console,
    one_line,
    patience,
    print_json,
    print_measures,
    print_table,
    text_of,
)
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


BOARD_HELP = """Plan a leaderboard that cannot be gamed. Examples:

```
heldout board plan --rows 50000 --price 2 --improvements 10 --submissions 1000
heldout board plan --rows 5000 --price 1 --improvements 5 --submissions 200 --json
```
"""
board = App(name="board", help=BOARD_HELP)


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Guesses and targets; the arguments of `heldout.plan`.

    Parameters
    ----------
    rows
        How many rows the test set has.
    positives
        How many of them are positive. A guess will do; do not count private rows.
    metric
        What is to be released: accuracy, recall, precision, specificity, npv, f1, prevalence,
        brier, auc, average-precision.
    value
        What you expect it to be.
    auc
        Short for --metric auc --value.
    average_precision
        Short for --metric average-precision --value.
    alarms
        How many rows the model calls positive. Left out: as many as if it found the same share
        of positives as it leaves alone of negatives.
    target
        The half-width of the noise interval that you can live with.
    epsilon
        The price that you can pay.
    level
        Confidence of the intervals.
    neighbours
        replace-one: the number of rows is public. add-remove: it is not. label: all is public
        but the outcome.
    unit
        Protect units (people) instead of rows; implied by --rows-per-unit above 1.
    rows_per_unit
        How many rows of one unit may count.
    """

    rows: int
    positives: int | None = None
    metric: str | None = None
    value: float | None = None
    auc: float | None = None
    average_precision: float | None = None
    alarms: int | None = None
    target: float | None = None
    epsilon: str | None = None
    level: float = 0.95
    neighbours: Literal["replace-one", "add-remove", "label"] = "replace-one"
    unit: bool = False
    rows_per_unit: int = 1


def plan(*, guesses: Annotated[Guesses, Parameter(name="*")], as_json: Json = False) -> None:
    """Which epsilon for which interval? Spends nothing.

    Give a target half-width to get epsilon, or epsilon to get the half-width. No row is read:
    the counts are your guesses. Examples:

    ```
    heldout plan --rows 5000 --positives 500 --metric recall --value 0.8 \\
      --target 0.02
    heldout plan --rows 5000 --positives 500 --auc 0.85 --target 0.02
    heldout plan --rows 5000 --metric accuracy --value 0.9 --epsilon 0.5
    heldout plan --rows 5000 --metric brier --value 0.1 --target 0.01 \\
      --rows-per-unit 3
    ```
    """
    from heldout.drawing.words import decimal
    from heldout.planning import plan as planned

    with patience("Planning"):
        answer = planned(**vars(guesses))
    if as_json:
        print_json(answer.as_dict())
        return
    print_table(
        (f"{answer.metric} {answer.value:g}", ""),
        [
            ("epsilon", decimal(answer.epsilon)),
            ("privacy noise alone", f"±{answer.half_width:.4f}"),
            ("sampling error alone", f"±{answer.sampling_half_width:.4f}"),
            ("both together", f"±{answer.whole_half_width:.4f}"),
        ],
    )
    console().print(str(answer))
    if answer.assumption != "none":
        console().print(f"Assumed: {answer.assumption}.")


@dataclass(frozen=True, kw_only=True)
class BoardTerms:
    """The terms of a board; the arguments of `heldout.board.Plan`.

    Parameters
    ----------
    rows
        How many rows the board is on; their number is public.
    price
        Epsilon for the whole board.
    improvements
        How many improvements may be shown.
    submissions
        How many submissions may be judged.
    metric
        accuracy (at 0.5), auc, brier or mean-absolute-error (1 minus it).
    start
        The score that the first submission has to beat.
    step
        By how much a submission must beat the best. Left out: the smallest that can be seen.
    least_class
        For the AUC: neither class has fewer rows than this; public.
    """

    rows: int
    price: str
    improvements: int
    submissions: int
    metric: str = "accuracy"
    start: float = 0.5
    step: float | None = None
    least_class: int | None = None


@board.command(name="plan")
def plan_board(*, terms: Annotated[BoardTerms, Parameter(name="*")], as_json: Json = False) -> None:
    """Say what a board could show, and what its scores would be worth. Spends nothing.

    Refuses a board that would show nothing. Examples:

    ```
    heldout board plan --rows 50000 --price 2 --improvements 10 --submissions 1000
    heldout board plan --rows 5000 --price 1 --improvements 5 --submissions 200 --json
    heldout board plan --rows 20000 --price 2 --improvements 5 --submissions 200 \\
      --metric auc --least-class 2000
    ```
    """
    from heldout.board import Plan

    planned = Plan(**vars(terms))
    certificate = planned.certificate()
    if as_json:
        expected = {"false_alarms": planned.false_alarms, "misses": planned.misses}
        print_json(planned.as_dict() | expected | {"certificate": certificate.as_dict()})
        return
    print(planned)
    print(f"Noise alone would show an improvement in {planned.false_alarms:.1%} of boards.")
    print(f"A submission that is two steps better is missed in {planned.misses:.2%} of cases.")
    print(f"A shown score is within {planned.noise_half_width():.4f} of the rows' own, 95%.")
    print(f"Every submission's score on the rows is {certificate}.")


def pool(
    *files: Path,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Make one answer of what several sites answered separately to the same question.

    Takes the JSON that `heldout evaluate --json`, `heldout compare --json` or `as_dict()` wrote.
    Reads no row and spends nothing. Examples:

    ```
    heldout pool north.json south.json east.json
    heldout pool north.json south.json --out pooled.html --json
    ```

    Parameters
    ----------
    files
        One .json file per site; sites are called as their files are.
    out
        Write a page with forest plots to this .html file.
    """
    import heldout as ho
    from heldout.pooling.answer import Pooled, PooledReport

    pooled = ho.pool([_read(file) for file in files], names=_names(files))
    report = PooledReport({pooled.name: pooled}) if isinstance(pooled, Pooled) else pooled
    if out is not None:
        report.save(out)
    if as_json:
        print_json(pooled.as_dict())
        return
    for answer in report.answers.values():
        print_measures(answer.measures)
        sentences = [answer.headline.name, answer.heterogeneity(), answer.predicted()]
        print(one_line(" ".join(f"{sentence}." for sentence in sentences if sentence)))
    if report.left_out:
        words = "not every site asked it, or its answers cannot be pooled"
        print(one_line(f"Left out: {', '.join(report.left_out)} ({words})."))
    print(f"Price: {report.price}. Pooling costs nothing.")
    if out is not None:
        print(one_line(f"Written: {out}"))


def _names(files: tuple[Path, ...]) -> list[str]:
    """Return what files are called; with their folder where sites call theirs alike."""
    if len({file.resolve() for file in files}) < len(files):
        raise ArgumentError("Pass each file once: otherwise it would count as two sites.")
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        names = [str(file.with_suffix("")) for file in files]
    return names


def _read(file: Path) -> object:
    what = "JSON of a release or a report"
    text = text_of(file, what)
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentError(f"{file} is not {what}.") from None
    return content


# --- `heldout pr`: a report on one's own, public, labelled scores ---------------------------------


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
) -> "tuple[NDArray[np.bool_], NDArray[np.float64]]":
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


def _facts(drawn: "Curve", *, method: str, confidence: float) -> dict[str, Any]:
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


def _save(drawn: "Curve", facts: dict[str, Any], out: Path, *, name: str, title: str) -> str:

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
    from heldout.precision_recall.estimators import REMARKS

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


# --- the page on a public precision-recall curve, as one file -------------------------------------


def precision_recall_page(
    content: Mapping[str, Any], *, name: str, svg: str, title: str = ""
) -> str:
    """The whole document; `content` is what `heldout pr --json` prints."""
    from heldout.drawing.chart import Figure
    from heldout.drawing.page import rendered
    from heldout.precision_recall.estimators import REMARKS

    estimator = content["estimator"]
    caption = (
        f"Drawn as {estimator} takes it, with a {content['interval']['confidence'] * 100:g}% band "
        "at each recall. Grey: what no ranking of these rows can reach. Dashed: guessing."
    )
    return rendered(
        "precision_recall.html",
        title=title or f"Precision and recall on {name}",
        content=content,
        drawn=[Figure(svg, caption)],
        areas=[
            (
                estimator_name.replace("-", " "),
                "undefined" if value is None else f"{value:.4f}",
                REMARKS.get(estimator_name, "")
                + (" (chosen)" if estimator_name == estimator else ""),
            )
            for estimator_name, value in content["areas"].items()
        ],
    )
