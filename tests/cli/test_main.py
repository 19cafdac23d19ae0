import inspect
import warnings
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import lignn
from lignn.classifier import NodeClassifier
from lignn.classifier.spec import Spec
from lignn.cli import EXAMPLES, app, main
from lignn.declarations import DEFAULTS, PARAMETERS
from lignn.errors import ConvergenceWarning, InputError, LignnError
from tests.cli.commands import outcome


@pytest.mark.parametrize(("error", "code"), [(InputError, 2), (LignnError, 1)])
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, error: type[Exception], code: int) -> None:
    def fails(*_: object) -> None:
        raise error("what is wrong")

    monkeypatch.setattr("lignn.classifier.load", fails)
    result = outcome("diagnose", "model")
    assert (result.code, result.out, result.err) == (code, "", "error: what is wrong\n")


def test_a_failing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error", "model/weights")

    monkeypatch.setattr("lignn.classifier.load", fails)
    result = outcome("diagnose", "model")
    assert (result.code, result.err) == (1, "error: model/weights: Input/output error\n")


def test_an_interruption_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lignn.classifier.load", interrupted)
    assert outcome("diagnose", "model").code == 130


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("lignn.classifier.load", broken)
    with pytest.raises(ZeroDivisionError):
        main(["diagnose", "model"])


def test_a_warning_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsure(*_: object) -> None:
        warnings.warn("did not converge", ConvergenceWarning, stacklevel=1)
        raise InputError("and ends")

    monkeypatch.setattr("lignn.classifier.load", unsure)
    assert outcome("diagnose", "model").err == "warning: did not converge\nerror: and ends\n"


def test_no_arguments_print_the_five_steps() -> None:
    result = outcome()
    assert (result.code, result.err) == (0, "")
    for number, verb in enumerate(("inspect", "fit", "predict", "compare", "diagnose"), 1):
        assert f"{number}. lignn {verb} " in result.out


def test_every_command_shows_an_example_of_itself() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    names = dict(group.commands)
    for verb, command in group.commands.items():
        names |= {f"{verb} {below}": each for below, each in getattr(command, "commands", {}).items()}
    assert set(names) == set(EXAMPLES)
    for name, example in EXAMPLES.items():
        shown = " ".join(outcome(*name.split(), "--help").out.split())
        assert f"Example: {example}" in shown
        assert f"{example} ".startswith(f"lignn {name} ")


def test_help_shows_the_defaults_of_every_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    signature = inspect.signature(NodeClassifier).parameters
    assert {name: signature[name].default for name in DEFAULTS} == DEFAULTS
    assert set(DEFAULTS) == {name for name, parameter in PARAMETERS.items() if not parameter.optional}
    shown = " ".join(outcome("fit", "--help").out.replace("│", " ").split())
    for name, value in Spec.resolve({}).values.items():
        if value is not None and name in PARAMETERS and PARAMETERS[name].kind in ("number", "whole number"):
            assert f"[default: ({value}" in shown or f"[default: ({value:g}" in shown, name
    assert "[default: (0.5; paper: 0.0)]" in shown  # dropout


def test_version_has_what_a_bug_report_needs() -> None:
    result = outcome("--version")
    assert result.code == 0
    assert result.out.startswith(f"lignn {lignn.__version__}, Python 3.")
    assert [line.split()[0] for line in result.out.splitlines()[1:]] == [
        *("torch", "torch_geometric", "numba", "numpy", "scipy", "scikit-learn", "pyarrow")
    ]


def test_every_verb_has_help_and_json() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.callback.__name__
        text = outcome(name, "--help").out
        assert "--json" in text, name


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")])
def test_too_little_memory_is_one_sentence(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("lignn.classifier.load", fails)
    result = outcome("diagnose", "model")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: there is not enough memory for this; ")
