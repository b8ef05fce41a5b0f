"""A notebook is run, and its cells show cards."""

import html.parser
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import heldout

SET_UP = """
import heldout as ho
from heldout.examples import readmission, salaries
rows = ho.Dataset(readmission(1000), label="readmitted", score="risk_b", name="stays & more")
session = ho.Session(rows, budget=ho.Budget(epsilon=20))
"""
CELLS = {
    "session.auc(epsilon=2)": "AUC",
    "session.confusion(threshold=0.3, epsilon=2)": "called positive",
    "session.curves(epsilon=2)": "ROC curve",
    "session.report(epsilon=2)": "stays &amp; more",
    "session.brier(epsilon=2)": "Brier score",
    "ho.regression.residual_plot(salaries(), observed='salary', predicted='fitted', epsilon=2)":
        "Residual plot: density",
}  # fmt: skip


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The HTML that each cell shows."""
    place = tmp_path_factory.mktemp("notebook")
    source = Path(heldout.__file__).parent.parent
    cells = [nbformat.v4.new_code_cell(each) for each in (SET_UP, *CELLS)]
    book = nbformat.v4.new_notebook(cells=cells)
    environment = {**os.environ, "PYTHONPATH": str(source), "IPYTHONDIR": str(place)}
    client = NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(place)}}
    )
    done = client.execute(env=environment)
    return {
        cell.source: cell.outputs[0].data.get("text/html", "")
        for cell in done.cells[1:]
        if cell.outputs
    }


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_shows_a_card_with_a_picture_and_its_price(shown: dict[str, str], cell: str) -> None:
    text = shown[cell]
    assert text.startswith('<div class="heldout notebook">')
    assert CELLS[cell] in text
    assert "<svg" in text
    assert "Paid: epsilon 2" in text
    tags = Tags()
    tags.feed(text)
    assert not tags.seen & {"script", "link", "img", "iframe", "html", "body"}
    assert "color-scheme: dark" in text, "for notebooks whose theme is dark"
