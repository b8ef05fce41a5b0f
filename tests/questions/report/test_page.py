"""The page stands alone, says what was paid, and trusts no name."""

import html.parser
import re

import numpy as np
import pytest

import heldout as ho
from heldout.errors import ArgumentError

HOSTILE = "<script>alert('1')</script>\"><img src=x onerror=alert(1)>&amp;{{x}}"


@pytest.fixture(scope="module")
def page_of():
    from heldout import Budget, Dataset, Session
    from heldout.examples import readmission

    table = readmission(2000)

    def make(**declared):
        facts = {"label": "readmitted", "score": "risk_b", "name": "stays", **declared}
        named = table.rename_columns(
            [facts["score"] if name == "risk_b" else name for name in table.column_names]
        )
        session = Session(Dataset(named, **facts), budget=Budget(epsilon=3))
        return session.report(epsilon="1", threshold=0.3)

    return make


@pytest.fixture(scope="module")
def page(page_of):
    return page_of().html()


class Reader(html.parser.HTMLParser):
    """Keeps the tags, and notices what is not closed."""

    VOID = ("meta", "br", "img", "link", "input", "hr")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_nothing_comes_from_elsewhere(page):
    without_names = re.sub(r'xmlns(:\w+)?="http://www\.w3\.org/[^"]*"', "", page)
    for word in ("http", "src=", "@import", "<script", "url(", "<link", "<iframe", "href="):
        assert word not in without_names, word


def test_no_element_runs_code(page):
    reader = read(page)
    assert "script" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]


@pytest.mark.parametrize("role", ["score", "name", "unit"])
def test_a_hostile_name_stays_text(page_of, role):
    facts = {"score": HOSTILE} if role == "score" else {"name": HOSTILE}
    page = page_of(**facts).html() if role != "unit" else _with_hostile_unit()
    reader = read(page)
    assert "script" not in reader.tags
    assert "img" not in reader.tags
    assert "&lt;script&gt;alert(" in page


def _with_hostile_unit():
    from heldout import Budget, Dataset, Session

    rows = {"y": [1, 0] * 100, "p": [0.9, 0.2] * 100, HOSTILE: list(range(200))}
    dataset = Dataset(rows, label="y", score="p", unit=HOSTILE)
    report = Session(dataset, budget=Budget(epsilon=1)).report(epsilon=1)
    assert "<script" not in report._repr_html_()
    return report.html()


def test_every_figure_has_a_caption_and_a_name_for_screen_readers(page):
    figures = page.count("<figure>")
    assert figures >= 2
    assert page.count("<svg") == page.count('role="img" aria-label=') == figures
    assert page.count("<figcaption>") == figures


def test_every_table_has_a_caption_and_headers(page):
    tables = page.count("<table>")
    assert tables == page.count("<caption>") >= 2
    assert page.count('scope="row"') > 10
    assert '<html lang="en-GB">' in page
    assert page.count("<h1>") == 1


def test_it_is_made_for_paper_phone_and_dark_rooms(page):
    for text in ("@media print", "max-width: 36rem", "light-dark(", "viewport"):
        assert text in page


def test_it_says_what_was_paid_and_gives_every_receipt(page_of):
    report = page_of()
    page = report.html()
    assert "epsilon 1; epsilon 2 left of epsilon 3" in page
    for release in report:
        assert release.receipt.hash in page
    for heading in ("How to read the intervals", "What was paid", "What is not protected"):
        assert heading in page


def test_every_number_of_the_page_is_in_the_json(page_of):
    report = page_of()
    page = report.html()
    for measure in report.plotted().values():
        value = f"{measure.value:.3f}"
        assert (value if measure.informative else "no information at this price") in page


def test_save_writes_utf_8_and_says_where(page_of, tmp_path):
    place = page_of().save(tmp_path / "report.html")
    assert place.read_bytes().decode("utf-8").endswith("</html>\n")
    with pytest.raises(ArgumentError, match=r"\.html"):
        page_of().save(tmp_path / "report.pdf")


def test_a_notebook_gets_a_card(page_of):
    text = page_of(name=HOSTILE)._repr_html_()
    assert text.startswith('<div class="heldout notebook">')
    assert "<table>" in text
    assert "<script" not in text
    read(text)


def test_a_page_may_have_a_title_and_names_that_people_use(page_of):
    report = page_of()
    labels = {"risk_b": "The new <b>model</b>", "stays": "Ward 7", "readmitted": "Back in 30 days"}
    page = report.html(labels=labels)
    assert "<h1>How good is The new &lt;b&gt;model&lt;/b&gt; on Ward 7?</h1>" in page
    assert "Back in 30 days (<code>readmitted</code>)" in page
    assert "<h1>After a year</h1>" in report.html(title="After a year", labels=labels)
    with pytest.raises(ArgumentError, match="labels must name some of 'stays', 'risk_b'"):
        report.html(labels={"risk": "The model"})


def test_a_unit_may_be_called_by_a_name_that_people_use(page_of):
    page = page_of(unit="patient_id").html(labels={"patient_id": "patient"})
    assert "Each patient is protected" in page


def test_cards_at_a_threshold_say_which(page_of):
    cards = page_of().html().split('<ul class="cards">')[1].split("</ul>")[0]
    for name in ("accuracy", "recall", "precision"):
        card = cards.split(f'<span class="name">{name}</span>')[1].split("</li>")[0]
        assert "at a score of 0.3 or more" in card
    assert "Decisions at the threshold 0.3" in page_of().html()


def test_all_measures_stand_in_one_table_and_all_receipts_in_another(page_of):
    report = page_of()
    page = report.html()
    assert page.count("<table>") == 2
    assert page.count('scope="rowgroup"') == len(report.releases)


def test_one_booking_has_one_receipt_on_the_page(page_of):
    report = page_of()
    (receipt,) = {release.receipt.hash for release in report}
    assert report.html().count(receipt) == 1


def test_counts_are_whole_numbers_with_commas(page_of):
    from heldout import Budget, Dataset, Session

    rows = {"y": [1, 0] * 10_000, "p": [0.9, 0.2] * 10_000}
    session = Session(Dataset(rows, label="y", score="p"), budget=Budget(epsilon=90))
    card = session.confusion(threshold=0.5, epsilon=90)._repr_html_()
    assert ">10,000</td>" in card
    assert "e+0" not in card
    assert card.count("<svg") == 1


def test_each_release_of_a_notebook_shows_a_picture(page_of):
    for release in page_of():
        card = release._repr_html_()
        assert card.count("<svg") == 1
        assert release.receipt.hash in card
        read(card)


def test_a_heading_does_not_list_a_score_for_each_of_ten_classes():
    labels = np.arange(400) % 10
    scores = {f"p{place}": (labels == place).astype(float) for place in range(10)}
    rows = ho.Dataset(
        {"y": labels, **scores}, label="y", classes=list(range(10)), scores=list(scores)
    )
    report = ho.Session(rows, budget=1).report(epsilon="1")
    assert str(report).startswith("p0, ..., p9 on ")
    assert "<h1>How good is p0, ..., p9 on data?</h1>" in report.html()
    assert ", ".join(scores) in report.html(), "the facts list them"
