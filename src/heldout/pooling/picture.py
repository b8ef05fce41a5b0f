"""The forest plot: a line a site, and under them what they say together."""

from typing import TYPE_CHECKING, Any

from heldout.drawing.chart import Chart, Figure, Layer, Names, Numbers
from heldout.drawing.colours import INK, PALETTE
from heldout.drawing.words import numbers

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled

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
    thick, thin = {"strokeWidth": 9}, {"strokeWidth": 2}
    beside = {"align": "left", "dx": 10, "fontSize": 12, "fontWeight": 600}
    chart = Chart(
        [
            Layer("rule", another, "low", "name", "high", color=PALETTE[4], style=thin),
            *_lines(sites, PALETTE[5], PALETTE[0], thick, thin),
            *_lines(together, PALETTE[4], PALETTE[1], thick, thin),
            *(
                Layer("point", [row], "value", "name", color=colour, size=row["size"])
                for rows, colour in ((sites, PALETTE[0]), (together, PALETTE[1]))
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
        + (" One more site: where the value of another site like these lies." if another else ""),
    )


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
