"""Columns that `inspect` proposes to link: texts and keys whose values repeat, whatever the labels are."""

import numpy as np
import pyarrow as pa
import pytest

from lignn import Graph
from lignn.evaluation.proposed_links import proposed

ROWS = 200


def table(**more):
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "label": ["yes", "no"] * (ROWS // 2),
            "card": [f"c{i}" for i in rng.integers(0, 40, ROWS)],
            "shop_id": rng.integers(0, 30, ROWS),
            "age": rng.integers(18, 80, ROWS),
            "amount": rng.normal(size=ROWS),
            "kind": ["online", "in person", "in person", "online"] * (ROWS // 4),
            "receipt": [f"r{i}" for i in range(ROWS)],
            "seconds": range(ROWS),
            "time": rng.integers(0, 50, ROWS),
        }
        | more
    )


def test_texts_and_keys_that_repeat_are_proposed():
    found = proposed(Graph.from_table(table()))
    cards, shops = (np.unique(table()[name].to_numpy(), return_counts=True)[1] for name in ("card", "shop_id"))
    assert [(column.name, column.values, column.rows) for column in found.columns] == [
        ("card", (cards > 1).sum(), cards[cards > 1].sum()),
        ("shop_id", (shops > 1).sum(), shops[shops > 1].sum()),
    ]
    assert found.order == "time"
    assert found.command(["my table.csv"]) == (
        "lignn fit 'my table.csv' --link card --link shop_id --order time -o model"
    )


@pytest.mark.parametrize(
    ("cells", "rows"),
    [([""] * 101 + [f"c{i}" for i in range(33)] * 3, None), ([""] * 100 + [f"c{i % 25}" for i in range(100)], 100)],
    ids=["too few", "half"],
)
def test_a_column_must_join_half_of_the_rows(cells, rows):
    given = table(card=cells, shop_id=[0] * ROWS)
    found = proposed(Graph.from_table(given))
    assert (None if found is None else [column.rows for column in found.columns]) == (None if rows is None else [rows])


def test_labels_have_no_part():
    flipped = table(label=["no", "yes"] * (ROWS // 2))
    unknown = table(label=["", *["yes", "no"] * (ROWS // 2 - 1), ""])
    first, *others = (proposed(Graph.from_table(each)) for each in (table(), flipped, unknown))
    assert others == [first, first]


def test_nothing_is_proposed_where_values_join_rows_already():
    assert proposed(Graph.from_table(table(), links=["card"])) is None
    assert proposed(Graph.from_table(table(), order="seconds")).order is None
    assert proposed(Graph([[0], [1]])) is None
