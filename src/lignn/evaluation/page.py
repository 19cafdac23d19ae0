"""Reports of text, tables and pictures, written as Markdown and as one HTML page; colours and files of pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from lignn.atomic import whole_file
from lignn.notebook import BLACK, BLUE, GREEN, OLIVE, ORANGE, PURPLE, SKY_BLUE, VERMILION

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK, OLIVE)
"""Colours of lines, in order."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of lines, in order."""


@dataclass(frozen=True)
class Table:
    """A table of text; the lines after the first of a cell are shown smaller."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawing; `name` is the name of its files, `caption` is also the alternative text."""

    name: str
    caption: str
    figure: Figure


Block = str | Table | Picture
"""A part of a section; text is a paragraph."""


@dataclass(frozen=True)
class Section:
    """A part of a report with its heading."""

    title: str
    blocks: list[Block] = field(default_factory=list)


def write(folder: Path, title: str, sections: Sequence[Section]) -> list[Path]:
    """Write `report.md`, `report.html` and `figures/` into `folder`, and return the files."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    files: dict[str, bytes] = {}
    for picture in _pictures(sections):
        for ending in ("png", "svg"):
            files[f"figures/{picture.name}.{ending}"] = rendered(picture.figure, ending)
    embedded = {picture.name: files[f"figures/{picture.name}.svg"] for picture in _pictures(sections)}
    files["report.md"] = markdown(title, sections).encode()
    files["report.html"] = html(title, sections, embedded).encode()
    return [_put(folder / name, content) for name, content in files.items()]


def write_html(file: Path, title: str, sections: Sequence[Section]) -> None:
    """Write the report as one HTML file."""
    embedded = {picture.name: rendered(picture.figure, "svg") for picture in _pictures(sections)}
    _put(file, html(title, sections, embedded).encode())


def _pictures(sections: Sequence[Section]) -> list[Picture]:
    return [block for section in sections for block in section.blocks if isinstance(block, Picture)]


def _put(file: Path, content: bytes) -> Path:
    with whole_file(file) as temporary:
        temporary.write_bytes(content)
    return file


def markdown(title: str, sections: Sequence[Section]) -> str:
    """Return the report as Markdown, with relative paths to the pictures."""
    lines = [f"# {title}"]
    for section in sections:
        lines.append(f"## {section.title}")
        for block in section.blocks:
            if isinstance(block, str):
                lines.append(plain(block))
            elif isinstance(block, Picture):
                lines.append(f"![{block.caption}](figures/{block.name}.png)\n\n{plain(block.caption)}")
            else:
                lines.append(_markdown_table(block))
    return "\n\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Escape what Markdown would read as markup, such as the asterisk of `IGNN*`."""
    return text.replace("*", "\\*").replace("|", "\\|")


def _markdown_table(table: Table) -> str:
    return f"**{table.caption}**\n\n{markdown_rows(table.header, table.rows)}"


def markdown_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown, without a caption."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(plain(cell).replace("\n", "<br>") for cell in cells) + " |"

    return "\n".join([row(header), "|" + "---|" * len(header), *map(row, rows)])


def html(title: str, sections: Sequence[Section], embedded: Mapping[str, bytes]) -> str:
    """Return the report as one page; `embedded` has the SVG file of each picture by name."""
    parts = []
    for number, section in enumerate(sections):
        parts.append(f'<section id="s{number}"><h2>{escape(section.title)}</h2>')
        parts += [_html_block(block, embedded) for block in section.blocks]
        parts.append("</section>")
    style = (resources.files("lignn.evaluation") / "page.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#s{i}">{escape(section.title)}</a>' for i, section in enumerate(sections))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>\n{style}</style></head>'
        f"<body><h1>{escape(title)}</h1><nav>{links}</nav>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _html_block(block: Block, embedded: Mapping[str, bytes]) -> str:
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    if isinstance(block, Picture):
        source = f"data:image/svg+xml;base64,{base64.b64encode(embedded[block.name]).decode()}"
        caption = escape(block.caption)
        return f'<figure><img alt="{caption}" src="{source}"><figcaption>{caption}</figcaption></figure>'
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in block.header)
    body = "".join("<tr>" + "".join(_html_cell(i, cell) for i, cell in enumerate(row)) + "</tr>" for row in block.rows)
    parts = f"<caption>{escape(block.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide" tabindex="0"><table>{parts}</table></div>'


def _html_cell(column: int, cell: str) -> str:
    first, *others = cell.split("\n")
    text = escape(first) + "".join(f"<small>{escape(line)}</small>" for line in others)
    return f'<th scope="row">{text}</th>' if column == 0 else f"<td>{text}</td>"


def rendered(figure: Figure, file_format: str) -> bytes:
    """Return the content of the figure's file; it has no date and no random ids."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if file_format == "svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": "lignn"}):
        figure.savefig(buffer, format=file_format, dpi=150, metadata=metadata)
    return buffer.getvalue()
