"""An un-noised metric gives labels away; a private release of it does not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from heldout import errors
from heldout import questions as q
from heldout.audit import exposure, label_from_auc, label_from_average_precision, label_from_roc
from heldout.audit.attacks import metric_value, most_success
from heldout.audit.subjects import open_session
from heldout.cli import main
from heldout.questions.worst_cases import WorstCase, rows, table_pair

RANDOM = np.random.default_rng(11)


def made(rows: int, *, ties: bool = False) -> tuple[Any, Any]:
    labels = np.arange(rows) % 5 < 2  # two in five are positive
    labels = labels.astype(int)
    scores = 1 / (1 + np.exp(-RANDOM.normal(labels * 1.3, 1.0)))
    return labels, np.round(scores, 1) if ties else scores


def test_what_is_attacked_is_what_is_published() -> None:
    for ties in (False, True):
        labels, scores = made(60, ties=ties)
        assert metric_value("auc", labels, scores) == pytest.approx(roc_auc_score(labels, scores))
        fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
        np.testing.assert_allclose(
            metric_value("roc", labels, scores), np.stack([fpr, tpr], axis=1)[1:]
        )


@pytest.mark.parametrize("metric", ["auc", "average-precision", "roc"])
@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
def test_a_full_metric_gives_nearly_every_label_away(metric: str, ties: bool) -> None:
    labels, scores = made(101, ties=ties)
    found = exposure(labels, scores, metric=metric)
    assert found.recovered > 0.9
    assert found.attacked == 101


def test_the_attack_knows_the_answer_when_only_one_class_can_give_it() -> None:
    for _ in range(20):
        labels, scores = made(24)
        n = int(labels.sum())
        if not 2 <= n <= 22 or n * (24 - n) == (n - 1) * (25 - n):
            continue
        published = metric_value("auc", labels, scores)
        known, rest = labels[1:], scores[1:]
        guess = label_from_auc(rest[known == 1], rest[known == 0], published)
        assert guess in (labels[0], 0.5) or _both_can(rest, known, published)


def _both_can(scores: Any, labels: Any, published: float) -> bool:
    found = set()
    for label in (0, 1):
        for place in np.concatenate([scores, scores + 1e-9, scores - 1e-9, [-1, 2]]):
            value = metric_value("auc", np.append(labels, label), np.append(scores, place))
            if abs(value - published) < 1e-9:
                found.add(label)
    return found == {0, 1}


def test_rounding_makes_it_harder() -> None:
    labels, scores = made(401)
    full, three, one = (
        exposure(labels, scores, decimals=digits, most=120).balanced for digits in (None, 3, 1)
    )
    assert full > 0.95
    assert three < full
    assert abs(one - 0.5) < 0.2


def test_awkward_data_is_attacked_without_a_crash() -> None:
    assert label_from_auc([], [], 0.5) in (0.0, 0.5, 1.0)
    assert label_from_auc([0.5], [], 1.0) in (0.0, 0.5, 1.0)
    assert label_from_average_precision([], [0.5], 1.0) == 1.0
    assert label_from_roc([0.5], [0.5], [(1, 1)]) == 0.5
    for labels in ([0, 0, 0], [1, 1, 1], [1, 0]):
        for metric in ("auc", "average-precision", "roc"):
            assert 0 <= exposure(labels, [0.5] * len(labels), metric=metric).recovered <= 1


def test_bad_words_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="metric must be"):
        exposure([1, 0], [0.5, 0.1], metric="f1")
    with pytest.raises(errors.ArgumentError, match="decimals must be"):
        exposure([1, 0], [0.5, 0.1], decimals=-1)
    with pytest.raises(errors.ArgumentError, match="same length"):
        exposure([1, 0], [0.5])


@pytest.mark.slow
@pytest.mark.chance(9e-9, "four binomial tails of 600 guesses that are right as often as the bound")
def test_against_a_private_release_no_attacker_beats_the_bound() -> None:
    """The two attackers of the figure at epsilon 1, on small data, where noise matters most.

    Against counts by score, as for small classes, and against a value, as for large ones.
    """
    trials, won = 600, np.zeros((2, 2))
    up, down = [0.55, 0.65, 0.75, 0.85, 0.9, 0.95], [0.1, 0.2, 0.3, 0.5, 0.6]
    pair = table_pair("a label", [*rows(up, down), (0, 0.01)], [*rows(up, down), (1, 0.99)])
    for truth in (0, 1):
        session = open_session(WorstCase(pairs=(pair,)), pair, truth, "replay")
        for _ in range(trials // 2):
            small = session.ask(q.Auc(epsilon="1", smaller_class=5))
            large = session.ask(q.Auc(epsilon="1", smaller_class=10**4))._noisy()
            seen = (
                (small.value, sum(small._noisy()["positives"])),
                (large["unclamped"], large["noisy_counts"][0]["positives"]),
            )
            for way, (area, count) in enumerate(seen):
                guesses = (label_from_auc(up, down, area), float(count >= 7))
                won[way] += [0.5 if guess == 0.5 else guess == truth for guess in guesses]
    # Five deviations above the bound would be a leak.
    assert (won / trials).max() < most_success(1.0) + 5 * 0.5 / np.sqrt(trials)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    labels, scores = made(300)
    path = tmp_path / "test.csv"
    pyarrow.csv.write_csv(pyarrow.table({"y": labels, "p": scores, "who": ["Canaria"] * 300}), path)
    return path


def test_the_command_tells_a_custodian_how_exposed_she_is(
    table: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["attack", "auc", str(table), "--label", "y", "--score", "p", "--most", "60"]
    assert main(words) == 0
    page = capfd.readouterr().out
    assert "recovers the label of" in page
    assert "custodian's eyes only" in page
    assert "Canaria" not in page
    assert main([*words, "--decimals", "3", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["decimals"] == 3
    assert 0 <= found["recovered"] <= 1
    assert found["most_success_at_epsilon"] == pytest.approx(0.731, abs=1e-3)


@pytest.mark.parametrize(
    "change",
    [
        lambda words: ["attack", "f1", *words[2:]],
        lambda words: [*words, "--decimals", "99"],
        lambda words: [*words, "--epsilon", "0"],
        lambda words: [*words[:2], "nowhere.csv", *words[3:]],
        lambda words: [*words[:-1], "who"],
    ],
)
def test_what_is_wrong_is_one_line(
    change: Callable[[list[str]], list[str]], table: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = change(["attack", "auc", str(table), "--label", "y", "--score", "p"])
    assert main(words) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("heldout: ")
    assert "internal" not in shown.err
    assert "Canaria" not in shown.err
