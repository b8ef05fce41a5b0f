"""Boyd, Lantz and Page, 2015, figure 2 (and Boyd, 2014, figure 5.1): a label from a published AUC.

An adversary knows all rows but one and the AUC of all, rounded to some digits. She puts the
missing row at every rank and guesses the class that comes closest. Beside the paper's curves this
draws the same attack on our own releases of the AUC, which must stay below e^epsilon/(1 +
e^epsilon), whoever attacks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heldout.audit.attacks import label_from_auc, metric_value, most_success
from heldout_papers.altair_svg import rows
from heldout_papers.colours import scale
from heldout_papers.registry import Claim, Context, Reproduction, Verdict, figure
from heldout_papers.scored_sets import ADULT, adult

_SIZES = (50, 100, 200, 500, 1_000, 1_500, 2_000, 2_500)
_DIGITS = (7, 6, 5, 4, 3, 2)
_REPETITIONS = 400
_EPSILON = "1"
_SEED = 20150810
_NOTE = "UCI adult, test split, logistic regression on the training split"
_MADE_UP = "made-up scores: positives normal(1.3, 1), negatives normal(0, 1), as a probability"


class _Job(NamedTuple):
    size: int
    repetitions: int
    positives: Any
    negatives: Any
    seed: Any


class _Success(NamedTuple):
    size: int
    repetitions: int
    series: dict[str, float]


@figure(
    paper="boyd-2015",
    number="2",
    quick=40,
    title="An adversary's success in finding a label from AUC",
)
def attack_on_auc(context: Context) -> Reproduction:
    """Success at finding the missing row's class, by size and by digits; and against heldout."""
    return _made(context)


@figure(
    paper="boyd-2014",
    number="5.1",
    quick=40,
    title="An adversary's success in finding a label from AUC",
)
def attack_on_auc_2014(context: Context) -> Reproduction:
    """The same figure in the dissertation."""
    return _made(context)


def _made(context: Context) -> Reproduction:
    if "boyd-2015 attack" not in context.shared:
        context.shared["boyd-2015 attack"] = _simulated(context)
    table, source, repetitions = context.shared["boyd-2015 attack"]
    limit = most_success(float(_EPSILON))
    pooled = max(
        float(np.mean([row["success"] for row in table if row["what"] == name])) for name in _OURS
    )
    error = float(np.sqrt(pooled * (1 - pooled) / (repetitions * len(_SIZES))))
    return Reproduction(
        title="An adversary's success in finding the class of a missing row from the AUC",
        table=table,
        charts=[_chart(table, limit)],
        description=(
            "Success against data set size. With seven digits it is near one, with two digits "
            f"near one half; against private releases it stays below {limit:.3f}."
        ),
        notes=[
            f"{source}; {repetitions} data sets a point.",
            "The known rows are half and half but for one, and the missing row is positive or "
            "negative with equal chance. In the paper all rows together are half and half, so "
            "that counting the known ones gives the label away without any AUC.",
            "Ties between the classes go to the one that comes closest at more ranks, then to a "
            "coin. The paper does not say how it breaks them further.",
            f"heldout at epsilon {_EPSILON}: the better adversary finds {pooled:.3f} over all sizes"
            f" (standard error {error:.3f}); the most that anybody can find is {limit:.3f}.",
        ],
        claims=_claims(table, pooled, limit),
    )


_PROTOCOL = (
    "The protocol is changed: the known rows, not all rows, are half and half, because otherwise "
    "counting them gives the label away without any AUC."
)


def _claims(table: list[dict[str, Any]], pooled: float, limit: float) -> list[Claim]:
    found = {
        digits: float(np.mean([r["success"] for r in table if r["what"] == f"{digits} digits"]))
        for digits in _DIGITS
    }
    return [
        Claim(
            "With many digits the class is found with high probability",
            "near 1",
            f"{found[max(_DIGITS)]:.2f} with {max(_DIGITS)} digits over all sizes",
            found[max(_DIGITS)] > 0.9,
            _PROTOCOL,
        ),
        Claim(
            "Rounding makes the adversary less successful",
            "graph",
            ", ".join(f"{digits} digits {value:.2f}" for digits, value in found.items()),
            found[max(_DIGITS)] > found[min(_DIGITS)] + 0.2,
            _PROTOCOL,
        ),
        Claim(
            f"Against a private release at epsilon {_EPSILON} the success stays below {limit:.3f}",
            "not in the paper",
            f"{pooled:.3f}",
            Verdict.OURS,
        ),
    ]


def _simulated(context: Context) -> tuple[list[dict[str, Any]], str, int]:
    positives, negatives, source = _scores(context)
    repetitions = context.repetitions or _REPETITIONS
    seeds = np.random.SeedSequence(_SEED).spawn(len(_SIZES))
    jobs = [
        _Job(size, repetitions, positives, negatives, seed)
        for size, seed in zip(_SIZES, seeds, strict=True)
    ]
    found = sorted(context.over(_attacked, jobs, label="attacks"), key=lambda each: each.size)
    table = [
        {
            "size": each.size,
            "what": name,
            "success": success,
            "error": float(np.sqrt(success * (1 - success) / each.repetitions)),
        }
        for each in found
        for name, success in each.series.items()
    ]
    return table, source, repetitions


def _scores(context: Context) -> tuple[Any, Any, str]:
    """Scores of either class: of the paper's data set if it is there, else made up."""
    if context.data is not None and (context.data / ADULT).exists():
        known = adult(context.data, rows=16_000)
        labels, scores = np.asarray(known.labels), np.asarray(known.scores)
        return scores[labels == 1], scores[labels == 0], _NOTE
    random = np.random.default_rng(_SEED)
    made = [random.normal(mean, 1.0, 8000) for mean in (1.3, 0.0)]
    positives, negatives = (1 / (1 + np.exp(-each)) for each in made)
    return positives, negatives, _MADE_UP


def _attacked(job: _Job) -> _Success:
    """Success over the repetitions of one size, of each adversary."""
    random = np.random.default_rng(job.seed)
    half = job.size // 2
    names = [*(f"{digits} digits" for digits in _DIGITS), *_OURS]
    total = dict.fromkeys(names, 0.0)
    for _ in range(job.repetitions):
        # Half and half, give or take a row; the missing row is a coin apart from that.
        n, m = (half, half - 1) if random.integers(2) else (half - 1, half)
        truth = int(random.integers(2))
        up = random.choice(job.positives, n + 1, replace=False)
        down = random.choice(job.negatives, m + 1, replace=False)
        known = (up[:n], down[:m])
        scores = np.concatenate([*known, up[n:] if truth else down[m:]])
        labels = np.concatenate([np.ones(n), np.zeros(m), [truth]]).astype(int)
        published = float(metric_value("auc", labels, scores))
        for digits in _DIGITS:
            guess = label_from_auc(known[0], known[1], published, decimals=digits)
            total[f"{digits} digits"] += 0.5 if guess == 0.5 else guess == truth
        for name, guess in _guesses(labels, scores, known).items():
            total[name] += 0.5 if guess == 0.5 else guess == truth
    series = {name: float(value) / job.repetitions for name, value in total.items()}
    return _Success(job.size, job.repetitions, series)


_OURS = ("heldout, from the AUC", "heldout, from the class counts")
_WIDE = 360


def _guesses(labels: Any, scores: Any, known: tuple[Any, Any]) -> dict[str, float]:
    """Both adversaries on one release: the paper's, and one that looks at the noisy counts."""
    from heldout.one_off import roc_auc_score

    release = roc_auc_score(labels, scores, epsilon=_EPSILON)
    noisy = release._noisy()
    if "unclamped" in noisy:
        looks = [*noisy["class_counts"], *noisy["noisy_counts"]]
        area = noisy["unclamped"]
        count = min(looks, key=lambda look: look["scale"])["positives"]
    else:  # few rows: counts by score, which know the class better than the looks before them
        area, count = release.value, sum(noisy["positives"])
    here = len(known[0])
    from_counts = 0.5 if count == here + 0.5 else float(count > here + 0.5)
    from_area = label_from_auc(known[0], known[1], area)
    return dict(zip(_OURS, (from_area, from_counts), strict=True))


def _chart(table: list[dict[str, Any]], limit: float) -> Any:
    import altair as alt

    order = [*(f"{digits} digits" for digits in _DIGITS), *_OURS]
    lines = (
        alt.Chart(rows(table))
        .mark_line(point=True)
        .encode(
            x=alt.X("size:Q", title="Rows"),
            y=alt.Y("success:Q", title="Share of labels found", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "what:N",
                title=None,
                scale=scale(order),
                legend=alt.Legend(orient="bottom", columns=1, labelLimit=240),
            ),
            strokeDash=alt.condition(
                "indexof(datum.what, 'heldout') == 0", alt.value([4, 3]), alt.value([1, 0])
            ),
        )
    )
    borders = [
        {"y": 0.5, "what": "a coin"},
        {"y": limit, "what": f"the most that epsilon {_EPSILON} allows"},
    ]
    rules = alt.Chart(rows(borders)).mark_rule().encode(y="y:Q")
    words = (
        alt.Chart(rows(borders))
        .mark_text(align="left", dx=6, fontSize=11)
        .encode(y="y:Q", x=alt.value(_WIDE), text="what:N")
    )
    return (lines + rules + words).properties(width=_WIDE)
