"""What docs/server.md and the README show of the client runs, against a server."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^<!-- run by tests/client/test_docs\.py -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize(("page", "count"), [("docs/server.md", 4), ("README.md", 1)])
def test_what_a_page_shows_of_the_client_runs(
    page: str, count: int, running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = json.loads(running.model.read_text())
    Path("model.json").write_text(json.dumps(model))
    Path("other.json").write_text(json.dumps(model | {"intercept": -2}))
    Path("token.txt").write_text(running.token_file.read_text())
    Path("signing.pub").write_text(running.key + "\n")
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(blocks) == count
    namespace: dict[str, Any] = {}
    exec("from heldout import questions as q", namespace)  # as an earlier block of the README does
    for text in blocks:
        exec(
            compile(text.replace("https://evaluate.example.org", running.url), page, "exec"),
            namespace,
        )
