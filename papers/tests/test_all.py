"""`heldout reproduce --all`: one page, verdicts, and a run that can be resumed."""

from pathlib import Path

import pytest

from heldout.errors import ArgumentError
from heldout_papers import registry
from heldout_papers.colours import HELDOUT, colour_of, scale
from heldout_papers.command import reproduce
from heldout_papers.registry import Claim, Context, Entry, Reproduction

MADE: list[tuple[str, int | None]] = []


def _entry(number: str, *, needs: tuple[str, ...] = (), quick: int | None = None) -> Entry:
    def make(context: Context) -> Reproduction:
        MADE.append((number, context.repetitions))
        chart = {
            "data": {"values": [{"x": 1, "y": 2}]},
            "mark": "point",
            "encoding": {"x": {"field": "x", "type": "quantitative"}},
        }
        return Reproduction(
            title=f"Title <{number}>",
            table=[{"x": 1.5, "name": "a"}],
            charts=[chart],
            claims=[
                Claim("it falls", "0.5", "0.4", holds=True),
                Claim("it rises", "2", "1", holds=False, why="A cause & more."),
            ],
        )

    return Entry("some-2020", "figure", number, number, needs, make, quick)


@pytest.fixture
def _three(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [_entry("1", quick=7), _entry("2"), _entry("3", needs=("nowhere.parquet",))]
    monkeypatch.setattr(registry, "discover", lambda: entries)
    MADE.clear()


@pytest.mark.usefixtures("_three")
def test_one_page_has_every_picture_claim_and_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce(everything=True, quick=True, out=tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert page.count('<img src="data:image/svg+xml;base64,') == 2
    assert "2 of 4 claims" in page
    for words in (
        "it falls",
        "it rises",
        "A cause &amp; more.",
        "Title &lt;1&gt;",
        "7 repetitions",
    ):
        assert words in page
    assert "needs nowhere.parquet" in page
    assert "<script" not in page
    assert MADE == [("1", 7), ("2", None)]
    said = capsys.readouterr().out
    assert "reproduced some-2020 figure 1: it falls" in said
    assert "differs    some-2020 figure 2: it rises" in said


@pytest.mark.usefixtures("_three")
def test_what_was_made_is_not_made_again_and_half_of_it_is(tmp_path: Path) -> None:
    for _ in range(2):
        reproduce(everything=True, quick=True, out=tmp_path, as_json=True)
    assert len(MADE) == 2
    (tmp_path / "some-2020-figure-1.svg").unlink()
    (tmp_path / "some-2020-figure-2.json").write_text("{")
    reproduce(everything=True, quick=True, out=tmp_path)
    assert len(MADE) == 4
    reproduce(everything=True, full=True, out=tmp_path)
    assert MADE[4:] == [("1", None)], "the other had the paper's own number already"


def _slow_square(job: int) -> int:
    DONE.append(job)
    if job == STOP_AT:
        raise KeyboardInterrupt
    return job * job


DONE: list[int] = []
STOP_AT: int | None = None


def test_an_interrupted_figure_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(context: Context) -> Reproduction:
        found = sorted(context.over(_slow_square, [1, 2, 3], label="jobs"))
        return Reproduction(title="Squares", table=[{"square": each} for each in found])

    entry = Entry("some-2020", "table", "1", "Squares", (), make)
    monkeypatch.setattr(registry, "discover", lambda: [entry])
    monkeypatch.setitem(globals(), "STOP_AT", 3)
    with pytest.raises(KeyboardInterrupt):
        reproduce(everything=True, full=True, workers=1, out=tmp_path)
    assert DONE == [1, 2, 3]
    monkeypatch.setitem(globals(), "STOP_AT", None)
    reproduce(everything=True, full=True, workers=1, out=tmp_path)
    assert DONE == [1, 2, 3, 3], "only what was not finished is done again"
    assert (tmp_path / "some-2020-table-1.csv").read_text() == "square\n1\n4\n9\n"
    assert not (tmp_path / "unfinished").exists()


@pytest.mark.usefixtures("_three")
def test_a_log_file_shows_the_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce(everything=True, quick=True, out=tmp_path)
    assert "all: 0 of 3" in capsys.readouterr().err


@pytest.mark.parametrize("options", [{}, {"quick": True, "full": True}])
def test_all_needs_quick_or_full(options: dict[str, bool], tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="either --quick or --full"):
        reproduce(everything=True, out=tmp_path, **options)


def test_a_method_has_one_colour_in_every_picture() -> None:
    assert colour_of(HELDOUT) == scale([HELDOUT, "PriROC"])["range"][0]
    assert colour_of("PTT TC*") == colour_of("PTT") != colour_of(HELDOUT)
    assert colour_of("PriROC") != colour_of("PriROC-fix")
    assert len(set(scale(["one", HELDOUT, "two"])["range"])) == 3
    assert colour_of(HELDOUT) not in scale(["one", "two"])["range"], "nobody else has heldout's"
