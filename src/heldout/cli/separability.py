"""`heldout separability`: is privatized data still the data?"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heldout.cli.output import (
    Json,
    console,
    delivering,
    print_json,
    print_measures,
    print_table,
    print_unremembered,
)
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.questions.separability.result import Separability
    from heldout.questions.separability.separator import SeparabilityRelease


def separability(
    truth: Path,
    privatized: Path,
    /,
    *,
    groups: str | None = None,
    classifier: Literal["both", "logistic", "tree"] = "both",
    shuffles: int = 20,
    ignore: str | None = None,
    categorical: str | None = None,
    random_state: int | None = None,
    epsilon: str | None = None,
    neighbours: Literal["replace-one", "add-remove"] = "replace-one",
    unit: str | None = None,
    rows_per_unit: int = 1,
    row_key: str | None = None,
    ledger: str | None = None,
    budget: str | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Is privatized data still the data?

    A classifier tries to tell true from privatized rows, against its fit to shuffled labels.
    Reads the truth without noise: what it prints is for the custodian only. With --epsilon it
    prints a private number for publication instead, at that price. Examples:

    ```
    heldout separability truth.csv privatized.csv
    heldout separability truth.csv privatized.csv --groups area,month --out report.html
    heldout separability truth.csv privatized.csv --classifier tree --json
    heldout separability truth.csv privatized.csv --ignore area,month --epsilon 1
    ```

    Parameters
    ----------
    truth
        The ground truth: a .csv, .tsv or .parquet file.
    privatized
        The privatized data, with the same columns.
    groups
        Columns that name a row (area,month): no features, but the report goes by them.
    classifier
        logistic, tree (of depth 5), or both: logistic, and a random forest on rows held out; the
        verdict goes by the stronger.
    shuffles
        How often labels are shuffled; the p-value is at least 1 over this plus 1.
    ignore
        Columns to leave out, such as keys: id,name.
    categorical
        Columns of numbers that are codes: type,area.
    random_state
        A whole number, for the same shuffles each time.
    epsilon
        Release a private number for publication, at this price. Privatized data must be public.
    neighbours
        With --epsilon. replace-one: the number of true rows is public. add-remove: it is not.
    unit
        With --epsilon: column that says whose row it is.
    rows_per_unit
        With --epsilon: how many rows of one unit may count.
    row_key
        With --epsilon: column that tells rows apart.
    ledger
        With --epsilon: file or database URL that remembers what was spent on the truth.
    budget
        With --ledger: what may be spent on the truth in all, when the ledger first meets it.
    out
        Write the custodian's report to this .html file.
    """
    if epsilon is not None:
        if groups is not None or out is not None:
            raise ArgumentError(
                "--groups and --out must be left out with --epsilon: they belong to the "
                "custodian's report, which is not private."
            )
        if budget is not None and ledger is None:
            raise ArgumentError("--budget requires --ledger, which keeps count of what is left.")
        from heldout.kernel import Budget
        from heldout.questions.separability.score import private_separability

        release = private_separability(
            truth,
            privatized,
            epsilon=epsilon,
            ignore=ignore,
            categorical=categorical,
            unit=unit,
            rows_per_unit=rows_per_unit,
            row_key=row_key,
            neighbours=neighbours,
            name=truth.name,
            budget=None if budget is None else Budget(epsilon=budget),
            ledger=ledger,
        )
        with delivering(release, ledger=ledger):
            _print_private(release, as_json=as_json, ledger=ledger)
        return
    if (unit, row_key, ledger, budget) != (None, None, None, None) or rows_per_unit != 1:
        raise ArgumentError(
            "--epsilon must be given with --unit, --rows-per-unit, --row-key, --ledger or "
            "--budget. They belong to the private number; the custodian's report spends nothing."
        )
    if out is not None:
        from heldout.drawing.page import checked_place

        checked_place(out)
    from heldout.questions.separability.score import separability as compute

    computed = compute(
        truth,
        privatized,
        classifier=classifier,
        shuffles=shuffles,
        groups=groups,
        ignore=ignore,
        categorical=categorical,
        random_state=random_state,
    )
    if as_json:
        print_json(computed.as_dict())
    else:
        _print_plain(computed)
    if out is not None:
        computed.save(out)
        if not as_json:
            print(f"Report: {out} (for the custodian only)")


def _print_private(release: "SeparabilityRelease", *, as_json: bool, ledger: str | None) -> None:
    if as_json:
        print_json(release.as_dict())
        return
    print_measures(release.measures)
    say = console()
    say.print(f"{release}")
    say.print(
        "This may be published. A classifier separates the privatized data from the truth at least "
        "this well; 0 is chance."
    )
    print(f"Receipt: {release.receipt.hash}")
    print_unremembered(ledger)


def _print_plain(computed: "Separability") -> None:
    from heldout import questions as q

    say = console()
    say.print(f"{computed}")
    rows = [[q.Separability.title, f"{computed.value:.3f}", _between(computed.interval())]]
    forest, apart = computed.ensemble, computed.cross_validated
    if forest is not None:
        rows.append(["random forest, held out", f"{forest.value:.3f}", _between(forest.interval())])
        rows.append(["linear, the paper's ratio", f"{computed.paper_value:.3f}", ""])
    if apart is not None:
        rows.append(["on rows held out", f"{apart.value:.3f}", _between(apart.interval())])
    bound = computed.error_bound
    most = f"{bound.in_population():.3f} in the population"
    rows.append(["change of error, at most", f"{bound.on_these_rows:.3f}", most])
    if computed.detection_auc is not None:
        rows.append(["detection AUC, held out", f"{computed.detection_auc:.3f}", ""])
    if computed.pmse_ratio is not None:
        rows.append(["pMSE ratio", f"{computed.pmse_ratio:.2f}", ""])
    print_table(("for the custodian only", "value", "95% interval"), rows)
    for hint in computed.deep_dive.hints:
        say.print(hint)
    clues = [
        [
            clue.name,
            f"{clue.weight:+.3g}",
            f"{clue.nonzero_true:.0%}",
            f"{clue.nonzero_privatized:.0%}",
        ]
        for clue in computed.deep_dive.clues[:5]
    ]
    if clues:
        head = ("gives it away", computed.deep_dive.method, "non-zero, true", "privatized")
        print_table(head, clues)
    for grouping in computed.deep_dive.groups:
        worst = ", ".join(f"{group.name} ({group.probability:.2g})" for group in grouping.worst[:3])
        say.print(
            f"{grouping.column}: variance of the probability of being true {grouping.within:.3g} "
            f"within, {grouping.between:.3g} between groups; worst: {worst}."
        )


def _between(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"
