"""`heldout select`: the features of private rows that are worth keeping."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heldout.cli.rows import EACH_ROW_ALONE, Custody, Where
from heldout.cli.values import Json

if TYPE_CHECKING:
    from heldout.data.text import Space

Method = Literal[
    "noisy-counts",
    "cluster",
    "score-perturbation",
    "sparse-vector",
    "noisy-top-k",
    "permute-and-flip",
    "private-threshold-testing",
    "noisy-cut",
    "cluster-selection-2014",
]
_SHOWN = 20
Score = Literal["total-count", "difference-count", "purity-index", "information-gain"]


def select(
    table: Where,
    /,
    *,
    label: str,
    epsilon: str,
    text: str | None = None,
    columns: str | None = None,
    words: Path | None = None,
    hash_size: int = 4096,
    longest: int = 1,
    legend: Path | None = None,
    method: Method = "noisy-counts",
    score: Score = "total-count",
    k: int | None = None,
    threshold: float | None = None,
    features_per_row: int | None = None,
    positive: str = "1",
    negative: str | None = None,
    most_rows: int | None = None,
    rows: Annotated[Custody, Parameter(name="*")] = EACH_ROW_ALONE,
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
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query.
    label
        Column with the outcome.
    epsilon
        The price, such as 1, 0.5 or 1/3.
    text
        Column with texts, whose words are the features.
    columns
        Columns that are features by themselves, with commas between them.
    words
        File with the public words that count, one a line. Never read off the private texts.
    hash_size
        Without words: how many places words are hashed to.
    longest
        Without words: runs of up to so many words count as features too (1, 2 or 3).
    legend
        File with public words, to say which of them a hashed feature may stand for.
    method
        See docs/features.md. The last three are not private and need --not-private.
    score
        What makes a feature good.
    k
        At most so many features.
    threshold
        Features whose score is at least this. With neither, what chance alone would not give.
    features_per_row
        A row that sets more features keeps so many of them; 10, or the number of columns if that
        is less.
    positive
        The label's value for positive, such as 1, true or spam.
    negative
        The other value. May be left out if positive is 0, 1, true or false.
    most_rows
        A public bound on the number of rows, where information-gain needs one.
    not_private
        Run a published method that is not private, on data that may be shown.
    """
    from heldout.cli.delivery import delivering
    from heldout.cli.output import patience, print_json, print_unremembered
    from heldout.cli.values import label_value
    from heldout.data.feature_matrix import FeatureMatrix
    from heldout.errors import ArgumentError
    from heldout.features.baselines import BASELINES
    from heldout.features.selector import FEATURES_PER_ROW, select_from
    from heldout.questions.session import PrivateSession

    if (text is None) == (columns is None):
        raise ArgumentError("Say where the features are: pass either --text or --columns.")
    if text is None and (words is not None or legend is not None):
        raise ArgumentError("--words and --legend require --text.")
    if words is not None and legend is not None:
        raise ArgumentError("--words names the features already. Leave --legend out.")
    known = None if legend is None else _lines(legend, "legend")
    with patience(f"Selecting from {table.name}"):
        private = FeatureMatrix.from_table(
            rows.source(table),
            label=label,
            text=text,
            space=None if text is None else _space(words, hash_size, longest),
            features=None if columns is None else [each.strip() for each in columns.split(",")],
            features_per_row=FEATURES_PER_ROW if features_per_row is None else features_per_row,
            positive=label_value(positive),
            negative=None if negative is None else label_value(negative),
            **rows.declared,
            most_rows=most_rows,
        )
        asked: dict[str, Any] = {
            "epsilon": epsilon,
            "method": method,
            "score": score,
            "k": k,
            "threshold": threshold,
        }
        if method in BASELINES:
            marked = select_from(private, **asked, not_private=not_private)
            print_json(marked.as_dict()) if as_json else print(f"{marked}.")
            return
        session = rows.opened(PrivateSession, private, epsilon=epsilon)
        found: Any = select_from(private, **asked, session=session, not_private=not_private)
    meanings = {} if known is None else _meanings(known, hash_size, longest, found)
    with delivering(found, ledger=rows.ledger):
        if as_json:
            more = {} if known is None else {"meanings": meanings}
            print_json({**found.as_dict(), **more, "remaining": session.remaining.as_dict()})
            return
        _print(found, meanings)
        if text is not None and words is None and legend is None:
            print(
                "A feature is a place that words are hashed to: --legend FILE, with public words, "
                "says which of them it may stand for."
            )
        print(f"Paid {found.loss}; left: {session.remaining}. Receipt: {found.receipt.hash}")
        print_unremembered(rows.ledger)


def _space(words: Path | None, hash_size: int, longest: int) -> "Space":
    from heldout.data.text import HashedText, Vocabulary

    if words is None:
        return HashedText(size=hash_size, longest=longest)
    return Vocabulary(tuple(dict.fromkeys(_lines(words, "words"))))


def _lines(file: Path, option: str) -> list[str]:
    from heldout.errors import ArgumentError

    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(
            f"--{option} must be a file of words, one a line, got {file.name}. Check the path."
        ) from None
    return [line.strip().lower() for line in lines if line.strip()]


def _meanings(known: list[str], hash_size: int, longest: int, found: Any) -> dict[str, list[str]]:
    """Which public words fall on the places that were selected."""
    from heldout.data.text import HashedText

    selected = {int(each) for each in found.indices}
    by_place: dict[str, list[str]] = {}
    places = HashedText(size=hash_size, longest=longest).places(known)
    for word, place in places.items():
        if place in selected:
            by_place.setdefault(str(place), []).append(word)
    return by_place


def _print(found: Any, meanings: dict[str, list[str]]) -> None:
    from heldout.cli.output import print_table

    print(f"{found}.")
    if not len(found):
        print("No feature stood out. A larger epsilon, or --k, would give some.")
        return
    head = ["feature"] + ["noisy score"] * (found.scores is not None)
    head += ["may stand for"] * bool(meanings)
    rows = []
    for place, feature in enumerate(found.features):
        row = [str(feature)]
        if found.scores is not None:
            row.append(f"{found.scores[place]:,.4g}")
        if meanings:
            row.append(", ".join(meanings.get(str(feature), [])))
        rows.append(row)
    print_table(head, rows[:_SHOWN], left=(0, len(head) - 1) if meanings else (0,))
    if len(rows) > _SHOWN:
        print(f"{len(rows) - _SHOWN:,} more: all of them with --json.")
