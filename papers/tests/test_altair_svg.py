"""Charts become SVG in the house style, without network."""

import re
import xml.etree.ElementTree as ET

import altair as alt
import pytest
import vl_convert

from heldout.drawing.chart import PALETTE
from heldout_papers.altair_svg import house_theme, rows, specification, to_png, to_svg


@pytest.fixture
def chart():
    return (
        alt.Chart(rows([{"x": 0, "y": 1}, {"x": 1, "y": 3}]))
        .mark_line()
        .encode(x="x:Q", y="y:Q")
        .properties(title="Drawn title")
    )


def test_the_picture_is_valid_xml_with_a_title_for_screen_readers(chart):
    root = ET.fromstring(to_svg(chart, title="A & B", description='says "more" <here>'))
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A & B. says "more" <here>'
    assert root.find(f"{space}title").text == "A & B"
    assert root.find(f"{space}desc").text == 'says "more" <here>'


def test_the_house_theme_is_used_and_text_stays_text(chart):
    svg = to_svg(chart, title="t")
    assert PALETTE[0] in svg
    assert "system-ui" in svg
    assert "Drawn title" in svg


def test_a_picture_without_a_title_gets_the_figures_in_lines_that_fit(chart):
    words = "Mean area between the true and the private ROC curve by number of thresholds, SMS"
    plain = alt.hconcat(chart.properties(title="A panel", width=120))
    svg = to_svg(plain, title=words)
    drawn = [
        text for text in re.findall(r"<tspan[^>]*>([^<]+)</tspan>", svg) if text.rstrip() in words
    ]
    assert " ".join(drawn) == words
    assert len(drawn) > 1
    assert words not in to_svg(chart, title=words).split("<g", 1)[1], "which has its own"


def test_panels_have_few_ticks_the_last_of_them_at_the_end_of_the_axis(chart):
    y = specification(chart)["encoding"]["y"]
    assert (y["scale"]["nice"], y["axis"]["tickCount"]) == (5, 5)
    fixed = chart.encode(y=alt.Y("y:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=[1, 3])))
    assert "nice" not in specification(fixed)["encoding"]["y"]["scale"]


def test_nothing_comes_from_another_host(chart):
    svg = to_svg(chart, title="t")
    outside = svg.replace("http://www.w3.org", "")
    assert "http" not in outside
    assert "<script" not in svg
    assert "@font-face" not in svg
    with pytest.raises(ValueError, match=r"(?i)not allowed|denied|failed"):
        to_svg(
            {
                "data": {"url": "https://example.org/data.json"},
                "mark": "point",
                "encoding": {"x": {"field": "x", "type": "quantitative"}},
            },
            title="t",
        )


def test_a_chart_may_overrule_the_theme(chart):
    own = specification(chart.configure_axis(grid=False, labelFontSize=20))
    assert own["config"]["axis"]["labelFontSize"] == 20
    assert own["config"]["axis"]["titleFontSize"] == house_theme()["axis"]["titleFontSize"]
    assert own["config"]["view"] == house_theme()["view"]


def test_plain_vega_lite_is_accepted():
    spec = {"data": {"values": [{"x": 1}]}, "mark": "bar", "encoding": {"x": {"field": "x"}}}
    assert to_svg(spec, title="t").startswith("<svg")


def test_png_is_png(chart):
    assert to_png(chart, scale=1)[:8] == b"\x89PNG\r\n\x1a\n"


def test_eight_different_colours():
    assert len(set(PALETTE)) == 8


def test_a_legend_has_room_for_a_font_that_is_wider_than_the_one_it_was_measured_in():
    def sizes(name, **legend):
        points = [{"x": x, "y": x, "who": name} for x in (0, 1)]
        chart = alt.Chart(rows(points)).mark_point().encode(x="x:Q", y="y:Q", **legend)
        measured = vl_convert.vegalite_to_svg(specification(chart))
        drawn = ET.fromstring(to_svg(chart, title="t"))
        box = drawn.get("viewBox").split()
        assert box[2:] == [drawn.get("width"), drawn.get("height")]
        return int(drawn.get("width")) - int(float(ET.fromstring(measured).get("width")))

    name = "a method with a long name"
    assert sizes(name, color="who:N") >= 0.15 * 0.5 * 11 * len(name)
    assert sizes(name) <= 1, "without a legend only the title has room, here one letter"
