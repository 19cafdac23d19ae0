"""Imports go one way, and the quick commands stay quick."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lignn

SOURCE = Path(lignn.__file__).parent
ORDER = [
    "errors",
    "declarations",
    "atomic",
    "processes",
    "clusters",
    "notebook",
    "features",
    "graph",
    "store",
    "datasets",
    "propagation",
    "labels",
    "backbones",
    "equilibrium",
    "methods",
    "training",
    "runs",
    "classifier",
    "evaluation",
    "studies",
    "bench",
    "documents",
    "serve",
    "cli",
]
ENTRY_POINTS = {"__init__", "__main__"}


def package_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_packages(file: Path) -> set[str]:
    """The lignn packages that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative import"
            modules = [f"lignn.{a.name}" for a in node.names] if node.module == "lignn" else [node.module or ""]
        found |= {module.split(".")[1] for module in modules if module.startswith("lignn.")}
    return found - {"__version__"}


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_point_down_only(file):
    own = package_of(file)
    if own in ENTRY_POINTS:
        return
    assert own in ORDER, f"{own} has no place in the import order"
    upward = {package for package in imported_packages(file) if ORDER.index(package) > ORDER.index(own)}
    assert not upward, f"{file} imports {upward}, which come after {own}"


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code", ["import lignn", "import lignn; lignn.Graph, lignn.methods, lignn.fixed_point, lignn.Adjacency"]
)
def test_import_needs_neither_pyg_nor_numba_nor_a_server(code):
    heavy = {"torch_geometric", "numba", "lightgbm", "fastapi", "uvicorn", "nicegui", "sqlite3"}
    assert not modules_after(code) & heavy


VERBS = ["inspect", "fit", "predict", "compare", "diagnose", "tune", "reproduce", "report", "datasets", "bench"]
VERBS += ["serve", "labels", "store"]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)])
def test_help_needs_no_heavy_module(arguments):
    code = f"""
sys.argv = ["lignn", *{arguments!r}]
from lignn.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""
    assert not modules_after(code) & {"torch", "torch_geometric", "numba", "matplotlib", "sklearn", "pyarrow"}


def test_completion_needs_no_heavy_module():
    code = """
import os
os.environ |= {"_LIGNN_COMPLETE": "complete_bash", "COMP_WORDS": "lignn ", "COMP_CWORD": "1"}
sys.argv = ["lignn"]
from lignn.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""
    assert not modules_after(code) & {"torch", "torch_geometric", "numba", "matplotlib", "sklearn", "pyarrow"}


def test_public_names_are_all_there():
    assert set(lignn.__all__) <= set(dir(lignn))
    for name in lignn.__all__:
        assert getattr(lignn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'grpah'"):
        lignn.grpah  # noqa: B018


def test_a_fit_can_be_followed_through_few_files():
    """Files entered by `NodeClassifier().fit(graph)`: what a reader has to open to follow it."""
    script = f"""
import sys
from lignn import NodeClassifier
from tests.classifier.small import small_graph

graph, entered = small_graph(), set()
NodeClassifier(max_epochs=2).fit(graph)  # compiles the kernels


def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith({str(SOURCE)!r}):
        entered.add(frame.f_code.co_filename)


sys.setprofile(note)
NodeClassifier(max_epochs=2).fit(graph)
sys.setprofile(None)
print(*entered)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300, cwd=SOURCE.parents[1]
    )
    entered = sorted(str(Path(file).relative_to(SOURCE)) for file in run.stdout.splitlines()[-1].split())
    assert "methods/label_inputted.py" in entered
    assert len(entered) <= 61, entered


def test_algorithm_1_fits_on_a_screen_or_two():
    assert len((SOURCE / "methods" / "label_inputted.py").read_text(encoding="utf-8").splitlines()) <= 185
