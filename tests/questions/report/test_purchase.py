"""A report is bought whole, at exact shares, or not at all."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout import Budget, Dataset, Session
from heldout import questions as q
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.questions.base import Choice, shared
from heldout.questions.registry import places

SECTIONS = [
    place
    for place in places().values()
    if place.section.always and not place.by_group and ScoredRows in place.question.of
]


@given(
    total=st.fractions(min_value="1/1000", max_value=100),
    weights=st.lists(st.integers(1, 9), min_size=1, max_size=6),
)
def test_shares_add_up_to_the_price_exactly(total, weights):
    shares = shared(total, {str(i): weight for i, weight in enumerate(weights)})
    assert sum(shares.values()) == total
    assert all(share > 0 for share in shares.values())


def test_what_is_booked_is_the_price_to_the_last_digit(make_session):
    session = make_session()
    report = session.report(epsilon="1/7")
    assert sum(report.shares.values()) == Fraction(1, 7)
    assert session.spent.epsilon == Fraction(1, 7)
    assert sum(each.loss.epsilon for each in report) == Fraction(1, 7)
    for name, release in report.releases.items():
        assert release.loss.epsilon == report.shares[name]


def test_a_report_beyond_the_budget_is_refused_before_anything_is_charged(make_session):
    session = make_session(epsilon="1")
    session.confusion(epsilon="0.4")
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        session.report(epsilon="0.7")
    assert session.spent.epsilon == Fraction(2, 5), "not even the first section"
    session.report(epsilon="0.6")
    assert session.remaining.epsilon == 0


@pytest.mark.parametrize("bad", [{"threshold": 2}, {"threshold": "x"}, {"epsilon": "0"}])
def test_a_request_that_cannot_be_made_costs_nothing(make_session, bad):
    session = make_session()
    with pytest.raises(ArgumentError):
        session.report(**{"epsilon": "1", **bad})
    assert session.spent.epsilon == 0


def test_a_section_that_fails_late_is_found_before_an_earlier_one_is_paid(
    make_session, monkeypatch
):
    def refuse(epsilon, choice):
        raise ArgumentError("never")

    monkeypatch.setattr(SECTIONS[-1].question, "for_report", refuse)
    session = make_session()
    with pytest.raises(ArgumentError, match="never"):
        session.report(epsilon="1")
    assert session.spent.epsilon == 0


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_a_quote_knows_the_price_and_reads_and_books_nothing(make_session, section, monkeypatch):
    session = make_session()
    monkeypatch.setattr(Dataset, "_fetch", lambda *_: pytest.fail("rows were read"))
    question = section.question.for_report(Fraction(1, 3), Choice(threshold=0.5))
    quote = session.quote(question)
    assert quote.loss.epsilon == Fraction(1, 3)
    assert all(each.noise > 0 for each in quote.half_widths[0].values())
    assert session.spent.epsilon == 0


def test_the_threshold_is_the_middle_of_the_range_unless_given(make_session):
    assert make_session().report(epsilon="1")["confusion"].threshold == 0.5
    wide = make_session(score="age", score_range=(0, 120))
    report = wide.report(epsilon="1")
    assert report["confusion"].threshold == 60
    assert "brier" not in report.releases
    assert sum(report.shares.values()) == 1
    assert "probabilities" in report.left_out["brier"]


def test_a_budget_in_zcdp_is_charged_in_its_own_kind(bundled):
    dataset = Dataset(bundled, label="readmitted", score="risk_a")
    session = Session(dataset, budget=Budget(rho="1"))
    report = session.report(epsilon="1")
    charges = {release.receipt.charge.rho for release in report.releases.values()}
    assert charges == {session.spent.rho}, "one booking pays for all"
    # The parts of a composed release are charged one by one, which is less than the whole at once.
    assert session.spent.rho <= sum(share**2 / 2 for share in report.shares.values())
    with pytest.raises(BudgetExceeded):
        session.report(epsilon="3")


def test_a_report_is_one_ledger_entry_that_holds_the_question(make_session):
    session = make_session()
    report = session.report(epsilon="1", curves=True)
    [entry] = session._ledger.entries(session._account)
    [asked] = entry.request["questions"]
    assert q.from_dict(asked) == q.Report(epsilon="1", curves=True)
    assert {release.receipt.hash for release in report} == {entry.hash}


def test_a_report_keeps_no_rows(make_session):
    report = make_session().report(epsilon="1")
    assert not any(isinstance(each, Dataset | Session) for each in vars(report).values())
    json.dumps(report.as_dict(), allow_nan=False)


def test_an_unknown_section_is_named(make_session):
    report = make_session().report(epsilon="1")
    with pytest.raises(ArgumentError, match=r"section must be one of .*confusion"):
        report["gini"]


def test_section_names_are_distinct_and_weights_positive():
    assert all(place.section.weight > 0 for place in places().values())
    names = [name for place in places().values() for name in {place.name, place.old_name}]
    assert len(set(names)) == len(names)


def test_the_short_text_has_a_line_a_measure(make_session):
    lines = str(make_session().report(epsilon="1")).splitlines()
    assert lines[0] == "risk_b on stays, epsilon 1, replace-one neighbours"
    assert any(line.strip().startswith("accuracy") for line in lines)


@pytest.mark.chance(1e-7)
def test_a_report_with_curves_buys_the_area_and_the_threshold_once(make_session):
    session = make_session()
    report = session.report(epsilon="2", curves=True)
    bought = report["curves"]._drawn.request.mechanism
    assert bought.area_share == 0
    assert bought.named_counts is None
    curves, area = report["curves"], report["auc"]
    assert curves.auc.interval() == pytest.approx(area.headline.interval(), abs=0.02)
    assert curves.table.area == area.draw
    threshold = report["confusion"].threshold
    narrow = curves.confusion(threshold).recall.noise_interval()
    wide = report["confusion"].recall.noise_interval()
    assert narrow[1] - narrow[0] <= 1.05 * (wide[1] - wide[0]), "it has those counts, and its own"


def test_bought_together_no_section_gets_less_than_bought_apart():
    every = {each.name: each.section for each in (*SECTIONS, places()["curves"])}
    weights = {name: each.weight_with_curves or each.weight for name, each in every.items()}
    joint = shared(Fraction(1), weights)
    apart = shared(Fraction(1), {name: each.weight for name, each in every.items()})
    for name in ("auc", "average-precision", "confusion", "brier"):
        assert joint[name] >= apart[name], name
    # Apart, half of the curves' share bought the area, and a tenth the cuts; now nine tenths are
    # for the counts.
    assert Fraction(9, 10) * joint["curves"] > Fraction(4, 10) * apart["curves"]


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_threshold_at_an_end_of_the_range_still_makes_a_report(make_session, threshold):
    report = make_session().report(epsilon="1", curves=True, threshold=threshold)
    assert report["curves"].auc.value > 0
