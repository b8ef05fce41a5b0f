"""Presets on rows with a label and a score: `heldout evaluate`, `compare` and `curves`."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.arguments import as_whole
from heldout.cli.ask import ask
from heldout.cli.frame import FRAME, PAGE, ROWS, Bought, Framed, Page, Paged, buy
from heldout.cli.output import (
    Flag,
    Several,
    console,
    one_line,
    print_measures,
    print_paid,
    print_report,
    print_table,
)
from heldout.cli.rows import ScoredOptions, Where, bounds_of
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.data.feature_matrix import Bound
    from heldout.questions.curves.release import CurvesByGroup, CurvesRelease

RATES = (0.01, 0.05, 0.1, 0.2, 0.5)
BINORMAL = "binormal"
Named = Annotated[ScoredOptions | None, Parameter(name="*", group=ROWS)]


def evaluate(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    threshold: float | None = None,
    curves: Flag = False,
    sections: Several = (),
    scores: str | None = None,
    by: Several = (),
    k: int = 10,
    rows: Named = None,
    frame: Framed = FRAME,
    page: Paged = PAGE,
) -> None:
    """Evaluate a model on rows you must not show.

    Prints AUC and average precision, accuracy, recall, precision and more at a threshold, and the
    Brier score, each with an interval and at an exact price. Examples:

    ```
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1
    heldout evaluate test.csv --label readmitted --score risk_b --epsilon 1/2 \\
      --threshold 0.3 --json
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1 \\
      --sections auc average_precision curves
    heldout evaluate test.parquet --label readmitted --score risk_b --epsilon 1 \\
      --unit patient_id --rows-per-unit 3 --row-key encounter_id \\
      --ledger ledger.sqlite --budget 3 --out report.html
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1 \\
      --groups prior_admissions=0,1,2 --by prior_admissions
    heldout evaluate test.parquet --label readmitted --model model.json --epsilon 1
    heldout evaluate --server https://evaluate.example.org --token-file token.txt \\
      --dataset readmissions --model model.onnx --epsilon 1 --out report.html
    heldout evaluate flowers.parquet --label species --classes a,b,c --scores pa,pb,pc --epsilon 1
    heldout evaluate survey.parquet --label y --score p --weight w --largest-weight 10 --epsilon 1
    heldout evaluate results.parquet --label relevant --score p --unit query --rows-per-unit 20 \\
      --sections ndcg precision_at_k --k 5 --epsilon 1
    ```

    Parameters
    ----------
    epsilon
        The price of everything that is printed, such as 1, 0.5 or 1/3.
    threshold
        Rows with at least this score are called positive. Left out: the middle of the range.
    curves
        Add the ROC and precision-recall curves, for about a quarter of the price.
    sections
        Buy only these sections; the others cost nothing and read no row. A wrong name lists all
        of them. ndcg and precision_at_k are about ranked lists: the rows of each --unit, such as
        a query.
    scores
        Rank exact scores, which must fit into memory, or score cells on the public grid: exact or
        grid. Left out: the grid for more than five million rows, where their number is public.
        With --classes it may name the columns of --class-scores instead.
    by
        Add the decisions by group: a column of --groups, or several to cross.
    k
        How many rows of each ranked list count, from the top.
    """
    from heldout import questions as q

    page.check()
    if frame.remote.given and page.title is not None:
        raise ArgumentError("The server makes the page: leave --title out.")
    if rows is not None and rows.classes is not None and scores is not None:
        rows, scores = replace(rows, class_scores=scores), None
    asked = q.Report(
        epsilon=epsilon,
        threshold=threshold,
        curves=curves,
        sections=sections or None,
        scores=scores,
        by=by or None,
        weighted=rows is not None and rows.weight is not None,
        k=k,
    )
    bought = buy(
        asked, table=table, rows=rows, options=ScoredOptions, frame=frame, labels=page.labels
    )
    [report] = bought.releases
    bought.deliver(
        text=lambda: print_report(report),
        content=report.as_dict,
        out=page.out,
        write=lambda place: report.save(place, title=page.title, labels=bought.labels),
    )


def compare(
    table: Where | None = None,
    /,
    *,
    rival: str,
    epsilon: str,
    rows: Named = None,
    frame: Framed = FRAME,
) -> None:
    """Is model B better than model A on the same rows?

    Prints the difference of the two AUCs with an interval, a p-value and the price. One release
    of the difference is more exact than the difference of two releases. Examples:

    ```
    heldout compare test.parquet --label readmitted --score risk_a --rival risk_b --epsilon 1
    heldout compare test.parquet --label readmitted --score risk_a --rival risk_b --epsilon 1/2 \\
      --ledger ledger.sqlite --budget 3 --json
    heldout compare test.parquet --label readmitted --score risk_a --rival decile \\
      --rival-range 1 10 --epsilon 1
    heldout compare --server https://evaluate.example.org --token-file token.txt \\
      --dataset readmissions --model a.onnx --rival b.onnx --epsilon 1
    ```

    Parameters
    ----------
    rival
        Column with the second model's score, which is validated like the first; with --server
        the file of the second model.
    epsilon
        The price, such as 1, 0.5 or 1/3.
    """
    from heldout import questions as q

    asked = q.Compare(score=rival, epsilon=epsilon)
    bought = buy(asked, table=table, rows=rows, options=ScoredOptions, frame=frame)
    [release] = bought.releases

    def text() -> None:
        print(one_line(f"{release}."))
        print(one_line(release.finding()))
        print_paid(release, bought.remaining)

    bought.deliver(text=text)


def curves(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    method: str = "heldout",
    thresholds: Annotated[tuple[float, ...], Parameter(consume_multiple=True, negative="")] = (),
    by: Several = (),
    kind: Literal["roc", "precision-recall", "calibration"] = "roc",
    rows: Named = None,
    frame: Framed = FRAME,
    page: Paged = PAGE,
) -> None:
    """ROC, precision-recall and reliability, paid once.

    One release of a noisy score table; every curve, area and threshold is read off it at no
    further cost. With --out it becomes a page (.html) or one curve (.svg). Examples:

    ```
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1 --out curves.html
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1/2 \\
      --kind precision-recall --out curve.svg --json
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1 \\
      --groups prior_admissions=0,1,2 --by prior_admissions --out curves.html
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1/4 \\
      --method binormal --out roc.svg
    heldout curves --server https://evaluate.example.org --token-file token.txt \\
      --dataset readmissions --model model.onnx --epsilon 1 --out curves.html
    ```

    Parameters
    ----------
    epsilon
        The price of everything, such as 1, 0.5 or 1/3.
    method
        heldout, or a method of the literature to compare with; a wrong name lists them. With
        binormal the whole price buys the AUC, and the ROC curve is the symmetric binormal one that
        has this area: the least noise, if the scores of both classes are normal.
    thresholds
        Thresholds that matter, such as 0.2 0.5: two thirds of epsilon count the rows between them
        once more, and their recall and precision are printed.
    by
        Curves of each group instead: a column of --groups, or several to cross.
    kind
        Which curve goes into an .svg file.
    """
    from heldout import questions as q

    page.check(".svg")
    for option, given in (("by", by), ("server", frame.remote.given)):
        if given and page.is_svg:
            raise ArgumentError(f"--out must end in .html with --{option}, got an .svg file.")
    if method == BINORMAL:
        _refuse_beside_binormal(thresholds=thresholds, by=by, page=page, kind=kind)
        _binormal(
            buy(q.Auc(epsilon=epsilon), table=table, rows=rows, options=ScoredOptions, frame=frame),
            page,
        )
        return
    whole = q.Curves(epsilon=epsilon, method=method, **_matter(method, thresholds))
    asked = q.By(whole, by[0] if len(by) == 1 else by) if by else whole
    bought = buy(
        asked, table=table, rows=rows, options=ScoredOptions, frame=frame, labels=page.labels
    )
    [release] = bought.releases

    def write(place: Path) -> None:
        from heldout.drawing.page import write_file

        if page.is_svg:
            write_file(place, release.svg(kind))
        else:
            _save(place, release, title=page.title, labels=bought.labels)

    bought.deliver(
        text=lambda: _print(bought, thresholds),
        content=lambda: bought.content(**_counted(release, thresholds)),
        out=page.out,
        write=write,
        noun="Curves",
    )


def _refuse_beside_binormal(
    *, thresholds: tuple[float, ...], by: Several, page: Page, kind: str
) -> None:
    """Refuse what one area cannot give: other curves, thresholds, groups, a page."""
    for option, given in (("thresholds", thresholds), ("by", by), ("kind", kind != "roc")):
        if given:
            raise ArgumentError(
                f"--method {BINORMAL} draws one ROC curve. Leave --{option} out, or name another."
            )
    if page.out is not None and not page.is_svg:
        raise ArgumentError(f"--out must end in .svg with --method {BINORMAL}.")


def _binormal(bought: Bought, page: Page) -> None:
    """Show the binormal curve of an AUC that was bought."""
    from heldout.drawing.page import write_file

    [release] = bought.releases
    curve = release.binormal_roc()

    def text() -> None:
        print_measures(release.measures)
        if release.headline.informative:
            _print_rates(curve.fpr, curve.tpr, curve.low, curve.high)
        print_paid(release, bought.remaining)

    bought.deliver(
        text=text,
        content=lambda: bought.content(
            binormal_roc={name: values.tolist() for name, values in vars(curve).items()}
        ),
        out=page.out,
        write=lambda place: write_file(place, curve.svg()),
        noun="Curve",
    )


def _matter(method: str, thresholds: tuple[float, ...]) -> dict[str, Any]:
    """Name thresholds that matter; for the papers' methods how many there are is an option."""
    if not thresholds or method == "heldout":
        return {"thresholds": list(thresholds) or None}
    return {"options": {"thresholds": list(thresholds)}}


def _save(place: Path, release: "CurvesRelease | CurvesByGroup", **words: Any) -> None:
    """Write a report whose one section are these curves."""
    from heldout.questions.curves.release import CurvesByGroup
    from heldout.questions.report.questions import assembled

    price = release.loss.epsilon
    assert price is not None
    name = "curves-by-group" if isinstance(release, CurvesByGroup) else "curves"
    report = assembled(release._drawn, {name: release}, shares={name: price}, left_out={})
    report.save(place, **words)


def _at(release: "CurvesRelease | CurvesByGroup", threshold: float) -> dict[str, Any]:
    """Read the confusion matrix at a threshold, of each group if there are groups."""
    from heldout.questions.curves.release import CurvesByGroup

    if isinstance(release, CurvesByGroup):
        return {f", {name}": one.confusion(threshold) for name, one in release.groups.items()}
    return {"": release.confusion(threshold)}


def _counted(
    release: "CurvesRelease | CurvesByGroup", thresholds: tuple[float, ...]
) -> dict[str, Any]:
    """Return the matrices at the thresholds as JSON."""
    if not thresholds:
        return {}
    matrices = [_at(release, threshold) for threshold in thresholds]
    if list(matrices[0]) == [""]:
        return {"thresholds": [at[""].as_dict() for at in matrices]}
    names = [name.removeprefix(", ") for name in matrices[0]]
    return {"thresholds": {name: [at[f", {name}"].as_dict() for at in matrices] for name in names}}


def _print(bought: Bought, thresholds: tuple[float, ...]) -> None:
    from heldout.questions.curves.release import CurvesByGroup

    [release] = bought.releases
    measures = dict(release.measures)
    if not isinstance(release, CurvesByGroup):
        measures["AUCNPR of the curve"] = release.precision_recall.normalised_auc
    for threshold in thresholds:
        for group, at in _at(release, threshold).items():
            measures[f"recall at {threshold:g}{group}"] = at.recall
            measures[f"precision at {threshold:g}{group}"] = at.precision
    print_measures(measures)
    if not isinstance(release, CurvesByGroup) and release.ties:
        console().print(f"{release.ties[0].upper()}{release.ties[1:]}.")
    if not isinstance(release, CurvesByGroup) and release.auc.informative:
        roc, band = release.roc, release.roc.band(0.95, at=RATES)
        _print_rates(roc.fpr, roc.tpr, band.low, band.high, release)
    print_paid(release, bought.remaining)


def _print_rates(
    fpr: Any, tpr: Any, low: Any, high: Any, release: "CurvesRelease | None" = None
) -> None:
    """Print a ROC curve and its 95% band at round false positive rates.

    The band is given at these rates or at those of the curve; `release` adds its thresholds.
    """
    import numpy as np

    ends = (
        [low, high]
        if len(low) == len(RATES)
        else [np.interp(RATES, fpr, end) for end in (low, high)]
    )
    head = ["false positive rate", "true positive rate", "95% band"]
    rows = [
        [f"{rate:g}", f"{point:.3f}", f"{least:.3f} to {most:.3f}"]
        for rate, point, least, most in zip(RATES, np.interp(RATES, fpr, tpr), *ends, strict=True)
    ]
    if release is not None:
        head.append("threshold")
        for row, rate in zip(rows, RATES, strict=True):
            row.append(f"{release.threshold_for(specificity=1 - rate):.4g}")
    print_table(head, rows)


# `heldout twin`: made-up rows that are like the private ones, to work with in their place.
def twin(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Make up rows that are like the private ones, for a price.

    Columns and their bounds are declared. `heldout ask private-twin --help` lists the options, and
    `--json` gives the noisy tables. Examples:

    ```
    heldout twin people.csv --values age=18,65 --values pay=0,90000 --whole age --epsilon 1 \\
      --out twin.csv
    heldout twin people.csv --values age=18,65 --values pay=0,90000 --epsilon 2 \\
      --separability 1/4 --json
    ```
    """
    ask("private-twin", *words)


# `heldout train`: a model of columns, learnt with noise, as a file that a custodian takes.
MOST_COLUMNS = 50


def _bounds_among(words: Sequence[str]) -> "dict[str, Bound]":
    """Return the bounds that are typed after --bounds, up to the next option."""
    typed: list[str] = []
    taking = False
    for word in words:
        taking = word == "--bounds" or (taking and not word.startswith("--"))
        if taking and word != "--bounds":
            typed.append(word)
    return bounds_of(typed)


def train(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Train a logistic regression on private rows, for a price.

    The model is the answer: `--out model.json` writes it as a linear model, which
    `heldout model check`, `--model` and a server take. Columns are 0 or 1, or have public bounds:
    `--bounds age=18,90` for a number, `--bounds ward=4` for kinds coded 0 to 3. (Consecutive
    columns of 0 and 1 may also describe one: `--sizes 5,5,1 --ordered 0`.) `heldout ask training
    --help` lists the options, and `--json` gives what was drawn. Examples:

    ```
    heldout train flags.csv --columns urgent,paid,late --label spam --epsilon 1 --out model.json
    heldout train people.csv --columns age,ward,smokes --bounds age=18,90 ward=4 --label ill \
      --epsilon 1 --out model.json
    ```
    """
    from heldout.data.feature_matrix import bin_edges

    named = [word for before, word in pairwise(words) if before == "--columns"]
    bounds = _bounds_among(words)
    if bounds and "--sizes" not in words and len(named) == 1:
        columns = [name.strip() for name in named[0].split(",")]
        edges = {name: bin_edges(bound) for name, bound in bounds.items()}
        sizes = [len(edges[name]) - 1 if name in edges else 1 for name in columns]
        numbers = (at for at, name in enumerate(columns) if as_whole(bounds.get(name, 1)) is None)
        words = (*words, "--sizes", ",".join(map(str, sizes)))
        words = (*words, "--ordered", ",".join(map(str, numbers)))
    many = "--text" in words or any(names.count(",") >= MOST_COLUMNS for names in named)
    if many and "--help" not in words and "--sizes" not in words:
        raise ArgumentError(
            f"train takes at most {MOST_COLUMNS} columns of 0 and 1, and no text. Select some "
            "first with `heldout select`, or use `heldout ask training`."
        )
    ask("training", *words, "--classifier", "logistic")
