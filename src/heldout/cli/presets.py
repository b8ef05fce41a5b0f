"""Presets on rows of other kinds: `heldout residuals`, `select` and `separability`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.cli.frame import FRAME, MODEL, PAGE, ROWS, Bought, Frame, Framed, Paged, buy
from heldout.cli.model import Scoring
from heldout.cli.output import (
    Json,
    Several,
    console,
    delivering,
    print_json,
    print_measures,
    print_table,
    print_unremembered,
    words_in,
)
from heldout.cli.rows import FeatureOptions, FittedOptions, Where
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.questions.features.selection import Selection
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import MetricsByGroup, PlotsByGroup, ResidualPlot
    from heldout.questions.separability.result import Separability
    from heldout.questions.separability.separator import SeparabilityRelease


Kind = Literal["density", "points", "mean", "spread", "scale", "qq"]


def residuals(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    scale: float = 1.0,
    bounds: str | None = None,
    method: str = "heldout",
    metrics: str | None = None,
    by: Several = (),
    kind: Kind = "density",
    coefficients: Annotated[Path | None, Parameter(group=MODEL)] = None,
    rows: Annotated[FittedOptions | None, Parameter(name="*", group=ROWS)] = None,
    frame: Framed = FRAME,
    page: Paged = PAGE,
) -> None:
    """Does a regression fit? A private plot of its residuals, and what it says.

    One release of a noisy table of residuals by predicted value; pictures, the mean and the
    spread by prediction, and the verdict are read off it at no further cost. With --out it becomes
    a page of all pictures (.html) or one picture (.svg). Examples:

    ```
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1 --out plot.html
    heldout residuals pay.csv --observed salary --predicted fitted --epsilon 1 --scale 1000 --json
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1/2 \\
      --bounds predicted=0:100,residual=20 --kind points --out points.svg
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1 --metrics 1/2
    heldout residuals test.parquet --observed y --predicted yhat --epsilon 1 --metrics 1 \\
      --groups sex=F,M --by sex --out groups.html
    heldout residuals visits.parquet --observed cost --predicted fitted --epsilon 1 \\
      --unit patient --rows-per-unit 4 --ledger l.sqlite --budget 3
    heldout residuals --server https://evaluate.example.org --token-file token.txt \\
      --dataset costs --coefficients fit.json --epsilon 1 --scale 5 --out plot.html
    ```

    Parameters
    ----------
    epsilon
        The price of the plot and all that it shows, such as 1, 0.5 or 1/3.
    scale
        The public unit of the numbers: 1 for a test score, 1000 for a salary.
    bounds
        Publicly known bounds, which save the search for them: predicted=0:100,residual=20.
    method
        heldout, or dawa or the paper's own chen-2016-prirp, which give no verdict.
    metrics
        Release MAE, RMSE, R squared and quantiles as well, at this further price.
    by
        A plot, and error measures, for each group, at the same price: a column of --groups, or
        several to cross.
    kind
        Which picture goes into an .svg file: density, points, mean, spread, scale or qq. With --by
        it is the plots of all groups.
    coefficients
        Instead of --model: a linear model as JSON, {"intercept": 2.0, "age": 0.5}.
    """
    from heldout import questions as q

    if coefficients is not None:
        if frame.scoring.model is not None:
            raise ArgumentError("--model and --coefficients both name a model: leave one out.")
        frame = replace(frame, scoring=replace(frame.scoring, model=coefficients))
    declared = {} if bounds is None else parsed_bounds(bounds)
    page.check(".svg")
    shared: dict[str, Any] = {
        "scale": scale,
        "expected_rows": frame.expected_rows,
        "by": by or None,
    }
    asked: list[q.Question[Any]] = [
        q.ResidualPlot(epsilon=epsilon, method=method, bounds=declared, **shared)
    ]
    if metrics is not None:
        asked.append(q.RegressionMetrics(epsilon=metrics, bounds=_symmetric(declared), **shared))
    bought = buy(
        *asked,
        table=table,
        rows=rows,
        options=FittedOptions,
        frame=frame,
        labels=page.labels,
    )
    plot, errors = (*bought.releases, None)[:2]

    def content() -> dict[str, Any]:
        more = {} if errors is None else {"metrics": errors.as_dict()}
        return bought.content(figure={"kind": kind, "svg": _svg(plot, kind)}, **more)

    def text() -> None:
        if by:
            for release in bought.releases:
                _print_groups(release)
        else:
            _print_plot(plot)
            if errors is not None:
                print_measures(errors.measures, what="error")
                _print_price(errors)
        print(f"Left: {bought.remaining}.")

    def write(place: Path) -> None:
        from heldout.drawing.page import write_file

        if page.is_svg:
            write_file(place, _svg(plot, kind))
        else:
            plot.save(place, metrics=errors, title=page.title, labels=bought.labels)

    bought.deliver(text=text, content=content, out=page.out, write=write, noun="Picture")


def _symmetric(bounds: dict[str, Any] | None) -> dict[str, Any]:
    """Declared bounds of the residuals, if they are alike on both sides as error measures need."""
    residual = (bounds or {}).get("residual")
    if isinstance(residual, tuple):
        residual = residual[1] if residual[0] == -residual[1] else None
    return {} if residual is None else {"residual": residual}


def parsed_bounds(text: str) -> dict[str, Any]:
    """Read bounds as they are typed.

    >>> parsed_bounds("predicted=0:100,residual=20")
    {'predicted': (0.0, 100.0), 'residual': 20.0}
    """
    bounds: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        ends = [_number(end) for end in value.split(":")]
        right = name.strip() in ("predicted", "residual") and name.strip() not in bounds
        if not right or None in ends or len(ends) > 2 or (len(ends) == 1 and "pred" in name):
            raise ArgumentError(
                f"--bounds must be like predicted=0:100,residual=20, got {text!r}. One number is "
                "enough for residuals: they lie between it and its negative."
            )
        bounds[name.strip()] = ends[0] if len(ends) == 1 else tuple(ends)
    return bounds


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _svg(plot: "ResidualPlot | PlotsByGroup", kind: Kind) -> str:
    from heldout.questions.regression.release import ResidualPlot

    return plot.svg(kind) if isinstance(plot, ResidualPlot) else plot.svg()


def _print_plot(plot: "ResidualPlot", *, level: float = 0.95) -> None:
    from heldout.drawing.words import numbers
    from heldout.questions.regression.page import band_rows

    percent = f"{level * 100:g}%"
    say = console()
    say.print(str(plot.verdict), style="bold")
    print_measures(plot.measures, level=level)
    if plot.table.unbiased:
        chances = "; ".join(f"{name}-style {chance:.2g}" for name, chance in plot.p_values.items())
        say.print(f"p-values: {chances}.")
    if plot.mean_residual.informative:
        bands = [[band, *rest] for band, _, *rest in band_rows(plot, level)]
        print_table(("residuals at", "mean", percent, "spread", percent), bands)
    (low, high), (down, up) = plot.bounds
    edge, number = numbers(plot.predicted_edges), numbers(plot.residual_edges)
    say.print(
        f"Shown: predictions {edge(low)} to {edge(high)}, residuals {number(down)} to "
        f"{number(up)}, {len(plot.residual_edges) - 1} by {len(plot.predicted_edges) - 1} cells."
    )
    say.print(f"Paid {plot.loss}, {plot.protection.describe()}.")
    print(f"Receipt: {plot.receipt.hash}")


def _print_groups(release: "PlotsByGroup | MetricsByGroup", *, level: float = 0.95) -> None:
    from heldout.drawing.words import spread

    for name, verdict in getattr(release, "verdicts", {}).items():
        console().print(f"{name}: {verdict}", style="bold", markup=False)
    gaps = [release.gap_in(name) for name in release.compared]
    rows = [[gap.name, *spread(gap, level), f"{gap.p_value:.3g}"] for gap in gaps]
    head = ("gap", "value", f"{level * 100:g}% interval", "noise alone", "p-value")
    print_table(head, rows)
    by_group = {
        name: measure
        for name, measure in release.measures.items()
        if not name.startswith("gap in ")
    }
    print_measures(by_group, level=level, what="measure, group")
    _print_price(release)


def _print_price(release: "PlotsByGroup | MetricsByGroup | RegressionMetrics") -> None:
    print(f"Paid {release.loss} for these. Receipt: {release.receipt.hash}")


# --- `heldout select`: the features of private rows that are worth keeping ------------------------


_SHOWN = 20
TABLE = "A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query."


def select(
    table: Annotated[Where, Parameter(help=TABLE)],
    /,
    *,
    epsilon: str,
    rows: Annotated[FeatureOptions, Parameter(name="*", group=ROWS)],
    legend: Path | None = None,
    method: str = "noisy-counts",
    score: str = "total-count",
    k: int | None = None,
    threshold: float | None = None,
    not_private: bool = False,
    as_json: Json = False,
) -> None:
    """Which features of private rows are worth keeping?

    Words of a text column, or columns that are 0 or not. The features themselves must be public:
    words are hashed to places in a table of public size, or come from a list that you give.
    Examples:

    ```
    heldout select messages.csv --text message --label label --epsilon 1
    heldout select messages.csv --text message --label label --epsilon 1 --k 3 \\
      --words words.txt --features-per-row 5 --ledger ledger.sqlite --budget 3
    heldout select flags.csv --columns urgent,paid,late --label label --epsilon 1/2 --json
    ```

    Parameters
    ----------
    epsilon
        The price, such as 1, 0.5 or 1/3.
    legend
        File with public words, to say which of them a hashed feature may stand for.
    method
        See docs/features.md; a wrong name lists them. Published methods that are not private need
        --not-private.
    score
        What makes a feature good: total-count, difference-count, purity-index or
        information-gain.
    k
        Select at most this many features.
    threshold
        Select the features whose score is at least this. With neither, those whose score is
        higher than chance alone would give.
    not_private
        Run a published method that is not private, on data that may be shown.
    """
    from heldout import questions as q
    from heldout.questions.features.estimators import select_from
    from heldout.questions.features.selection import BASELINES

    if legend is not None and rows.text is None:
        raise ArgumentError("--legend requires --text.")
    if rows.words is not None and legend is not None:
        raise ArgumentError("--words names the features already. Leave --legend out.")
    known = None if legend is None else words_in(legend, "legend")
    words: dict[str, Any] = {"method": method, "score": score, "k": k, "threshold": threshold}
    if method in BASELINES:
        private = rows.private(rows.source(table, Scoring()))
        marked = select_from(private, epsilon=epsilon, **words, not_private=not_private)
        print_json(marked.as_dict()) if as_json else print(f"{marked}.")
        return
    if not_private:
        raise ArgumentError(f"--not-private must be left out for {method!r}, which is private.")
    asked = q.Selection(epsilon=epsilon, **words)
    bought = buy(
        asked, table=table, rows=rows, options=FeatureOptions, frame=Frame(as_json=as_json)
    )
    [selected] = bought.releases
    meanings = {} if known is None else _meanings(known, rows, selected)
    more = {} if known is None else {"meanings": meanings}
    bought.deliver(
        text=lambda: _print_selection(bought, rows, meanings, legend=legend),
        content=lambda: bought.content(**more),
        may_guess=False,
    )


def _meanings(
    known: list[str], rows: FeatureOptions, selected: "Selection"
) -> dict[str, list[str]]:
    """Return which public words fall on the places that were selected."""
    from heldout.data.feature_matrix import HashedText

    chosen = {int(index) for index in selected.indices}
    by_place: dict[str, list[str]] = {}
    places = HashedText(size=rows.hash_size, longest=rows.longest).places(known)
    for word, place in places.items():
        if place in chosen:
            by_place.setdefault(str(place), []).append(word)
    return by_place


def _print_selection(
    bought: Bought, rows: FeatureOptions, meanings: dict[str, list[str]], *, legend: Path | None
) -> None:
    [selected] = bought.releases
    print(f"{selected}.")
    if len(selected):
        _print_features(selected, meanings)
    else:
        print("No feature stood out. A larger epsilon, or --k, would give some.")
    if rows.text is not None and rows.words is None and legend is None:
        print(
            "A feature is a place that words are hashed to: --legend FILE, with public words, "
            "says which of them it may stand for."
        )
    price, receipt = selected.loss, selected.receipt.hash
    print(f"Paid {price}; left: {bought.remaining}. Receipt: {receipt}")


def _print_features(selected: "Selection", meanings: dict[str, list[str]]) -> None:
    gains = selected.information_gains
    head = ["feature"] + ["noisy score"] * (selected.scores is not None)
    head += ["nats per row"] * (gains is not None)
    head += ["may stand for"] * bool(meanings)
    lines = []
    for place, feature in enumerate(selected.features):
        line = [str(feature)]
        if selected.scores is not None:
            line.append(f"{selected.scores[place]:,.4g}")
        if gains is not None:
            line.append(f"{gains[place]:.4g}")
        if meanings:
            line.append(", ".join(meanings.get(str(feature), [])))
        lines.append(line)
    print_table(head, lines[:_SHOWN], left=(0, len(head) - 1) if meanings else (0,))
    if len(lines) > _SHOWN:
        print(f"{len(lines) - _SHOWN:,} more: all of them with --json.")


# --- `heldout separability`: is privatized data still the data? -----------------------------------


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
