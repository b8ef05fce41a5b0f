"""Predictions by row key: read in the sandbox, joined, and not a word on who is in the table."""

import importlib
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.errors import ArgumentError, UnreadableTable, UnusableModel
from heldout.models import join_predictions, predictions, read_predictions, reader, sandbox

hostile: Any = importlib.import_module("hostile_keepers")

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")

ROWS = pa.table({"id": list(range(1, 9)), "y": [0, 1] * 4})


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def joined(path: Path, rows: Any = ROWS, **words: Any) -> list[float]:
    found = join_predictions(path, rows, **{"row_key": "id", "lowest": 0.0, **words})
    return found.to_arrow()["score"].to_pylist()  # type: ignore[no-any-return]


def sent(path: Path, columns: dict[str, Any]) -> Path:
    """A file as `read_predictions` writes it."""
    return parquet(path, {**columns, "score": np.array(columns["score"], float)})


# --- reading, with the reader in this process where its answers alone matter ---------------------


class Answers(list[bytes]):
    send_bytes = list.append


def said(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int = 100) -> Any:
    """What a reader answers, run here without its walls."""
    path = tmp_path / "sent"
    path.write_bytes(content)
    monkeypatch.setattr(reader, "shut_off", lambda *_: {"none": True})
    monkeypatch.setattr(reader, "silence", lambda: None)
    pool = pa.default_memory_pool()
    answers = Answers()
    with path.open("rb") as file:
        task = reader.Reading(file.fileno(), most, False, 2**29, 60)
        reader.read(task, None, answers, None)  # type: ignore[arg-type]
    pa.set_memory_pool(pool)
    if answers[-1][:1] == b"R":
        return answers[-1][1:].decode()
    assert answers.pop() == b"E"
    names = predictions._names(answers.pop(0)[1:])
    found = [predictions._checked(each[1:], len(names)) for each in answers]
    rows = [
        (key, scores)
        for batch, several in found
        for key, scores in zip(batch["key"].to_pylist(), several.tolist(), strict=True)
    ]
    return rows if len(names) > 1 else [(key, *scores) for key, scores in rows]


def bytes_of(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"key,score\n7,0.25\nb,1\n",
        b"score,key\n0.25,7\n1,b\n",
        b"\xef\xbb\xbfid;Score\r\n7;0.25\r\nb;1\r\n",
        b"who\tprobability\n7\t0.25\n\nb\t1\n",
        b"other,key,score\n,7,0.25\n,b,1\n",
        b'key,score\n"7",0.25\n"b",1',
        bytes_of({"key": ["7", "b"], "score": [0.25, 1.0]}),
        bytes_of({"score": [0.25, 1.0], "id": pa.array(["7", "b"]).dictionary_encode()}),
        bytes_of({"a": ["7", "b"], "b": pa.array([0.25, 1.0], pa.float32())}),
    ],
)
def test_csv_and_parquet_are_read_by_name_or_as_two_columns(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(content, tmp_path, monkeypatch) == [("7", 0.25), ("b", 1.0)]


@pytest.mark.parametrize(
    "content",
    [
        b"key,a,b\n7,0.25,1\nb,1,0.5\n",
        b"A;Key;B\n0.25;7;1\n1;b;0.5\n",
        bytes_of({"a": [0.25, 1.0], "key": ["7", "b"], "b": [1.0, 0.5]}),
    ],
)
def test_several_classes_have_a_column_each(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(content, tmp_path, monkeypatch) == [("7", [0.25, 1.0]), ("b", [1.0, 0.5])]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"key,a\x07,b\n1,2,3\n", "cannot be shown"),
        (b"key,,b\n1,2,3\n", "is empty, too long"),
        (b"key,a,b\n1,2,high\n", "line 2 is not a number"),
        (b"key" + b"".join(b",c%d" % n for n in range(51)) + b"\n", "has 52 columns"),
        (bytes_of({"key": ["a"], "x": [1.0], "y": ["1.0"]}), "must be numbers"),
        (b"7,0.25\n8,0.5\n", "must name the columns"),
        (b"key\n7\n", "has 1 columns"),
        (b"a,b,c\n1,2,3\n", "has 3 columns"),
        (b"key,Key,score\n1,2,3\n", "have one name"),
        (b"key,score\n7,0.25\n8\n", "line 3 has 1 cells"),
        (b"key,score\n7,high\n", "line 2 is not a number"),
        (b"key,score\n,0.5\n", "needs a key"),
        (b"key,score\n" + b"7" * 300 + b",0.5\n", "at most 256 bytes"),
        (b"key,score\n\xff\xfe,0.5\n", "nor CSV in UTF-8"),
        (b"PAR1rubbish", "neither whole Parquet"),
        (bytes_of({"key": [1.5], "score": [1.0]}), "texts or whole numbers"),
        (bytes_of({"key": ["a"], "score": ["1.0"]}), "must be numbers"),
        (bytes_of({"key": ["a", None], "score": [1.0, 2.0]}), "has no key"),
        (bytes_of({"key": range(101), "score": [1.0] * 101}), "more than 100 rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_words(
    content: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words in said(content, tmp_path, monkeypatch)


def test_a_blank_score_is_none_and_an_infinite_one_stays_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = dict(said(b"key,score\na,\nb,nan\nc,-inf\n", tmp_path, monkeypatch))
    assert np.isnan([found["a"], found["b"]]).all()
    assert found["c"] == -np.inf


# --- the parent, and the walls -------------------------------------------------------------------


def test_a_file_is_read_in_the_sandbox_into_a_private_file_of_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "sent.csv"
    path.write_text("key,score\n" + "".join(f"{n},{n / 5000}\n" for n in range(5000)))
    found = read_predictions(path, out=tmp_path / "kept.parquet")
    assert found.rows == 5000
    assert set(found.as_dict()) == {"kind", "rows", "sha256"}
    kept = pq.read_table(found.path)
    assert kept.schema.names == ["key", "score"]
    assert kept.schema.types == [pa.string(), pa.float64()]
    assert kept["key"][4999].as_py() == "4999"
    assert found.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ArgumentError, match="out must be a new file"):
        read_predictions(path, out=found.path)


def test_a_key_that_is_there_twice_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = parquet(tmp_path / "sent", {"key": ["7", "7.0", "8"], "score": [1, 2, 3]})
    with pytest.raises(UnusableModel, match="1 of its keys are there more than once"):
        read_predictions(path, out=tmp_path / "kept.parquet")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sent"]


def test_a_small_file_of_very_many_rows_is_refused_by_its_footer(tmp_path: Path) -> None:
    path, n = tmp_path / "bomb.parquet", 50_000
    same = pa.table({"key": pa.array(["x"] * n).dictionary_encode(), "score": np.zeros(n)})
    with pq.ParquetWriter(path, same.schema) as writer:
        for _ in range(3):
            writer.write_table(same)
    assert path.stat().st_size < 5000
    with pytest.raises(UnusableModel, match="more than 100,000 rows"):
        read_predictions(path, out=tmp_path / "kept.parquet", most_rows=100_000)


def replies(*messages: bytes) -> Callable[..., Any]:
    """A reader that says these, in the place of a process that was taken over."""

    class Reader:
        def __init__(self) -> None:
            self.left = list(messages)

        def __enter__(self) -> tuple[Any, Any, Any]:
            return None, None, self

        def __exit__(self, *_: object) -> None: ...

        def poll(self, seconds: float) -> bool:
            return bool(self.left)

        def recv_bytes(self, most: int) -> bytes:
            return self.left.pop(0)

    return lambda *_: Reader()


NAMED, GOOD = b'N["score"]', b"B" + reader._message(["a", "b"], [0.5, 1.0])
WRONG = {
    "no answer": (),
    "rubbish": (b"\0",),
    "a batch of no rows": (b"B\0\0\0\0", b"E"),
    "more rows than a batch has": (b"B" + b"\xff" * 4 + GOOD[5:], b"E"),
    "lengths beyond the text": (GOOD[:5] + b"\xff\0\0\0" + GOOD[9:], b"E"),
    "text beyond the lengths": (GOOD + b"c", b"E"),
    "an empty key": (b"B\1\0\0\0\0\0\0\0" + b"\0" * 8, b"E"),
    "no UTF-8": (GOOD[:-1] + b"\xff", b"E"),
    "cut short": (GOOD[:12], b"E"),
    "no end": (GOOD,),
    "fewer scores than names": (b'N["a", "b"]', GOOD, b"E"),
    "names twice": (NAMED, NAMED, GOOD, b"E"),
}
WRONG = {name: (NAMED, *sent) if sent and sent[0] != b'N["a", "b"]' else sent
         for name, sent in WRONG.items()}  # fmt: skip
WRONG |= {
    f"no such names: {each!r}": (b"N" + each, GOOD, b"E")
    for each in (b"[]", b"[1]", b"score", b'["a", "a"]', b'["\\u0000"]', b'[""]', b"\xff",
                 b'["' + b"x" * 300 + b'"]', b"[" + b'"a",' * 60 + b'"b"]')
}  # fmt: skip
WRONG["rows without names"] = (GOOD, b"E")


@pytest.mark.parametrize("name", WRONG)
def test_a_reader_that_was_taken_over_is_held_to_the_form(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "started", replies(*WRONG[name]))
    (tmp_path / "sent").write_bytes(b"x")
    with pytest.raises(UnusableModel, match="its reader failed"):
        read_predictions(tmp_path / "sent", out=tmp_path / "kept.parquet")
    assert not (tmp_path / "kept.parquet").exists()


def test_a_reader_cannot_send_more_rows_than_allowed_nor_words_that_break_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sent").write_bytes(b"x")
    monkeypatch.setattr(predictions, "started", replies(NAMED, GOOD, GOOD, b"E"))
    with pytest.raises(UnusableModel, match="more than 3 rows"):
        read_predictions(tmp_path / "sent", out=tmp_path / "a.parquet", most_rows=3)
    monkeypatch.setattr(predictions, "started", replies(b"R\x1b[2J\n" + b"x" * 2**16))
    with pytest.raises(UnusableModel) as refused:
        read_predictions(tmp_path / "sent", out=tmp_path / "b.parquet")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


def test_the_parent_does_not_wait_for_a_reader_that_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sent").write_bytes(b"x")
    monkeypatch.setattr(predictions, "read", hostile.dies_at_once)
    with pytest.raises(UnusableModel, match="its reader failed"):
        read_predictions(tmp_path / "sent", out=tmp_path / "kept.parquet")


# --- joining -------------------------------------------------------------------------------------


def test_every_class_has_the_score_that_was_sent_for_its_key(tmp_path: Path) -> None:
    path = tmp_path / "sent.csv"
    lines = [f"{n},{n / 2000},{1 - n / 2000},7" for n in range(1500)]
    path.write_text("key,a,b,c\n" + "\n".join(lines))
    found = read_predictions(path, out=tmp_path / "kept.parquet")
    assert found.as_dict()["classes"] == ["a", "b", "c"]
    words = {"row_key": "id", "lowest": 0.0, "score_range": (0, 1)}
    rows = {"id": [1000, 99999, 500]}
    joined = join_predictions(found.path, rows, into={"y": 1, "z": 2, "x": 0}, **words).to_arrow()
    assert joined.to_pydict() == rows | {"y": [0.5, 0, 0.75], "z": [1, 0, 1], "x": [0.5, 0, 0.25]}
    for wrong in ({"x": 3}, {"x": -1}, {"x": "a"}, {}, {"": 0}):
        with pytest.raises(ArgumentError, match="into must"):
            join_predictions(found.path, rows, into=wrong, **words)
    with pytest.raises(UnreadableTable, match="has a column 'id' already"):
        join_predictions(found.path, rows, into={"id": 0}, **words)


def test_every_row_has_the_score_of_its_key_in_the_order_of_the_rows(tmp_path: Path) -> None:
    path = sent(tmp_path / "p.parquet", {"key": ["3", "1", "99", "2.0"], "score": [3, 1, 9, 2]})
    assert joined(path, score_range=(0, 5)) == [1, 2, 3, 0, 0, 0, 0, 0]
    found = join_predictions(path, ROWS, row_key="id", lowest=0.0, out=tmp_path / "s.parquet")
    assert (tmp_path / "s.parquet").stat().st_mode & 0o777 == 0o600
    data = ho.Dataset(found, label="y", score="score", row_key="id", score_range=(0, 5))
    assert ho.Session(data, budget=ho.Budget(epsilon="1")).auc(epsilon="1").value is not None


def test_scores_are_held_to_the_range_and_none_is_the_lowest(tmp_path: Path) -> None:
    scores = [np.nan, np.inf, -np.inf, 7.0, -7.0, 0.5]
    path = sent(tmp_path / "p.parquet", {"key": list("123456"), "score": scores})
    found = joined(path, lowest=0.25, score_range=(0, 1))
    assert found == [0.25, 1, 0, 1, 0, 0.5, 0.25, 0.25]
    assert np.isfinite(joined(path, lowest=-3.0)).all()


@pytest.mark.parametrize(
    "keys", [[1, 2], ["1", "2"], [1.0, 2.0], [b"1", b"2"], [True, False], [None, 2], [[1], [2]]]
)
def test_no_key_of_the_private_rows_makes_the_join_fail(keys: list[Any], tmp_path: Path) -> None:
    path = sent(tmp_path / "p.parquet", {"key": ["1", "2"], "score": [1, 1]})
    assert set(joined(path, pa.table({"id": keys}))) <= {0.0, 1.0}


def test_a_key_that_slipped_in_twice_does_not_count_a_person_twice(tmp_path: Path) -> None:
    path = sent(tmp_path / "p.parquet", {"key": ["1", "1", "1.0"], "score": [1, 2, 3]})
    assert joined(path, score_range=(0, 5)) == [3, 0, 0, 0, 0, 0, 0, 0]


def test_whether_a_key_is_in_the_table_shows_in_nothing_but_the_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def look() -> float:
        sleep(taken)
        return now

    clock = SimpleNamespace(monotonic=look, sleep=sleep)
    monkeypatch.setattr(predictions, "time", clock)
    monkeypatch.setattr(importlib.import_module("heldout.models.score"), "time", clock)
    everybody = {"key": [str(n) for n in range(1, 9)], "score": [0.5] * 8}
    without = {"key": everybody["key"][:-1], "score": [0.5] * 7}
    there, not_there = ROWS, ROWS.set_column(0, "id", pa.array([*range(1, 8), 77]))
    shown, times, works = set(), [], iter((0.01, 0.49, 0.3, 0.7))
    for columns in (everybody, without):
        path = sent(tmp_path / "p.parquet", columns)
        for rows in (there, not_there):
            taken = next(works)  # between two looks at the clock
            began = now + taken
            found = join_predictions(path, rows, row_key="id", lowest=0.0, tick=0.5)
            times.append(now - began)
            shown.add((repr(found), tuple(found.columns), len(found.to_arrow())))
    assert len(shown) == 1
    assert times == pytest.approx([0.5, 0.5, 0.5, 1.0]), "a tick, or as many as it needs"


@pytest.mark.parametrize(
    "words",
    [
        {"lowest": float("nan")},
        {"lowest": 2.0, "score_range": (0, 1)},
        {"score_range": (1, 0)},
        {"row_key": "nobody"},
        {"into": "y"},
        {"tick": -1},
    ],
)
def test_arguments_that_cannot_be_are_refused(words: dict[str, Any], tmp_path: Path) -> None:
    path = sent(tmp_path / "p.parquet", {"key": ["1"], "score": [1]})
    with pytest.raises(ho.errors.HeldoutError):
        joined(path, **words)
