"""Build the site: `python tools/site.py [--serve]`.

Pages link to files outside `docs/`: records, reports, tests, examples. On the site these files lie beside the pages.
This script copies `docs/` to `build/docs`, with every file that a page links to, and changes these links. Then Zensical
builds it into `site/`, strictly: a warning is an error. MkDocs reads the same configuration.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FRONT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages that lie outside `docs/`."""
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def stage(checkout: Path, target: Path) -> None:
    """Copy the pages, and all files of the repository that they link to, to `target`."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(checkout / "docs", target)
    pages = [(page, target / page.relative_to(checkout / "docs")) for page in (checkout / "docs").rglob("*.md")]
    pages += [(checkout / name, target / place) for name, place in FRONT.items()]
    done = {page.resolve(): copy for page, copy in pages}
    while pages:
        page, copy = pages.pop()
        copy.write_text(_relinked(page, copy, checkout, target, done, pages), encoding="utf-8")


def _relinked(
    page: Path, copy: Path, checkout: Path, target: Path, done: dict[Path, Path], pages: list[tuple[Path, Path]]
) -> str:
    """Return the text of a page whose links lead to the copies; files that are copied for it are added to `done`."""

    def to_copy(link: re.Match[str]) -> str:
        if "://" in link[2] or link[2].startswith("mailto:"):
            return link[0]
        file = ((page if page.is_dir() else page.parent) / link[2]).resolve()
        if not file.is_relative_to(checkout):
            raise SystemExit(f"{page}: {link[2]} is outside the repository")
        place = done.get(file) or _place(file, checkout, target)
        if place is None:
            raise SystemExit(f"{page}: there is no file {link[2]}")
        if file not in done:
            done[file] = place
            place.parent.mkdir(parents=True, exist_ok=True)
            if file.is_file():
                shutil.copyfile(file, place)
            if place.suffix == ".md":
                pages.append((file, place))
        return f"{link[1]}{os.path.relpath(place, copy.parent)}{link[3]}"

    text = _listing(page) if page.is_dir() else page.read_text(encoding="utf-8")
    code = [span.span() for span in FENCE.finditer(text)]
    return LINK.sub(lambda m: m[0] if any(a <= m.start() < b for a, b in code) else to_copy(m), text)


def _place(file: Path, checkout: Path, target: Path) -> Path | None:
    """Return where a file of the repository lies on the site; a folder becomes a page that lists its files."""
    if not file.exists():
        return None
    if file.is_relative_to(checkout / "docs"):
        return target / file.relative_to(checkout / "docs")
    place = target / "repository" / file.relative_to(checkout)
    return place / "index.md" if file.is_dir() else place


def _listing(folder: Path) -> str:
    names = sorted(file.name for file in folder.iterdir() if file.is_file())
    return f"# {folder.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)


def main() -> int:
    """Stage and build, or serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help="serve the site and open no browser")
    given = parser.parse_args()
    stage(CHECKOUT, CHECKOUT / "build" / "docs")
    zensical = [sys.executable, "-m", "zensical", *(["serve"] if given.serve else ["build", "--strict"])]
    return subprocess.run([*zensical, "--config-file", str(CHECKOUT / "mkdocs.yml")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
