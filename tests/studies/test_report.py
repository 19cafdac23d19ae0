import re
from pathlib import Path

import pytest

from lignn.errors import InputError
from lignn.runs import records
from lignn.studies import study
from lignn.studies.report import report
from tests.studies import tiny


def write(folder: Path, study: str, runs: list[dict]) -> None:
    for run in runs:
        records.append(folder / f"{study}.jsonl", run | {"study": study})


def rows(folder: Path) -> dict[str, list[str]]:
    """Cells of all Markdown tables by their first cell; the last table wins, except that scores come before costs."""
    found: dict[str, list[str]] = {}
    for line in (folder / "report.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            first, *others = (cell.strip() for cell in line.strip("|").split(" | "))
            found.setdefault(first, others)
    return found


@pytest.fixture(scope="module")
def table2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table2")
    runs = [tiny.planned("table2", "GCN", seed, score) for seed, score in enumerate((0.40, 0.42, 0.44))]
    runs += [tiny.planned("table2", "LI-GCN", seed, score) for seed, score in enumerate((0.41, 0.44, 0.46))]
    runs += [tiny.planned("table2", "IGNN*", 0, 0.5)]
    runs += [tiny.planned("table2", "SotA", 0, 0.4, status="failed", reason="no luck")]
    runs += [tiny.record("GCN", 0, 0.99), tiny.planned("table2", "GCN", 12, 0.42)]
    absent = {"id": "table2/flickr", "dataset": "flickr", "status": "unavailable"}
    write(folder, "table2", [*runs, absent])
    report(folder)
    return folder


def test_scores_stand_beside_the_published_ones(table2):
    found = rows(table2)
    assert found["GCN"][:3] == [
        "42.00 ± 1.63 (4)<br>paper 39.28 ± 3.65",
        "not run<br>paper 26.87 ± 2.19",
        "not run: data not available here<br>paper 38.36 ± 6.28",
    ]
    assert found[r"IGNN\*"][0] == "50.00 (1) †<br>paper 35.40 ± 2.36"
    assert found["L-GCN (α input)"][0] == ""


def test_gains_are_paired(table2):
    found = rows(table2)
    assert found["LI-GCN − GCN"][0] == "+1.67 [+0.23, +3.10], p 0.038 (3)<br>paper +2.90"
    assert found["LI-GCN − GCN"][1] == "paper +2.08"


def test_failures_and_provenance_are_told(table2):
    text = (table2 / "report.md").read_text(encoding="utf-8")
    assert "| SotA | chameleon | 0 | no luck |" in text
    assert "Commits: 0123456789ab with changes." in text


def test_the_overview_says_what_was_cut(table2):
    found = rows(table2)
    # a score of 99 with settings that the study does not have is in no mean
    cells = "3 in part, 60 not run, 13 not run: data not available here (flickr)"
    assert found["table2"] == ["7 of 760 runs, and 1 more than planned", cells, "1", "1", "0.00 h"]
    assert found["table3"][0] == f"0 of {len(study.load('table3').plan())} runs"
    assert set(study.names()) <= set(found)


def test_the_page_needs_nothing_else(table2):
    page = (table2 / "report.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]{0,25})', page)
    assert sources
    assert all(source.startswith(("data:image/svg+xml;base64", "#s")) for source in sources)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert "42.00 ± 1.63 (4)<small>paper 39.28 ± 3.65</small>" in page


def test_the_same_records_give_the_same_bytes(table2):
    def content() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in table2.rglob("*") if file.is_file()}

    first = content()
    assert {"report.md", "report.html", "table2.png", "table2.svg"} <= set(first)
    report(table2)
    assert content() == first


def test_label_transitions(tmp_path):
    run = tiny.planned("figure1", "label transitions", 0, 0.0, "cora", transitions=[[0.9, 0.1], [0.4, 0.6]])
    write(tmp_path, "figure1", [run])
    report(tmp_path)
    assert rows(tmp_path)["cora"] == ["60.0", "75.0", "90.0"]
    assert (tmp_path / "figures" / "figure1.svg").stat().st_size > 1000


def test_a_study_of_ones_own_is_shown_as_a_table(tmp_path):
    write(tmp_path, "own", [tiny.record(row, 0, 0.4, dataset="karate") for row in ("GCN", "LI-GCN")])
    files = report(tmp_path, tmp_path / "elsewhere")
    assert rows(tmp_path / "elsewhere")["GCN"][:3] == ["karate", "1", "40.00"]
    assert {file.parent for file in files} == {tmp_path / "elsewhere", tmp_path / "elsewhere" / "figures"}


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(InputError, match="there are no records of a study"):
        report(tmp_path)
