"""What a report asks for, one section each, and what share of the price it takes.

To add one: write its `Section` and put it into `SECTIONS`. The command line, the JSON and the
page find it there. Shares go by weight among the sections that apply, so they are public and add
up to the whole price exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout import questions as q
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.metrics.measure import Measure
from heldout.metrics.registry import registered
from heldout.metrics.release import Release


@dataclass(frozen=True)
class Options:
    """What the asker may choose for all sections. Public."""

    threshold: float
    scores: str | None = None  # "exact" or "grid"; None leaves it to the number of rows
    by: Any = None  # the declared groups of the section by group
    inside: bool = True  # whether the threshold lies above the lowest score
    beside: frozenset[str] = frozenset()  # the sections that are bought in the same report
    weighted: bool = False  # whether rows count by their declared weights
    k: int = 10  # how many rows of a ranked list count


def _always(about: ScoredRows) -> str | None:
    return None


def _all_measures(release: Release) -> dict[str, Measure]:
    return release.measures


@dataclass(frozen=True)
class Section:
    """One release of a report.

    `question` asks for it at a share of the price; `why_not` says why it does not apply to rows
    with this description; `plotted` are the measures of the interval plot, all in [0, 1];
    `cards` are those shown large, the headline if none.
    """

    name: str
    title: str
    meaning: str
    weight: int
    question: Callable[[Fraction, Options], q.Question]
    why_not: Callable[[ScoredRows], str | None] = _always
    plotted: Callable[[Release], dict[str, Measure]] = _all_measures
    cards: tuple[str, ...] = ()
    lower_is_better: bool = False
    takes_weights: bool = False
    """Whether rows may count by their weights; if not, a weighted report leaves it out."""
    joint_weight: int | None = None
    """Where the area and the curves are bought together: neither buys what the other tells."""


def _auc(epsilon: Fraction, options: Options) -> q.Question:
    return q.Auc(epsilon=epsilon, scores=options.scores)


def _average_precision(epsilon: Fraction, options: Options) -> q.Question:
    return q.AveragePrecision(epsilon=epsilon, scores=options.scores)


def _confusion(epsilon: Fraction, options: Options) -> q.Question:
    at, weighted = options.threshold, options.weighted
    return q.Confusion(threshold=at, epsilon=epsilon, weighted=weighted)


def _ratios(release: Release) -> dict[str, Measure]:
    return {name: each for name, each in release.measures.items() if name in registered()}


def _brier(epsilon: Fraction, options: Options) -> q.Question:
    return q.Brier(epsilon=epsilon, weighted=options.weighted)


def _not_a_probability(about: Any) -> str | None:
    if isinstance(about, ClassifiedRows) and not about.scores:
        return _no_scores(about)
    if about.score_range == (0.0, 1.0):
        return None
    low, high = about.score_range
    if about.score_map is not None:
        return "it judges probabilities, and the scores have no range"
    if (low, high) == (0.0, 100.0):
        return "it judges probabilities, and these are percentages: divide them by 100"
    return f"it judges probabilities, and the scores have the range {low:g} to {high:g}"


def _curves(epsilon: Fraction, options: Options) -> q.Question:
    """The table alone where the area and the counts at the threshold are bought beside it."""
    if "auc" not in options.beside:
        return q.Curves(epsilon=epsilon)
    if "confusion" not in options.beside or not options.inside:
        return q.Curves(epsilon=epsilon, options={"area_share": "0"})
    return q.Curves(
        epsilon=epsilon,
        thresholds=[options.threshold],
        options={"area_share": "0", "named_share": "0"},
    )


def _curve_measures(release: Release) -> dict[str, Measure]:
    """Those that are better when they are higher."""
    return dict(list(release.measures.items())[:3])


def _grid_ties(epsilon: Fraction, options: Options) -> q.Question:
    return q.GridTies(epsilon=epsilon)


def _nothing(release: Release) -> dict[str, Measure]:
    return {}


SECTIONS: tuple[Section, ...] = (
    Section(
        name="auc",
        title="Ranking: area under the ROC curve",
        meaning="How often a positive row has a higher score than a negative one; a tie counts "
        "one half, and 0.5 is chance.",
        weight=20,
        joint_weight=70,
        question=_auc,
    ),
    Section(
        name="average_precision",
        title="Ranking: average precision",
        meaning="The precision at the positive rows' ranks, on average: high if alarms at the "
        "top of the list are right. Chance gives the prevalence.",
        weight=40,
        joint_weight=42,
        question=_average_precision,
    ),
    Section(
        name="confusion",
        title="Decisions at the threshold",
        meaning="How often the model is right when it calls a row positive at the threshold.",
        weight=40,
        joint_weight=42,
        question=_confusion,
        plotted=_ratios,
        cards=("accuracy", "recall", "precision"),
        takes_weights=True,
    ),
    Section(
        name="brier",
        title="Brier score",
        meaning="How far the predicted probability lies from the outcome, squared, on average; "
        "0 is perfect.",
        weight=20,
        question=_brier,
        why_not=_not_a_probability,
        lower_is_better=True,
        takes_weights=True,
    ),
)


WITH_CURVES: tuple[Section, ...] = (
    Section(
        name="curves",
        title="Curves",
        meaning="One table of noisy counts by score, and all that is read off it: the ROC and the "
        "precision-recall curve, the largest gap between the two rates (KS) and how far "
        "predicted lie from observed shares.",
        weight=120,
        joint_weight=66,
        question=_curves,
        plotted=_curve_measures,
    ),
)
"""What a report holds beside the rest if curves are asked for."""


ON_GRID: tuple[Section, ...] = (
    Section(
        name="grid_ties",
        title="Ties on the grid",
        meaning="So many rows are ranked by score cells on the public grid. This is the share of "
        "pairs of a positive and a negative row that share a cell; half of it is what the order "
        "within cells can do to the AUC.",
        weight=1,
        question=_grid_ties,
        plotted=_nothing,
        lower_is_better=True,
    ),
)
"""What a report holds beside the rest if scores are ranked on the grid."""


def _no_scores(about: Any) -> str | None:
    return None if about.scores else "the rows have a predicted class and no scores"


def _of_all_classes(release: Release) -> dict[str, Measure]:
    return {name: each for name, each in release.measures.items() if ", " not in name}


OF_CLASSES: tuple[Section, ...] = (
    Section(
        name="confusion_of_classes",
        title="Decisions by class",
        meaning="How often each class is called each other one, and what follows from it; macro "
        "means that all classes count alike, weighted that they count as often as they are true.",
        weight=40,
        question=lambda epsilon, options: q.ClassConfusion(
            epsilon=epsilon, weighted=options.weighted
        ),
        plotted=_of_all_classes,
        cards=("accuracy", "balanced accuracy", "macro F1 score"),
        takes_weights=True,
    ),
    Section(
        name="auc_of_classes",
        title="Ranking: each class against the others",
        meaning="How often a row of the class has a higher score for it than a row of another "
        "class; 0.5 is chance. The macro AUC is the plain mean.",
        weight=80,
        question=lambda epsilon, options: q.ClassAuc(epsilon=epsilon),
        why_not=_no_scores,
    ),
    Section(
        name="top_k",
        title="Top-k accuracy",
        meaning="How often the true class is among the k of the highest scores.",
        weight=10,
        question=lambda epsilon, options: q.TopK(epsilon=epsilon, weighted=options.weighted),
        why_not=_no_scores,
        takes_weights=True,
    ),
)
"""What a report of several classes holds, beside the Brier score."""


CLASSES_ON_DEMAND: tuple[Section, ...] = (
    Section(
        name="class_average_precision",
        title="Ranking: average precision of each class",
        meaning="The precision at the ranks of the class's rows by its score, on average. Chance "
        "gives the share of the class; the macro average precision is the plain mean.",
        weight=160,
        question=lambda epsilon, options: q.ClassAveragePrecision(epsilon=epsilon),
        why_not=_no_scores,
    ),
)
"""What it holds beside that only if it is named."""


def _no_lists(about: Any) -> str | None:
    if isinstance(about, ClassifiedRows):
        return "lists are ranked by one score, and there is one for each class"
    if not about.protection.unit:
        return "a list is the rows of one unit (a query, a user): declare the unit's column"
    if about.remote:
        return "lists are ranked in memory: copy the rows out of their database"
    return None


ON_DEMAND: tuple[Section, ...] = (
    Section(
        name="log_loss",
        title="Log loss",
        meaning="The mean of -ln of the probability that the model gave to what was true, none "
        "below 0.01; a coin has 0.69.",
        weight=20,
        question=lambda epsilon, options: q.LogLoss(epsilon=epsilon, weighted=options.weighted),
        why_not=_not_a_probability,
        plotted=_nothing,
        lower_is_better=True,
        takes_weights=True,
    ),
    Section(
        name="ndcg",
        title="Ranked lists: NDCG",
        meaning="How near the order of each list comes to the best one, first places counting "
        "most; the mean over lists. 1 is perfect, and a list without a positive row has 0.",
        weight=20,
        question=lambda epsilon, options: q.Ndcg(epsilon=epsilon, k=options.k),
        why_not=_no_lists,
    ),
    Section(
        name="precision_at_k",
        title="Ranked lists: precision at k",
        meaning="The share of positive rows among the first k of each list; the mean over lists.",
        weight=20,
        question=lambda epsilon, options: q.PrecisionAtK(epsilon=epsilon, k=options.k),
        why_not=_no_lists,
    ),
)
"""What a report holds only if it is named."""


EVERY = (*(each.name for each in (*SECTIONS, *WITH_CURVES)), "top_k")
EVERY = (*EVERY, *(each.name for each in (*ON_DEMAND, *CLASSES_ON_DEMAND)))
"""What a report may be asked for, by name."""


def _decisions_by_group(epsilon: Fraction, options: Options) -> q.Question:
    at, weighted = options.threshold, options.weighted
    return q.Confusion(threshold=at, epsilon=epsilon, by=options.by, weighted=weighted)


BY_GROUP: tuple[Section, ...] = (
    Section(
        name="groups",
        title="Decisions by group, threshold",
        meaning="The same decisions for each declared group, how far apart the groups are, and "
        "how often chance would put them so far apart. Groups that noise drowned are not compared.",
        weight=40,
        question=_decisions_by_group,
        plotted=_nothing,
        cards=("gap in recall", "gap in selection rate", "gap in accuracy"),
        takes_weights=True,
    ),
)
"""What a report holds beside the rest if groups are named."""


CLASSES_BY_GROUP: tuple[Section, ...] = (
    Section(
        name="groups_of_classes",
        title="Decisions by group",
        meaning="How often the called class is the true one in each declared group, how far apart "
        "the groups are, and how often chance would put them so far apart. Groups that noise "
        "drowned are not compared.",
        weight=40,
        question=lambda epsilon, options: q.ClassConfusion(
            epsilon=epsilon, by=options.by, weighted=options.weighted
        ),
        plotted=_nothing,
        takes_weights=True,
    ),
)
"""The same of several classes."""


CURVES_BY_GROUP: tuple[Section, ...] = (
    Section(
        name="curves_by_group",
        title="Curves by group",
        meaning="The areas of each declared group's curve, the largest gap between its two rates "
        "(KS) and how far predicted lie from observed shares; how far apart the groups are, and "
        "how often chance would put them so far apart.",
        weight=120,
        question=lambda epsilon, options: q.Curves(epsilon=epsilon, by=options.by),
        plotted=_nothing,
    ),
)
"""Which `heldout curves --by` shows by itself."""


def section(name: str) -> Section:
    """A section by its name."""
    every = (*SECTIONS, *WITH_CURVES, *ON_GRID, *BY_GROUP, *OF_CLASSES)
    every = (*every, *CLASSES_BY_GROUP, *CURVES_BY_GROUP, *ON_DEMAND, *CLASSES_ON_DEMAND)
    return next(each for each in every if each.name == name)


def shared(total: Fraction, weights: dict[str, int]) -> dict[str, Fraction]:
    """The total by weight, exactly.

    >>> shared(Fraction(1), {"confusion": 2, "brier": 1})
    {'confusion': Fraction(2, 3), 'brier': Fraction(1, 3)}
    """
    whole = sum(weights.values())
    return {name: total * weight / whole for name, weight in weights.items()}
