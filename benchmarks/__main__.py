"""Runs every benchmark of this folder and says which figures were missed."""

import importlib
import pkgutil
import sys

import benchmarks

NOT_BENCHMARKS = {"__main__", "accuracy", "beside", "command", "figure", "populations"}


def main() -> int:
    wanted = set(sys.argv[1:])
    names = [each.name for each in pkgutil.iter_modules(benchmarks.__path__)]
    missed = []
    for name in sorted(set(names) - NOT_BENCHMARKS):
        if wanted and name not in wanted:
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}")
        if module.main() is False:
            missed.append(name)
    print("\nall figures reached" if not missed else f"\nmissed a figure: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
