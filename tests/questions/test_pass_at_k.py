"""pass@k against its definition, by brute force; and logs of language models as rows."""

import itertools
import json
import warnings
import zipfile
from math import comb
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.small_tables import protections

import heldout as ho
from heldout import judged
from heldout import questions as q
from heldout.errors import ArgumentError, DataError, UnreadableTable
from heldout.kernel import Protection
from heldout.questions.pass_at_k import PassSums

PROTECTIONS = [one for one in protections(1, 2) if not one.only_labels]
PROMPTS = [(right, samples) for samples in (2, 3, 5) for right in range(samples + 1)]


def sums(statistic: PassSums, rows: tuple[tuple[int, int], ...]) -> Any:
    given = ", ".join(f"({right}, {samples})" for right, samples in rows) or "(0, 2)"
    none = "" if rows else " WHERE false"
    body = (
        "WITH evaluated AS (SELECT CAST(a AS DOUBLE) AS value_0, CAST(b AS DOUBLE) AS value_1 "
        f"FROM (VALUES {given}) AS made(a, b){none}) {statistic.body()}"
    )
    return statistic.read(duckdb.sql(body).fetchnumpy())


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=Protection.describe)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    k: int, protection: Protection
) -> None:
    statistic = PassSums(
        k=k, samples=1, least=2, most=5, with_rest=not protection.row_count_is_public
    )
    nothing = sums(statistic, ())
    own = [sums(statistic, (prompt,)) - nothing for prompt in PROMPTS]
    # Sums are additive, so what leaves and what arrives says how far any table moves.
    together = sums(statistic, tuple(PROMPTS[:3])) - nothing
    assert together.tolist() == sum(own[:3]).tolist()
    moved = {
        rows: np.array(
            [
                sum(several, 0 * nothing)
                for several in itertools.combinations_with_replacement(own, rows)
            ]
        )
        for rows in range(protection.rows_per_unit + 1)
    }
    furthest = max(
        int(np.abs(moved[leave][:, None] - moved[arrive][None, :]).sum(axis=2).max())
        for leave, arrive in protection.changes()
    )
    assert furthest == statistic.sensitivity(protection)


@pytest.mark.parametrize(("right", "samples"), PROMPTS)
@pytest.mark.parametrize("k", [1, 2])
def test_a_prompt_counts_as_the_share_of_choices_with_a_right_sample(
    right: int, samples: int, k: int
) -> None:
    statistic = PassSums(k=k, samples=1, least=2, most=5)
    expected = 1 - comb(samples - right, k) / comb(samples, k)
    found = sums(statistic, ((right, samples),))[0] / statistic.resolution
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_mean_over_prompts_is_that_of_the_definition() -> None:
    rows = {"right": [0, 1, 5, 2] * 100, "drawn": [5, 5, 5, 4] * 100}
    data = ho.Dataset(rows, values={"right": (0, 5), "drawn": (3, 5)})
    session = ho.Session(data, budget=ho.Budget(1000))
    expected = sum(
        1 - comb(n - c, 3) / comb(n, 3) for c, n in zip(rows["right"], rows["drawn"], strict=True)
    )
    release = session.ask(q.PassAtK(epsilon=500, right="right", samples="drawn", k=3))
    assert release.value == pytest.approx(expected / 400, abs=0.01)
    same = session.pass_at_k("right", 5, epsilon=500, k=1)
    assert same.value == pytest.approx((0 + 0.2 + 1 + 0.4) / 4, abs=0.01)
    with pytest.raises(ArgumentError, match="at most 3"):
        session.pass_at_k("right", "drawn", k=4, epsilon=1)


# --- logs ----------------------------------------------------------------------------------------

SAMPLES: list[dict[str, Any]] = [
    {"id": prompt, "epoch": epoch, "scores": {"match": {"value": value}, "grade": {"value": 0.5}}}
    for prompt, values in ((1, "CIC"), ("b", "III"))
    for epoch, value in enumerate(values, 1)
]


def test_an_inspect_log_is_one_row_per_sample_in_both_formats(tmp_path: Path) -> None:
    plain, packed = tmp_path / "log.json", tmp_path / "log.eval"
    plain.write_text(json.dumps({"version": 2, "status": "success", "samples": SAMPLES}))
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", json.dumps({"version": 2}))
        for sample in SAMPLES:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
    first, second = judged.read_inspect(plain), judged.read_inspect(packed)
    assert first == second
    assert first["id"] == ["1", "1", "1", "b", "b", "b"]
    assert first["match"] == list("CICIII")
    assert first["grade"] == ["0.5"] * 6
    counts = judged.count_right(first, by="id", column="match")
    assert counts == {"id": ["1", "b"], "right": ["2", "0"], "samples": ["3", "3"]}
    data = ho.Dataset(counts, values={"right": (0, 3)}, row_key="id")
    release = ho.Session(data, budget=ho.Budget(5000)).pass_at_k("right", 3, k=2, epsilon=5000)
    assert release.value == pytest.approx(0.5, abs=0.05)


def test_samples_of_lm_eval_are_one_row_per_document(tmp_path: Path) -> None:
    place = tmp_path / "samples_task_2026.jsonl"
    lines = [
        {"doc_id": doc, "doc": {"q": "?"}, "target": "1", "arguments": [], "resps": [["1"]],
         "filtered_resps": ["1"], "filter": name, "metrics": ["acc"], "doc_hash": "h",
         "acc": float(doc % 2), "parts": {"x": True}}
        for doc in range(4)
        for name in ("none", "strict")
    ]  # fmt: skip
    place.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    with pytest.raises(ArgumentError, match="several filters"):
        judged.read_lm_eval(place)
    table = judged.read_lm_eval(place, filter="strict")
    assert table["acc"] == ["0", "1", "0", "1"]
    assert table["parts.x"] == ["1"] * 4
    assert table["doc_id"] == ["0", "1", "2", "3"]
    data = ho.Dataset(table, values={"acc": (0, 1)}, row_key="doc_id")
    release = ho.Session(data, budget=ho.Budget(5000)).mean("acc", epsilon=5000)
    assert release.value == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ArgumentError, match="No filter 'other'"):
        judged.read_lm_eval(place, filter="other")


def test_one_sample_does_not_change_how_another_is_read(tmp_path: Path) -> None:
    for more in (1.0, "C", True):
        place = tmp_path / "log.json"
        samples = [*SAMPLES, {"id": 9, "scores": {"grade": {"value": more}}}]
        place.write_text(json.dumps({"samples": samples}))
        assert judged.read_inspect(place)["grade"][:6] == ["0.5"] * 6


def test_ids_are_told_apart_by_their_digits_and_equal_numbers_are_one(tmp_path: Path) -> None:
    """As doubles the first two would be one person, and the last two would be two."""
    place = tmp_path / "log.json"
    ids = ["9007199254740993.0", "9007199254740992.0", "1e16", "10000000000000000"]
    samples = [f'{{"id": {own}, "scores": {{"m": {{"value": 1.50}}}}}}' for own in ids]
    place.write_text(f'{{"samples": [{", ".join(samples)}]}}')
    rows = judged.read_inspect(place)
    assert rows["id"] == [str(2**53 + 1), str(2**53), "1" + "0" * 16, "1" + "0" * 16]
    assert rows["m"] == ["1.5"] * 4
    with pytest.raises(ArgumentError, match="several whole numbers"):
        judged.count_right({"id": [2.0**53], "m": ["C"]}, by="id", column="m")


def test_a_scorer_does_not_take_the_place_of_the_id(tmp_path: Path) -> None:
    place = tmp_path / "log.json"
    place.write_text('{"samples": [{"id": 1, "scores": {"id": {"value": "C"}}}]}')
    with pytest.raises(UnreadableTable, match="must not be called 'id'"):
        judged.read_inspect(place)


def test_a_sample_without_a_score_refuses_the_table(tmp_path: Path) -> None:
    place = tmp_path / "log.json"
    place.write_text(json.dumps({"samples": [*SAMPLES, {"id": 9, "scores": None}]}))
    with pytest.raises(DataError):
        ho.Dataset(judged.read_inspect(place), values={"match": {"C": 1, "I": 0}})


@pytest.mark.parametrize("text", ["[]", "{}", "no json", '{"samples": []}'])
def test_another_file_is_refused_in_words(tmp_path: Path, text: str) -> None:
    place = tmp_path / "log.json"
    place.write_text(text)
    with pytest.raises(UnreadableTable):
        judged.read_inspect(place)
    with pytest.raises(UnreadableTable):
        judged.read_lm_eval(place)


def test_a_log_holds_a_sample_once_however_it_is_stored(tmp_path: Path) -> None:
    # As Inspect's recorder names members; a sample may be logged again, or be in several parts.
    def sample(id_: str, value: str) -> str:
        return json.dumps({"id": id_, "epoch": 1, "scores": {"match": {"value": value}}})

    path = tmp_path / "log.eval"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore", UserWarning)  # a name twice is what is tested
        archive.writestr("_journal/start.json", "{}")
        archive.writestr("samples/HumanEval/0_epoch_1.json", sample("HumanEval/0", "I"))
        archive.writestr("samples/HumanEval/0_epoch_1.json", sample("HumanEval/0", "C"))
        archive.writestr("samples/b_epoch_1/sample.json", sample("b", "I"))
        archive.writestr("samples/b_epoch_1/messages/0.json", "[]")
        archive.writestr("samples/b_epoch_1/events/stats.json", "{}")
        archive.writestr("header.json", "{}")
    assert ho.judged.read_inspect(path) == {
        "id": ["HumanEval/0", "b"],
        "epoch": ["1", "1"],
        "match": ["C", "I"],
    }


def test_a_damaged_log_is_refused_without_a_word_of_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of a zip's own errors name the member, which is the sample's id."""
    sample = json.dumps({"id": "secret", "scores": {"match": {"value": "C"}}})
    packed = tmp_path / "packed.eval"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/secret_epoch_1.json", sample)
    content = packed.read_bytes()
    start = content.index(b".json") + len(b".json")
    damaged = content[: start + 4] + bytes([content[start + 4] ^ 255]) + content[start + 5 :]
    encrypted = bytearray(content)
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[content.index(header) + flags] |= 1
    lines = b'{"doc_id": 1, "acc": 1}\n{"doc_id": 2, "secret": "\xff\xfe"}\n'
    for name, wrong in {
        "damaged.eval": damaged,
        "encrypted.eval": bytes(encrypted),
        "texts.json": b'{"samples": ["secret"]}',
        "lists.json": b'{"samples": [{"id": 1, "scores": ["secret"]}]}',
        "lines.jsonl": lines,
    }.items():
        place = tmp_path / name
        place.write_bytes(wrong)
        read = judged.read_lm_eval if name == "lines.jsonl" else judged.read_inspect
        with pytest.raises(UnreadableTable) as refused:
            read(place)
        assert "secret" not in str(refused.value)
        assert refused.value.__cause__ is None
    monkeypatch.setattr(judged, "MOST_BYTES", 8)
    with pytest.raises(UnreadableTable, match="holds a sample of more than"):
        judged.read_inspect(packed)
