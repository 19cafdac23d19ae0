import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from lignn import NodeClassifier, datasets
from lignn.cli import app, compare, options
from lignn.cli.options import OPTIONS, with_parameters
from lignn.declarations import BASELINE
from lignn.errors import ConfigError
from lignn.evaluation import compare as comparing


def echo(number: Annotated[int, typer.Argument()], *, parameters: dict[str, Any]) -> None:
    """Print what it is given."""
    typer.echo(json.dumps([number, parameters]))


def given(*arguments: str | Path, without: tuple[str, ...] = ()) -> Any:
    command = typer.Typer()
    command.command()(with_parameters(without)(echo))
    result = CliRunner().invoke(command, ["7", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_options_are_the_parameters_of_the_classifier() -> None:
    names = {p.name for p in inspect.signature(NodeClassifier).parameters.values() if p.kind is not p.VAR_KEYWORD}
    assert set(OPTIONS) == names


def test_only_what_is_given_is_passed_on() -> None:
    assert given() == [7, {}]
    assert given("--hidden", "8", "--no-warm-start") == [7, {"hidden": 8, "warm_start": False}]


@pytest.mark.parametrize(("text", "value"), [("0.25", 0.25), ("adaptive", "adaptive")])
def test_mask_rate_is_a_share_or_a_word(text: str, value: Any) -> None:
    assert given("--mask-rate", text) == [7, {"mask_rate": value}]


def test_further_options_by_name() -> None:
    arguments = (
        "--backbone-options",
        "num_layers=3",
        "--backbone-options",
        "mode=cat",
        "--method-options",
        "lam = 0.5",
    )
    assert given(*arguments) == [
        7,
        {"backbone_options": {"num_layers": 3, "mode": "cat"}, "method_options": {"lam": 0.5}},
    ]


def test_the_command_line_wins_over_the_config_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('hidden = 16\nmask_rate = "adaptive"\n')
    assert given("--config", file, "--hidden", "32") == [7, {"hidden": 32, "mask_rate": "adaptive"}]


def test_a_verb_without_a_parameter_refuses_it_in_the_config_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('method = "lpa"')
    with pytest.raises(ConfigError, match="there is no setting 'method'"):
        given("--config", file, without=("method",))


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("lignn fit kar", {"karate"}),
        ("lignn fit karate --backbone gc", {"gcn", "gcnii"}),
        ("lignn fit karate --method label_", {"label_input", "label_reuse"}),
        ("lignn compare karate --solver a", {"anderson"}),
        ("lignn di", {"diagnose"}),
    ],
)
def test_shell_completion(words: str, completed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    count = len(words.split()) - 1
    environment = {"_LIGNN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    result = CliRunner().invoke(app, [], env=environment, prog_name="lignn")
    assert set(result.output.split()) == completed


def test_completion_of_a_graph_knows_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weekly").mkdir()
    (tmp_path / "week.npz").touch()
    (tmp_path / "week.txt").touch()
    assert options.complete_graph("week") == ["weekday", "week.npz", "weekly"]


def test_methods_to_compare_are_those_there_are() -> None:
    features = datasets.load("karate").replace(x=torch.rand(34, 2))
    assert {BASELINE, *compare.METHODS} == {one.method for one in comparing.chosen(features, {})}
    assert compare._complete_method("label") == ["label_input", "label_reuse"]
