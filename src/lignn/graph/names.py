"""In which order named classes are numbered, wherever a graph comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """The distinct names: integers by value (2 before 10), then texts in alphabetical order."""
    return tuple(sorted(set(names), key=_key))


def _key(name: str) -> tuple[bool, int, str]:
    integer = re.fullmatch(r"-?\d{1,18}", name, re.ASCII)
    return not integer, int(name) if integer else 0, name
