"""The commands that the documents print are run as printed, with fewer epochs."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import commands as reference
from typer.core import TyperGroup as Group
from typer.main import get_command

from lignn.cli import app
from lignn.declarations import PRESETS
from lignn.evaluation import workers
from tests.cli.commands import run

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = {"README.md": ".", "docs/get_started/own_graph.md": "examples", "examples/README.md": "examples"}
"""Each document of the example, and the folder that its commands are run in."""
PAGES = [str(page.relative_to(CHECKOUT)) for page in sorted((CHECKOUT / "docs").rglob("*.md"))]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (CHECKOUT / document).read_text(encoding="utf-8"), re.DOTALL)


def commands(document: str) -> list[list[str]]:
    lines = [line for block in blocks(document, "sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("lignn ")]


def in_this_process(
    function: Callable[[Any], Any], tasks: Iterable[Any], _jobs: int, until: float | None = None
) -> Iterator[tuple[Any, Any]]:
    for task in tasks:
        yield task, function(task)
        if until is not None and time.monotonic() > until:
            return


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    monkeypatch.setitem(PRESETS["practical"], "max_epochs", 3)
    monkeypatch.setattr(workers, "each", in_this_process)
    return tmp_path


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_work_as_printed(document: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout / DOCUMENTS[document])
    printed = commands(document)
    assert len(printed) >= 3
    for command in printed:
        run(*command[1:])
    assert (checkout / DOCUMENTS[document] / "predictions.csv").read_text().count("\n") == 401


@pytest.mark.parametrize("page", [page for page in PAGES if page not in DOCUMENTS and commands(page)])
def test_commands_of_other_pages_work_as_printed(page: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout / "examples")
    for command in commands(page):
        run(*command[1:])


def mentioned(document: str) -> list[list[str]]:
    """Commands that are printed, but not run: they take hours, wait for visitors, or have names in capitals."""
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    lines = [line for block in blocks(document, "console") for line in block.splitlines()]
    lines += re.findall(r"(?<=\n\n)    (lignn [a-z].*)", text) + re.findall(r"`(lignn [a-z][^`\n…]*)`", text)
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("lignn ")]
    return [command for command in found if len(command) > 1 and not command[1].isupper()]


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", *PAGES])
def test_options_of_mentioned_commands_exist(document: str) -> None:
    for _, *arguments in mentioned(document):
        command = get_command(app)
        while isinstance(command, Group) and arguments and not arguments[0].startswith("-"):
            assert arguments[0] in command.commands, f"{document}: {arguments[0]}"
            command = command.commands[arguments.pop(0)]
        known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for flag in (argument.split("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)):
            assert flag in known | {"--help", "--install-completion"}, f"{document}: {command.name} {flag}"


def test_the_reference_of_commands_is_that_of_the_commands() -> None:
    """`python tools/commands.py` writes it again."""
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page()


def test_the_tutorials_python(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout / "examples")
    (block,) = blocks("docs/get_started/own_graph.md", "python")
    exec(block.replace("max_epochs=50", "max_epochs=3"), {})
    assert (checkout / "examples" / "model" / "current").is_file()


def test_the_tutorials_tables_are_those_of_the_example() -> None:
    text = (CHECKOUT / "docs" / "get_started" / "own_graph.md").read_text(encoding="utf-8")
    for name in ("nodes.csv", "edges.csv"):
        head = (CHECKOUT / "examples" / "payments" / name).read_text().splitlines()[:3]
        assert "\n".join(f"    {line}" for line in head) in text


def test_the_example_has_as_many_accounts_and_labels_as_the_documents_say() -> None:
    rows = (CHECKOUT / "examples" / "payments" / "nodes.csv").read_text().splitlines()[1:]
    labelled = sum(row.split(",")[1] != "" for row in rows)
    for document in DOCUMENTS:
        text = (CHECKOUT / document).read_text(encoding="utf-8")
        assert f"{len(rows)} " in text
        assert f"{labelled} " in text
