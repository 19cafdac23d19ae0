"""Tables as people have them: 25 graphs of three to six nodes, and how each is read."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

NODES = "id,label,age\na,cat,1\nb,dog,2\nc,,3\n"
EDGES = "source,target\na,b\nb,c\n"
PLAIN = "edges.csv: source = source, target = target"


@dataclass(frozen=True)
class Case:
    """A folder of files and how it is read.

    Attributes:
        files: contents by name.
        nodes: the line on the nodes in the printed reading.
        edges: the line on the edges.
        kinds: the type of each column of features.
        y: class numbers.
        columns: `--column`.
        ignore: `--ignore`.
        warns: a part of the warning, if there is one.
        edge_index: the edges.
    """

    files: Mapping[str, str | bytes]
    nodes: str
    kinds: Mapping[str, str]
    edges: str = PLAIN
    y: tuple[int, ...] = (0, 1, -1)
    columns: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    warns: str | None = None
    edge_index: tuple[tuple[int, ...], ...] = ((0, 1), (1, 2))

    def write(self, folder: Path) -> Path:
        """Write the files, and return what to read."""
        folder.mkdir()
        for name, content in self.files.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        alone = next(iter(self.files))
        return folder / alone if len(self.files) == 1 else folder


def _parquet(text: str) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.csv.read_csv(pa.py_buffer(text.encode())), sink)
    return sink.getvalue().to_pybytes()


def _json_lines(text: str) -> str:
    rows = pa.csv.read_csv(pa.py_buffer(text.encode())).to_pylist()
    return "".join(
        json.dumps({key: value for key, value in row.items() if value not in (None, "")}) + "\n" for row in rows
    )


def sqlite(nodes: str, edges: str) -> bytes:
    """Return an SQLite file with two tables, in which empty cells are NULL."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, text in (("nodes", nodes), ("edges", edges)):
            header, *rows = [line.split(",") for line in text.splitlines()]
            connection.execute(f"CREATE TABLE {name} ({', '.join(header)})")
            marks = ", ".join("?" * len(header))
            cells = [[cell or None for cell in row] for row in rows]
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", cells)
        connection.commit()
        return connection.serialize()


def both(nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> dict[str, str | bytes]:
    """Return two CSV files."""
    return {"nodes.csv": nodes, "edges.csv": edges}


HUGE = 10**16
ODD = {3: "?", 5: "old"}
PAGES = "".join(
    f'{i},{HUGE + 2 * i + 1},"Page, no. {i}",{kind}\n' for i, kind in enumerate(["tv", "company", "tv", "government"])
)
CUSTOMERS = """\
customer,country,active,since,spent,notes,class
17,DE,True,2021-03-01,12.5,likes tea,good
4,FR,False,2020-12-24,NA,,bad
9,,True,,7,calls often,
23,DE,,2022-01-01,0,"asks, and asks",good
"""
PAYMENTS = "from,to,type,amount,day\n17,4,pays,3,2024-01-01\n4,9,owns,1,2024-01-02\n9,23,pays,2,2024-01-02\n"

CASES: dict[str, Case] = {
    "plain": Case(both(), "nodes.csv: id = id, label = label, 1 feature", {"age": "int64"}),
    "pages": Case(
        both("id,facebook_id,page_name,page_type\n" + PAGES, "id_1,id_2\n0,1\n1,2\n2,3\n"),
        "nodes.csv: id = id, label = page_type, 2 features",
        {"facebook_id": "int64", "page_name": "string"},
        "edges.csv: source = id_1, target = id_2",
        (2, 0, 2, 1),
        {"label": "page_type"},
        edge_index=((0, 1, 2), (1, 2, 3)),
    ),
    "column left out": Case(
        both("id,facebook_id,page_name,label\n" + PAGES, "id_1,id_2\n0,1\n1,2\n2,3\n"),
        "nodes.csv: id = id, label = label, 1 feature, ignored: facebook_id",
        {"page_name": "string"},
        "edges.csv: source = id_1, target = id_2",
        (2, 0, 2, 1),
        ignore=("facebook_id",),
        edge_index=((0, 1, 2), (1, 2, 3)),
    ),
    "other key": Case(
        both(
            f"id,account,label,age\n0,{HUGE},x,1\n1,{HUGE + 1},y,2\n2,{HUGE + 2},,3\n",
            f"src,dst\n{HUGE},{HUGE + 1}\n{HUGE + 1},{HUGE + 2}\n",
        ),
        "nodes.csv: id = account, label = label, 2 features; the ends of the edges are values of 'account'",
        {"id": "int64", "age": "int64"},
        "edges.csv: source = src, target = dst",
    ),
    "customers": Case(
        both(CUSTOMERS, PAYMENTS),
        "nodes.csv: id = customer, label = class, 5 features; the ends of the edges are values of 'customer'",
        {"country": "string", "active": "bool", "since": "date32[day]", "spent": "double", "notes": "string"},
        "edges.csv: source = from, target = to, edge_type = type, 3 features; in the order of day",
        (1, 0, -1, 1),
        edge_index=((0, 1, 2), (1, 2, 3)),
    ),
    "weights by name": Case(
        both("node_id,Class,age\na,x,1\nb,y,2\nc,,3\n", "From,To,amount\na,b,2\nb,c,3\n"),
        "nodes.csv: id = node_id, label = Class, 1 feature",
        {"age": "int64"},
        "edges.csv: source = From, target = To, weight = amount",
        columns={"weight": "amount"},
    ),
    "time and group": Case(
        both("id,label,day,family,age\na,x,2024-01-01,p,1\nb,y,2024-01-02,q,2\nc,,,p,3\n"),
        "nodes.csv: id = id, label = label, time = day, group = family, 1 feature",
        {"age": "int64"},
        columns={"time": "day", "group": "family"},
    ),
    "types of nodes": Case(
        both("id,type,label,age\na,1,x,1\nb,2,y,\nc,1,,3\n"),
        "nodes.csv: id = id, label = label, type = type, 2 features",
        {"type": "large_string", "age": "int64"},
    ),
    "semicolons": Case(
        both(NODES.replace(",", ";"), EDGES.replace(",", ";")),
        "nodes.csv: id = id, label = label, 1 feature",
        {"age": "int64"},
    ),
    "decimal commas": Case(
        both(
            "id;label;age;city\na;x;1,5;Bonn, west\nb;y;-2,25;Kiel\nc;;3;Ulm\n",
            "source;target;weight\na;b;0,5\nb;c;1,5\n",
        ),
        "nodes.csv: id = id, label = label, number:, = age, 2 features; age: '1,5' is 1.5",
        {"age": "double", "city": "string"},
        f"{PLAIN}, weight = weight",
    ),
    "tabs": Case(
        {"nodes.tsv": NODES.replace(",", "\t"), "edges.tsv": EDGES.replace(",", "\t")},
        "nodes.tsv: id = id, label = label, 1 feature",
        {"age": "int64"},
        "edges.tsv: source = source, target = target",
    ),
    "gzip": Case(
        {"nodes.csv.gz": gzip.compress(NODES.encode()), "edges.csv.gz": gzip.compress(EDGES.encode())},
        "nodes.csv.gz: id = id, label = label, 1 feature",
        {"age": "int64"},
        "edges.csv.gz: source = source, target = target",
    ),
    "JSON lines": Case(
        {"nodes.jsonl": _json_lines(NODES), "edges.ndjson": _json_lines(EDGES)},
        "nodes.jsonl: id = id, label = label, 1 feature",
        {"age": "int64"},
        "edges.ndjson: source = source, target = target",
    ),
    "Parquet": Case(
        {"nodes.parquet": _parquet(CUSTOMERS.replace("customer", "name")), "edges.parquet": _parquet(PAYMENTS)},
        "nodes.parquet: id = name, label = class, 5 features",
        {"country": "string", "active": "bool", "since": "date32[day]", "spent": "double", "notes": "string"},
        "edges.parquet: source = from, target = to, edge_type = type, 3 features; in the order of day",
        (1, 0, -1, 1),
        edge_index=((0, 1, 2), (1, 2, 3)),
    ),
    "SQLite": Case(
        {"shop.db": sqlite("id,label,age,born\na,x,1,2001-02-03\nb,y,,2001-02-04\nc,,3,2001-02-05\n", EDGES)},
        "shop.db, table nodes: id = id, label = label, 2 features",
        {"age": "int64", "born": "date32[day]"},
        "shop.db, table edges: source = source, target = target",
    ),
    "byte-order mark, CRLF, blank lines": Case(
        both("\ufeff" + NODES.replace("\n", "\r\n\r\n"), "\ufeff" + EDGES.replace("\n", "\r\n")),
        "nodes.csv: id = id, label = label, 1 feature",
        {"age": "int64"},
    ),
    "quotes": Case(
        both('"id","label","say ""hi"""\n"a","cat","1\n2"\n"b","dog","x, y"\n"c","","z"\n'),
        'nodes.csv: id = id, label = label, 1 feature',
        {'say "hi"': "string"},
    ),
    "index without a name": Case(
        both(",id,label,age\n0,a,cat,1\n1,b,dog,2\n2,c,,3\n", ",source,target\n0,a,b\n1,b,c\n"),
        "nodes.csv: id = id, label = label, 1 feature, ignored: (column 1)",
        {"age": "int64"},
        "edges.csv: source = source, target = target, ignored: (column 1)",
    ),
    "capitals": Case(
        both("ID,Label,Split,Age\na,x,train,1\nb,y,val,2\nc,,,3\n", "Source,Target,Weight\na,b,1\nb,c,2\n"),
        "nodes.csv: id = ID, label = Label, split = Split, 1 feature",
        {"Age": "int64"},
        "edges.csv: source = Source, target = Target, weight = Weight",
    ),
    "leading zeros": Case(
        both("id,label,zip\n007,x,01234\n7,y,99999\n07,,00001\n", "u,v\n007,7\n7,07\n"),
        "nodes.csv: id = id, label = label, 1 feature; zip: digits with leading zeros, such as '01234', are names",
        {"zip": "string"},
        "edges.csv: source = u, target = v",
    ),
    "stray texts": Case(
        both(
            "id,label,age\n" + "".join(f"{i},{'xy'[i % 2]},{ODD.get(i, i / 2)}\n" for i in range(20)),
            "source,target\n0,1\n",
        ),
        "nodes.csv: id = id, label = label, 1 feature",
        {"age": "double"},
        y=(0, 1) * 10,
        warns=r"nodes.csv, column 'age' (numbers): 'old' (line 7) is no number, and counts as missing",
        edge_index=((0,), (1,)),
    ),
    "infinite": Case(
        both("id,label,age\na,x,inf\nb,y,2\nc,,-inf\n"),
        "nodes.csv: id = id, label = label, 1 feature",
        {"age": "double"},
        warns="column 'age' (numbers): 'inf' (line 2), '-inf' (line 4) is not finite, and counts as missing",
    ),
    "all forms of nothing": Case(
        both("id,label,a,b,c\na,x,NA,,1\nb,y,n/a,?,NaN\nc,,null,,3.5\n"),
        "nodes.csv: id = id, label = label, 3 features",
        {"a": "null", "b": "null", "c": "double"},
    ),
    "dates": Case(
        both(
            "id,label,a,b,c\na,x,2024-01-31,31.01.2024,2024-01-31 10:11:12\n"
            "b,y,2024-02-01,01.02.2024,2024-02-01 00:00:00\nc,,,,\n"
        ),
        "nodes.csv: id = id, label = label, date:dmy = b, 3 features; b: '31.01.2024' is 2024-01-31",
        {"a": "date32[day]", "b": "date32[day]", "c": "timestamp[s]"},
    ),
    "coordinates": Case(
        both("id,x,y,label\na,0.5,1.5,u\nb,1.25,2,v\nc,2,0.25,\n", "source,target,wieght\na,b,1\nb,c,1\n"),
        "nodes.csv: id = id, label = label, 2 features",
        {"x": "double", "y": "double"},
        f"{PLAIN}, ignored: wieght",
    ),
    "several labels": Case(
        both("name,tags,age\nann,red|blue,1\nbob,|,2\ncid,,3\n", "source,target\nann,bob\nbob,cid\n"),
        "nodes.csv: id = name, labels = tags, 1 feature",
        {"age": "int64"},
        columns={"labels": "tags"},
        y=(),
    ),
}  # fmt: skip
