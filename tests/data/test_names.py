"""A column may be called almost anything; what people see of its name steers and breaks nothing."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import heldout as ho
from heldout.arguments import shown, visible
from heldout.cli import main
from heldout.drawing.chart import Chart, Layer, Names, Numbers
from heldout.drawing.page import card
from heldout.errors import UnreadableTable

STEERS = ["a\x1b[2Jb", "a\u202eb", "a\x0bb", "a\x9bb", "a\u2066b\u2069", "a\rb"]


def unseen(text: str) -> list[str]:
    return [each for each in text if not each.isprintable() and each not in "\n\t"]


def columns(name: str, *, count: int = 60) -> dict[str, Any]:
    generator = np.random.default_rng(4)
    return {
        "y": np.arange(count) % 2,
        "p": generator.random(count),
        name: generator.random(count),
    }


@pytest.mark.parametrize("name", ["", "a\0b", "\0"])
def test_a_column_without_a_name_or_with_a_nul_in_it_is_refused(tmp_path: Path, name: str) -> None:
    table = pa.table(columns(name))
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    sources: list[Any] = [columns(name), table, tmp_path / "rows.parquet"]
    if name:
        text = f"y,p,{name}\n1,0.5,0.5\n0,0.25,0.5\n"
        (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
        sources.append(tmp_path / "rows.csv")
    for source in sources:
        with pytest.raises(UnreadableTable, match="must have names"):
            ho.Dataset(source, label="y", score="p")
        with pytest.raises(UnreadableTable, match="must have names"):
            ho.regression.residual_plot(source, observed="y", predicted="p", epsilon=1)


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    assert visible("a\x1b\u202e\nb") == r"a\x1b\u202e\nb"
    assert visible("a\x1b\nb", allowed="\n") == "a\\x1b\nb"
    assert visible("Größe 年龄 🙂") == "Größe 年龄 🙂"

    class Loud:
        def __repr__(self) -> str:
            return "<\x1b[2J>"

    assert shown(Loud()) == r"<\x1b[2J>"


@pytest.mark.parametrize("name", STEERS)
def test_a_comparison_prints_no_raw_escape(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(columns(name)), path)
    words = ("compare", str(path), "--label", "y", "--score", "p", "--rival", name)
    assert main((*words, "--epsilon", "4")) == 0
    told = capfd.readouterr().out
    assert visible(name) in told
    assert not unseen(told)
    assert main((*words, "--epsilon", "4", "--json")) == 0
    told = capfd.readouterr().out
    assert not unseen(told)
    assert json.loads(told)["parameters"]["rival"] == name
    dataset = ho.Dataset(columns(name), label="y", score="p", rivals=[name])
    release = ho.Session(dataset, budget=ho.Budget(epsilon=1)).compare(score=name, epsilon=1)
    for text in (str(release), release._repr_html_(), repr(dataset.with_rival(name))):
        assert not unseen(text)


@pytest.mark.parametrize("name", STEERS)
def test_errors_and_commands_show_a_name_as_escapes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(columns(name)), path)
    for words in (
        ("evaluate", str(path), "--label", name, "--score", "p", "--epsilon", "1"),
        ("evaluate", str(path), "--label", "y", "--score", f"{name}?", "--epsilon", "1"),
        ("evaluate", str(path), "--label", "y", "--score", name, "--epsilon", "1", "--name", name),
    ):
        main(words)
        both = capfd.readouterr()
        assert not unseen(both.out + both.err)
        blank = "a b" if name[1].isspace() else visible(name)
        assert any(each in both.out + both.err for each in (blank, visible(name)))


@pytest.mark.parametrize("name", [*STEERS, "a\ud800b", "a\0b", "a\ufffeb"])
def test_a_picture_and_a_page_take_any_name(name: str) -> None:
    names = [name, f"{name}2"]
    dots = Layer("point", [{"x": 0.5, name: each} for each in names], y=name)
    chart = Chart([dots], x=Numbers(name), y=Names(names, title=name), title=name)
    svg = chart.svg(says=f"Of {name}.")
    ElementTree.fromstring(svg)
    assert not unseen(svg)
    assert visible(name) in svg
    page = card(f"About {name}", head=(name,), rows=[(name,)], note=name)
    assert not unseen(page)
    assert page.count(visible(name)) == 4


@pytest.mark.parametrize("name", STEERS[:3])
def test_the_page_of_a_separability_takes_any_name(tmp_path: Path, name: str) -> None:
    generator = np.random.default_rng(5)
    truth, copy = ({name: generator.random(60) + move, "z": np.arange(60)} for move in (0, 0.5))
    found = ho.separability(truth, copy, shuffles=3, random_state=1)
    found.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not unseen(text)
    assert visible(name) in text
