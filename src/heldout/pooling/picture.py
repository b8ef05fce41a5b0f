"""The forest plot, a line a site and what they say together under them; the curves of all sites."""

from typing import TYPE_CHECKING, Any

from heldout.drawing.chart import Chart, Field, Figure, Layer, Names, Numbers, records
from heldout.drawing.colours import INK, MUTED, PALETTE
from heldout.drawing.words import numbers

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.curves import PooledCurves

ROW_HEIGHT = 30


def forest(pooled: "Pooled", *, level: float) -> Figure:
    """Sites with their stated intervals, then the pooled measures of the same kind."""
    sites = [
        _row(each.name, each.value, each.interval, each.noise_interval, 30 + 120 * float(weight))
        for each, weight in zip(pooled.sites, pooled.shown_weights, strict=True)
    ]
    headlines = [
        each for each in pooled.measures.values() if each.name.startswith(pooled.headline.name)
    ]
    together = [
        _row(f"pooled {each.name}", each.value, each.interval(level), each.noise_interval(level))
        for each in headlines
    ]
    predicted = pooled.prediction_interval(level)
    another = []
    if predicted is not None:
        middle = sum(predicted) / 2
        another = [_row("one more site", middle, predicted, predicted)]
    ends = [row[end] for row in (*sites, *together, *another) for end in ("low", "high")]
    low, high = min(ends), max(ends)
    show = numbers([low, high])
    for row in (*sites, *together):
        row["end"], row["shown"] = high, show(row["value"])
    for row, site in zip(sites, pooled.sites, strict=True):
        row["shown"] = row["shown"] if site.informative else "drowned"
    dots = [row for row, site in zip(sites, pooled.sites, strict=True) if site.informative]
    thick, thin = {"strokeWidth": 9}, {"strokeWidth": 2}
    beside = {"align": "left", "dx": 10, "fontSize": 12, "fontWeight": 600}
    chart = Chart(
        [
            Layer("rule", another, "low", "name", "high", color=PALETTE[4], style=thin),
            *_lines(sites, PALETTE[5], PALETTE[0], thick, thin),
            *_lines(together, PALETTE[4], PALETTE[1], thick, thin),
            *(
                Layer("point", [row], "value", "name", color=colour, size=row["size"])
                for rows, colour in ((dots, PALETTE[0]), (together, PALETTE[1]))
                for row in rows
            ),
            Layer(
                "text", [*sites, *together], "end", "name", text="shown", color=INK, style=beside
            ),
        ],
        x=Numbers(pooled.headline.name, low, high),
        y=Names([row["name"] for row in (*sites, *together, *another)]),
        height=ROW_HEIGHT * (len(sites) + len(together) + len(another)),
    )
    said = "; ".join(f"{row['name']} {row['shown']}" for row in (*sites, *together))
    stated = f"{pooled.sites[0].level * 100:g}%"
    return Figure(
        chart.svg(says=f"Forest plot of {pooled.headline.name}. {said}"),
        f"Thin bar: interval for the population ({stated} as the sites state it, {level * 100:g}% "
        "pooled). Thick bar: privacy noise alone. A larger dot has more weight."
        + (" Drowned: noise leaves nothing to read of it alone." if dots != sites else "")
        + (" One more site: where the value of another site like these lies." if another else ""),
    )


def curves(pooled: "PooledCurves") -> list[Figure]:
    """The curves over all rows of all sites; the ROC curve beside those of the sites."""
    roc, pr = pooled.roc, pooled.precision_recall
    thin = {"strokeWidth": 1}
    apart = [
        Layer("line", records(x=fpr, y=tpr), color=PALETTE[5], style=thin)
        for tpr, fpr in pooled.apart
    ]
    # Above the largest score nothing is called, and there is no precision.
    called = (roc.tpr > 0) | (roc.fpr > 0)
    precise = records(x=pr.recall[called], y=pr.precision[called])
    at_random = [{"x": x, "y": pr.prevalence} for x in (0.0, 1.0)]
    no_band = "No band: those of the sites do not add up to one."
    found = [
        _curve(
            ("ROC curve of all sites", "False positive rate", "True positive rate"),
            [_dashed([{"x": x, "y": x} for x in (0.0, 1.0)]), *apart,
             Layer("line", records(x=roc.fpr, y=roc.tpr))],
            "True against false positive rate over all rows of all sites; thin lines are the "
            f"sites'. The dashed line is chance. {no_band}",
        ),
        _curve(
            ("Precision-recall curve of all sites", "Recall", "Precision"),
            [_dashed(at_random), Layer("line", precise)],
            "Precision against recall over all rows of all sites; the dashed line is chance. "
            f"{no_band}",
        ),
    ]  # fmt: skip
    if not pooled.are_probabilities:
        return found
    calibration = pooled.calibration
    bins = records(x=calibration.predicted, y=calibration.observed)
    most = float(calibration.share.max(initial=0.0)) or 1.0
    for each, share in zip(bins, calibration.share.tolist(), strict=True):
        each["size"] = 10 + 190 * share / most
    diagonal = _dashed([{"x": x, "y": x} for x in (0.0, 1.0)])
    titles = ("Reliability of all sites", "Mean score", "Observed share of positives")
    said = (
        "Observed share of positives against mean score in ten bins of the scores, over all rows "
        "of all sites; a larger dot has more rows. On the dashed line a score is the probability "
        "that it says."
    )
    return [*found, _curve(titles, [diagonal, Layer("point", bins, size=Field("size"))], said)]


def _curve(titles: tuple[str, str, str], layers: list[Layer], said: str) -> Figure:
    title, x, y = titles
    chart = Chart(layers, x=Numbers(x), y=Numbers(y), title=title)
    return Figure(chart.svg(says=f"{y} against {x.lower()}."), said)


def _dashed(ends: Any) -> Layer:
    return Layer("line", ends, color=MUTED, style={"strokeDash": [4, 3], "strokeWidth": 1.2})


def _lines(rows: Any, thick_colour: str, thin_colour: str, thick: Any, thin: Any) -> list[Layer]:
    return [
        Layer("rule", rows, "noise_low", "name", "noise_high", color=thick_colour, style=thick),
        Layer("rule", rows, "low", "name", "high", color=thin_colour, style=thin),
    ]


def _row(name: str, value: float, ends: Any, noise: Any, size: float = 70.0) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "low": ends[0],
        "high": ends[1],
        "noise_low": noise[0],
        "noise_high": noise[1],
        "size": size,
    }
