"""The separability report as one HTML page that needs nothing from anywhere else."""

from heldout.drawing.page import rendered
from heldout.questions.separability.pictures import (
    clue_figures,
    group_figure,
    probability_figure,
    roc_figure,
)
from heldout.questions.separability.result import CUSTODIAN_ONLY, WHY_CUSTODIAN, Separability

LISTED_CLUES = 20


def page(found: Separability, *, level: float = 0.95) -> str:
    """The whole document."""
    dive = found.deep_dive
    return rendered(
        "separability.html",
        title=f"Separability ({CUSTODIAN_ONLY})",
        audience=CUSTODIAN_ONLY,
        why=WHY_CUSTODIAN,
        found=found,
        level=level,
        between=lambda ends: f"{ends[0]:.3f} to {ends[1]:.3f}",
        drawn=[roc_figure(found), probability_figure(dive)],
        clue_figures=clue_figures(dive),
        clues=[
            (
                clue.name,
                f"{clue.weight:+.3g}",
                f"{clue.mean_true:.3g}",
                f"{clue.mean_privatized:.3g}",
                f"{clue.nonzero_true:.1%}",
                f"{clue.nonzero_privatized:.1%}",
            )
            for clue in dive.clues[:LISTED_CLUES]
        ],
        variances=[
            (each.column, f"{each.within:.3g}", f"{each.between:.3g}", f"{each.total:.3g}")
            for each in dive.groups
        ],
        group_figures=[group_figure(each) for each in dive.groups],
        worst_groups=[
            (each.column, [(g.name, f"{g.rows:,}", _percent(g.probability)) for g in each.worst])
            for each in dive.groups
        ],
        others=_others(found),
    )


def _others(found: Separability) -> list[tuple[str, str, str]]:
    """Score, value, and the value where nothing can be told apart."""
    numbers, shuffled = found.numbers, found.roc["shuffled labels"]
    chance = sum(
        (b - a) * (c + d) / 2
        for a, b, c, d in zip(
            shuffled.fpr, shuffled.fpr[1:], shuffled.tpr, shuffled.tpr[1:], strict=False
        )
    )
    rows = []
    if found.detection_auc is not None:
        rows.append(("Detection AUC, rows held out", f"{found.detection_auc:.3f}", "1/2"))
    in_sample = f"{numbers.detection_auc_in_sample:.3f}"
    rows.append(("Detection AUC, rows fitted to", in_sample, f"{chance:.3f} (shuffled)"))
    if found.pmse is not None and found.pmse_ratio is not None:
        rows.append(("pMSE", f"{found.pmse:.4f}", f"{numbers.propensity_shuffled:.4f} (shuffled)"))
        rows.append(("pMSE ratio", f"{found.pmse_ratio:.2f}", "1"))
    rows.append(("Spread of single shuffles", f"{found.spread:.3f}", ""))
    return rows


def _percent(share: float) -> str:
    return f"{share * 100:.2g}%" if share < 0.1 else f"{share:.1%}"
