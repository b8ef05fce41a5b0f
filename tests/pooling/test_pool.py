"""Answers of several sites become one, or are refused in words."""

import copy
import json

import numpy as np
import pyarrow
import pytest
from tests.chances import louder

import heldout as ho
from heldout.errors import ArgumentError
from heldout.examples import readmission
from heldout.pooling.answer import PooledReport

SIZES = (300, 700, 1000)


@pytest.fixture(scope="module")
def sessions() -> list[ho.Session]:
    table = readmission(sum(SIZES))
    starts = np.cumsum((0, *SIZES[:-1]))
    return [session(table.slice(int(a), n)) for a, n in zip(starts, SIZES, strict=True)]


def session(table: pyarrow.Table, **more) -> ho.Session:
    rows = ho.Dataset(table, label="readmitted", score="risk_a", rivals=["risk_b"], **more)
    return ho.Session(rows, budget=ho.Budget(epsilon="10000"))


@pytest.fixture(scope="module")
def areas(sessions) -> list[dict]:
    return [each.auc(epsilon="1").as_dict() for each in sessions]


@pytest.mark.chance(louder(0, 6, 20))
def test_pooled_counts_are_those_of_all_rows_when_noise_is_next_to_nothing(sessions):
    pooled = ho.pool([each.confusion(threshold=0.2, epsilon="900") for each in sessions])
    table = readmission(sum(SIZES)).to_pandas()
    called, truth = table.risk_a >= 0.2, table.readmitted == 1
    assert pooled.true_positives == (called & truth).sum()
    assert pooled.false_positives == (called & ~truth).sum()
    assert pooled.recall == pytest.approx((called & truth).sum() / truth.sum())
    with pytest.raises(ArgumentError, match="mean cost is not a ratio"):
        pooled.cost()


@pytest.mark.chance(louder(0, 6, 20))
def test_a_pooled_mean_is_that_of_all_rows_when_noise_is_next_to_nothing(sessions):
    table = readmission(sum(SIZES)).to_pandas()
    pooled = ho.pool([each.brier(epsilon="900") for each in sessions])
    assert float(pooled) == pytest.approx(((table.risk_a - table.readmitted) ** 2).mean(), abs=1e-4)
    wide = [
        session(readmission(500), score_range=(-1, 3)).mean_squared_error(epsilon=e)
        for e in ("900", "901")
    ]
    assert float(ho.pool(wide)) == pytest.approx(float(wide[0]), rel=1e-3)


def test_a_site_that_noise_hides_has_no_number_in_the_forest_plot(areas):
    areas = copy.deepcopy(areas)
    name = next(iter(areas[1]["measures"]))
    areas[1]["measures"][name] |= {"value": 0.4321, "informative": False}
    picture = ho.pool(areas).figures()[0].svg
    assert "no information" in picture
    assert "0.43" not in picture


def test_a_release_and_its_json_pool_alike(sessions):
    for ask in ("auc", "average_precision", "brier", "confusion"):
        releases = [getattr(each, ask)(epsilon="1") for each in sessions]
        written = [json.loads(json.dumps(each.as_dict())) for each in releases]
        assert ho.pool(releases).as_dict() == ho.pool(written).as_dict()


@pytest.mark.chance(louder(0, 14, 10))
def test_a_pooled_difference_lies_on_the_scale_of_differences(sessions):
    pooled = ho.pool([each.compare(score="risk_b", epsilon="1") for each in sessions])
    sites = [each.value for each in pooled.sites]
    assert min(sites) <= pooled.value <= max(sites)
    low, high = pooled.interval()
    assert -1 <= low < pooled.value < high <= 1


def test_the_price_is_the_largest_for_people_of_one_site_and_the_sum_for_those_of_all(sessions):
    releases = [each.auc(epsilon=e) for each, e in zip(sessions, ("1", "1/2", "1/3"), strict=True)]
    price = ho.pool(releases).price.as_dict()
    assert price["one_site"] == {"epsilon": "1", "delta": "0"}
    assert price["every_site"] == {"epsilon": "11/6", "delta": "0"}
    assert price["one_site_assumes"] == "no person is in two sites"


def test_reports_pool_question_by_question_and_pay_for_all_of_them(sessions, tmp_path):
    reports = [each.report(epsilon="1") for each in sessions]
    pooled = ho.pool(reports, names=["north", "south", "<b>east"])
    assert isinstance(pooled, PooledReport)
    assert set(pooled.answers) == set(reports[0].releases)
    assert pooled.price.as_dict()["one_site"]["epsilon"] == "1"
    page = pooled.save(tmp_path / "pooled.html").read_text()
    assert "Forest plot of AUC" in page
    assert "<b>east" not in page
    assert "&lt;b&gt;east" in page


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("release",), "average-precision", "questions"),
        (("parameters", "score"), "risk_b", "score columns"),
        (("parameters", "scores"), "other", "kinds of scores"),
        (("protection", "neighbours"), "add-remove", "neighbours"),
        (("protection", "unit"), True, "units of privacy"),
        (("kind",), "grid-ties", "cannot be pooled: rows of different"),
        (("parameters", "by"), "sex", "by group, weighted"),
        (("measures", "AUC", "interval"), [1, 0], "not a release that can be read"),
        (("measures", "AUC", "value"), float("nan"), "not a release that can be read"),
        (("loss",), {}, "not a release that can be read"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(areas, place, value, words):
    other = copy.deepcopy(areas[1])
    inner = other
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ArgumentError, match=words):
        ho.pool([areas[0], other])


def test_another_threshold_or_score_range_is_refused(sessions):
    cells = [
        each.confusion(threshold=t, epsilon="1")
        for each, t in zip(sessions[:2], (0.2, 0.3), strict=True)
    ]
    with pytest.raises(ArgumentError, match=r"different thresholds: 0\.2 and 0\.3"):
        ho.pool(cells)
    other = session(readmission(400), score_range=(0, 2))
    errors = [each.mean_absolute_error(epsilon="1") for each in (sessions[0], other)]
    with pytest.raises(ArgumentError, match="different score ranges"):
        ho.pool(errors)
    reports = [each.report(epsilon="1") for each in (sessions[0], other)]
    with pytest.raises(ArgumentError, match="different score ranges"):
        ho.pool(reports)


def test_broken_counts_one_site_and_the_same_site_twice_are_refused(sessions, areas):
    cells = [each.confusion(threshold=0.2, epsilon="1").as_dict() for each in sessions]
    for key, value in (("noisy", [1, 2]), ("mechanism", {"scale": "x"}), ("noisy", "text")):
        with pytest.raises(ArgumentError):
            ho.pool([cells[0], {**cells[1], key: value}])
    for wrong in ([areas[0]], [], [areas[0], areas[0]], [areas[0], "text"], [areas[0], {}]):
        with pytest.raises(ArgumentError):
            ho.pool(wrong)
    with pytest.raises(ArgumentError, match="all different"):
        ho.pool(areas[:2], names=["a", "a"])
    with pytest.raises(ArgumentError, match="not both"):
        ho.pool([areas[0], {"releases": {"auc": areas[1]}}])


def test_the_command_prints_json_and_writes_a_page(areas, tmp_path, capsys):
    from heldout.cli import main

    files = []
    for name, content in zip(("north", "south", "east"), areas, strict=True):
        files.append(str(tmp_path / f"{name}.json"))
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    page = tmp_path / "pooled.html"
    assert main(["pool", *files, "--out", str(page), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["value"] == float(ho.pool(areas))
    assert [each["site"] for each in content["sites"]] == ["north", "south", "east"]
    assert "<svg" in page.read_text()
    assert main(["pool", *files]) == 0
    assert "Pooling costs nothing" in capsys.readouterr().out
    (tmp_path / "east.json").write_text("{")
    assert main(["pool", *files]) == 2
    assert "is not JSON" in capsys.readouterr().err


def test_files_of_one_name_are_told_apart_by_their_folders(areas, tmp_path, capsys, monkeypatch):
    """Every site calls its file answers.json."""
    from heldout.cli import main

    monkeypatch.chdir(tmp_path)
    files = []
    for name, content in zip(("north", "south"), areas[:2], strict=True):
        (tmp_path / name).mkdir()
        files.append(f"{name}/answers.json")
        (tmp_path / files[-1]).write_text(json.dumps(content))
    assert main(["pool", *files, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [each["site"] for each in content["sites"]] == ["north/answers", "south/answers"]
    assert main(["pool", files[0], f"./{files[0]}"]) == 2
    assert "Pass each file once" in capsys.readouterr().err


def test_questions_that_not_every_site_asked_are_named(sessions, tmp_path, capsys):
    from heldout.cli import main

    full, less = (each.report(epsilon="1").as_dict() for each in sessions[:2])
    del less["releases"]["brier"]
    pooled = ho.pool([full, less])
    assert pooled.left_out == ("brier",)
    assert "brier: not every site asked it" in pooled.html()
    for name, content in (("a", full), ("b", less)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = [str(tmp_path / f"{name}.json") for name in "ab"]
    assert main(["pool", *files]) == 0
    assert "Left out: brier" in capsys.readouterr().out
    (tmp_path / "b.json").write_text("{}")
    assert main(["pool", *files]) == 2
    assert "b is neither a release nor a report" in capsys.readouterr().err


def test_units_of_privacy_that_differ_are_told_in_words(areas):
    unit = copy.deepcopy(areas[1])
    unit["protection"]["unit"] = True
    with pytest.raises(ArgumentError, match="units of privacy: 'rows' and 'units of several rows'"):
        ho.pool([areas[0], unit])


def test_a_pooled_report_prints_its_answers(sessions):
    pooled = ho.pool([each.report(epsilon="1") for each in sessions[:2]])
    assert str(pooled).startswith(str(next(iter(pooled.answers.values()))))
    assert "PooledReport" not in repr(pooled)
