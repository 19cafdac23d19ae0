"""Numbers of documents are those of the records."""

import re
from pathlib import Path

import pytest

from lignn import documents
from lignn.bench import timing as bench
from lignn.cli import main
from lignn.documents import Records, Source
from lignn.errors import InputError
from tests.bench.test_suites import RECORDS
from tests.studies import tiny
from tests.studies.test_report import write

CHECKOUT = Path(__file__).parent.parent
PAGES = documents.documents([CHECKOUT / "README.md", CHECKOUT / "docs"])


@pytest.fixture(scope="module")
def recorded():
    return Records.of(CHECKOUT / "results")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_numbers_are_those_of_the_records(page, recorded):
    """`lignn report results --docs README.md --docs docs` fills them."""
    text = page.read_text(encoding="utf-8")
    assert documents.filled(text, Source(recorded, page)) == text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_no_line_begins_with_a_place_of_a_sentence(page):
    """Markdown would end the sentence there: a comment at the start of a line is a block of HTML."""
    assert not re.findall(r"^\s*<!-- (?!end).*-->.+", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    (folder / "bench").mkdir(parents=True)
    runs = [tiny.planned("table2", "GCN", seed, score) for seed, score in enumerate((0.40, 0.42, 0.44))]
    runs += [tiny.planned("table2", "LI-GCN", seed, score) for seed, score in enumerate((0.41, 0.44, 0.46))]
    write(folder, "table2", runs)
    bench.write(RECORDS, folder / "bench" / "epoch.jsonl")
    table = "**Of seeds**\n\n| way | found |\n|---|---|\n| a | 1.5<br>2 s |\n"
    (folder / "report.md").write_text(f"# Report\n\n{table}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("score table2 / GCN / chameleon", "42.00 ± 2.00"),
        ("mean table2 / LI-GCN / chameleon", "43.7"),
        ("mean table2 / LI-GCN / chameleon / GCN", "**43.7**"),
        ("mean table2 / GCN / chameleon / LI-GCN", "42.0"),
        ("gain table2 / LI-GCN / GCN / chameleon", "+1.67 [+0.23, +3.10]"),
        ("gain table2 / LI-GCN / GCN", "+1.67"),
        ("value table2 / GCN / chameleon / seconds", "2.000"),
        ("time epoch / a / lignn", "1.00 ms"),
        ("ratio epoch / a / textbook", "9.50"),
        ("memory epoch / a / textbook", "2.00 GiB"),
        ("cell report.md / Of seeds / a / found", "1.5"),
    ],
)
def test_places_within_a_line(place, value, results, tmp_path):
    text = f"It is <!-- {place} -->?<!-- end --> here."
    filled = documents.filled(text, Source(Records.of(results), tmp_path / "page.md"))
    assert filled == f"It is <!-- {place} -->{value}<!-- end --> here."


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("mean table2 / GCN / squirrel", "no record of GCN on squirrel"),
        ("time epoch / a / abacus", "no record of abacus on a"),
        ("cell report.md / Of seeds / b / found", "no cell 'found' in the row 'b'"),
        ("colour table2 / GCN", "no place of the kind 'colour'"),
    ],
)
def test_a_place_that_nothing_fills_is_refused(place, problem, results, tmp_path):
    with pytest.raises(InputError, match=problem):
        documents.filled(f"<!-- {place} --><!-- end -->", Source(Records.of(results), tmp_path / "page.md"))


def test_the_command_fills_all_documents_of_a_folder_and_can_be_repeated(results, tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(
        "before\n<!-- bench epoch -->\nold\n<!-- end -->\nbetween\n<!-- bench fit -->\nkept\n<!-- end -->\n"
        "<!-- scores table2 -->\n<!-- end -->\n",
        encoding="utf-8",
    )
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["report", str(results), "--docs", str(page.parent)])
        text = page.read_text(encoding="utf-8")
        assert "| a | 1.00 ms ± 5 %, 30.0 MiB | 2.50 s ± 5 %, 9.50×, 2.00 GiB |" in text
        assert "abacus, 2 of 2 cores" in text
        assert "| GCN | 42.00 ± 2.00 |" in text
        assert "old" not in text
        assert "kept" in text


def test_a_study_is_told_with_its_picture(results, tmp_path):
    filled = documents.filled("<!-- report table2 --><!-- end -->", Source(Records.of(results), tmp_path / "page.md"))
    assert re.search(r"!\[.*\]\(results/figures/table2\.svg\)", filled)
    assert "The paper: " in filled
