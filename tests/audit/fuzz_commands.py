# ruff: noqa: E501 - tables of inputs, read as tables
"""Every command as an entry: its words are its arguments, its files lie in a directory of its own."""

import contextlib
import importlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heldout.arguments import shown
from heldout.cli import COMMANDS, WRONG, main
from heldout.errors import HeldoutError
from heldout.server.signing import answer_page

entries: Any = importlib.import_module("fuzz_entries")
inputs: Any = importlib.import_module("fuzz_inputs")

PLACE: Path = entries.PLACE / "commands"
ENTRIES: dict[str, Any] = {}
LEFT_OUT = None  # of an argument: the option is not given
# With good words these would take minutes, so that they have none.
LOOKED_UP = ("grant", "revoke", "raise", "close", "rekey", "show", "verify")
REFUSED = (
    *("heldout_audit", "heldout_reproduce", "heldout_serve_good.csv", "heldout_worker_good.csv"),
    *(f"heldout_ledger_{each}" for each in LOOKED_UP),
    *("heldout_server_backup_good.csv_copy", "heldout_server_restore_good.csv_copy"),
    "heldout_server_admin-link_good.csv",
)

WORDS: list[Any] = [
    LEFT_OUT, "", " ", "0", "1", "-1", "-0", "-0.0", "0.5", "1/3", "1/0", "0/1", "-1/2", "1e400",
    "1e-400", "1e999999999", "nan", "NaN", "inf", "-inf", "infinity", "0x10", "1_000", "1,5", "1.5.2",
    "١", "٠٫٥", "½", "１", "1e", "e", "1/", "/", "+1", " 1", "1\t", "1000000000000000000000", "9" * 5000,
    "0." + "1" * 5000, "1/" + "9" * 500, "x", "y", "p", "yes", "true", "None", "null", "a b", "a,b", "--",
    "-", "--json", "--help", "--nothing", "-x", "\x00", "\ud800", "\u202eרישום", "e\u0301", "é", "🙂",
    "\x1b[31m", "a\nb", "../..", "/", ".", "/dev/null", "/dev/full", "~", "*", "'", '"', "\\", "$(id)", "%s", "{0}",
    "p" * 5000, "postgresql://me:secret@127.0.0.1:1/db", "sqlite:///:memory:", "http://127.0.0.1:1/a.csv",
    "SELECT 1", "residual=1", "residual=", "=1", "residual=1,predicted=0:1", "mae,rmse", "10:20", "0:nan",
]  # fmt: skip

FILES: list[Any] = [
    "good.csv", "good.parquet", "good.tsv", "nowhere.csv", "empty.csv", "empty.parquet", "header.csv", "ragged.csv",
    "binary.csv", "binary.parquet", "cut.parquet", "utf16.csv", "nul.csv", "quotes.csv", "copies.csv",
    "text.txt", "directory.csv", "noname", ".csv", "/dev/null", "/dev/zero", "-", "", "--json", "\x00.csv",
    "p" * 300 + ".csv", "*.csv", "good.csv\n", "~/good.csv", "postgresql://me:secret@127.0.0.1:1/db",
]  # fmt: skip

OUTPUTS: list[Any] = [
    LEFT_OUT, "out.html", "out.svg", "out.png", "out.csv", "out", "", ".", "/", "/dev/full", "/nowhere/out.html",
    "directory.csv", "good.csv/out.html", "\x00", "p" * 300 + ".html", "out.html\n", "--json", "\ud800.html",
]  # fmt: skip

inputs.CATALOGUES |= {"word": WORDS, "file": FILES, "output": OUTPUTS}
inputs.MADE_UP |= {
    "word": lambda choices: choices.text(10),
    "file": lambda choices: inputs.pick(choices, FILES),
    "output": lambda choices: inputs.pick(choices, OUTPUTS),
}


def prepared() -> Path:
    """The directory with good and bad files; every row has a canary."""
    if PLACE.is_dir():
        return PLACE
    import pandas as pd

    PLACE.mkdir()
    (PLACE / "directory.csv").mkdir()
    frame = pd.DataFrame(inputs.good_table())
    frame.to_csv(PLACE / "good.csv", index=False)
    frame.to_csv(PLACE / "good.tsv", index=False, sep="\t")
    frame.to_parquet(PLACE / "good.parquet")
    whole = (PLACE / "good.parquet").read_bytes()
    text = (PLACE / "good.csv").read_text()
    head, rows = text.split("\n", 1)
    canary = inputs.CANARY.encode()
    for name, content in {
        "empty.csv": b"",
        "empty.parquet": b"",
        "header.csv": head.encode() + b"\n",
        "ragged.csv": text.encode() + b"1,2\n1,2,3,4,5,6,7,8,9,10,11,12\n" + canary,
        "binary.csv": bytes(range(256)) + canary,
        "binary.parquet": bytes(range(256)) + canary,
        "cut.parquet": whole[: len(whole) // 2],
        "utf16.csv": text.encode("utf-16"),
        "nul.csv": text.replace("now", "\0").encode(),
        "quotes.csv": head.encode() + b'\n"' + rows.encode(),
        "copies.csv": text.replace("q", "p", 1).encode(),
        "text.txt": text.encode(),
        "noname": text.encode(),
        "model.json": b'{"coefficients": {"p": 1.0}}',
        "north.json": json.dumps(entries.site("north")).encode(),
        "south.json": json.dumps(entries.site("south")).encode(),
        "signed.html": answer_page(entries.signed_answer()).encode(),
    }.items():
        (PLACE / name).write_bytes(content)
    return PLACE


def command(*first: str, public: bool = False, **arguments: tuple[str, Any]) -> None:
    """One entry: `first` words, then positional arguments (_0, _1), then options."""
    name = "_".join(["heldout", *first])
    assert first[0] in COMMANDS
    ENTRIES[name] = entries.Entry(
        name, (f"heldout {first[0]}",), _runner(first), arguments, public=public
    )


def _runner(first: tuple[str, ...]) -> Callable[..., Any]:
    def run(**given: Any) -> Any:
        words = [*first]
        for name, value in given.items():
            if value is LEFT_OUT:
                continue
            text = value if isinstance(value, str) else shown(value)
            words += [text] if name.startswith("_") else [f"--{name.replace('_', '-')}", text]
        return ran(words)

    return run


def ran(words: list[str]) -> tuple[str, str]:
    """What a command prints, on both streams; asserts that a failure is one line and a code."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(prepared()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(words)
    said = err.getvalue()
    assert code in (0, 1, 2), (code, words)
    assert "internal error" not in said, (words, said)
    assert "Traceback" not in said, words
    assert "secret" not in said + out.getvalue(), words
    if code:
        lines = [line for line in said.splitlines() if line.startswith("heldout: ")]
        assert len(lines) == 1, (words, said)
    if code == WRONG and not any(canary in said + out.getvalue() for canary in inputs.CANARIES):
        raise HeldoutError(lines[0])  # so that a refusal counts as one
    return out.getvalue(), said


FILE = ("file", "good.csv")
OUT = ("output", LEFT_OUT)
NOT = ("word", LEFT_OUT)
ROWS = {"_0": FILE, "label": ("word", "y"), "score": ("word", "p"), "epsilon": ("word", "1")}
CUSTODY = dict.fromkeys(("unit", "rows_per_unit", "row_key", "neighbours", "table", "query"), NOT)
PAID = {"ledger": OUT, "budget": NOT, "name": NOT, "account": NOT, "analyst": NOT}
DECLARED = dict.fromkeys(("positive", "negative", "score_range", "score_map"), NOT)

command("demo", out=OUT)
command(
    *("evaluate", "--yes"),
    **ROWS,
    **CUSTODY,
    **PAID,
    **DECLARED,
    model=("word", LEFT_OUT),
    features=NOT,
    default_score=NOT,
    threshold=NOT,
    sections=NOT,
    scores=NOT,
    server=NOT,
    token_file=NOT,
    dataset=NOT,
    out=OUT,
)
command("ask", "good.csv", "confusion", "--yes", **{n: v for n, v in ROWS.items() if n != "_0"},
        threshold=NOT, weighted=NOT, by=NOT, **CUSTODY, **PAID, **DECLARED)  # fmt: skip
command("compare", "--yes", **ROWS, **CUSTODY, **PAID, **DECLARED, rival=("word", "q"))
command(
    *("curves", "--yes"),
    **ROWS,
    **CUSTODY,
    **PAID,
    **DECLARED,
    method=NOT,
    thresholds=NOT,
    kind=NOT,
    out=OUT,
)
command("residuals", "--yes", _0=FILE, observed=("word", "y"), predicted=("word", "p"), epsilon=("word", "1"),
        scale=NOT, bounds=("word", "residual=1"), method=NOT, metrics=NOT, expected_rows=NOT, kind=NOT,
        groups=NOT, by=NOT,
        out=OUT, **CUSTODY, **PAID)  # fmt: skip
command("select", _0=FILE, label=("word", "y"), epsilon=("word", "1"), columns=("word", "a,b"), text=NOT,
        words=OUT, hash_size=NOT, longest=NOT, legend=OUT, method=NOT, score=NOT, k=("word", "1"),
        threshold=NOT, features_per_row=NOT, positive=NOT, negative=NOT, most_rows=NOT, **CUSTODY,
        **PAID)  # fmt: skip
command("twin", "good.csv", "--yes", "--json", "--values", "p=0,1", "--values", "q=0,1", epsilon=("word", "1"), bins=NOT,
        whole=NOT, out=OUT, **CUSTODY, **PAID)  # fmt: skip
command("train", "good.csv", "--yes", "--json", "--columns", "a,b", "--label", "y", epsilon=("word", "1"), sizes=NOT,
        ordered=NOT, ridge=NOT, out=OUT, **CUSTODY, **PAID)  # fmt: skip
command("model", "check", public=True, _0=("file", "model.json"), output=NOT)
command("pool", public=True, _0=("file", "north.json"), _1=("file", "south.json"), out=OUT)
command("verify", public=True, _0=("file", "signed.html"), out=OUT,
        server_key=("word", entries.signed_answer()["key"]), server=NOT, token_file=NOT)  # fmt: skip
command("doctor", public=True, ledger=NOT)
command("board", "plan", public=True, rows=("word", "5000"), price=("word", "2"), improvements=("word", "5"),
        submissions=("word", "100"), metric=NOT, start=NOT, step=NOT, least_class=NOT)  # fmt: skip
# A file in the place of their folder, or they would serve for ever.
command("serve", "good.csv", host=NOT, port=NOT, database=NOT, workers=NOT, processes=NOT, rows=NOT,
        address=NOT)  # fmt: skip
command("worker", "good.csv", database=NOT, rows=NOT)
command("server", "backup", "good.csv", "copy", database=NOT)
command("server", "restore", "good.csv", "copy", database=NOT, ledger=NOT)
command("server", "admin-link", "good.csv", database=NOT, address=NOT, name=NOT)
command("plan", public=True, rows=("word", "1000"), positives=("word", "100"), metric=NOT, value=NOT,
        auc=("word", "0.8"), alarms=NOT, target=NOT, epsilon=("word", "1"), level=NOT, neighbours=NOT,
        rows_per_unit=NOT)  # fmt: skip
SIGNED = {"who": NOT, "why": NOT}
command("ledger", "register", _0=("output", "made.sqlite"), _1=("word", "clinic"), budget=("word", "1"),
        unit=NOT, rows_per_unit=NOT, neighbours=NOT, people=NOT, row_key=NOT, **SIGNED)  # fmt: skip
command("ledger", "grant", _0=FILE, _1=NOT, _2=NOT, budget=("word", "1"), **SIGNED)
command("ledger", "revoke", _0=FILE, _1=NOT, _2=NOT, **SIGNED)
command("ledger", "raise", _0=FILE, _1=NOT, budget=("word", "1"), analyst=NOT, **SIGNED)
command("ledger", "close", _0=FILE, _1=NOT, **SIGNED)
command("ledger", "rekey", _0=FILE, **SIGNED)
command("ledger", "show", _0=FILE, account=NOT, last=NOT)
command("ledger", "verify", _0=FILE, receipt=NOT)
command("pr", public=True, _0=FILE, label=("word", "y"), score=("word", "p"), positive=NOT, estimator=NOT,
        interval=NOT, confidence=NOT, out=OUT)  # fmt: skip
command(
    "audit", public=True, _0=("word", "nothing"), epsilon=NOT, door=NOT, confidence=NOT, resume=OUT
)
command("attack", _0=("word", "auc"), _1=FILE, label=("word", "y"), score=("word", "p"), positive=NOT,
        negative=NOT, score_range=NOT, decimals=NOT, epsilon=NOT, most=NOT)  # fmt: skip
# What it prints of the truth is for the custodian alone.
command("separability", public=True, _0=FILE, _1=FILE, groups=NOT, classifier=NOT, shuffles=("word", "2"),
        ignore=("word", "who,n,t,k"), categorical=NOT, random_state=NOT, out=OUT)  # fmt: skip
ENTRIES["heldout_separability_private"] = entries.Entry(
    "heldout_separability_private",
    ("heldout separability",),
    _runner(("separability",)),
    {"_0": FILE, "_1": FILE, "epsilon": ("word", "1"), "ignore": ("word", "who,n,t,k"),
     "categorical": NOT, **{n: NOT for n in CUSTODY if n not in ("table", "query")},
     "ledger": OUT, "budget": NOT},
)  # fmt: skip
command("reproduce", public=True, _0=("word", "nothing"), figure=NOT, table=NOT, data=OUT, repetitions=NOT,
        workers=NOT)  # fmt: skip
