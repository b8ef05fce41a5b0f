"""Install the toy distribution: one file with a question, and the entry point that adds it."""

import os
import shutil
from pathlib import Path

HERE = Path(__file__).parent
KIND = "confident-negatives"
METADATA = "Metadata-Version: 2.1\nName: toy-heldout\nVersion: 1.0\n"
ENTRY_POINTS = "[heldout.questions]\ntoy = toy_heldout\n"


def install(folder: Path) -> dict[str, str]:
    """Put the distribution into the folder; return an environment in which Python finds it."""
    shutil.copy(HERE / "toy_heldout.py", folder)
    information = folder / "toy_heldout-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(METADATA, encoding="utf-8")
    (information / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
