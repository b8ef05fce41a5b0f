"""The options by which commands name private rows, one group for each kind of rows."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from cyclopts import Group, Parameter

from heldout.arguments import Flag as FlagRule
from heldout.arguments import FormField, shown
from heldout.cli.model import Scoring
from heldout.cli.output import Flag, Several, declared_values, label_value, words_in
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.data.description import Description
    from heldout.data.feature_matrix import Bound, FeatureMatrix, Space
    from heldout.data.postgres import PostgresTable
    from heldout.models import ScoredRows
    from heldout.questions import Question
    from heldout.questions.session import PrivateSession

T = TypeVar("T")
PAYS = Parameter(group=Group("The ledger, and who pays", sort_key=3))
Asked = Sequence["Question[Any]"]


class Address:
    """A database in the place of a file. It may hold a password, so it shows nothing of itself."""

    name = "the database"

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Address(...)"


def _where(_: Any, tokens: Any) -> Path | Address:
    from heldout.data.postgres import is_address

    text = tokens[0].value
    return Address(text) if is_address(text) else Path(text)


Where = Annotated[
    Path | Address,
    Parameter(
        converter=_where,
        accepts_keys=False,
        n_tokens=1,
        help="A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query. "
        "Left out where --server has the rows.",
    ),
]
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
        replace-one: the number of rows is public. add-remove: it is not. label: all is public
        but the outcome.
    table
        Table of the database, as schema.table, where a postgresql:// address is given.
    query
        One SELECT, instead of a table.
    ledger
        File or database URL that remembers what was spent on these rows.
    budget
        The total that may be spent on these rows. Needed once, when the ledger first sees them.
    account
        The registered account that pays (heldout ledger register), even if the table changes.
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
    neighbours: Literal["replace-one", "add-remove", "label"] = "replace-one"
    table: str | None = None
    query: str | None = None
    ledger: Annotated[str | None, PAYS] = None
    budget: Annotated[str | None, PAYS] = None
    account: Annotated[str | None, PAYS] = None
    analyst: Annotated[str | None, PAYS] = None
    new: Annotated[Flag, PAYS] = False
    name: str | None = None

    def source(
        self, where: Path | Address, scoring: Scoring
    ) -> "Path | PostgresTable | ScoredRows":
        """Return the file, or the rows of the database that are named, scored by the model."""
        source = self._rows(where)
        if scoring.model is None:
            return source
        if self.scored_column is None:
            raise ArgumentError("These rows take no model. Leave --model out.")
        return scoring.scored(source, into=self.scored_column, row_key=self.row_key)

    def _rows(self, where: Path | Address) -> "Path | PostgresTable":
        from heldout.data.postgres import PostgresTable

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
    def scored_column(self) -> str | None:
        """The column that a model's scores go to; None for rows that take no model."""
        return None

    @property
    def declared(self) -> dict[str, Any]:
        """Return what every private table is declared with beside its columns."""
        return {
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "row_key": self.row_key,
            "neighbours": self.neighbours,
            "name": self.name,
        }

    @classmethod
    def needed(cls) -> str | None:
        """Return the first option that must be given; None if none must."""
        first = next((field.name for field in fields(cls) if field.default is MISSING), None)
        return None if first is None else "--" + first.replace("_", "-")

    def session(self, source: Any, *, asked: Asked) -> "PrivateSession":
        """Open the rows of a source, validated, for these questions."""
        raise NotImplementedError

    def open_session(self, session: Callable[..., T], private: Any, *, asked: Asked) -> T:
        """Open a session of this kind; without a ledger its budget is what is asked."""
        from heldout.kernel import Budget, Ledger

        if self.ledger is None:
            if self.budget is not None:
                raise ArgumentError(
                    "--budget requires --ledger, which keeps count of what is left."
                )
            if self.account is not None or self.analyst is not None:
                raise ArgumentError("--account and --analyst require --ledger.")
            delta = sum(getattr(question, "delta", None) or 0 for question in asked)
            price = sum(question.price for question in asked)
            return session(private, budget=Budget(epsilon=price, delta=delta))
        budget = None if self.budget is None else Budget(epsilon=self.budget)
        whose = {"account": self.account, "analyst": self.analyst, "new": self.new}
        book = Ledger.open(self.ledger)
        try:
            return session(private, budget=budget, ledger=book, **whose)
        except ArgumentError:
            if budget is not None or self.account is not None:
                raise
            raise ArgumentError(
                "--budget must be given the first time a ledger sees these rows. Pass the total "
                "that may be spent on them, for example --budget 3."
            ) from None


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A label of two values.

    Parameters
    ----------
    label
        Column with the outcome.
    positive
        The label's value for positive, such as 1, true or yes; quote it ("'1'") to mean text.
    negative
        The other value. May be left out if positive is 0, 1, true or false.
    """

    label: str
    positive: str = "1"
    negative: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The label's two values, as they are declared."""
        negative = None if self.negative is None else label_value(self.negative)
        return {"positive": label_value(self.positive), "negative": negative}


@dataclass(frozen=True, kw_only=True)
class Scored(Labelled):
    """A label and a score.

    Parameters
    ----------
    score
        Column with the model's score; higher means more likely positive.
    score_range
        Lowest and highest score that the model can give. Public; never read off the data.
    score_map
        Centre and scale, for scores without a range: 0 1 for a logistic model's linear score.
    """

    score: str = "score"
    score_range: tuple[float, float] = (0.0, 1.0)
    score_map: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class ScoredOptions(Scored, Custody):
    """Rows with a label and a score.

    Parameters
    ----------
    score_values
        All scores that the model can give, such as 0,0.1,0.2. Curves are then counted at these
        and become sharper. Public; never read off the data.
    classes
        All values of a label that has more than two, such as a,b,c, instead of positive and
        negative. Give --class-scores, a column for each class, or --prediction.
    class_scores
        With --classes: the column of each class's score, such as pa,pb,pc.
    prediction
        Column with the class that the model says.
    groups
        Columns and the values that are declared for them, such as sex=F,M age=young,old; every
        other value is in the group "other".
    rival_range
        Lowest and highest score that the second model of a comparison can give, if not those of
        the first.
    rival_map
        Centre and scale of the second model's scores, if they have no range.
    clip
        Count a score beyond the range as the nearer end, instead of refusing the table.
    weight
        Column with what each row counts for, from 0 to --largest-weight. Rankings and curves
        have no weighted form.
    largest_weight
        The largest weight that there can be. Public; never read off the data.
    """

    classes: str | None = None
    class_scores: str | None = None
    prediction: str | None = None
    score_values: str | None = None
    rival_range: tuple[float, float] | None = None
    rival_map: tuple[float, float] | None = None
    clip: Flag = False
    weight: str | None = None
    largest_weight: float | None = None
    groups: Several = ()

    @property
    def scored_column(self) -> str:
        return self.score

    def session(self, source: Any, *, asked: Asked) -> "PrivateSession":
        from heldout.data import Dataset
        from heldout.data.postgres import PostgresTable
        from heldout.questions.session import Session

        if (self.weight is None) != (self.largest_weight is None):
            raise ArgumentError("--weight and --largest-weight must be given together.")
        if self.weight and not any(getattr(question, "weighted", False) for question in asked):
            raise ArgumentError("--weight goes with --weighted, for questions that have it.")
        rivals = [rival for question in asked for rival in question.rivals]
        if not rivals and (self.rival_range is not None or self.rival_map is not None):
            raise ArgumentError("--rival-range and --rival-map are for comparisons alone.")
        # No score that a model gives may refuse the table.
        clip = self.clip or not isinstance(source, Path | PostgresTable)
        kind: dict[str, Any] = {
            "score": self.score,
            "rivals": rivals,
            "score_map": self.score_map,
            "score_values": None if self.score_values is None else self.score_values.split(","),
            **self.values,
        }
        score_range: Any = self.score_range
        if self.rival_range is not None:
            usual = self.score_map is not None and score_range == (0.0, 1.0)
            own = {} if usual else {self.score: score_range}
            score_range = own | dict.fromkeys(rivals, self.rival_range)
        if self.rival_map is not None:
            own = {} if self.score_map is None else {self.score: self.score_map}
            kind["score_map"] = own | dict.fromkeys(rivals, self.rival_map)
        if self.classes is not None:
            values = [label_value(typed) for typed in self.classes.split(",")]
            columns = None if self.class_scores is None else self.class_scores.split(",")
            if self.score_values is not None:
                raise ArgumentError("--score-values are for labels of two values.")
            kind = {"classes": values, "scores": columns, "prediction": self.prediction}
            kind["rivals"] = rivals or None
        dataset = Dataset(
            source,
            label=self.label,
            groups=declared_values(self.groups),
            score_range=score_range,
            out_of_range="clip" if clip else "refuse",
            weight=self.weight,
            largest_weight=self.largest_weight,
            **kind,
            **self.declared,
        )
        return self.open_session(Session, dataset, asked=asked)


@dataclass(frozen=True, kw_only=True)
class FittedOptions(Custody):
    """Rows with an observed and a predicted number.

    Parameters
    ----------
    observed
        Column with the outcome.
    predicted
        Column with the predictions.
    groups
        Columns and the values that are declared for them, such as sex=F,M age=young,old; every
        other value is in the group "other".
    """

    observed: str
    predicted: str
    groups: Several = ()

    @property
    def scored_column(self) -> str:
        return self.predicted

    def session(self, source: Any, *, asked: Asked) -> "PrivateSession":
        from heldout.data.measured import RegressionTable
        from heldout.questions.regression.session import RegressionSession

        private = RegressionTable(
            source,
            observed=self.observed,
            predicted=self.predicted,
            groups=declared_values(self.groups),
            **self.declared,
        )
        return self.open_session(RegressionSession, private, asked=asked)


@dataclass(frozen=True, kw_only=True)
class FeatureOptions(Labelled, Custody):
    """Rows with a label and features that are there or not.

    Parameters
    ----------
    text
        Column with texts, whose words are the features.
    columns
        Columns to use as features, separated by commas.
    bounds
        Which of these columns hold numbers or codes. age=18,90 makes a feature for each bin from
        18 to 90 (or between more edges), ward=4 one for each of the codes 0, 1, 2 and 3. Public;
        never read them off the rows.
    words
        File with the public words that count, one per line. Never read off the private texts.
    hash_size
        Without words: to how many features words are hashed.
    longest
        Without words: how many consecutive words may form one feature (1, 2 or 3).
    features_per_row
        How many features of one row count, at most; 10, or the number of columns if that is
        less.
    most_rows
        A public bound on the number of rows, if information-gain needs one.
    """

    text: str | None = None
    columns: str | None = None
    bounds: Several = ()
    words: Path | None = None
    hash_size: int = 4096
    longest: int = 1
    features_per_row: int | None = None
    most_rows: int | None = None

    def private(self, source: Any) -> "FeatureMatrix":
        """Open the rows as a matrix of features."""
        from heldout.data.feature_matrix import FeatureMatrix
        from heldout.questions.features.tuned import FEATURES_PER_ROW

        if (self.text is None) == (self.columns is None):
            raise ArgumentError("Say where the features are: pass either --text or --columns.")
        if self.text is None and self.words is not None:
            raise ArgumentError("--words requires --text.")
        columns = None if self.columns is None else self.columns.split(",")
        bounds = bounds_of(self.bounds)
        most = FEATURES_PER_ROW if self.features_per_row is None else self.features_per_row
        if self.features_per_row is None and bounds and columns is not None:
            most = len(columns)  # one bin of each
        return FeatureMatrix.from_table(
            source,
            label=self.label,
            text=self.text,
            space=None if self.text is None else self._space(),
            features=None if columns is None else [name.strip() for name in columns],
            bounds=bounds or None,
            features_per_row=most,
            **self.values,
            **self.declared,
            most_rows=self.most_rows,
        )

    def session(self, source: Any, *, asked: Asked) -> "PrivateSession":
        from heldout.questions.session import PrivateSession

        return self.open_session(PrivateSession, self.private(source), asked=asked)

    def _space(self) -> "Space":
        from heldout.data.feature_matrix import HashedText, Vocabulary

        if self.words is None:
            return HashedText(size=self.hash_size, longest=self.longest)
        return Vocabulary(tuple(dict.fromkeys(words_in(self.words, "words"))))


def bounds_of(words: Sequence[str]) -> "dict[str, Bound]":
    """Read bounds as they are typed: ends, edges or a number of kinds.

    >>> bounds_of(["age=18,90", "ward=4"])
    {'age': (18.0, 90.0), 'ward': 4}
    """
    bounds: dict[str, Bound] = {}
    for word in words:
        name, _, typed = word.rpartition("=")
        parts = typed.split(",")
        try:
            ends = tuple(float(part) for part in parts)
            bounds[name] = ends if len(parts) > 1 else int(parts[0])
        except ValueError:
            name = ""
        if not name:
            raise ArgumentError(
                f"--bounds must be like age=18,90 or ward=4 (kinds 0 to 3), got {shown(word)}."
            )
    return bounds


@dataclass(frozen=True, kw_only=True)
class TruthOptions(Custody):
    """True rows, beside the privatized copy that the question brings."""

    def session(self, source: Any, *, asked: Asked) -> "PrivateSession":
        from heldout.data.two_tables import Truth
        from heldout.questions.session import PrivateSession

        public = asked[0].table  # type: ignore[attr-defined]
        private = Truth(
            source,
            numbers=tuple(public.numbers),
            texts=tuple(public.texts),
            expected_rows=public.rows,
            **self.declared,
        )
        return self.open_session(PrivateSession, private, asked=asked)


@dataclass(frozen=True, kw_only=True)
class DescribedOptions(Custody):
    """Rows whose description says what is declared of them; see `Description.declares`.

    Parameters
    ----------
    groups
        Columns and the values that are declared for them, such as sex=F,M age=young,old; every
        other value is in the group "other".
    clip
        Count a value beyond its bounds as the nearer end, instead of refusing the table.
    weight
        Column with what each row counts for, from 0 to --largest-weight.
    largest_weight
        The largest weight that there can be. Public; never read off the data.
    """

    described: ClassVar[Any]
    groups: Several = ()
    clip: Flag = False
    weight: str | None = None
    largest_weight: float | None = None

    def session(self, source: Any, *, asked: Asked) -> "PrivateSession":
        from heldout.questions.session import Session

        own: dict[str, Any] = {
            declared.name: read_option(declared, getattr(self, declared.name))
            for declared in self.described.declares
        }
        asked_values = {
            name: bounds for question in asked for name, bounds in question.values_asked.items()
        }
        if asked_values:
            own["values"] = {**asked_values, **(own.get("values") or {})}
        private = self.described.table_type()(
            source,
            groups=declared_values(self.groups),
            out_of_range="clip" if self.clip else "refuse",
            weight=self.weight,
            largest_weight=self.largest_weight,
            **own,
            **self.declared,
        )
        return self.open_session(Session, private, asked=asked)


def described_options(described: type["Description"]) -> type[Custody]:
    """Return the options of rows from what their description declares."""
    own = [option_of(declared) for declared in described.declares]
    made = make_options(described.__name__, own, DescribedOptions)
    made.described = described
    return made


def options_for(of: Sequence[type["Description"]]) -> type[Custody] | None:
    """Return the options that open such rows; None if no command can."""
    from heldout.data.classes import ClassifiedRows
    from heldout.data.description import ScoredRows
    from heldout.data.feature_matrix import FeatureRows
    from heldout.data.measured import FittedRows
    from heldout.data.two_tables import TruthRows

    known: dict[type[Description], type[Custody]] = {
        ScoredRows: ScoredOptions,
        ClassifiedRows: ScoredOptions,
        FittedRows: FittedOptions,
        FeatureRows: FeatureOptions,
        TruthRows: TruthOptions,
    }
    for rows in of:
        if rows in known:
            return known[rows]
        if rows.declares:
            return described_options(rows)
    return None


# Options of a command from the fields of a form: of a question, or of rows that it is asked of.
def option_of(form_field: FormField) -> tuple[str, Any, Field[Any]]:
    """Return the option of one field, as a field of a dataclass."""
    flag = isinstance(form_field.rule, FlagRule)
    several = form_field.rule.takes_several
    words: dict[str, Any] = {"name": form_field.option, "help": _hint(form_field)}
    if several:
        words |= {"consume_multiple": True, "negative": ""}
    if flag and form_field.default:
        words |= {"negative": "--no-" + form_field.option.removeprefix("--")}
    kind: Any = bool if flag else tuple[str, ...] if several else str
    if form_field.required:
        return form_field.name, Annotated[kind, Parameter(**words)], field()
    words["show_default"] = False
    optional: Any = field(default=None)
    return form_field.name, Annotated[kind | None, Parameter(**words)], optional


def _hint(form_field: FormField) -> str:
    """Return the help of a field, with its choices and its default."""
    schema = form_field.rule.schema()
    choices = schema.get("enum") or schema.get("items", {}).get("enum")
    hint = form_field.help
    if choices and not all(choice in hint for choice in choices):
        hint += f" One of: {', '.join(choices)}."
    if form_field.default not in (None, False, {}, ()):
        default = "yes" if form_field.default is True else form_field.default
        hint += f" [default: {default}]"
    return hint


def read_option(form_field: FormField, value: str | bool | Sequence[str] | None) -> object:
    """Read what was typed by the rule of its field."""
    if value is None or isinstance(value, bool):
        return value
    words = [value] if isinstance(value, str) else list(value)
    return form_field.rule.from_command(words, form_field.option)


def make_options(name: str, content: Sequence[Any], *bases: type) -> type[Any]:
    """Return the options as a dataclass, which a command takes."""
    words = [
        (called, kind, field(default=old.default, kw_only=True)) for called, kind, old in content
    ]
    made = make_dataclass(name, words, bases=bases, frozen=True, kw_only=True)
    made.__module__ = __name__  # the parser looks into classes of packages only
    if bases:
        made.__doc__ = bases[0].__doc__
    return made
