"""The section of a study in the report."""

from __future__ import annotations

from collections.abc import Callable

from lignn.evaluation.page import Block, Section, Table
from lignn.studies import published
from lignn.studies.found import Found
from lignn.studies.records import FAILED
from lignn.studies.views import accuracy, changes, contraction, curves, lengths, search, transitions

VIEWS: dict[str, Callable[[Found], list[Block]]] = {
    "accuracy": accuracy.view,
    "changes": changes.view,
    "transitions": transitions.view,
    "contraction": contraction.view,
    "curves": curves.view,
    "lengths": lengths.view,
    "search": search.view,
}


def section(title: str, report: str, found: Found) -> Section:
    """The whole section of a study."""
    claim = published.claim(found.study)
    blocks: list[Block] = [] if claim is None else [f"The paper: {claim}"]
    return Section(title, [*blocks, *VIEWS[report](found), *failures(found)])


def failures(found: Found) -> list[Block]:
    """Runs that failed, with their reasons."""
    failed = [record for record in found.records if record["status"] == FAILED]
    rows = [(record["row"], record["dataset"], str(record["seed"]), record["reason"]) for record in failed]
    return [Table("Runs that failed", ("", "dataset", "run", "reason"), rows)] if rows else []
