"""Charts become pictures that stand alone, read aloud, and whose labels do not collide."""

import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from heldout.drawing.chart import (
    LETTER,
    PALETTE,
    SMALL,
    Chart,
    Field,
    Layer,
    Names,
    Numbers,
    records,
)
from heldout.errors import MissingDependency

SPACE = "{http://www.w3.org/2000/svg}"
LINE = Layer("line", records(x=[0.0, 0.5, 1.0], y=[0.0, 1.0, 1.0]))


def chart(*layers, x=None, y=None, **more):
    return Chart(layers or [LINE], x=x or Numbers("Recall"), y=y or Numbers("Precision"), **more)


def drawn(made):
    return ElementTree.fromstring(made.svg(says="More."))


def texts(root):
    return [(each.text, each.attrib) for each in root.iter(f"{SPACE}text")]


def test_a_screen_reader_says_the_title_and_more():
    root = ElementTree.fromstring(chart(title="A & B").svg(says='says "more" <here>'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A & B. says "more" <here>'
    assert root.find(f"{SPACE}title").text == "A & B"
    assert root.find(f"{SPACE}desc").text == 'says "more" <here>'


def test_names_stay_text_whatever_they_hold():
    hostile = "<script>alert('1')</script>&amp;\">"
    names = Names([hostile])
    made = chart(Layer("point", [{"x": 0.5, "y": hostile}]), y=names, title=hostile)
    assert [text for text, _ in texts(drawn(made))].count(hostile) == 2
    assert "<script" not in made.svg(says=hostile)


def test_a_picture_needs_nothing_from_elsewhere():
    svg = chart().svg(says="t").replace("http://www.w3.org", "")
    for word in ("http", "<script", "@font-face", "url(", "<image", "<style"):
        assert word not in svg


@pytest.mark.parametrize("high", [1, 40, 700, 120_000, 400_000, 9_999_999, 3e11])
@pytest.mark.parametrize("width", [220, 380])
def test_labels_of_an_axis_do_not_touch(high, width):
    made = chart(x=Numbers("Predicted value", -high, high), width=width)
    labels = [
        (float(attributes["x"]), len(text) * SMALL * LETTER)
        for text, attributes in texts(drawn(made))
        if re.fullmatch(r"-?[0-9,.]+M?", text) and attributes.get("text-anchor") == "middle"
    ]
    assert len(labels) >= 2
    for (here, wide), (there, wider) in pairwise(labels):
        assert there - here > (wide + wider) / 2


def test_ticks_are_round_numbers_with_the_digits_they_need():
    def labels(low, high, form=""):
        found = texts(drawn(chart(y=Numbers("y", low, high, form=form))))
        return [text for text, attributes in found if attributes.get("text-anchor") == "end"]

    assert labels(0, 1) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert labels(-64_000, 64_000) == [
        "-60,000", "-40,000", "-20,000", "0", "20,000", "40,000", "60,000"
    ]  # fmt: skip
    assert labels(0, 0.13, ".0%") == ["0%", "2%", "4%", "6%", "8%", "10%", "12%"]


def ends_of(axis, width):
    found = texts(drawn(chart(x=axis, width=width)))
    return [
        t
        for t, attributes in found
        if attributes.get("text-anchor") == "middle" and t[-1] in "0123456789%M"
    ]


@pytest.mark.parametrize(("low", "high"), [(0.0137, 0.0193), (-0.0412, 0.97), (1234.5, 98_765.4)])
@pytest.mark.parametrize("width", [40, 60, 90])
def test_an_axis_without_room_for_all_its_round_numbers_shows_two_of_them(low, high, width):
    labels = [float(each.replace(",", "")) for each in ends_of(Numbers("x", low, high), width)]
    assert len(labels) >= 2
    for each in labels:
        assert low <= each <= high
        assert float(f"{each:.2g}") == each, "a round number has two digits at most"


def test_no_two_labels_of_an_axis_are_alike():
    for high in (0.004, 0.013, 0.03):
        labels = ends_of(Numbers("x", 0.0, high, form=".0%"), 300)
        assert len(set(labels)) == len(labels)


def path(root, index=-1):
    return [each.get("d") for each in root.iter(f"{SPACE}path")][index]


def test_a_line_passes_through_its_points():
    root = drawn(chart(width=100, height=200))
    assert path(root) == "M0,200L50,0L100,0"


def test_an_area_has_the_size_of_its_band():
    band = records(x=[0.0, 0.5, 1.0], low=[0.0, 0.25, 0.25], high=[0.5, 0.5, 1.0])
    layer = Layer("area", band, y="low", y2="high", opacity=0.18)
    assert area(path(drawn(chart(layer, width=100, height=100)))) == pytest.approx(4_375)
    steps = Layer("area", band, y="low", y2="high", style={"interpolate": "step-after"})
    assert area(path(drawn(chart(steps, width=100, height=100)))) == pytest.approx(
        50 * 50 + 50 * 25
    )


def area(outline):
    points = [
        tuple(map(float, each.split(","))) for each in re.findall(r"[-0-9.]+,[-0-9.]+", outline)
    ]
    around = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(x * v - u * y for (x, y), (u, v) in around)) / 2


def test_what_lies_beyond_an_axis_is_drawn_at_its_end():
    layer = Layer("line", records(x=[0.0, 1.0], y=[-3.0, 7.0]))
    assert path(drawn(chart(layer, width=100, height=100))) == "M0,100L100,0"


def test_colours_of_values_come_with_a_legend():
    rows = [{"x": x, "y": x, "side": side} for side in ("true", "privatized") for x in (0.0, 1.0)]
    made = chart(
        Layer("line", rows, color=Field("side")), colours={"true": "#111", "privatized": "#222"}
    )
    root = drawn(made)
    strokes = [each.get("stroke") for each in root.iter(f"{SPACE}path")]
    assert strokes[-2:] == ["#111", "#222"]
    assert {"true", "privatized"} <= {text for text, _ in texts(root)}


def test_long_names_take_two_lines_and_keep_their_order():
    names = ["recall", "negative predictive value"]
    root = drawn(chart(Layer("point", [{"x": 0.5, "y": each} for each in names]), y=Names(names)))
    labels = [text for text, attributes in texts(root) if attributes.get("text-anchor") == "end"]
    assert labels == ["recall", "negative", "predictive value"]


def test_the_same_chart_is_valid_vega_lite():
    rows = [{"x": 0.1, "x2": 0.4, "name": "a", "share": 0.5, "ink": "#ffffff", "size": 20}]
    made = chart(
        LINE,
        Layer("rect", rows, x="x", x2="x2", y="name", opacity=Field("share")),
        Layer("point", rows, y="name", size=Field("size")),
        Layer("text", rows, y="name", text="name", color=Field("ink"), style={"dy": 3}),
        y=Names(["a"]),
        title="Mine",
    )
    found = made.altair().to_dict()  # which checks it against the schema
    assert found["title"] == "Mine"
    assert [each["mark"]["type"] for each in found["layer"]] == ["line", "rect", "point", "text"]


def test_eight_different_colours():
    assert len(set(PALETTE)) == 8


def test_a_report_loads_neither_altair_nor_a_browsers_renderer():
    code = """
import sys
from heldout import Budget, Dataset, Session
from heldout.examples import readmission
rows = Dataset(readmission(500), label="readmitted", score="risk_b")
report = Session(rows, budget=Budget(epsilon=3)).report(epsilon=3, curves=True)
report.html()
report._repr_html_()
heavy = ("altair", "vl_convert", "scipy.interpolate", "scipy.stats", "sklearn")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_altair_a_chart_to_change_further_names_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    made = Chart([], x=Numbers("x"), y=Numbers("y"))
    with pytest.raises(MissingDependency, match=r"pip install 'heldout\[plots\]'"):
        made.altair()
