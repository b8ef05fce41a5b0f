"""The separability report as one HTML page that needs nothing from anywhere else."""

from html import escape

import heldout
from heldout.report import pieces
from heldout.separability.deep_dive import Clue, DeepDive
from heldout.separability.pictures import clue_figure, group_figure, probability_figure, roc_figure
from heldout.separability.result import CUSTODIAN_ONLY, WHY_CUSTODIAN, Separability

LISTED_CLUES = 20
BANNER = (
    ".banner { background: #b3261e; color: #ffffff; padding: .55rem 1.25rem; text-align: center; "
    "font-weight: 600; position: sticky; top: 0; z-index: 1; margin: 0; max-width: none; }\n"
    "tbody th::first-letter { text-transform: none; }\n"
    "@media print { .banner { position: static; border: 2px solid #000; color: #000; "
    "background: none; } }\n"
)


def page(found: Separability, *, level: float = 0.95) -> str:
    """The whole document."""
    body = (
        f'<p class="banner" role="note">{_capital(CUSTODIAN_ONLY)}: {WHY_CUSTODIAN}</p>\n'
        f"{_header(found)}\n<main>\n{_snapshot(found, level)}\n"
        f"{_deep_dive(found.deep_dive)}\n{_groups(found.deep_dive)}\n{_others(found, level)}\n"
        f"{_reading()}\n</main>\n{_foot(found)}"
    )
    return pieces.document(f"Separability ({CUSTODIAN_ONLY})", body, style=BANNER)


def _header(found: Separability) -> str:
    true, private = found.numbers.rows
    thinned = f"; {found.dropped_rows:,} left out at random" if found.dropped_rows else ""
    constant = len(found.deep_dive.constant)
    kept_out = f", {constant} of them constant" if constant else ""
    facts = [
        ("Rows", f"{true:,} true, {private:,} privatized{thinned}"),
        ("Columns", f"{found.columns:,}{kept_out}; {found.features:,} features"),
        ("Classifier", escape(found.classifier)),
        ("Shuffles", f"{len(found.ratios):,}"),
    ]
    return (
        '<header>\n<p class="eyebrow">Separability</p>\n'
        "<h1>Is the privatized data still the data?</h1>\n"
        f'<p class="lead">{escape(found.snapshot)}</p>\n{pieces.facts(facts)}\n</header>'
    )


def _snapshot(found: Separability, level: float) -> str:
    cards = [
        (
            "separability",
            f"{found.value:.3f}",
            _between(found.interval(level)),
            f"0 is best, {found.ceiling:.3f} the most it can be here",
        ),
        (
            "p-value",
            f"{found.p_value:.2g}",
            f"{len(found.ratios)} shuffles",
            f"{1 / (1 + len(found.ratios)):.2g} is the least they can show",
        ),
    ]
    held_out = found.cross_validated
    if held_out is not None:
        cards.append(
            (
                "on rows held out",
                f"{held_out.value:.3f}",
                _between(held_out.interval(level)),
                "cross-validated",
            )
        )
    bound = found.error_bound
    cards.append(
        (
            "change of error",
            f"{bound.on_these_rows:.3f}",
            f"{bound.in_population(level):.3f} in the population",
            "at most, see below",
        )
    )
    figures = pieces.figures([roc_figure(found), probability_figure(found.deep_dive)])
    return pieces.section("Snapshot", f"{pieces.cards(cards)}\n{figures}")


def _deep_dive(dive: DeepDive) -> str:
    told = "".join(f"<li>{escape(each)}</li>" for each in dive.hints)
    usual = f'<ul class="plain">{told}</ul>' if told else "<p>No usual cause was found.</p>"
    if not dive.clues:
        return pieces.section("What gives it away", "<p>No column varies.</p>")
    rows = [_clue_row(clue) for clue in dive.clues[:LISTED_CLUES]]
    table = pieces.table(
        f"Features by signed {dive.method}; positive speaks for the truth",
        ("Feature", "Weight", "Mean, true", "privatized", "Non-zero, true", "privatized"),
        rows,
    )
    return pieces.section(
        "What gives it away", f"{usual}\n{pieces.figures([clue_figure(dive)])}\n{table}"
    )


def _clue_row(clue: Clue) -> list[str]:
    return [
        escape(clue.name),
        f"{clue.weight:+.3g}",
        f"{clue.mean_true:.3g}",
        f"{clue.mean_privatized:.3g}",
        f"{clue.nonzero_true:.1%}",
        f"{clue.nonzero_privatized:.1%}",
    ]


def _groups(dive: DeepDive) -> str:
    if not dive.groups:
        return ""
    rows = [
        [escape(each.column), f"{each.within:.3g}", f"{each.between:.3g}", f"{each.total:.3g}"]
        for each in dive.groups
    ]
    table = pieces.table(
        "Variance of the probability of being true, privatized rows",
        ("Group", "Within", "Between", "Total"),
        rows,
    )
    said = "".join(
        f"<p>{_share(each.column, each.between, each.total)}</p>" for each in dive.groups
    )
    worst = []
    for each in dive.groups:
        listed = [[escape(g.name), f"{g.rows:,}", f"{_percent(g.probability)}"] for g in each.worst]
        title = f"Worst groups by {each.column}"
        worst.append(pieces.table(title, ("Group", "Rows", "Mean probability"), listed))
    figures = pieces.figures([group_figure(each) for each in dive.groups])
    return pieces.section("By group", f"{table}\n{said}\n{figures}\n{''.join(worst)}")


def _share(column: str, between: float, total: float) -> str:
    if total <= 0:
        return f"{escape(column)}: all rows look alike."
    share = between / total
    if share >= 0.5:
        return (
            f"{escape(column)}: {share:.0%} of the variance lies between groups. Some are "
            "consistently worse than others; look at the worst ones."
        )
    return (
        f"{escape(column)}: {share:.0%} of the variance lies between groups; rows differ within "
        "them."
    )


def _others(found: Separability, level: float) -> str:
    rows = []
    if found.detection_auc is not None:
        rows.append(["Detection AUC, rows held out", f"{found.detection_auc:.3f}", "1/2"])
    in_sample = found.numbers.detection_auc_in_sample
    shuffled = found.roc["shuffled labels"]
    level_of_chance = sum(
        (b - a) * (c + d) / 2
        for a, b, c, d in zip(
            shuffled.fpr, shuffled.fpr[1:], shuffled.tpr, shuffled.tpr[1:], strict=False
        )
    )
    rows.append(
        ["Detection AUC, rows fitted to", f"{in_sample:.3f}", f"{level_of_chance:.3f} (shuffled)"]
    )
    if found.pmse is not None and found.pmse_ratio is not None:
        chance = f"{found.numbers.propensity_shuffled:.4f} (shuffled)"
        rows.append(["pMSE", f"{found.pmse:.4f}", chance])
        rows.append(["pMSE ratio", f"{found.pmse_ratio:.2f}", "1"])
    rows.append(["Spread of single shuffles", f"{found.spread:.3f}", ""])
    table = pieces.table(
        "Other scores of the same run", ("Score", "Value", "Where nothing can be told apart"), rows
    )
    bound = found.error_bound
    return pieces.section(
        "For those who know other scores",
        f"{table}\n<h3>What the score bounds</h3>\n<p>No yes-or-no question that the classifier’s "
        f"class can ask has shares of yes that differ by more than {bound.on_these_rows:.3f} "
        f"between these two tables (by more than {bound.in_population(level):.3f} in the "
        f"population, with {level:.0%} confidence, for independent rows), so long as the fit found "
        "the class’s best. A classifier’s mistakes are such a question if the class is closed "
        "under XOR, as trees are; then this bounds how far its error may change.</p>",
    )


def _reading() -> str:
    return pieces.section(
        "How to read it",
        "<p>The score is the classifier’s accuracy over its accuracy on shuffled labels, less 1, "
        "averaged over shuffles. Both are taken on the rows that the classifier was fitted to, on "
        "purpose: the shuffled fit measures how much this class of classifiers overfits.</p>\n"
        "<p>It is not held to 0 and 1. On small data it may be negative, or above 1 where a "
        "shuffled fit falls below a half. A classifier that fits shuffled labels well has little "
        "room: the score is at most 1 over the shuffled accuracy, less 1. A number clearly below 0 "
        "means that the two tables are nearer to each other than new draws would be, as copies "
        "are.</p>\n"
        f"<p><strong>{_capital(CUSTODIAN_ONLY)}.</strong> Nothing on this page is private. For a "
        "number to publish use <code>private_separability</code>, which pays for it.</p>",
    )


def _foot(found: Separability) -> str:
    return (
        f'<footer>\n<p class="note">heldout {escape(heldout.__version__)}, '
        f"{escape(found.classifier)}. {_capital(CUSTODIAN_ONLY)}.</p>\n</footer>"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.2g}%" if share < 0.1 else f"{share:.1%}"


def _between(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
