"""`heldout select`: the features of private rows that are worth keeping."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from heldout.cli.frame import ROWS, Bought, Frame, buy
from heldout.cli.model import Scoring
from heldout.cli.output import Json, print_json, print_table, words_in
from heldout.cli.rows import FeatureOptions, Where
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.questions.features.selection import Selection

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
        At most so many features.
    threshold
        Features whose score is at least this. With neither, what chance alone would not give.
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
        text=lambda: _print(bought, rows, meanings, legend=legend),
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


def _print(
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
