"""Commands as a user gives them, in this process."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from lignn.cli import main

READING = re.compile(r"[^/]+: (id|source) = ")


@dataclass(frozen=True)
class Outcome:
    """What a command gives; `reading` are the lines of the standard error on how tables were read, `err` the others."""

    code: int
    out: str
    err: str
    reading: list[str]


def outcome(*arguments: str | Path | float) -> Outcome:
    """What `lignn ARGUMENTS` gives."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    lines = err.getvalue().splitlines(keepends=True)
    told = [line for line in lines if READING.match(line)]
    others = "".join(line for line in lines if line not in told)
    return Outcome(end.value.code or 0, out.getvalue(), others, [line.rstrip("\n") for line in told])


def run(*arguments: str | Path | float) -> str:
    """The output of a command that succeeds."""
    result = outcome(*arguments)
    assert result.code == 0, result.err
    return result.out
