"""`heldout curves`: ROC, precision-recall and reliability curves from one private release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.cli.frame import NO_MODEL, NO_SERVER, Bought, buy, deliver
from heldout.cli.model import Scoring
from heldout.cli.remote import Remote
from heldout.cli.rows import Rows, Several, Where
from heldout.cli.values import Json, Labels

if TYPE_CHECKING:
    from heldout.questions.curves.by_group import CurvesByGroup
    from heldout.questions.curves.release import CurvesRelease

RATES = (0.01, 0.05, 0.1, 0.2, 0.5)


def curves(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    rows: Annotated[Rows | None, Parameter(name="*")] = None,
    scoring: Annotated[Scoring, Parameter(name="*")] = NO_MODEL,
    remote: Annotated[Remote, Parameter(name="*")] = NO_SERVER,
    method: str = "heldout",
    thresholds: Annotated[tuple[float, ...], Parameter(consume_multiple=True, negative="")] = (),
    by: Several = (),
    kind: Literal["roc", "precision-recall", "calibration"] = "roc",
    expected_rows: int | None = None,
    out: Path | None = None,
    title: str | None = None,
    labels: Labels = (),
    yes: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> None:
    """ROC, precision-recall and reliability, paid once.

    One release of a noisy score table; every curve, area and threshold is read off it at no
    further cost. Examples:

    ```
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1 --out curves.html
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1/2 \\
      --kind precision-recall --out curve.svg --json
    heldout curves test.parquet --label readmitted --score risk_a --epsilon 1 \\
      --groups prior_admissions=0,1,2 --by prior_admissions --out curves.html
    heldout curves --server https://evaluate.example.org --token-file token.txt \\
      --dataset readmissions --model model.onnx --epsilon 1 --out curves.html
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query. Left
        out where --server has the rows.
    epsilon
        The price of everything, such as 1, 0.5 or 1/3.
    method
        heldout, or a method of the literature to compare with; a wrong name lists them.
    thresholds
        Thresholds that matter, such as 0.2 0.5: two thirds of epsilon count the rows between them
        once more, and their recall and precision are printed.
    by
        Curves of each group instead: a column of --groups, or several to cross.
    kind
        Which curve goes into an .svg file.
    expected_rows
        A public guess at the number of rows, where that is private: to say beforehand what noise
        will leave.
    out
        Write a report to this .html file, or one curve to this .svg file.
    title
        The heading of the report.
    labels
        What the report calls a column or the data, such as risk_b="The new model".
    yes
        Do not ask where privacy noise will leave nothing to read of the curves.
    """
    from heldout import questions as q
    from heldout.errors import ArgumentError

    if out is not None:
        _checked_out(out, divided=bool(by))
        if remote.given and out.suffix.lower() == ".svg":
            raise ArgumentError("--out must end in .html with --server, which makes the page.")
    curves = q.Curves(epsilon=epsilon, method=method, **_named(method, thresholds))
    bought = buy(
        q.By(curves, by[0] if len(by) == 1 else by) if by else curves,
        table=table,
        rows=rows,
        options=Rows,
        scoring=scoring,
        remote=remote,
        yes=yes,
        expected_rows=expected_rows,
        labels=labels,
    )
    [release] = bought.releases
    deliver(
        bought,
        text=lambda: _print(bought, thresholds),
        content=lambda: bought.content(**_counted(release, thresholds)),
        as_json=as_json,
        out=out,
        write=lambda place: _write(place, release, kind=kind, title=title, labels=bought.labels),
        noun="Curves",
    )


def _named(method: str, thresholds: tuple[float, ...]) -> dict[str, Any]:
    """Thresholds that matter; for the papers' methods how many there are is an option."""
    if not thresholds or method == "heldout":
        return {"thresholds": list(thresholds) or None}
    return {"options": {"thresholds": list(thresholds)}}


def _checked_out(out: Path, *, divided: bool) -> None:
    """Looked at before anything is paid."""
    from heldout.drawing.place import checked_place
    from heldout.errors import ArgumentError

    if out.suffix.lower() not in (".html", ".htm", ".svg"):
        raise ArgumentError(f"--out must end in .html or .svg, got {out.name!r}.")
    if divided and out.suffix.lower() == ".svg":
        raise ArgumentError(f"--out must end in .html with --by, got {out.name!r}.")
    checked_place(out.with_suffix(".html") if out.suffix.lower() == ".svg" else out)


def _write(out: Path, release: "CurvesRelease | CurvesByGroup", *, kind: str, **words: Any) -> None:
    from heldout.drawing.place import write_file
    from heldout.questions.curves.by_group import CurvesByGroup
    from heldout.questions.report.questions import assembled

    if out.suffix.lower() == ".svg" and not isinstance(release, CurvesByGroup):
        write_file(out, release.svg(kind))
        return
    price = release.loss.epsilon
    assert price is not None
    name = "curves-by-group" if isinstance(release, CurvesByGroup) else "curves"
    report = assembled(release._drawn, {name: release}, shares={name: price}, left_out={})
    report.save(out, **words)


def _at(release: "CurvesRelease | CurvesByGroup", threshold: float) -> dict[str, Any]:
    """Read the confusion matrix at a threshold, of each group if there are groups."""
    from heldout.questions.curves.by_group import CurvesByGroup

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
    from heldout.cli.output import console, print_measures, print_paid
    from heldout.questions.curves.by_group import CurvesByGroup

    [release] = bought.releases
    measures = dict(release.measures)
    for threshold in thresholds:
        for group, at in _at(release, threshold).items():
            measures[f"recall at {threshold:g}{group}"] = at.recall
            measures[f"precision at {threshold:g}{group}"] = at.precision
    print_measures(measures)
    if not isinstance(release, CurvesByGroup) and release.ties:
        console().print(f"{release.ties[0].upper()}{release.ties[1:]}.")
    if not isinstance(release, CurvesByGroup) and release.auc.informative:
        _print_rates(release, 0.95)
    print_paid(release, bought.remaining)


def _print_rates(release: "CurvesRelease", level: float) -> None:
    """What the ROC curve says at round false positive rates."""
    import numpy as np

    from heldout.cli.output import print_table

    band = release.roc.band(level, at=RATES)
    points = np.interp(RATES, release.roc.fpr, release.roc.tpr)
    shown = [
        [f"{rate:g}", f"{tpr:.3f}", f"{low:.3f} to {high:.3f}", f"{threshold:.4g}"]
        for rate, tpr, low, high, threshold in zip(
            RATES,
            points,
            band.low,
            band.high,
            (release.threshold_for(specificity=1 - rate) for rate in RATES),
            strict=True,
        )
    ]
    head = ("false positive rate", "true positive rate", f"{level * 100:g}% band", "threshold")
    print_table(head, shown)
