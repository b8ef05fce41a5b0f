"""The models that are attacks, and how scores are compared, for every test of this room."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("onnxruntime")
