"""Numbers and dates as people write them: mended where one reading fits, refused where two do, never guessed."""

import datetime as dt

import pyarrow as pa
import pytest

from lignn import Graph
from lignn.graph.tables import cells
from tests.graph.folders import EDGES, problem, put

DAY = dt.date
TIME = dt.datetime


@pytest.mark.parametrize(
    ("texts", "form", "values"),
    [
        (["1,151.37", "12", "3.5"], "number:.", [1151.37, 12, 3.5]),
        (["1,234,567", "1,234"], "number:.", [1234567, 1234]),
        (["1.151,37", "12", "3,5"], "number:,", [1151.37, 12, 3.5]),
        (["1,234", "1,5"], "number:,", [1.234, 1.5]),
        (["1\u202f234,5", "2 000"], "number:,", [1234.5, 2000]),
        (["1'234.5", "-1\u2019000"], "number:.", [1234.5, -1000]),
        (["0,123", "1,234"], "number:,", [0.123, 1.234]),
        (["31/12/2024", "01/02/2024"], "date:dmy", [DAY(2024, 12, 31), DAY(2024, 2, 1)]),
        (["12/31/2024", "01/02/2024"], "date:mdy", [DAY(2024, 12, 31), DAY(2024, 1, 2)]),
        (["05/05/2024", "06/06/2024"], "date:dmy", [DAY(2024, 5, 5), DAY(2024, 6, 6)]),
        (["1.2.2024", "2.1.2024"], "date:dmy", [DAY(2024, 2, 1), DAY(2024, 1, 2)]),
        (["31 Dec 2024", "1 January 2025"], "date:dmy", [DAY(2024, 12, 31), DAY(2025, 1, 1)]),
        (["Dec 31, 2024 5:30 PM"], "date:mdy", [TIME(2024, 12, 31, 17, 30)]),
        (["2024/12/31 10:11:12.5"], "date:ymd", [TIME(2024, 12, 31, 10, 11, 12, 500_000)]),
    ],
)
def test_one_reading(texts, form, values):
    found = cells.readings(pa.array(texts, pa.large_string()))
    assert [one.form for one in found] == [form]
    assert found[0].values.to_pylist() == values


@pytest.mark.parametrize(
    "texts",
    [
        ["31.02.2024"],
        ["192.168.0.1"],
        ["030 123 456"],
        ["12/31/2024", "31/12/2024"],
        ["1,5", "1.5"],
        ["2024-11"],
        ["a", "b"],
    ],
)
def test_no_reading(texts):
    assert cells.readings(pa.array(texts, pa.large_string())) == []


def table(folder, column, cells_of, sign="\t"):
    rows = [f"n{i}{sign}{'xy'[i % 2]}{sign}{cell}" for i, cell in enumerate(cells_of)]
    (folder / "nodes.csv").write_text("\n".join([f"id{sign}label{sign}{column}", *rows]) + "\n")
    (folder / "edges.csv").write_text("source,target\nn0,n1\n")
    return folder


def test_two_readings_are_refused_with_the_options_that_decide(folder):
    put(folder)
    table(folder, "revenue", ["1,234", "5", "6,789", "2,345", "3,456"])
    assert problem(folder) == (
        "nodes.csv, column 'revenue': '1,234' (line 2), '6,789' (line 4), '2,345' (line 5) and 1 more may be 1234 or "
        "1.234; say which: --column number:.=revenue or --column number:,=revenue"
    )
    assert Graph.read(folder, columns={"number:.": "revenue"}).table.column("revenue")[0].as_py() == 1234
    commas = Graph.read(folder, columns={"number:,": "revenue"})
    assert commas.table.column("revenue")[0].as_py() == 1.234
    assert Graph.read(folder, like=commas.reading).table.equals(commas.table)
    table(folder, "day", ["01/02/2024", "03/04/2024"])
    assert problem(folder) == (
        "nodes.csv, column 'day': '01/02/2024' (line 2), '03/04/2024' (line 3) may be 2024-02-01 or 2024-01-02; say "
        "which: --column date:dmy=day or --column date:mdy=day"
    )
    assert Graph.read(folder, columns={"date:mdy": "day"}).table.column("day")[1].as_py() == DAY(2024, 3, 4)


def test_all_ambiguous_columns_are_told_at_once(folder):
    put(folder)
    table(folder, "day\trevenue", ["01/02/2024\t1,234", "03/04/2024\t7,654"])
    assert [line.split(":")[0] for line in problem(folder).splitlines()] == [
        "nodes.csv, column 'day'",
        "nodes.csv, column 'revenue'",
    ]


@pytest.mark.parametrize(
    ("other", "values"), [("0.5", [1234, 6789]), ("0,5", [1.234, 6.789]), ("2,345.5", [1234, 6789])]
)
def test_a_table_has_one_decimal_sign(folder, other, values):
    put(folder)
    table(folder, "revenue\tshare", [f"1,234\t{other}", f"6,789\t{other}"])
    assert Graph.read(folder).table.column("revenue").to_pylist() == values


def test_thousands_with_points_beside_decimal_commas(folder):
    put(folder)
    table(folder, "revenue\tshare", ["1.234\t0,5", "6.789\t0,25"])
    graph = Graph.read(folder)
    assert graph.table.column("revenue").to_pylist() == [1234, 6789]
    assert graph.reading.nodes.notes == ("revenue: '1.234' is 1234", "share: '0,5' is 0.5")


def test_decimal_commas_after_the_first_64_kib(folder):
    put(folder)
    table(folder, "size", [*["1"] * 20_000, "2,5"], ";")
    graph = Graph.read(folder)
    assert graph.x[-1].tolist() == [2.5]


def test_zips_are_names_and_stray_cells_count_as_missing(folder):
    put(folder)
    table(folder, "zip\tday", [*["00004\t31/12/2024", "10115\t30/12/2024"] * 10, "00005\tsoon"])
    with pytest.warns(
        UserWarning, match=r"column 'day' \(dates\): 'soon' \(line 22\) is no date, and counts as missing"
    ):
        graph = Graph.read(folder)
    assert graph.table.column("zip").to_pylist()[:2] == ["00004", "10115"]
    assert graph.table.column("day").null_count == 1


def test_weights_with_commas(folder):
    put(folder)
    (folder / "edges.csv").write_text("source;target;weight\na;b;0,5\nb;c;1.000,25\n")
    assert Graph.read(folder).edge_weight.tolist() == [0.5, 1000.25]
    (folder / "edges.csv").write_text("source;target;weight\na;b;1,234\nb;c;2\n")
    assert problem(folder).startswith("edges.csv, column 'weight': '1,234' (line 2) may be 1234 or 1.234; say which")


@pytest.mark.parametrize("other", ["1", "+2"])
@pytest.mark.parametrize("end", ["01", "0x10", "-01"])
def test_ids_are_compared_as_they_are_written(folder, end, other):
    """Before, 01 and 0x10 were nodes 1 and 16, unless another cell was no whole number."""
    put(folder, "id,label\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(-1, 17)), f"source,target\n{end},1\n1,1\n")
    assert f"'{end}' is not the id of a node" in problem(folder, strict=True)
    put(folder, "id,label\n01,x\n1,y\n+2,\n", f"source,target\n01,{other}\n")
    assert Graph.read(folder).edge_index.tolist() == [[0], [1 if other == "1" else 2]]


def test_plain_tables_are_read_as_before(folder):
    put(folder, "id,label,a,b\nn0,x,1.234,2024-01-31\nn1,y,5.678,2024-02-01\n", "source,target\nn0,n1\n")
    graph = Graph.read(folder)
    assert graph.table.column("a").to_pylist() == [1.234, 5.678]
    assert graph.reading.nodes.kinds == graph.reading.nodes.notes == ()
    put(folder, edges=EDGES)
    assert Graph.read(folder).x.tolist() == [[1], [2.5], [pytest.approx(-0.3)]]
