"""Every setting comes from the command line, the environment or a file, and the docs list it."""

from dataclasses import fields
from pathlib import Path

import pytest

from heldout.errors import ArgumentError
from heldout.server.settings import PREFIX, Settings, offered, table

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    assert table() in (ROOT / "docs" / "server.md").read_text(encoding="utf-8"), (
        "run tools/settings_table.py"
    )


def test_every_field_is_offered_or_worked_out() -> None:
    names = {one.name for one in offered()}
    assert {one.name for one in fields(Settings)} - names == {"folder", "secure"}


OTHER = {
    "database": "postgresql://somebody@database/heldout",
    "address": "https://evaluate.example.org/heldout",
    "rows": "/srv",
    "hosts": "one two",
    "proxies": "192.0.2.1 192.0.2.2",
    **dict.fromkeys(("keep_models", "keep_scores", "keep_answers", "keep_rows"), "30"),
}


@pytest.mark.parametrize("one", list(offered()), ids=lambda one: one.name)
def test_a_setting_is_read_from_the_environment_and_from_a_file(
    one: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, usual = one.name, one.usual  # type: ignore[attr-defined]
    if isinstance(usual, bool):
        text, in_file = "off" if usual else "on", str(not usual).lower()
    elif isinstance(usual, int | float):
        text = in_file = str(usual + 1)
    elif isinstance(usual, tuple):
        text = OTHER.get(name, "administrator custodian")
        in_file = str(text.split())
    elif isinstance(usual, dict):
        text, in_file = "a=analyst b=auditor", '{a = "analyst", b = "auditor"}'
    else:
        text = OTHER.get(name, "https://somewhere.example.org")
        in_file = f'"{text}"'
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "server.toml").write_text(f"{name} = {in_file}\n")
    by_file = Settings.read(tmp_path / "file")
    assert getattr(by_file, name) != usual
    monkeypatch.setenv(one.variable, text)  # type: ignore[attr-defined]
    by_environment = Settings.read(tmp_path / "environment")
    assert getattr(by_environment, name) == getattr(by_file, name)
    # What a process passes on is read again as it was.
    for variable, value in by_environment.environment().items():
        monkeypatch.setenv(variable, value)
    assert Settings.read(tmp_path / "environment") == by_environment


def test_the_command_line_comes_before_the_environment_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.toml").write_text("port = 1\nworkers = 0\n")
    assert (Settings.read(tmp_path).port, Settings.read(tmp_path).workers) == (1, 0)
    monkeypatch.setenv("HELDOUT_SERVER_PORT", "2")
    assert Settings.read(tmp_path).port == 2
    assert Settings.read(tmp_path, port=3, workers=None).port == 3
    elsewhere = tmp_path / "other.toml"
    elsewhere.write_text("workers = 7\n")
    monkeypatch.setenv("HELDOUT_SERVER_SETTINGS", str(elsewhere))
    assert Settings.read(tmp_path).workers == 7


def test_a_secret_may_be_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("a long secret\n")
    monkeypatch.setenv("HELDOUT_SERVER_METRICS_TOKEN_FILE", str(tmp_path / "token"))
    assert Settings.read(tmp_path / "server").metrics_token == "a long secret"
    monkeypatch.setenv("HELDOUT_SERVER_METRICS_TOKEN_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(ArgumentError, match="cannot be read"):
        Settings.read(tmp_path / "server")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("prot = 8080", "Did you mean port"),
        ("secure = true", "No setting 'secure'"),
        ("folder = '/'", "No setting 'folder'"),
        ("port = true", "port must be a whole number"),
        ("port = 80.5", "port must be a whole number"),
        ("tick = -1", "at least 0"),
        ("tick = nan", "at least 0"),
        ("access_log = 'perhaps'", "on or off"),
        ("address = 'evaluate.example.org'", "http:// or https://"),
        ("port 8080", "Write TOML"),
        ("most_running = 0", "most_running must be more than 0"),
        ("second_factor = ['admin']", "administrator, got 'admin'"),
    ],
)
def test_a_wrong_setting_is_refused_in_words(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "server.toml").write_text(line)
    with pytest.raises(ArgumentError, match=words):
        Settings.read(tmp_path)


def test_an_unknown_variable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELDOUT_SERVER_METRIC_TOKEN", "secret")
    with pytest.raises(ArgumentError, match="Did you mean metrics_token") as refusal:
        Settings.read(tmp_path)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("name", ["keep_models", "keep_scores", "keep_answers", "keep_rows"])
def test_nothing_is_deleted_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text(f"{name} = 0\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="Leave it out to delete nothing"):
        Settings.read(tmp_path)
