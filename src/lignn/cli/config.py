"""Config files: parameters by name, in TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lignn.atomic import whole_file
from lignn.errors import ConfigError, did_you_mean


def read(file: Path, known: Collection[str]) -> dict[str, Any]:
    """Return the settings in a file, or those of the model in a folder; all must be among `known`."""
    if file.is_dir():
        from lignn.classifier import saving

        inside = saving.settings_file(file)
        if inside.parent != file:
            file = inside
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text; save it as such") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not TOML: {error}") from error
    for key in settings:
        if key not in known:
            raise ConfigError(f"{file}: there is no setting {key!r}; {did_you_mean(key, known)}")
    return settings


def write(file: Path, settings: Mapping[str, Any], heading: str) -> None:
    """Write `settings` in the form that `read` reads."""
    with whole_file(file) as temporary:
        temporary.write_text(text(settings, heading), encoding="utf-8")


def text(settings: Mapping[str, Any], heading: str) -> str:
    """Return the content of a file with these settings; those that are None have no value and are left out."""
    heading = heading.encode(errors="surrogateescape").decode(errors="replace")  # it may have the name of a file
    lines = [f"{key} = {_toml(value)}" for key, value in settings.items() if value is not None]
    return "\n".join([f"# {heading}", *lines, ""])


def _toml(value: Any) -> str:
    """A plain value in TOML; its texts, numbers and truth values are written as JSON's."""
    if isinstance(value, Mapping):
        pairs = (f"{_toml(key)} = {_toml(each)}" for key, each in value.items() if each is not None)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)
