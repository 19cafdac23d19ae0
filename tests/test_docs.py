"""The Python in the documents runs as printed."""

import re
import shutil
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", [p for p in sorted(DOCS.glob("*.md")) if blocks(p)], ids=lambda p: p.name)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    """Blocks of one document share their names, from top to bottom; they find the examples where they are."""
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    names = {"__name__": f"docs.{path.stem}"}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), names)
