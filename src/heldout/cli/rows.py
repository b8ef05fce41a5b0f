"""What every command that reads private rows must be told about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

if TYPE_CHECKING:
    from heldout.models import ScoredRows
    from heldout.questions.session import Session

T = TypeVar("T")


class Address:
    """A database in the place of a file. It may hold a password, so it shows nothing of itself."""

    name = "the database"

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Address(...)"


def _where(_: Any, tokens: Any) -> "Path | Address":
    from heldout.data.postgres import is_address

    text = tokens[0].value
    return Address(text) if is_address(text) else Path(text)


Where = Annotated[Path | Address, Parameter(converter=_where, accepts_keys=False, n_tokens=1)]
"""A file, or the postgresql:// address of a database."""


@dataclass(frozen=True, kw_only=True)
class Custody:
    """Whose the rows are, where, and out of which budget they are paid.

    Parameters
    ----------
    unit
        Column that says whose row it is, to protect people with all their rows.
    rows_per_unit
        How many rows of one unit may count.
    row_key
        Column that tells rows apart.
    neighbours
        replace-one: the number of rows is public. add-remove: it is not.
    table
        Table of the database, as schema.table, where a postgresql:// address is given.
    query
        One SELECT, instead of a table.
    ledger
        File or database URL that remembers what was spent on these rows.
    budget
        What may be spent on these rows in all. Needed once, when a ledger first meets them.
    account
        The registered account that pays (heldout ledger register), whatever becomes of the table.
    analyst
        Whose share of the account pays (heldout ledger grant).
    new
        These rows are new to the ledger, although it knows others by the same name.
    name
        What to call the data; the file's or the table's name if left out.
    """

    unit: str | None = None
    rows_per_unit: int = 1
    row_key: str | None = None
    neighbours: Literal["replace-one", "add-remove"] = "replace-one"
    table: str | None = None
    query: str | None = None
    ledger: str | None = None
    budget: str | None = None
    account: str | None = None
    analyst: str | None = None
    new: Annotated[bool, Parameter(negative="")] = False
    name: str | None = None

    def source(self, where: Path | Address) -> Any:
        """What a private table is made of: the file, or the rows of the database that are named."""
        from heldout.data.postgres import PostgresTable
        from heldout.errors import ArgumentError

        if isinstance(where, Address):
            if (self.table is None) == (self.query is None):
                raise ArgumentError(
                    "Say which rows of the database: pass either --table or --query."
                )
            return PostgresTable(where.text, table=self.table, query=self.query)
        if self.table is not None or self.query is not None:
            raise ArgumentError("--table and --query are for a postgresql:// address only.")
        return where

    @property
    def declared(self) -> dict[str, Any]:
        """What every private table is told beside its columns."""
        return {
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "row_key": self.row_key,
            "neighbours": self.neighbours,
            "name": self.name,
        }

    def opened(self, session: Callable[..., T], private: Any, *, epsilon: Any) -> T:
        """A session of this kind on the rows; without a ledger its budget is this one request."""
        from heldout.errors import ArgumentError
        from heldout.privacy import Budget, Ledger

        if self.ledger is None:
            if self.budget is not None:
                raise ArgumentError(
                    "--budget requires --ledger, which keeps count of what is left."
                )
            if self.account is not None or self.analyst is not None:
                raise ArgumentError("--account and --analyst require --ledger.")
            return session(private, budget=Budget(epsilon=epsilon))
        budget = None if self.budget is None else Budget(epsilon=self.budget)
        whose = {"account": self.account, "analyst": self.analyst, "new": self.new}
        book = Ledger.open(self.ledger)
        try:
            return session(private, budget=budget, ledger=book, **whose)
        except ArgumentError:
            if budget is not None or self.account is not None:
                raise
            raise ArgumentError(
                "--budget must be given when a ledger first meets these rows. Say what may be "
                "spent on them in all, for example --budget 3."
            ) from None


EACH_ROW_ALONE = Custody()


@dataclass(frozen=True, kw_only=True)
class Rows(Custody):
    """Rows with a label and a score.

    Parameters
    ----------
    label
        Column with the outcome.
    score
        Column with the model's score; higher means more likely positive.
    positive
        The label's value for positive, such as 1, true or yes; quote it ("'1'") to mean text.
    negative
        The other value. May be left out if positive is 0, 1, true or false.
    score_range
        Lowest and highest score that the model can give. Public; never read off the data.
    score_map
        Centre and scale, for scores without a range: 0 1 for a logistic model's linear score.
    classes
        For a label of more than two values: all of them, such as a,b,c, instead of positive and
        negative. Give --scores, a column for each, or --prediction.
    prediction
        Column with the class that the model says.
    groups
        Columns and the values that are declared for them, such as sex=F,M age=young,old; every
        other value is in the group "other".
    clip
        Count a score beyond the range as the nearer end, instead of refusing the table.
    """

    label: str
    score: str = "score"
    classes: str | None = None
    prediction: str | None = None
    positive: str = "1"
    negative: str | None = None
    score_range: tuple[float, float] = (0.0, 1.0)
    score_map: tuple[float, float] | None = None
    clip: Annotated[bool, Parameter(negative="")] = False
    groups: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = ()

    def session(
        self,
        where: Path | Address,
        *,
        epsilon: str,
        rivals: Sequence[str] = (),
        scored: "ScoredRows | None" = None,
        scores: str | None = None,
        weights: tuple[str | None, float | None] = (None, None),
    ) -> "Session":
        """A session on the table, or on what a model made of it; it is validated first."""
        from heldout.cli.values import declared_values, label_value
        from heldout.data import Dataset
        from heldout.questions.session import Session

        # No score that a model gives may refuse the table.
        clip = self.clip or scored is not None
        kind: dict[str, Any] = {
            "score": self.score,
            "rivals": rivals,
            "positive": label_value(self.positive),
            "negative": None if self.negative is None else label_value(self.negative),
            "score_map": self.score_map,
        }
        if self.classes is not None:
            values = [label_value(each) for each in self.classes.split(",")]
            columns = None if scores is None else scores.split(",")
            kind = {"classes": values, "scores": columns, "prediction": self.prediction}
        dataset = Dataset(
            self.source(where) if scored is None else scored,
            label=self.label,
            groups=declared_values(self.groups),
            score_range=self.score_range,
            out_of_range="clip" if clip else "refuse",
            weight=weights[0],
            largest_weight=weights[1],
            **kind,
            **self.declared,
        )
        return self.opened(Session, dataset, epsilon=epsilon)
