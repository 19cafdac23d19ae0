"""Write the reference of all commands, docs/reference/commands.md, from the commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from lignn.cli import EXAMPLES, app

TESTED = {"tune": "--trials 4", "serve": "--port 0", "reproduce": "--runs 1 --out again"}
"""What tests add to an example that takes long or does not end."""
PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"


def page() -> str:
    """Return the page."""
    guide = "the guide is [the command line](../guides/command_line.md)"
    parts = ["# Commands", f"`lignn COMMAND --help` shows the same; {guide}."]
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        parts += _section(f"lignn {name}", command, 2)
        below = command.commands if isinstance(command, TyperGroup) else {}
        if EXAMPLES[name] not in [EXAMPLES[f"{name} {each}"] for each in below]:
            parts.append(_example(name))
        for each, inner in below.items():
            parts += [*_section(f"lignn {name} {each}", inner, 3), _example(f"{name} {each}")]
    return "\n\n".join(parts) + "\n"


def _example(name: str) -> str:
    shorter = f"  # tests: {TESTED[name]}" if name in TESTED else ""
    return f"```sh\n{EXAMPLES[name]}{shorter}\n```"


def _section(name: str, command: Any, level: int) -> list[str]:
    """Return heading, help and options of a command."""
    parts = [f"{'#' * level} {name}", _text(command.help or "")]
    rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
    return [*parts, "\n".join(["| | default | |", "|---|---|---|", *rows])] if rows else parts


def _row(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts] if parameter.param_type_name == "option" else []
    shown = " ".join(f"`{name}`" for name in names) or f"`{parameter.metavar or parameter.name.upper()}`"
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if parameter.required:
        default = "required"
    elif callable(default) or default is None or default is False or not isinstance(default, str | int | float | Path):
        default = ""
    elif parameter.name == "jobs":
        default = "number of cores"
    return f"| {shown} | {_text(str(default))} | {_text(parameter.help or '')} |"


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
