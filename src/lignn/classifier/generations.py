"""Folders with generations: a save makes a new one, then one small file switches to it.

    model/current            names the current generation: generation-2
    model/generation-2/…     its files

So a folder has a complete current generation at any moment, the old one or the new one. A killed process may leave an
incomplete one behind, which the next save removes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from lignn.atomic import TEMPORARY, alone, entries, refuse_others, remove, replacement, sync_all, whole_file
from lignn.errors import InputError

CURRENT = "current"
_GENERATION = re.compile(r"generation-([0-9]{1,18})")


def current(path: str | PathLike[str]) -> Path:
    """Return the folder of the current generation; `path` itself if it has no generations."""
    file = Path(path) / CURRENT
    try:
        name = file.read_bytes().strip().decode("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return Path(path)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    if not _GENERATION.fullmatch(name):
        raise InputError(f"{file}: is damaged, it does not name a generation; copy the folder again")
    return Path(path) / name


@contextmanager
def new_generation(path: str | PathLike[str], marker: str, ours: Collection[str]) -> Iterator[Path]:
    """Yield a new folder in the folder `path`, which becomes its current generation when the body succeeds.

    Then the old generation is removed. `check` says what is refused.
    """
    with alone(path) as certain:
        check(path, marker, ours)
        if not entries(path):
            with replacement(path) as temporary:
                generation = _next(temporary)
                yield generation
                sync_all(generation)
                (temporary / CURRENT).write_text(f"{generation.name}\n", encoding="ascii")
            return
        target = Path(path).resolve()
        if certain:  # otherwise another process may be writing a generation
            _keep(current(target), target, {marker, *ours})
        generation = _next(target)
        try:
            yield generation
            sync_all(generation)
            sync_all(target)
            with whole_file(Path(path) / CURRENT) as temporary:
                temporary.write_text(f"{generation.name}\n", encoding="ascii")
        finally:
            _keep(current(target), target, {marker, *ours})


def check(path: str | PathLike[str], marker: str, ours: Collection[str]) -> None:
    """Raise unless `path` is new, empty, or a folder that lignn wrote.

    Such a folder has the file `current`, or, if it was written before there were generations, the file `marker`. All
    other files in it and in its generations are named in `ours`.
    """
    present = entries(path)
    if present and not present & {CURRENT, marker}:
        raise InputError(f"{path}: is a folder with other content (no {CURRENT}); choose a new or empty folder")
    current(path)
    generations = {name for name in present if _GENERATION.fullmatch(name)}
    refuse_others(path, {name for name in present - generations if not _is_ours(name, {CURRENT, marker, *ours})})
    for generation in generations:
        inside = Path(path) / generation
        refuse_others(inside, {name for name in entries(inside) if not _is_ours(name, {marker, *ours})})


def _is_ours(name: str, ours: Collection[str]) -> bool:
    """Return whether a file is one of ours, or was left over from writing one of ours."""
    left_over = re.fullmatch(rf"{TEMPORARY}(.*)|\.(.*)\.lock", name)
    return name in ours or (left_over is not None and (left_over[1] or left_over[2]) in ours)


def _next(folder: Path) -> Path:
    """Create the folder of the next generation."""
    while True:
        numbers = [int(found[1]) for name in os.listdir(folder) if (found := _GENERATION.fullmatch(name))]
        generation = folder / f"generation-{max(numbers, default=0) + 1}"
        with suppress(FileExistsError):  # another process was first, on a system without locks
            generation.mkdir()
            return generation


def _keep(kept: Path, folder: Path, ours: Collection[str]) -> None:
    """Remove the generations of `folder` other than `kept`, and files that were written before there were any."""
    for path in folder.iterdir():
        superseded = kept != folder and _is_ours(path.name, ours)
        if superseded or (_GENERATION.fullmatch(path.name) and path != kept):
            remove(path)
