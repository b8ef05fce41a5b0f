"""What the fuzzing tests share is imported by name; tools/fuzz.py uses it too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore_glob = ["fuzz_*.py"]
