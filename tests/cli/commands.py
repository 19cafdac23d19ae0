"""Commands as a user gives them, in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from lignn.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def outcome(*arguments: str | Path | float) -> Outcome:
    """What `lignn ARGUMENTS` gives."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return Outcome(end.value.code or 0, out.getvalue(), err.getvalue())


def run(*arguments: str | Path | float) -> str:
    """The output of a command that succeeds."""
    result = outcome(*arguments)
    assert result.code == 0, result.err
    return result.out
