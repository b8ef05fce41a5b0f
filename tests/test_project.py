"""The files that a project is judged by: versions agree, forms parse, workflows keep no secret."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import heldout

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
YAML = sorted(
    [*ROOT.glob(".github/**/*.yml"), ROOT / "conda" / "recipe.yaml", ROOT / "CITATION.cff"]
)


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert heldout.__version__ == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == version
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    assert f"version: {version}\n" in recipe
    minor = ".".join(version.split(".")[:2])
    assert f"| {minor} | yes |" in (ROOT / "SECURITY.md").read_text("utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_recipe_needs_what_the_package_needs() -> None:
    named = {"duckdb": "python-duckdb"}
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    listed = {line.replace(" ", "") for line in recipe["requirements"]["run"]} - {"python>=3.11"}
    wanted = set()
    for line in PROJECT["dependencies"]:
        name = re.match(r"[\w-]+", line)
        assert name is not None
        wanted.add(named.get(name[0], name[0]) + line[name.end() :].replace(" ", ""))
    assert listed == wanted


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_a_form_or_workflow_is_yaml(path: Path) -> None:
    content = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(content, dict)
    if "ISSUE_TEMPLATE" in path.parts and path.name != "config.yml":
        assert {"name", "description", "body"} <= set(content)


def test_the_release_is_published_without_a_stored_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert any("attest" in str(step.get("uses")) for step in workflow["jobs"]["build"]["steps"])
