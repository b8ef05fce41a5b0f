"""The pictures of docs/server.md: made here, so that they show the pages as they are.

make test-browser SCREENSHOTS=1        # writes them
"""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page
from tests.browser.browsing import Live, Ready

FOLDER = Path(__file__).parents[2] / "docs" / "pictures" / "server"
WIDTH = 1040
MOST_BYTES = 120_000


def shots(ready: Ready) -> dict[str, tuple[str, str, str, int]]:
    """By name: who looks, where, at which element the picture begins, and its height."""
    mixing, model = (ready.models["ana", name] for name in ("mixing.onnx", "laboratory.json"))
    rival = ready.models["ana", "admission.json"]
    ask = f"artifact={model}&rival={rival}&question=auc&question=compare&by=exact&exact=8"
    return {
        "register": ("carol", ready.steps[1], "", 1000),
        "columns": ("carol", ready.steps[3], "", 900),
        "allowances": ("carol", "/datasets/stays", "", 720),
        "spending": ("carol", "/datasets/stays", "#spent", 760),
        "data-set": ("ana", "/datasets/stays", "", 1060),
        "refused": ("ana", f"/artifacts/{mixing}", "", 560),
        "ask": ("ana", f"/datasets/stays/ask?{ask}", "", 1130),
        "confirm": ("ana", f"/datasets/stays/confirm?{ask}", "", 800),
        "answer": ("ana", f"/evaluations/{ready.answers[1]}", "", 900),
        "compare": ("ana", "/compare?dataset=stays", "", 760),
        "ledger": ("olga", "/ledger?check=true", "", 900),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_the_pages_are_small_and_all_there(
    scheme: str, live: Live, ready: Ready, sign_in: Callable[..., Page]
) -> None:
    pages: dict[str, Page] = {}
    for name, (who, address, start, height) in shots(ready).items():
        if who not in pages:
            pages[who] = sign_in(who, color_scheme=scheme)
        page = pages[who]
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.goto(f"{live.address}{address}")
        if start:
            page.evaluate(f"document.querySelector('{start}').scrollIntoView()")
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        kept = io.BytesIO()
        image.quantize(96, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
        file = FOLDER / f"{name}-{scheme}.png"
        if os.environ.get("HELDOUT_WRITE_SCREENSHOTS") == "1":
            FOLDER.mkdir(parents=True, exist_ok=True)
            file.write_bytes(kept.getvalue())
        assert len(kept.getvalue()) < MOST_BYTES
        with Image.open(file) as shown:
            assert shown.size == (WIDTH, height), f"{file.name} is stale: SCREENSHOTS=1 writes it"
