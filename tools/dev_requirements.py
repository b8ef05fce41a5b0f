"""Prints the development requirements of pyproject.toml, one an argument, for pip."""

import pathlib
import tomllib

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
print(" ".join(f"'{r}'" if " " in r else r for r in project["dependency-groups"]["dev"]))
