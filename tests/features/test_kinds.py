"""What the columns of a table are."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from lignn.errors import InputError
from lignn.features import describe
from lignn.features.kinds import scaling_of
from tests.features.small import N, messy


def only(values, type_=None):
    (column,) = describe(pa.table({"a": pa.array(values, type_)}))
    return column


def test_a_table_as_people_have_it():
    found = {column.name: column for column in describe(messy())}
    assert {name: column.kind for name, column in found.items()} == {
        "age": "number",
        "income": "number",
        "account": "id",
        "active": "boolean",
        "country": "category",
        "joined": "date",
        "seen": "date",
        "note": "text",
        "name": "id",
        "currency": "constant",
        "age again": "duplicate",
        "nothing": "constant",
        "tags": "other",
    }
    treatments = {
        "age": "scaled, 12 missing → the mean, with an indicator",
        "income": "scaled by quantiles (heavy tail)",
        "active": "0/1, 20 missing → 0, with an indicator",
        "country": "one-hot, values in fewer than 5 rows together, 3 missing are a value",
        "joined": "age in days, scaled; month as a cycle; weekday as a cycle",
        "seen": "age in days, scaled; month as a cycle; weekday as a cycle; hour as a cycle",
        "note": "hashed TF-IDF of words and of character n-grams",
        "name": "ignored: an id, every row has another value",
        "currency": "ignored: all rows have the same value",
        "age again": "ignored: the same as 'age'",
        "nothing": "ignored: it is empty",
        "tags": "ignored: its type is list<item: int64>, not numbers, dates or texts",
    }
    assert {name: found[name].treatment for name in treatments} == treatments
    assert (found["country"].missing, found["country"].distinct) == (3, 5)
    assert found["active"].summary == "40 true, 60 false"
    assert found["name"].summary == "'user0', 'user1', 'user2'"
    ages = [age for age in messy()["age"].to_pylist() if age is not None]
    assert found["age"].summary == f"{min(ages)} … {max(ages)}"
    assert (found["age"].missing, found["age"].distinct) == (N - len(ages), len(set(ages)))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (range(50), "number"),
        ([1, 2] * 10, "number"),
        ([10**16 + i for i in range(50)], "id"),
        ([10**16 + i % 25 for i in range(50)], "number"),
        ([10**16 + i + 0.5 for i in range(0, 10**5, 10**4)], "id"),  # a float of this size is whole
        ([10**11 + i / 2 for i in range(50)], "number"),
        ([None] * 45 + [10**16 + i for i in range(5)], "number"),
        ([f"v{i}" for i in range(50)], "id"),
        ([f"v{i}" for i in range(3)], "id"),
        ([f"v{i % 20}" for i in range(50)], "category"),
        ([f"v{i % 21}" for i in range(50)], "text"),
        ([f"v{i % 21}" for i in range(210)], "category"),
        ([f"{i} is a sentence" for i in range(50)], "text"),
        ([None] * 10 + ["x"], "category"),
        ([None, 1.0, float("nan")], "number"),
        ([float("nan")] * 3, "constant"),
        ([True, True], "constant"),
        ([True, None], "boolean"),
    ],
)
def test_rules(values, kind):
    assert only(list(values)).kind == kind


def test_dictionaries_are_categories():
    column = pa.array(["a", "b"] * 3).dictionary_encode()
    assert [c.kind for c in describe(pa.table({"a": column, "b": pa.array([4, 5, 6] * 2).dictionary_encode()}))] == [
        "category"
    ] * 2
    assert only([1, 2, None, 2], pa.decimal128(5, 2)).kind == "number"
    assert only([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None, dt.datetime(2021, 1, 1, tzinfo=dt.UTC)]).kind == "date"


def test_not_a_number_is_missing():
    column = only([1.0, float("nan"), None, 2.0])
    assert (column.missing, column.distinct) == (2, 2)


def test_statistics_are_those_of_numpy():
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(40, 31)) * 3)
    rows[rng.random(rows.shape) < 0.3] = np.nan
    columns = describe(pa.table({str(i): row for i, row in enumerate(rows)}))
    for row, column in zip(rows, columns, strict=True):
        known = row[~np.isnan(row)]
        assert (column.missing, column.distinct) == (31 - len(known), len(np.unique(known)))
        assert column.summary == f"{known.min():.6g} … {known.max():.6g}"


def test_heavy_tails():
    even = np.linspace(0, 1, 101)
    assert scaling_of(np.stack([even, np.where(even == 1, 5.4, even), np.where(even == 1, 5.6, even)])) == [
        "standard",
        "standard",
        "quantiles",
    ]  # median 0.5, interquartile range 0.5
    # equal quartiles: one in 110 is 10.5 standard deviations from the median, one in 90 is 9.5
    assert scaling_of((np.arange(110) == 0).astype(float)[None]) == ["quantiles"]
    assert scaling_of((np.arange(90) == 0).astype(float)[None]) == ["standard"]
    assert scaling_of(np.array([[0.0, 1e101, 2e101, 3e101]])) == ["quantiles"]
    assert scaling_of(np.full((1, 3), np.nan)) == ["standard"]


def test_parts_of_dates_that_vary():
    days = [dt.date(2020, 1, 6) + dt.timedelta(weeks=i) for i in range(3)]
    assert only(days).parts == ()  # Mondays in January
    assert only([dt.date(2020, 1, 6), dt.date(2020, 1, 7), None]).parts == ("weekday",)
    assert only([dt.datetime(2020, 1, 6, 5), dt.datetime(2020, 1, 6, 6)]).parts == ("hour",)


def test_infinite_numbers_are_told_by_column():
    rows = [1.0, float("inf"), 2.0, float("-inf"), float("inf")]
    with pytest.raises(InputError, match=r"table: column 'a' \(number\): 'inf' in row 1 and '-inf' in row 3 each is"):
        only(rows)
