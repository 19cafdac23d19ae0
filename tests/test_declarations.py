"""Methods and parameters are declared once, and everything else follows the declarations."""

import ast
import inspect
from pathlib import Path

import pytest

import lignn
from lignn import NodeClassifier
from lignn.backbones import names as backbone_names
from lignn.cli.options import OPTIONS
from lignn.declarations import (
    BACKBONES,
    BASELINE,
    DEFAULT_METHOD,
    DEFAULTS,
    KINDS,
    METHODS,
    METHODS_WITH,
    OF_TRAINING,
    PARAMETERS,
    PRESETS,
    title,
)
from lignn.equilibrium import GRADIENTS
from lignn.equilibrium.solvers import BY_NAME
from lignn.methods import Method
from lignn.methods import __all__ as public_methods
from lignn.methods.registry import FACTORIES

SOURCE = Path(lignn.__file__).parent


def test_the_classifier_has_the_declared_parameters():
    parameters = [p for p in inspect.signature(NodeClassifier).parameters.values() if p.kind is not p.VAR_KEYWORD]
    assert [p.name for p in parameters] == list(PARAMETERS)
    for parameter in parameters:
        assert (parameter.default is None) == PARAMETERS[parameter.name].optional, parameter.name
    assert {name: NodeClassifier().get_params()[name] for name in DEFAULTS} == DEFAULTS


def test_every_parameter_is_documented_and_an_option():
    documented = inspect.getdoc(NodeClassifier)
    assert [name for name in PARAMETERS if f"\n    {name}: " not in documented] == []
    assert list(OPTIONS) == list(PARAMETERS)
    assert all(parameter.kind in KINDS for parameter in PARAMETERS.values())


def test_choices_are_the_names_that_there_are():
    assert PARAMETERS["method"].choices == tuple(METHODS)
    assert sorted(PARAMETERS["backbone"].choices) == sorted(BACKBONES) == backbone_names()
    assert set(PARAMETERS["solver"].choices) == set(BY_NAME)
    assert set(PARAMETERS["gradient"].choices) == set(GRADIENTS)
    assert PARAMETERS["preset"].choices == tuple(PRESETS)


def test_every_method_is_declared_and_built_by_one_factory():
    assert set(FACTORIES) == set(METHODS)
    assert {BASELINE, DEFAULT_METHOD} <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_the_options_that_it_declares(name):
    declared, options = METHODS[name], set(inspect.signature(FACTORIES[name]).parameters)
    if "solver" in options and "tol" not in options:
        options |= {"tol", "max_steps"}  # parts of a solver
    if declared.network == "base":
        options |= {"loss", "label_folds", "most_columns"}  # options of the base
    assert set(declared.parameters) <= options
    for preset in PRESETS:
        assert set(declared.presets.get(preset, {})) <= {*declared.parameters, *OF_TRAINING}
    assert set(declared.presets) in (set(), set(PRESETS))
    assert declared.needs <= {"features", "edges"}
    assert title(name, "gcn")


def test_parameters_of_single_methods_and_of_all():
    assert METHODS_WITH["lr"] == list(METHODS)
    assert METHODS_WITH["gradient"] == ["lignn"]
    assert "lpa" in METHODS_WITH["tol"]
    assert "lpa" not in METHODS_WITH["mask_rate"]
    assert title("lignn", "jknet") == "LI-JKNet"


def concrete_methods() -> set[str]:
    """Names of the classes that are methods, bound methods or steps."""
    import lignn.methods as package

    kinds = {name for name in public_methods if name not in ("Method", "BoundMethod", "Problem", "Prediction")}
    return {name for name in kinds if inspect.isclass(getattr(package, name))} | {
        type_.__name__ for type_ in all_subclasses(Method) | all_subclasses(package.BoundMethod)
    }


def all_subclasses(kind: type) -> set[type]:
    below = set(kind.__subclasses__())
    return below.union(*(all_subclasses(each) for each in below)) if below else below


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(SOURCE.rglob("*.py")) if "methods" not in file.relative_to(SOURCE).parts],
    ids=lambda file: str(file.relative_to(SOURCE)),
)
def test_nobody_outside_of_methods_asks_which_method_it_is(file):
    """A bound method tells all that callers need; `isinstance` of a concrete one would go past it."""
    concrete = concrete_methods()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            asked |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            assert not asked & concrete, f"{file}:{node.lineno} asks for {asked & concrete}"
