"""The Python in the documents runs as printed, the examples run, and the site is built from them without a warning."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import lignn
from tests.forked import errors_of

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_python_blocks_run(page, tmp_path):
    """Blocks of one page share their names, from top to bottom, and find the examples; README those of the checkout.

    Each page has a process of its own: what it registers stays there.
    """
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    script = tmp_path / f"page_{page.stem}.py"  # types.py would hide the module of that name
    code = re.sub(r"max_epochs=\d{2,}", "max_epochs=10", python_of(page))  # README says so
    script.write_text(code, encoding="utf-8")
    folder = tmp_path if page.parent == CHECKOUT else tmp_path / "examples"
    assert not errors_of(runpy.run_path, str(script), folder=folder)


def test_an_error_has_the_line_of_its_page(tmp_path):
    page, script = tmp_path / "page.md", tmp_path / "page.py"
    page.write_text("# Text\n\n```python\na = 1\n```\n\n```sh\nexit 1\n```\n\n```python\nassert a == 2\n```\n")
    script.write_text(python_of(page))
    assert 'page.py", line 12' in errors_of(runpy.run_path, str(script), folder=tmp_path)


@pytest.mark.parametrize("part", ["backbone", "solver", "gradient", "method", "dataset"])
def test_what_can_be_extended_has_an_example(part):
    assert python_of(DOCS / "extend" / f"{part}.md").strip()


class Links(HTMLParser):
    """What a page of HTML links to, loads, and may be linked to."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag in ("img", "script", "link", "iframe"):
            self.loaded += [found[key] for key in ("src", "href") if found.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from a copy of the checkout's documents."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("docs", "results", "examples", "tools", "benchmarks", "src", "tests"):
        shutil.copytree(CHECKOUT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in [*CHECKOUT.glob("*.md"), CHECKOUT / "LICENSE", CHECKOUT / "mkdocs.yml"]:
        shutil.copy(file, folder)
    built = subprocess.run([sys.executable, "tools/site.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return folder / "site"


def test_no_link_of_the_site_is_dead_and_nothing_comes_from_elsewhere(site):
    pages = {file: Links(file) for file in site.rglob("*.html") if "repository" not in file.parts[:-1]}
    assert len(pages) > 40
    problems = []
    for file, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                problems += [f"{file}: loads {link}"] if link in page.loaded else []
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                problems.append(f"{file}: {link} is dead")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                problems.append(f"{file}: {link} has no such anchor")
    assert not [problem for problem in problems if "404.html" not in problem]
    styles = " ".join(file.read_text(encoding="utf-8") for file in site.rglob("*.css"))
    assert not re.search(r"url\(['\"]?(https?:)?//|@import", styles)


def test_every_page_is_in_the_navigation():
    nav = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert set(re.findall(r"[\w/]+\.md", nav)) == pages | {"index.md", "changelog.md"}


def test_every_public_name_is_in_the_reference(site):
    """`objects.inv` would be easier to read, but headings are what people see."""
    text = " ".join(file.read_text(encoding="utf-8") for file in (site / "reference").glob("*.html"))
    packages = ("classifier", "graph", "datasets", "methods", "backbones", "equilibrium", "propagation", "training")
    public = [f"{package}.{name}" for package in packages for name in import_module(f"lignn.{package}").__all__]
    assert not [name for name in public if not re.search(rf'id="lignn\.{re.escape(name)}["\.]', text)]
    assert not [name for name in lignn.__all__ if f"lignn.{name}" not in text]


def test_mkdocs_reads_the_same_configuration(site, tmp_path):
    """With its own theme: Material is not installed."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "site")]
    done = subprocess.run(
        command,
        cwd=site.parent,
        env=os.environ | {"DOCS_THEME": "mkdocs"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "guides" / "features.html").is_file()
