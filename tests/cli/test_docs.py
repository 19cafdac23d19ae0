"""The commands that the documents print are run as printed, with fewer epochs."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tools import commands as reference
from typer.core import TyperGroup as Group
from typer.main import get_command

from lignn.cli import app
from lignn.declarations import PRESETS
from lignn.runs import workers
from lignn.studies import run as study_run
from tests.cli.commands import run

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "docs/get_started/own_graph.md", "examples/README.md"]
"""The documents that lead through the example."""
PAGES = [str(page.relative_to(CHECKOUT)) for page in sorted((CHECKOUT / "docs").rglob("*.md"))]
EVERYWHERE = ["README.md", "CONTRIBUTING.md", "RELEASING.md", "examples/README.md", *PAGES]
SHORTER = re.compile(r"\s+# tests: (.*)")
"""A comment in a document: what tests add to a command that takes long or does not end."""
REAL_DATA = ("chameleon", "'LI-GCN/*'")


def text_of(document: str) -> str:
    return (CHECKOUT / document).read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(document), re.DOTALL)


def lines(document: str) -> list[str]:
    """The lines of all blocks of commands, with what the tests add to them."""
    printed = "".join(blocks(document, "sh")).replace("\\\n", "")
    return [SHORTER.sub(r" \1", line) for line in printed.splitlines()]


def commands(document: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in lines(document)]


def in_this_process(
    function: Callable[[Any], Any],
    rounds: Iterable[Iterable[Any]],
    jobs: int,
    until: float | None = None,
    on: str | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Stand in for worker processes, which would take seconds to start and train for more epochs."""
    for task in chain.from_iterable(rounds):
        yield task, function(task)
        if until is not None and time.monotonic() > until:
            return


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that commands of documents name; training ends after three epochs."""
    shutil.copytree(CHECKOUT / "examples", tmp_path, dirs_exist_ok=True)
    for folder in ("examples", "results", "docs"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    shutil.copy(CHECKOUT / "README.md", tmp_path)
    shutil.copytree(tmp_path / "payments", tmp_path / "pages")
    nodes = tmp_path / "pages" / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("label,", "page_type,", 1).replace("log_amount", "facebook_id", 1))
    shutil.copy(tmp_path / "new_labels.csv", tmp_path / "more_labels.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PRESETS["practical"], "max_epochs", 3)
    monkeypatch.setattr(workers, "in_rounds", in_this_process)
    settings_of = study_run.settings_of
    monkeypatch.setattr(study_run, "settings_of", lambda training: settings_of({**training, "max_epochs": 3}))
    return tmp_path


def obey(program: str, *arguments: str) -> None:
    """Run a command of a document; services, completion and processes of `torchrun` have tests of their own."""
    if program == "lignn":
        if "serve" not in arguments and "--install-completion" not in arguments and "--workers" not in arguments:
            run(*arguments)
    elif program == "pip":
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
        subprocess.run(pip, check=True, capture_output=True)
    elif program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=CHECKOUT, check=True, capture_output=True)
    else:
        assert program == "torchrun", f"{program} is not known here"


REFERENCE = "docs/reference/commands.md"
PRINTED_ELSEWHERE = [command for page in EVERYWHERE if page != REFERENCE for command in commands(page)]
WITH_COMMANDS = [
    pytest.param(page, marks=[pytest.mark.data] * any(name in line for line in lines(page) for name in REAL_DATA))
    for page in EVERYWHERE
    if lines(page)
]


@pytest.mark.parametrize("document", WITH_COMMANDS)
def test_commands_work_as_printed(document: str, checkout: Path, request: pytest.FixtureRequest) -> None:
    """In the order of the page, in one folder, and shortened as the page says."""
    if any(name in line for line in lines(document) for name in REAL_DATA):
        request.getfixturevalue("data_root")
    wanted = commands(document)
    if document == REFERENCE:
        run("fit", "payments", "-o", "model")
        wanted = [command for command in wanted if command not in PRINTED_ELSEWHERE]
    for command in wanted:
        obey(*command)
    if document in DOCUMENTS:
        assert len(commands(document)) >= 3
        assert (checkout / "predictions.csv").read_text().count("\n") == 401
    if document == "docs/results/index.md":
        # `make figures` writes it again.
        assert (checkout / "results" / "report.md").read_text() == text_of("results/report.md")


def every_command(program: str, word: str) -> list[list[str]]:
    """The different commands of all documents with a word, with what the tests add to them."""
    found = [command for page in EVERYWHERE for command in commands(page) if command[0] == program and word in command]
    return [shlex.split(line) for line in dict.fromkeys(map(shlex.join, found))]


@pytest.mark.parametrize("command", every_command("lignn", "serve"), ids=shlex.join)
def test_a_service_starts_as_printed(command: list[str], checkout: Path) -> None:
    pytest.importorskip("fastapi", reason="the service needs the extra lignn[serve]")
    if command[2] == "model":
        run("fit", "payments", "-o", "model")
    with subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as service:
        try:
            told = iter(service.stdout or ())
            address = next(found[0] for line in told if (found := re.search(r"http://127[.\d]+:\d+", line)))
            with urlopen(f"{address}/model", timeout=60) as answer:
                assert answer.status == 200
            if command[2] == "model":
                (example,) = map(json.loads, blocks("docs/get_started/serving.md", "json"))
                with urlopen(f"{address}/predictions/acc001", timeout=60) as answer:
                    assert json.load(answer).keys() == example.keys()
        finally:
            service.send_signal(signal.SIGINT)
            rest = service.communicate(timeout=60)[0]
    assert service.returncode in (0, 130), rest


@pytest.mark.parametrize("command", every_command("torchrun", "lignn") + every_command("lignn", "--workers"))
def test_processes_start_as_printed(command: list[str], checkout: Path) -> None:
    pytest.importorskip("duckdb", reason="stores need the extra lignn[store]")
    run("store", "build", "payments", "payments.store", "--parts", "4")
    program = ["-m", "torch.distributed.run"] if command[0] == "torchrun" else ["-m", "lignn"]
    subprocess.run([sys.executable, *program, *command[1:]], check=True, capture_output=True, timeout=300)
    assert (checkout / "model" / "current").is_file()


def test_completion_is_installed_as_printed(tmp_path: Path) -> None:
    (command,) = every_command("lignn", "--install-completion")
    line = f"{shlex.join(command)}; true"  # bash itself must stay: it is what is completed in
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = os.environ | {"HOME": str(tmp_path), "PATH": path}
    done = subprocess.run(["bash", "-c", line], env=own, capture_output=True, text=True, check=True)
    assert "completion installed" in done.stdout, done.stderr
    assert "_LIGNN_COMPLETE" in (tmp_path / ".bash_completions" / "lignn.sh").read_text()


def mentioned(document: str) -> list[list[str]]:
    """Commands within sentences, and those with names in capitals: their options exist."""
    text = text_of(document)
    found = re.findall(r"(?<=\n)    (lignn [a-z].*)", text) + re.findall(r"`(lignn [a-z][^`\n…]*)`", text)
    split = [shlex.split(line, comments=True) for line in found]
    return [command for command in split if len(command) > 1 and not command[1].isupper()]


@pytest.mark.parametrize("document", EVERYWHERE)
def test_options_of_mentioned_commands_exist(document: str) -> None:
    for _, *arguments in mentioned(document):
        command = get_command(app)
        while isinstance(command, Group) and arguments and not arguments[0].startswith("-"):
            assert arguments[0] in command.commands, f"{document}: {arguments[0]}"
            command = command.commands[arguments.pop(0)]
        known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for flag in (argument.split("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)):
            assert flag in known | {"--help", "--install-completion"}, f"{document}: {command.name} {flag}"


@pytest.mark.parametrize("document", EVERYWHERE)
def test_targets_and_modules_that_are_mentioned_exist(document: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text_of(document))) <= targets
    for module in re.findall(r"python -m ([a-z_.]+)", text_of(document)):
        assert find_spec(module), module


def test_every_block_is_run_or_compared() -> None:
    """Other tests run `python`, compare `py`, and look at `json` and `bibtex`; there is no other language."""
    languages = {found for page in EVERYWHERE for found in re.findall(r"^```([^\s]+)", text_of(page), re.MULTILINE)}
    assert languages <= {"sh", "python", "py", "json", "bibtex"}


def test_the_reference_of_commands_is_that_of_the_commands() -> None:
    """`python tools/commands.py` writes it again."""
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page()


def test_the_tutorials_python(checkout: Path) -> None:
    (block,) = blocks("docs/get_started/own_graph.md", "python")
    exec(block.replace("max_epochs=50", "max_epochs=3"), {})
    assert (checkout / "model" / "current").is_file()


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


def test_the_tutorial_says_how_many_edges_join_equal_labels() -> None:
    tables = CHECKOUT / "examples" / "payments"
    with (tables / "nodes.csv").open(newline="") as nodes, (tables / "edges.csv").open(newline="") as edges:
        label = {row["id"]: row["label"] for row in csv.DictReader(nodes)}
        ends = [(label[row["source"]], label[row["target"]]) for row in csv.DictReader(edges)]
    equal = [source == target for source, target in ends if source and target]
    said = f"{sum(equal) / len(equal):.0%} of the edges between known labels".replace("%", " %").split()
    assert said == text_of("docs/get_started/own_graph.md").split("Of the payments, ")[1].split()[: len(said)]
