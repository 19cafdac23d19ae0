"""Run the examples, draw their pictures, and write the page that shows them: `python -m examples [NAME…]`.

Each picture has the hash of what it was drawn from; `tests/test_examples.py` compares them.
"""

from __future__ import annotations

import ast
import hashlib
import runpy
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from lignn.runs.records import identity_of_presets

EXAMPLES = Path(__file__).resolve().parent
PICTURES = EXAMPLES.parent / "docs" / "images" / "examples"
PAGE = EXAMPLES.parent / "docs" / "get_started" / "examples.md"
NAMES = (
    "payments",
    "fraud",
    "live_labels",
    "images",
    "heterophily",
    "minesweeper",
    "typed_edges",
    "pyg_backbone",
    "equilibrium_layer",
    "plain_loop",
)


def source_of(name: str) -> str:
    """Return the hash of a script, of the tables that it reads, and of the presets."""
    return hash_of([EXAMPLES / f"{name}.py", *sorted((EXAMPLES / name).glob("*.csv"))])


def hash_of(files: Iterable[Path]) -> str:
    """Return the hash of what a picture is made of: some files, and the presets."""
    content = b"".join(file.read_bytes() for file in files) + identity_of_presets().encode()
    return hashlib.sha256(content).hexdigest()[:16]


def draw(name: str, picture: Path, *arguments: str) -> None:
    """Run an example in this process, and save its picture."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
    script = str(EXAMPLES / f"{name}.py")
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
    pyplot.gcf().savefig(picture, dpi=100, metadata={"Software": None, "Source": source_of(name)})
    pyplot.close("all")


def page() -> str:
    """Return the page: title, text, picture and code of each example."""
    parts = [
        "# Examples\n",
        "Short scripts in the folder `examples/`, each with its picture. `make figures` runs them and writes this "
        "page; tests run each with `--quick`, for a few epochs.\n",
    ]
    for name in NAMES:
        code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        tree = ast.parse(code)
        title, text = (ast.get_docstring(tree) or "").split("\n\n", 1)
        body = "\n".join(code.splitlines()[tree.body[0].end_lineno :]).strip()
        parts.append(f"## {title.rstrip('.')}\n\n{text}\n\n![{title}](../images/examples/{name}.png)\n")
        parts.append(f'```py title="examples/{name}.py"\n{body}\n```\n')
    return "\n".join(parts)


def main() -> None:
    """Draw all pictures, or those of the examples that are named, and write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        print(f"{name}:", flush=True)
        draw(name, PICTURES / f"{name}.png")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
