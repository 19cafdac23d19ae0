"""Fits of every kind give what they gave before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.goldens import golden
from tests.goldens.cases import CASES, NEED_DATA, taken

GOLDENS = json.loads(golden.FILE.read_text(encoding="utf-8"))

pytestmark = [
    pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::lignn.errors.ImbalanceWarning"),
]


def test_every_case_has_a_golden_and_every_golden_a_case() -> None:
    assert sorted(GOLDENS["cases"]) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_moved(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """To the bit on a machine like the one of the goldens, elsewhere but for rounding."""
    if name in NEED_DATA:
        request.getfixturevalue("data_root")
    same = GOLDENS["fingerprint"] == golden.fingerprint()
    found = golden.differences(golden.summary(taken(name, tmp_path / "case")), GOLDENS["cases"][name], same)
    assert not found, "\n".join([*found, "A change that is meant is taken anew: python -m tests.goldens NAME"])


def test_a_changed_bit_is_seen_and_rounding_is_not_elsewhere() -> None:
    found = {"x": [0.1, 0.2], "end": "patience", "steps": 3}
    one = golden.summary(found)
    assert golden.differences(one, one, same_machine=True) == []
    rounded = golden.summary(found | {"x": [0.1, 0.2000001]})
    assert golden.differences(rounded, one, same_machine=False) == []
    assert len(golden.differences(rounded, one, same_machine=True)) == 1
    assert len(golden.differences(golden.summary(found | {"steps": 4}), one, same_machine=False)) == 1
