import json
from pathlib import Path

from lignn import Graph
from lignn.evaluation.compare import chosen
from tests.cli.commands import outcome, run

TINY = ("--jobs", "1", "--runs", "2", "--max-epochs", "3", "--hidden", "4")


def test_all_methods_in_one_table_and_one_report(place: Path) -> None:
    result = outcome("compare", "mine", *TINY)
    assert result.code == 0
    titles = [one.title for one in chosen(Graph.read("mine"), {})]
    first = [line.split("  ")[0].strip() for line in result.out.splitlines()[1 : 1 + len(titles)]]
    assert first == titles
    assert {"GCN", "LPA", "Label Input GCN", "LI-GCN, proved", "boosted trees + C&S"} <= set(titles)
    assert "Do labels help here?" in result.out
    assert result.out.endswith("Report: compare-mine.html\n")
    assert len(result.err.splitlines()) == 2 * len(titles)
    page = (place / "compare-mine.html").read_text(encoding="utf-8")
    assert "Do labels help on mine?" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_json_and_nothing_else(place: Path) -> None:
    result = outcome("compare", "mine", *TINY, "--only", "lpa", "-o", "r.html", "--backbone", "mlp", "--json")
    record = json.loads(result.out)
    assert result.err == ""
    assert [row["method"] for row in record["rows"]] == ["mlp", "lpa"]
    assert [row["title"] for row in record["rows"]] == ["MLP", "LPA"]
    assert {(each["method"], each["number"]) for each in record["runs"]} == {
        (method, number) for method in ("mlp", "lpa") for number in (0, 1)
    }
    assert record["graph"] == {"name": "mine", "nodes": 12, "edges": 12, "features": 2, "classes": 2, "labelled": 10}
    assert record["report"] == "r.html"


def test_two_processes_find_the_same(place: Path) -> None:
    arguments = ("compare", "mine", *TINY, "--only", "label_input", "--json")
    one, two = (json.loads(run(*arguments, "--jobs", jobs)) for jobs in (1, 2))

    def scores(record: dict[str, object]) -> object:
        return [(row["method"], row["test"]) for row in record["rows"]]

    assert scores(one) == scores(two)
