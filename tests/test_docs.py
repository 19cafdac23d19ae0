"""The Python in the documents runs as printed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"


def python_of(page):
    """The page with all lines blank but those of its Python blocks, so that errors have the page's line numbers."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        lines.append(line if inside and not fence else "")
        inside = not inside and line == "```python" if fence else inside
    return "\n".join(lines)


PAGES = [page for page in (CHECKOUT / "README.md", *sorted(DOCS.rglob("*.md"))) if python_of(page).strip()]


def run(script, folder):
    return subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_python_blocks_run(page, tmp_path):
    """Blocks of one page share their names, from top to bottom, and find the examples; README those of the checkout.

    Each page has a process of its own: what it registers stays there.
    """
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    script = tmp_path / f"page_{page.stem}.py"  # types.py would hide the module of that name
    script.write_text(python_of(page), encoding="utf-8")
    done = run(script, tmp_path if page.parent == CHECKOUT else tmp_path / "examples")
    assert done.returncode == 0, done.stderr


def test_an_error_has_the_line_of_its_page(tmp_path):
    page, script = tmp_path / "page.md", tmp_path / "page.py"
    page.write_text("# Text\n\n```python\na = 1\n```\n\n```sh\nexit 1\n```\n\n```python\nassert a == 2\n```\n")
    script.write_text(python_of(page))
    assert 'page.py", line 12' in run(script, tmp_path).stderr


@pytest.mark.parametrize("part", ["A solver", "A norm", "A gradient strategy"])
def test_what_can_be_extended_has_an_example(part):
    text = (DOCS / "how_it_works" / "equilibria.md").read_text(encoding="utf-8")
    start = text.index(f"\n### {part}\n")
    assert "\n```python\n" in text[start : text.find("\n#", start + 5)]
