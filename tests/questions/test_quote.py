"""What a quote promises is what the release gives: the same price, half-widths near by."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.metrics import average_precision_score
from tests.chances import louder

import heldout as ho
from heldout import questions as q
from heldout.regression import RegressionSession, RegressionTable

RUNS = 9
TINY = 2e-4  # of a share that is nearly 0
AUC = 0.8
APART = float(np.sqrt(2) * ndtri(AUC))
MEASURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "AUC": (q.Auc, {}),
    "average precision": (q.AveragePrecision, {}),
    "recall": (q.Confusion, {"threshold": 0.3}),
    "precision": (q.Confusion, {"threshold": 0.3}),
    "Brier score": (q.Brier, {}),
    "mean absolute error": (q.MeanAbsoluteError, {}),
    "AUC of the curve": (q.Curves, {}),
}

CALIBRATED = ("recall", "precision", "Brier score")
"""What a quote of calibrated scores needs no more guesses for."""
SPREADS = {"AUC": 0.05, "average precision": 0.07, "AUC of the curve": 0.1}
"""Of half-widths from release to release, as a part of them; others spread less."""


def rows(count: int, positives: int) -> tuple[Any, Any]:
    """Two normal classes without a sampling error: what a guess stands for."""
    sides = [ndtri((np.arange(size) + 0.5) / size) for size in (count - positives, positives)]
    scores = np.concatenate([sides[0], sides[1] + APART])
    labels = np.repeat([0, 1], [count - positives, positives])
    return labels, np.clip((scores + 4) / (8 + APART), 0, 1)


def calibrated(scores: Any, share: float) -> Any:
    """Return the probabilities of being positive, of scores that `rows` gives."""
    place = scores * (8 + APART) - 4
    return 1 / (1 + np.exp(APART**2 / 2 - APART * place) * (1 - share) / share)


def agree(
    quoted: q.HalfWidths,
    released: list[q.HalfWidths],
    draws: int,
    within: float = 0.05,
    least: float = 0.03,
) -> None:
    """Near the median release, by seven times what chance does to both medians and a little more.

    Nine releases may lie close together by chance: so they are taken to spread by `least` of their
    median at the least, which is less than what was measured of many.
    """
    for name in ("noise", "whole"):
        found = np.array([getattr(each, name) for each in released])
        expected = float(np.median(found))
        spread = max(float(found.std()), least * expected)
        chance = 1.25 * spread * np.sqrt(1 / len(found) + (draws > 1) / draws)
        assert abs(getattr(quoted, name) - expected) <= within * expected + 7 * chance + TINY, name


def sizes() -> Iterator[Any]:
    """Those of curves take seconds each: the small one here, the others with the slow tests."""
    for name in MEASURES:
        for case in ((1000, 0.5, "1"), (5000, 0.1, "1"), (20_000, 0.3, "1/4")):
            long = case[0] > (1000 if name == "AUC of the curve" else 5000)
            yield pytest.param(name, *case, marks=[pytest.mark.slow] * long)


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("name", "count", "share", "epsilon"), [*sizes()])
def test_a_quote_and_the_release_agree(
    name: str, count: int, share: float, epsilon: str, neighbours: str
) -> None:
    positives = int(count * share)
    labels, scores = rows(count, positives)
    if name in CALIBRATED:
        scores = calibrated(scores, share)
    dataset = ho.Dataset({"y": labels, "p": scores}, label="y", score="p", neighbours=neighbours)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=10**4))
    kind, words = MEASURES[name]
    question = kind(epsilon=epsilon, **words)
    error = np.abs(scores - labels) ** (1 if name == "mean absolute error" else 2)
    mean = float(error.mean())
    errors = {"mean_error": mean, "error_spread": float(error.std() / np.sqrt(mean * (1 - mean)))}
    guess = {
        "rows": count,
        "positives": positives,
        "auc": AUC,
        "average_precision": float(average_precision_score(labels, scores)),
        **({} if name in CALIBRATED else errors),
    }
    # One forecast of curves may be three times as wide as most: as one release in a hundred is.
    quotes = [session.quote(question, **guess) for _ in range(RUNS if kind is q.Curves else 1)]
    quoted = q.HalfWidths.median([each.half_widths[0][name] for each in quotes])
    released = [q.HalfWidths.of(session.ask(question).measures[name], 0.95) for _ in range(RUNS)]
    assert session.spent.epsilon == RUNS * quotes[0].loss.epsilon
    least = SPREADS.get(name, 0.03)
    agree(quoted, released, question.draws * len(quotes), least=least)


@pytest.mark.parametrize("slope", [1 / 3, 3.0])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(q.Brier, "Brier score"), (q.LogLoss, "log loss"), (q.Confusion, "selection rate")],
)
def test_a_guessed_calibration_slope_makes_quotes_of_other_scores_right(
    kind: Any, name: str, slope: float
) -> None:
    labels, scores = rows(5000, 1500)
    odds = np.log(calibrated(scores, 0.3) / (1 - calibrated(scores, 0.3)))
    table = {"y": labels, "p": 1 / (1 + np.exp(-odds / slope))}
    session = ho.Session(ho.Dataset(table, label="y", score="p"), budget=ho.Budget(epsilon=10**4))
    question = kind(epsilon=1, **({"threshold": 0.6} if kind is q.Confusion else {}))
    guess = {"positives": 1500, "auc": AUC}
    released = q.HalfWidths.of(session.ask(question).measures[name], 0.95).whole

    def ratio(**more: float) -> float:
        [widths] = session.quote(question, **guess, **more).half_widths
        return released / widths[name].whole

    assert ratio(calibration_slope=slope) == pytest.approx(1, abs=0.1)
    assert abs(np.log(ratio())) > np.log(1.1)


def test_a_quote_says_in_words_that_it_takes_scores_for_calibrated() -> None:
    labels, scores = rows(1000, 300)
    table = {"y": labels, "p": scores}
    session = ho.Session(ho.Dataset(table, label="y", score="p"), budget=ho.Budget(epsilon=1))
    asked = [kind(epsilon="1/8") for kind in (q.Auc, q.Brier, q.LogLoss, q.Curves, q.Report)]
    quote = session.quote(*asked, q.Confusion(threshold=0.3, epsilon="1/8"))
    said = ["Assumes calibrated scores" in text for text in quote.assumptions]
    assert said == [False, True, True, True, True, True]
    assert quote.as_dict()["assumes"] == list(quote.assumptions)
    assert str(quote).count("Guess calibration_slope: below 1 if scores are too extreme") == 4
    one = session.quote(q.Brier(epsilon="1/8"), calibration_slope=0.5)
    assert str(one).endswith("Assumes scores with a calibration slope of 0.5.")
    assert session.quote(q.Brier(epsilon="1/8"), mean_error=0.1).assumptions == ("",)
    wide = ho.Dataset({"y": labels, "p": 9 * scores}, label="y", score="p", score_range=(0, 9))
    other = ho.Session(wide, budget=ho.Budget(epsilon=1))
    assert other.quote(q.Curves(epsilon=1)).assumptions == ("",)


@pytest.mark.chance(louder(0, 3, 40))
@pytest.mark.parametrize("kind", [q.RegressionMetrics, q.ResidualPlot])
def test_a_quote_of_residuals_and_the_release_agree(kind: Any) -> None:
    count = 4000
    at = (np.arange(count) + 0.5) / count
    residual = ndtri(np.random.default_rng(3).permutation(at))
    predicted = 3 * (2 * at - 1)
    table = RegressionTable(
        {"o": predicted + residual, "f": predicted}, observed="o", predicted="f"
    )
    session = RegressionSession(table, budget=ho.Budget(epsilon=10**4))
    # Searched bounds of the outcome would make R squared's half-width jump in 1 of 10 releases.
    bounds: dict[str, Any] = {"residual": 6.0}
    if kind is q.RegressionMetrics:
        bounds["observed"] = (-9.0, 9.0)
    question = kind(epsilon="2", bounds=bounds)
    [quoted] = session.quote(question).half_widths
    answers = [session.ask(question).measures for _ in range(9)]
    for name, each in quoted.items():
        if "quantile" in name:
            continue  # its half-width jumps from cell to cell: one draw or another
        found = [q.HalfWidths.of(answer[name], 0.95) for answer in answers]
        agree(each, found, question.draws, within=0.1)  # medians of five draws and of nine


@pytest.mark.parametrize("asked", [q.Confusion, q.Brier, q.LogLoss])
def test_a_quote_of_weighted_rows_takes_their_mean_weight(asked: Any) -> None:
    table = {"y": [0, 1] * 2000, "p": [0.2, 0.6] * 2000, "w": [1.0, 3.0] * 2000}
    declared = ho.Dataset(table, label="y", score="p", weight="w", largest_weight=10)
    session = ho.Session(declared, budget=ho.Budget(epsilon=1))
    noise = []
    for share in (1.0, 0.5, 0.1):
        [found] = session.quote(asked(epsilon=1, weighted=True), mean_weight=share).half_widths
        noise.append(next(iter(found.values())).noise)
    # The noise is that of the largest weight, and the sum it stands beside is so much smaller.
    assert noise[1] == pytest.approx(2 * noise[0], rel=0.05)
    assert noise[2] == pytest.approx(10 * noise[0], rel=0.1)
