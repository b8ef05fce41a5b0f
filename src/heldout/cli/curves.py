"""`heldout curves`: ROC, precision-recall and reliability curves from one private release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.cli.rows import Rows, Where
from heldout.cli.values import Json, Labels, checked_labels

if TYPE_CHECKING:
    from heldout.metrics.curves.by_group import CurvesByGroup
    from heldout.metrics.curves.release import CurvesRelease
    from heldout.questions import Question
    from heldout.questions.session import Session

Method = Literal[
    "heldout", "laplace", "fixed-space", "recursive-medians", "hierarchical-quantile",
    "stoddard-2014-laplace", "stoddard-2014-priroc", "chen-2016-priroc", "chen-2016-priroc-fix",
]  # fmt: skip
RATES = (0.01, 0.05, 0.1, 0.2, 0.5)


def curves(
    table: Where,
    /,
    *,
    epsilon: str,
    rows: Annotated[Rows, Parameter(name="*")],
    method: Method = "heldout",
    thresholds: Annotated[tuple[float, ...], Parameter(consume_multiple=True, negative="")] = (),
    by: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    kind: Literal["roc", "precision-recall", "calibration"] = "roc",
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
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query.
    epsilon
        The price of everything, such as 1, 0.5 or 1/3.
    method
        heldout, or a method of the literature to compare with.
    thresholds
        Thresholds that matter, such as 0.2 0.5: two thirds of epsilon count the rows between them
        once more, and their recall and precision are printed.
    by
        Curves of each group instead: a column of --groups, or several to cross.
    kind
        Which curve goes into an .svg file.
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
    from heldout.cli.delivery import delivering
    from heldout.cli.output import confirm_nothing, patience, print_json, print_unremembered
    from heldout.metrics.curves.by_group import CurvesByGroup

    with patience(f"Reading {table.name}"):
        if out is not None:
            _checked_out(out, divided=bool(by))
        session = rows.session(table, epsilon=epsilon)
        called = checked_labels(session.dataset.names, labels)
        asked = q.Curves(
            epsilon=epsilon,
            method=method,
            **_named(method, thresholds),
            by=(by[0] if len(by) == 1 else by) or None,
        )
        drowned = not yes and not by and _drowned(asked, session)
    if drowned:
        confirm_nothing(["the curves"])
    with patience(f"Reading {table.name}"):
        release = session.ask(asked)
    with delivering(release, ledger=rows.ledger):
        try:
            if out is not None:
                with patience(f"Writing {out.name}"):
                    _write(out, release, kind=kind, title=title, labels=called)
        finally:
            if isinstance(release, CurvesByGroup):
                _show_groups(release, session, thresholds, as_json=as_json)
            elif as_json:
                named = [release.confusion(each).as_dict() for each in thresholds]
                counted = {"thresholds": named} if named else {}
                left = {"remaining": session.remaining.as_dict()}
                print_json({**release.as_dict(), **counted, **left})
            else:
                _print(release, session, thresholds)
            if not as_json:
                print_unremembered(rows.ledger)
        if out is not None and not as_json:
            print(f"Curves: {out}")


def _named(method: str, thresholds: tuple[float, ...]) -> dict[str, Any]:
    """Thresholds that matter; for the papers' methods how many there are is an option."""
    if not thresholds or method == "heldout":
        return {"thresholds": list(thresholds) or None}
    return {"options": {"thresholds": list(thresholds)}}


def _drowned(asked: "Question", session: "Session") -> bool:
    """Whether noise will fill the range of the area, by a plain guess of a public row count."""
    from heldout.questions import Guess

    if session.dataset.rows is None:
        return False
    guess = Guess().about(session.dataset.rows)
    release = asked.typical_release(session.dataset, guess)
    return release is not None and not release.headline.informative


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
    from heldout.metrics.curves.by_group import CurvesByGroup
    from heldout.report.question import assembled

    if out.suffix.lower() == ".svg" and not isinstance(release, CurvesByGroup):
        write_file(out, release.svg(kind))
        return
    price = release.loss.epsilon
    assert price is not None
    name = "curves_by_group" if isinstance(release, CurvesByGroup) else "curves"
    report = assembled(release._drawn, {name: release}, shares={name: price}, left_out={})
    report.save(out, **words)


def _show_groups(
    release: "CurvesByGroup", session: "Session", thresholds: tuple[float, ...], *, as_json: bool
) -> None:
    """Every group's measures, and how far apart the groups are."""
    from heldout.cli.output import print_json, print_table
    from heldout.drawing.words import spread, tested

    at = {
        name: [group.confusion(each) for each in thresholds]
        for name, group in release.groups.items()
    }
    if as_json:
        named = {name: [each.as_dict() for each in found] for name, found in at.items()}
        counted = {"thresholds": named} if thresholds else {}
        print_json({**release.as_dict(), **counted, "remaining": session.remaining.as_dict()})
        return
    measures = [
        [tested(name, each), *spread(each, 0.95)] for name, each in release.measures.items()
    ]
    for name, found in at.items():
        for each in found:
            for said, one in (("recall", each.recall), ("precision", each.precision)):
                measures.append([f"{said} at {each.threshold:g}, {name}", *spread(one, 0.95)])
    print_table(("measure", "value", "95% interval", "noise alone"), measures)
    print(f"Paid {release.loss}; left: {session.remaining}.")
    print(f"Receipt: {release.receipt.hash}")


def _print(
    release: "CurvesRelease",
    session: "Session",
    thresholds: tuple[float, ...],
    *,
    level: float = 0.95,
) -> None:
    from heldout.cli.output import print_table
    from heldout.drawing.words import spread

    percent = f"{level * 100:g}%"
    measures = [[name, *spread(each, level)] for name, each in release.measures.items()]
    for threshold in thresholds:
        at = release.confusion(threshold)
        for name, each in (("recall", at.recall), ("precision", at.precision)):
            measures.append([f"{name} at {threshold:g}", *spread(each, level)])
    print_table(("measure", "value", f"{percent} interval", "noise alone"), measures)
    if release.auc.informative:
        _print_rates(release, level)
    print(f"Paid {release.loss}; left: {session.remaining}.")
    print(f"Receipt: {release.receipt.hash}")


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
