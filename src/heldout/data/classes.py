"""Rows whose label is one of several declared classes, with a score for each or a prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from heldout.arguments import as_whole, is_one_of, shown
from heldout.data import sql, validation
from heldout.data.dataset import Dataset
from heldout.data.description import Description, ScoredRows
from heldout.errors import ArgumentError, UndeclaredRival

MOST_CLASSES: Final = 50


@dataclass(frozen=True, kw_only=True)
class ClassifiedRows(Description):
    """Describes rows of several classes: all that is public about them."""

    rows_in_words: ClassVar[str] = "rows with a label of several classes"
    takes_model: ClassVar[bool] = True
    label: str
    classes: tuple[str, ...]
    """Names for people, in the declared order."""
    scores: tuple[str, ...] = ()
    prediction: str | None = None
    score_range: tuple[float, float] = (0.0, 1.0)
    rivals: tuple[str, ...] = ()
    """Other models whose calls may be compared: those that were declared."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.score)

    @property
    def score(self) -> str:
        return self.prediction or ", ".join(self.scores)

    @property
    def called_by_scores(self) -> bool:
        """Return True if the model says the class of the highest score, not `prediction`."""
        return self.prediction is None

    @property
    def no_scores(self) -> str | None:
        """Return why a question cannot be asked that needs a score for each class, if so."""
        return None if self.scores else "the rows have a predicted class and no scores"

    def check_scores(self) -> None:
        """Refuse a question that needs a score for each class."""
        if not self.scores:
            raise ArgumentError(
                "These rows have a predicted class and no scores. Declare scores=, one column for "
                "each class."
            )

    def check_rival(self, name: str) -> None:
        """Refuse a model that was not declared, and so never validated."""
        if not is_one_of(name, self.rivals):
            raise UndeclaredRival(
                f"score must be one of the data set's declared rivals, got {shown(name)}, which "
                f"was never validated. Declare rivals=[{shown(name)}], a column of "
                f"classes, or rivals={{{shown(name)}: [...]}}, a column of scores for each class."
            )

    def versus(self, place: int) -> ScoredRows:
        """One class against all others, by its own score."""
        self.check_scores()
        return ScoredRows(
            name=self.name,
            protection=self.protection,
            rows=self.rows,
            columns=self.columns,
            remote=self.remote,
            label=f"{self.label} = {self.classes[place]}",
            score=self.scores[place],
            score_range=self.score_range,
            groups=self.groups,
        )

    def scores_in_words(self) -> str:
        """Say in words what the model gives for a row."""
        low, high = self.score_range
        if self.called_by_scores:
            return f"from {low:g} to {high:g}, one for each class; the highest is its call"
        return "not used for its calls"

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {
            "label": self.label,
            "classes": list(self.classes),
            "scores": list(self.scores),
            "prediction": self.prediction,
            "score": self.model,
            "score_range": list(self.score_range),
        }


class ClassifiedDataset(Dataset):
    """A `Dataset` with `classes`. Statements see each row as these numbers, all of its own cells.

    `truth` and `called` are places in the list of classes; `score_0`, `score_1`, ... the scores,
    `top` the highest of them and `own` that of the true class. Without a column of predictions
    `called` is the first class whose score is `top`.
    """

    of_outcome: ClassVar[tuple[str, ...]] = ("label", "truth", "own")

    def _exposed(self) -> dict[str, str]:
        columns = (*self.scores, *(() if self.prediction is None else (self.prediction,)))
        self._require(*columns, *self.rival_columns)
        self._require_plain(self.label, *self.groups)
        exposed = {"truth": self._place(self.label)}
        if self.prediction is not None:
            exposed["called"] = self._place(self.prediction)
        scores = [self._number(name) for name in self.scores]
        exposed |= {f"score_{place}": score for place, score in enumerate(scores)}
        if scores:
            exposed["top"] = f"greatest({', '.join(scores)})"
            whens = zip(self._tests(self.label), scores, strict=True)
            exposed["own"] = (
                f"CASE {' '.join(f'WHEN {test} THEN {score}' for test, score in whens)} END"
            )
        return exposed | self._weights()

    def _number(self, name: str) -> str:
        return self._counted(sql.as_double(sql.column(name), self._engine.columns[name]))

    def _tests(self, name: str) -> list[str]:
        cell, kind = sql.column(name), self._engine.columns[name]
        return [sql.equals(cell, kind, value) for value in self.classes]

    def _place(self, name: str) -> str:
        """The place of a cell's value in the list of classes; NULL, which is refused, if none."""
        tests = enumerate(self._tests(name))
        return f"CASE {' '.join(f'WHEN {test} THEN {place}' for place, test in tests)} END"

    def _rules(self) -> list[validation.Rule]:
        required = self._class_rules("label", self.label)
        if self.prediction is not None:
            required += self._class_rules("prediction", self.prediction)
        for place, name in enumerate(self.scores):
            rules = self._score_rules(name)
            required += [replace(rule, name=f"{rule.name}_{place}") for rule in rules]
        place = 0
        for rival, names in self.calls_of.items():
            for name in names:
                says = names == (rival,)
                rules = self._class_rules("rival", name) if says else self._score_rules(name)
                required += [replace(rule, name=f"{rule.name}_of_rival_{place}") for rule in rules]
                place += 1
        return required + self._weight_rules() + self._group_rules()

    def _class_rules(self, role: str, name: str) -> list[validation.Rule]:
        """A label, or a prediction, is there, and is one of the declared classes."""
        advice = "one of the declared classes. Declare the others, or map them to one of these."
        return validation.value_rules(role, name, self._tests(name), advice)

    def _described(self) -> ClassifiedRows:  # type: ignore[override]
        return ClassifiedRows(
            **self._public_facts(),
            label=self.label,
            classes=tuple(map(str, self.classes)),
            scores=self.scores,
            prediction=self.prediction,
            score_range=self.score_range,
            rivals=tuple(self.rivals or ()),
            weight=self.weight,
            largest_weight=self.largest_weight,
        )

    def versus(self, place: int) -> Dataset:
        """The same rows as those of a `Dataset` with a label, this class or not, and its score."""
        self._described().check_scores()
        other, own = object.__new__(Dataset), self.scores[place]
        other.__dict__.update(self.__dict__)
        other.__dict__ |= {"label": f"{self.label} = {self.classes[place]}", "score": own}
        label = f"CASE WHEN {self._tests(self.label)[place]} THEN 1 ELSE 0 END"
        other._exposed_columns = {"label": label, "score": self._number(own), **self._weights()}
        other._cached = {}  # score tables of another label and score
        return other

    def with_calls(self) -> "ClassifiedDataset":
        """The same rows with the place of the class that the model says, as `called`."""
        called = {} if self.prediction is not None else {"called": self._highest(self.scores)}
        return self._view(ClassifiedDataset, called)

    def with_rival(self, score: str) -> "ClassifiedDataset":
        """The same rows with what both models say: `called`, and the other one's as `rival`.

        An analyst names it, so no row may make it fail: it is a declared rival, whose columns were
        validated as those of the first model. Only what is declared decides whether it is refused.
        """
        self._described().check_rival(score)
        names = self.calls_of[score]
        other = self._place(score) if names == (score,) else self._highest(names)
        return self.with_calls()._view(ClassifiedDataset, {"rival": other})

    def _highest(self, names: Sequence[str]) -> str:
        """The place of the first of the highest scores in these columns."""
        scores = [self._number(name) for name in names]
        top = f"greatest({', '.join(scores)})"
        whens = (f"WHEN {score} >= {top} THEN {place}" for place, score in enumerate(scores))
        return f"CASE {' '.join(whens)} END"

    def __repr__(self) -> str:
        return (
            f"Dataset(label={self.label!r}, classes={self.classes!r}, "
            f"{'scores' if self.prediction is None else 'prediction'}="
            f"{self.prediction or self.scores!r}, {self._about()})"
        )


def declared_classes(
    classes: Any, *, score: Any, scores: Any, prediction: Any
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The classes and the columns of their scores, checked; both empty if none are declared."""
    if classes is None:
        if scores is not None or prediction is not None:
            raise ArgumentError("scores= and prediction= need classes=[...].")
        if score is None:
            raise ArgumentError("Pass score=, the column with the model's score.")
        return (), ()
    if score is not None:
        raise ArgumentError(
            "With classes=, leave score= out and pass scores=, one column per class."
        )
    listed = tuple(classes) if isinstance(classes, list | tuple) else ()
    kinds = all(isinstance(value, str) or as_whole(value) is not None for value in listed)
    if not kinds or not 2 <= len(listed) <= MOST_CLASSES:
        raise ArgumentError(
            f"classes must be a list of 2 to {MOST_CLASSES} texts or whole numbers, "
            f"got {shown(classes)}."
        )
    if len(set(map(str, listed))) < len(listed):
        raise ArgumentError("classes must be different values.")
    columns = _columns(scores)
    if columns and len(columns) != len(listed):
        raise ArgumentError(
            f"scores must be {len(listed)} columns, one for each class, got {len(columns)}."
        )
    if prediction is not None and not isinstance(prediction, str):
        raise ArgumentError(f"prediction must be the name of a column, got {shown(prediction)}.")
    if not columns and prediction is None:
        raise ArgumentError("Pass scores=, one column per class, or prediction=, one column.")
    return listed, columns


def declared_rivals(rivals: Any, names: Sequence[str], classes: int) -> dict[str, tuple[str, ...]]:
    """The columns of each other model: itself, or with classes a column of scores for each."""
    if not isinstance(rivals, Mapping):
        return {name: (name,) for name in names}
    columns = {name: _columns(rivals[name]) for name in names}
    if any(len(listed) != classes for listed in columns.values()):
        raise ArgumentError(f"rivals must have {classes} columns each, one for each class.")
    return columns


def _columns(scores: Sequence[str] | None) -> tuple[str, ...]:
    if scores is None:
        return ()
    listed = tuple(scores) if isinstance(scores, list | tuple) else ()
    if not listed or not all(isinstance(name, str) for name in listed):
        raise ArgumentError(f"scores must be a list of columns, got {shown(scores)}.")
    if len(set(listed)) < len(listed):
        raise ArgumentError("scores must be different columns.")
    return listed


def class_columns(into: str, labels: Sequence[str], width: int) -> list[str]:
    """Names for the columns of several classes' scores: by the classes' own, or by their places.

    >>> class_columns("score", ["low", "high"], 2), class_columns("score", ["a", "A"], 2)
    (['score_low', 'score_high'], ['score_0', 'score_1'])
    """
    plain = all(label.isprintable() and 0 < len(label) <= 60 for label in labels)
    if not plain or len({label.lower() for label in labels}) != width:
        labels = [str(place) for place in range(width)]
    return [f"{into}_{label}" for label in labels]
