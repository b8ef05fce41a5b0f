#!/usr/bin/env bash
# Run all tests; what failed is run once more, alone, and fails for good if it fails again.
#
# Some tests are statistical: they reject a true claim about once in 10^3 to 10^6 runs, and there
# are many of them. A broken claim fails twice; a false alarm hardly ever does.
set -u
python=.venv/bin/python
"$python" -m pytest -q -n 2 "$@"
code=$?
[ "$code" -eq 1 ] || exit "$code"
echo "== what failed, once more"
exec "$python" -m pytest -q --last-failed --last-failed-no-failures none
