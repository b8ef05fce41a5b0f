"""Registration, discovery and the command."""

import csv
import json
from pathlib import Path

import pytest

from heldout.errors import ArgumentError
from heldout_papers import registry
from heldout_papers.command import reproduce
from heldout_papers.registry import Context, Entry, Reproduction

FIGURES = [
    "3.1",
    "3.2",
    "3.3",
    "3.4",
    "4.1",
    "4.2",
    "4.3",
    "4.4",
    "4.5",
    "4.6",
    "4.7",
    "4.8",
    "4.9",
]


def test_the_figures_of_chapters_3_and_4_are_registered_in_order():
    numbers = [
        e.number for e in registry.discover() if (e.paper, e.kind) == ("boyd-2014", "figure")
    ]
    assert [n for n in numbers if n[0] in "34"] == FIGURES


def test_an_unknown_figure_or_paper_names_what_there_is():
    with pytest.raises(ArgumentError, match=r"3\.1, .*4\.9"):
        registry.find(paper="boyd-2014", kind="figure", number="9.9")
    with pytest.raises(ArgumentError, match="boyd-2014"):
        registry.find(paper="nobody-1999", kind="figure", number="1")


def test_a_figure_that_needs_data_says_which():
    entry = Entry("p", "figure", "1", "t", ("adult",), lambda _: Reproduction("t", []))
    with pytest.raises(ArgumentError, match="must hold adult"):
        entry.run(Context())
    with pytest.raises(ArgumentError, match="must hold adult"):
        entry.run(Context(data=Path("/nowhere")))


def test_a_number_is_registered_once(monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", {})

    def one(_):
        return Reproduction("t", [])

    def two(_):
        return Reproduction("t", [])

    two.__module__ = "elsewhere"
    registry.figure(paper="p", number="1", title="t")(one)
    registry.figure(paper="p", number="1", title="t")(one)  # the same module again: a reload
    with pytest.raises(ArgumentError, match="registered once"):
        registry.figure(paper="p", number="1", title="t")(two)


def test_jobs_move_the_progress_bar():
    moves = []
    context = Context(workers=1, progress=lambda *step: moves.append(step))
    assert list(context.over(abs, [-1, -2], label="jobs")) == [1, 2]
    assert moves == [("jobs", 0, 2), ("jobs", 1, 2), ("jobs", 2, 2)]


def test_several_workers_do_the_same_work():
    assert sorted(Context(workers=2).over(abs, [-1, -2, -3], label="jobs")) == [1, 2, 3]


OTHERS = ("3.2", "3.3", "3.4", "4.1", "4.2", "4.3", "4.4")


@pytest.mark.parametrize(
    "number", ["3.1", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)]
)
def test_a_figure_is_a_picture_and_a_table(tmp_path, capsys, number):
    reproduce("boyd-2014", figure=[number], out=tmp_path)
    svg = (tmp_path / f"boyd-2014-figure-{number}.svg").read_text()
    assert svg.startswith("<svg")
    assert "<title>" in svg
    with (tmp_path / f"boyd-2014-figure-{number}.csv").open() as file:
        assert len(list(csv.DictReader(file))) > 5
    assert f"figure-{number}.svg" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.slow
def test_one_study_serves_three_figures_and_json_is_json(tmp_path, capsys, monkeypatch):
    from heldout_papers import boyd_2014_intervals as study

    runs = []
    monkeypatch.setattr(study, "_SIZES", (200, 500))
    monkeypatch.setattr(study, "_REPLICATES", 50)
    real = study._run
    monkeypatch.setattr(study, "_run", lambda context: runs.append(1) or real(context))
    reproduce(
        "boyd-2014",
        figure=["4.7,4.8", "4.9"],
        repetitions=4,
        workers=1,
        out=tmp_path,
        as_json=True,
    )
    answer = json.loads(capsys.readouterr().out)
    assert [part["figure"] for part in answer] == ["4.7", "4.8", "4.9"]
    assert len(runs) == 1
    assert len(answer[0]["table"]) == 3 * 2 * 3 * 5


def test_the_list_is_text_or_json(capsys):
    reproduce(list_all=True)
    said = capsys.readouterr().out
    assert "boyd-2014" in said
    assert "4.5" in said
    reproduce(list_all=True, as_json=True)
    assert {"paper", "kind", "number", "title"} <= set(json.loads(capsys.readouterr().out)[0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"paper": "boyd-2014"},
        {"paper": "boyd-2014", "figure": ["3.1"], "repetitions": 0},
        {"paper": "boyd-2014", "figure": ["3.1"], "workers": 0},
    ],
)
def test_nothing_to_make_is_refused(options):
    with pytest.raises(ArgumentError, match="must"):
        reproduce(**options)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ArgumentError, match="out must be a folder"):
        reproduce("boyd-2014", figure=["3.1"], out=file / "inside")
