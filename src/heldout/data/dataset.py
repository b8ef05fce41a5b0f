"""Private rows with a label and a score, and everything about them that is public."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from heldout.arguments import OneOf, refuse_unknown
from heldout.data import sql, validation
from heldout.data.description import ScoredRows, declared_groups, kind_declared
from heldout.data.duckdb import FEW_ROWS, ArraysEngine, DuckDBEngine
from heldout.data.postgres import PostgresTable
from heldout.data.scores import (
    FURTHEST,
    GridTally,
    KeptColumns,
    Scale,
    ScoreMap,
    by_class,
    declared_scales,
    declared_values,
    ends_of,
    grid_body,
    sound,
)
from heldout.data.table import OF_QUESTIONS, PrivateTable
from heldout.data.validation import checked_rivals, checked_weight, other_label
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours

LABELS_AND_SCORES = "SELECT label, score\nFROM evaluated"
MOST_SORTED: Final = 2**24
"""So many labels and scores are kept between questions: 150 MB."""


class Dataset(PrivateTable):
    """Private rows, validated on the custodian's side when the object is made.

    Parameters
    ----------
    rows
        A path (.parquet, .csv, .tsv), a folder of Parquet files or a pattern, a pandas, Polars or
        Arrow table or data set, a DuckDB relation, a Spark DataFrame, or the postgresql:// address
        of a database with `table` or `query`. Frames are copied; files must not change afterwards.
        A CSV file is never sniffed: give `schema={"column": "TYPE", ...}` for all of its columns,
        or each is read as text and the declared ones are cast.
    label, score
        Columns with the truth and the model's score; a higher score means more likely positive.
    classes, scores, prediction
        For a label of more than two values: all of them, with the column of each one's score in
        `scores` or a column with the class that the model says in `prediction`, instead of
        `score`. Without predictions the highest score is the model's call, the first of equals.
    rivals
        Columns with other models' scores, for `Session.compare`. They are validated like the
        first, each on its own scale (`score_range`, `score_map`); no other column can be compared.
        With `classes`: columns with the classes that other models say, or a name for each model
        with its columns of scores, one for each class: `{"b": ["b_low", "b_mid", "b_high"]}`.
    groups
        Columns by which questions may be asked (`by="sex"`), each with the values that are
        declared for it: `{"sex": ["F", "M"]}`. Every other value, and NULL, is in the group
        "other". The values are public; how many rows a group has is not.
    weight, largest_weight
        A column with each row's weight, from 0 to the largest, for questions that are asked
        `weighted=True`. The largest weight is public, and never read off the data.
    positive, negative
        The two values of the label. `negative` may be left out if `positive` is 0, 1 or a bool.
    score_range
        The range that the model can give. Public, and never read off the data. Where rivals have
        other ranges, a range by column: `{"risk": (0, 1), "decile": (1, 10)}`.
    score_map
        For scores without a range: (centre, scale), or a `heldout.ScoreMap`. What counts is then
        each score's image z / (1 + |z|), with z = (score - centre) / scale, and `score_range` is
        that of the images, (-1, 1). Thresholds stay in the scores' own unit. Where models differ,
        a map by column: `{"logit": (0, 1)}`.
    score_values
        All values that a score can take, such as ten deciles, where the model gives few. Public,
        and never read off the data. Curves then count rows by value, and their noise is smaller.
        A score between two of them counts as the lower one there.
    out_of_range
        "refuse" a table with a score outside the range (with a map: an infinite one), or "clip":
        it counts as the nearer end.
    unit, rows_per_unit, row_key
        Whose row it is (for person-level privacy), how many rows of one unit may count, and a
        column that tells rows apart. Which rows stay depends on these keys alone. So does the
        budget: tables with the same keys share one, whatever their scores and labels are. Name
        keys that mean something outside the table (an admission number, not 0, 1, 2, ...).
        Without keys the budget goes with the whole table, and a column more is another table.
    neighbours
        "replace-one" (the number of rows is public) or "add-remove". "label" protects each row's
        outcome and nothing else: scores, groups, weights, keys and the number of rows are taken
        to be public; see docs/how-it-works.md for when that is wrong.
    values
        Instead of a label: columns with a number for each row, and the bounds of each,
        `{"dice": (0, 1)}`; or with words, and the number that each stands for,
        `{"winner": {"A": 0, "tie": 0.5, "B": 1}}`. Public, and never read off the data.
    time, event
        Instead of a label: the column with the time, from 0, and the one that says whether the
        event came then (`positive`) or the row was last seen then without it (`negative`). With
        them `score` may be left out, and is the risk that a model gives.
    table, query
        Which rows of a PostgreSQL database: a table's name, or one SELECT; see `PostgresTable`.
    name
        What to call the data in reports. The budget goes with the rows, whatever they are called.

    >>> rows = {"readmitted": [1, 0, 0, 1], "risk": [0.9, 0.2, 0.4, 0.6]}
    >>> Dataset(rows, label="readmitted", score="risk")
    Dataset(label='readmitted', score='risk', score_range=(0, 1), replace-one neighbours, 4 rows)
    """

    score: str
    classes: tuple[Any, ...]
    scores: tuple[str, ...]
    prediction: str | None

    def __new__(
        cls, *rows: Any, label: Any = None, classes: Any = None, **declared: Any
    ) -> "Dataset":
        if cls is Dataset and classes is not None:
            from heldout.data.classes import ClassifiedDataset as cls
        elif cls is Dataset and label is None and declared.get("time") is not None:
            from heldout.data.measured import SurvivalDataset as cls
        elif cls is Dataset and label is None and declared.get("values") is not None:
            from heldout.data.measured import MeasuredDataset as cls
        refuse_unknown(cls, declared, OF_QUESTIONS)
        return object.__new__(cls)

    def __init__(
        self,
        rows: Any,
        /,
        *,
        label: str | None = None,
        score: str | None = None,
        classes: Sequence[Any] | None = None,
        scores: Sequence[str] | None = None,
        prediction: str | None = None,
        rivals: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        weight: str | None = None,
        largest_weight: float | None = None,
        positive: object = 1,
        negative: object = None,
        unit: str | None = None,
        rows_per_unit: int = 1,
        row_key: str | None = None,
        score_range: tuple[float, float] | Mapping[str, tuple[float, float]] = (0, 1),
        score_map: ScoreMap
        | tuple[float, float]
        | Mapping[str, ScoreMap | tuple[float, float]]
        | None = None,
        score_values: Sequence[float] | None = None,
        out_of_range: str = "refuse",
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        schema: Mapping[str, str] | None = None,
        table: str | None = None,
        query: str | None = None,
        name: str | None = None,
        values: Mapping[str, Any] | None = None,
        time: str | None = None,
        event: str | None = None,
    ) -> None:
        if label is None:
            raise ArgumentError(
                "Pass label=, the column with the outcome; or values= for numbers per row; "
                "or time= and event= for a time to an event."
            )
        if values is not None or time is not None or event is not None:
            raise ArgumentError(
                "Leave values=, time= and event= out when there is a label. Declare a second "
                "Dataset for them: with the same row_key it shares the budget."
            )
        if table is not None or query is not None:
            rows = PostgresTable(rows, table=table, query=query)
        from heldout.data.classes import declared_classes, declared_rivals

        self.classes, self.scores = declared_classes(
            classes, score=score, scores=scores, prediction=prediction
        )
        if self.classes and score_map is not None:
            raise ArgumentError("With classes=, leave score_map= out.")
        self.label, self.score, self.prediction = label, score or "", prediction
        self.rivals = None if rivals is None else checked_rivals(rivals, by_name=bool(self.classes))
        self.calls_of = declared_rivals(rivals, self.rivals or (), len(self.classes))
        self.rival_columns = tuple(name for names in self.calls_of.values() for name in names)
        self.groups = declared_groups(groups)
        self.weight, self.largest_weight = weight, checked_weight(weight, largest_weight)
        first = self.score if isinstance(self.score, str) else ""
        models = [first] if self.classes else [first, *(self.rivals or ())]
        scales = declared_scales(score_range, score_map, models)
        own = scales.pop(first)
        self.score_map = own if isinstance(own, ScoreMap) else None
        self.score_range = ends_of(own)
        self.rival_scales = {name: scale for name, scale in scales.items() if scale != own}
        self.score_values = declared_values(score_values, own)
        self._values = validation.LabelValues(positive, other_label(positive, negative))
        self.out_of_range = OneOf(("refuse", "clip"))(out_of_range, "out_of_range")
        super().__init__(
            rows,
            unit=unit,
            rows_per_unit=rows_per_unit,
            row_key=row_key,
            neighbours=neighbours,
            schema=schema,
            name=name,
        )

    of_outcome: ClassVar[tuple[str, ...]] = ("label",)

    def _outcome(self) -> tuple[str, ...]:
        return (self.label,)

    def _exposed(self) -> dict[str, str]:
        self._require(self.label, self.score, *(self.rivals or ()), *self.groups)
        self._require_plain(self.label, *self.groups)
        types = self._engine.columns
        return {
            "label": sql.as_label(
                sql.column(self.label),
                types[self.label],
                positive=self._values.positive,
                negative=self._values.negative,
            ),
            "score": self._counted(sql.as_double(sql.column(self.score), types[self.score])),
            **self._weights(),
        }

    def _weights(self) -> dict[str, str]:
        """Each row's weight as a share of the largest, where there are weights."""
        if self.weight is None:
            return {}
        self._require(self.weight)
        number = sql.as_double(sql.column(self.weight), self._engine.columns[self.weight])
        return {"weight": f"({number}) / {sql.double(self.largest_weight)}"}

    def _weight_rules(self) -> list[validation.Rule]:
        if self.weight is None:
            return []
        kind, ends = self._engine.columns[self.weight], (0.0, self.largest_weight)
        return validation.range_rules(
            "weight", self.weight, kind, ends=ends, declared="0 and largest_weight"
        )

    def _counted(self, number: str) -> str:
        """Return what a score counts as: itself, the nearer end of the range, or its image."""
        if self.score_map is not None:
            return self.score_map.expression(number)
        if self.out_of_range == "clip":
            low, high = (sql.double(bound) for bound in self.score_range)
            return f"least(greatest({number}, {low}), {high})"
        return number

    def _rules(self) -> list[validation.Rule]:
        label_type = self._engine.columns[self.label]
        required = validation.label_rules(self.label, label_type, self._values)
        required += self._score_rules(self.score)
        for place, rival in enumerate(self.rivals or ()):
            rules = self._score_rules(rival)
            required += [replace(rule, name=f"{rule.name}_{place}") for rule in rules]
        return required + self._weight_rules() + self._group_rules()

    def _scale(self, name: str) -> Scale:
        """Return the scale of a column of scores: its own, or the first model's."""
        own = self.score_range if self.score_map is None else self.score_map
        return self.rival_scales.get(name, own)

    def _score_rules(self, name: str) -> list[validation.Rule]:
        score_type, scale = self._engine.columns[name], self._scale(name)
        if not isinstance(scale, ScoreMap) and self.out_of_range == "refuse":
            return validation.score_rules(name, score_type, scale)
        rules = validation.number_rules("score", name, score_type)
        return rules[:1] if self.out_of_range == "clip" else rules

    def _validate(self) -> int:
        self._cached: dict[str, KeptColumns] = {}
        rows = self._check_arrays()
        return super()._validate() if rows is None else rows

    def _check_arrays(self) -> int | None:
        """Return the number of rows if they are plain arrays that keep every rule.

        None says nothing of the rows: the rules are then looked at one by one. See `ArraysEngine`
        for what this second way of validating is worth.
        """
        engine, types = self._engine, self._engine.columns
        plain = self._values == validation.LabelValues(1, 0) and self.score_map is None
        more = (self._keys.names, self.rivals, self.groups, self.weight, self.classes)
        if not isinstance(engine, ArraysEngine) or not plain or any(more):
            return None
        numbers = types[self.label] in sql.LABEL_TYPES and types[self.score] == "DOUBLE"
        if not numbers or self.out_of_range != "refuse":
            return None
        columns = {"label": engine.arrays[self.label], "score": engine.arrays[self.score]}
        tally = GridTally(self.score_range)
        tally.add(columns)
        if not tally.sound:
            return None
        self._cached[grid_body(self.score_range)] = KeptColumns(tally.columns())
        self._cached[LABELS_AND_SCORES] = KeptColumns(columns)
        return tally.rows

    def _score_table(self, body: str) -> sql.Columns:
        """The score table, on this machine of labels and scores that are read a batch at a time."""
        if self.remote:
            return super()._fetch(body)
        assert isinstance(self._engine, DuckDBEngine)
        self.check_unchanged()
        tally = GridTally(self.score_range)
        self._engine.scan(self.statement(LABELS_AND_SCORES), tally.add)
        return tally.columns()

    def _fetch(self, body: str) -> sql.Columns:
        """As for any private table, but the score table is read from the rows only once.

        Many scores are sorted only once: whatever reads labels and scores asks for no order.
        """
        if body not in self._cached:
            if body == grid_body(self.score_range):
                columns = self._score_table(body)
            else:
                columns = super()._fetch(body)
                if body != LABELS_AND_SCORES or not self._is_worth_sorting(columns):
                    return columns
                columns = by_class(columns)
            self._cached[body] = KeptColumns(columns)
        self.check_unchanged()
        return self._cached[body].open()

    def _is_worth_sorting(self, columns: sql.Columns) -> bool:
        many = FEW_ROWS < len(columns["score"]) <= MOST_SORTED
        return many and not self.remote and sound(columns, self.score_range)

    @property
    def description(self) -> ScoredRows:
        """Return all that is public about these rows."""
        return self._described()

    def _shown(self) -> dict[str, str]:
        label = self.classes or (self._values.positive, self._values.negative)
        scores = (*self.scores, self.score, self.weight, *self.rival_columns)
        columns = {self.label: kind_declared(*label)}
        columns |= {name: "number" for name in scores if name}
        of_calls = [name for name, own in self.calls_of.items() if self.classes and own == (name,)]
        for name in (self.prediction, *of_calls):
            if name is not None:
                columns[name] = kind_declared(*label)
        return columns | super()._shown()

    def _described(self) -> ScoredRows:
        return ScoredRows(
            **self._public_facts(),
            label=self.label,
            score=self.score,
            score_range=self.score_range,
            score_map=self.score_map,
            out_of_range=self.out_of_range,
            rivals=tuple(self.rivals or ()),
            rival_scales=dict(self.rival_scales) or None,
            score_values=self.score_values,
            weight=self.weight,
            largest_weight=self.largest_weight,
        )

    def with_rival(self, score: str) -> "Dataset":
        """The same rows with a second model's score beside the first, as `rival`.

        An analyst names it, so no row may make it fail: it is a declared rival, which was
        validated on its own scale. Only what is declared decides whether it is refused.
        """
        self.description.check_rival(score)
        number = sql.as_double(sql.column(score), self._engine.columns[score])
        scale = self._scale(score)
        if isinstance(scale, ScoreMap):
            rival = scale.expression(sql.held_to(number, -FURTHEST, FURTHEST))
        else:
            rival = sql.held_to(number, *scale)
        return self._view(Dataset, {"rival": rival})

    def with_lists(self) -> "Dataset":
        """The same rows with their unit beside each, as `list`."""
        assert self._keys.unit is not None
        unit = sql.key(self._keys.unit, self._engine.columns[self._keys.unit])
        return self._view(type(self), {"list": unit})

    def __repr__(self) -> str:
        low, high = self.score_range
        scores = f"score_range=({low:g}, {high:g})"
        if self.score_map is not None:
            scores = f"score_map=({self.score_map.centre:g}, {self.score_map.scale:g})"
        clipped = ", clipped" if self.out_of_range == "clip" else ""
        return (
            f"Dataset(label={self.label!r}, score={self.score!r}, {scores}{clipped}, "
            f"{self._about()})"
        )
