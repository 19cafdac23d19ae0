"""The version is the same wherever it stands, and the workflows call targets of the Makefile."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import lignn

CHECKOUT = Path(__file__).parent.parent


def text(name):
    return (CHECKOUT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == lignn.__version__
    assert f"version = {{{lignn.__version__}}}" in text("README.md")
    heading = rf"^## {re.escape(lignn.__version__)} \((\d{{4}}-\d{{2}}-\d{{2}})\)$"
    dated = re.search(heading, text("CHANGELOG.md"), re.MULTILINE)
    assert dated
    assert str(citation["date-released"]) == dated[1]


def test_classifiers_are_true():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    claimed = {line.rsplit(" ", 1)[1] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)}
    told = re.findall(r"^\| (3\.[\d, .]+) \|", text("RELEASING.md"), re.MULTILINE)
    assert claimed == {version for row in told for version in row.split(", ")}
    assert project["requires-python"] == f">={min(claimed)}"
    assert (CHECKOUT / "src" / "lignn" / "py.typed").is_file()


@pytest.mark.parametrize("name", ["test", "docs", "publish"])
def test_workflows_call_targets_of_the_makefile(name):
    workflow = yaml.safe_load(text(f".github/workflows/{name}.yml"))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = {target for step in steps for target in step.removeprefix("make ").split()}
    assert all(step.startswith("make ") for step in steps)
    assert targets <= set(re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE))
