"""Features from columns: scikit-learn's numbers, for any rows, and the same after saving."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

from lignn.errors import DataWarning, InputError
from lignn.features import Preparation, append, as_table
from lignn.features.groups import FARTHEST
from tests.features.small import N, messy


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def named(preparation, table):
    """The features by name."""
    return dict(zip(preparation.feature_names, dense(preparation.transform(table)).T, strict=True))


@pytest.fixture(scope="module")
def prepared():
    return Preparation.fit(messy())


def test_features_are_finite_single_precision_and_named(prepared):
    x = prepared.transform(messy())
    assert isinstance(x, sp.csr_array)
    assert x.dtype == np.float32
    assert x.shape == (N, len(prepared.feature_names))
    assert len(set(prepared.feature_names)) == x.shape[1]
    assert np.isfinite(x.data).all()
    plain = Preparation.fit(messy().drop_columns(["note"]))
    assert isinstance(plain.transform(messy().drop_columns(["note"])), np.ndarray)


def test_numbers_are_scaled_and_gaps_are_the_mean(prepared):
    found, ages = named(prepared, messy()), messy()["age"].to_numpy()
    expected = StandardScaler().fit_transform(ages[:, None])[:, 0]
    gaps = np.isnan(ages)
    np.testing.assert_allclose(found["age"], np.where(gaps, 0, expected), rtol=1e-6)
    assert np.array_equal(found["age: missing"], gaps)
    assert "income: missing" not in found


def test_heavy_tails_are_scaled_by_quantiles(prepared):
    income = messy()["income"].to_numpy()[:, None]
    ranks = QuantileTransformer(n_quantiles=N // 5).fit_transform(income)
    expected = StandardScaler().fit_transform(ranks)[:, 0]
    np.testing.assert_allclose(named(prepared, messy())["income"], expected, rtol=1e-6)


def test_booleans_and_categories(prepared):
    found = named(prepared, messy())
    active, country = (messy()[name].to_pylist() for name in ("active", "country"))
    assert found["active"].tolist() == [float(bool(value)) for value in active]
    assert found["active: missing"].tolist() == [float(value is None) for value in active]
    names = [name for name in found if name.startswith("country")]
    assert names == [f"country = {value}" for value in ("de", "fr", "it", "other values")]
    others = [float(value not in ("de", "fr", "it")) for value in country]  # xx, yy and three missing are rare
    assert found["country = other values"].tolist() == others
    assert found["country = de"].tolist() == [float(value == "de") for value in country]


def test_missing_is_a_category_if_it_is_frequent():
    table = pa.table({"a": ["x", None, "y", "x", None, "y"]})
    preparation = Preparation.fit(table)
    assert preparation.feature_names == ("a = x", "a = y", "a = missing")
    rows = pa.table({"a": [None, "z", "y"]})
    assert preparation.transform(rows).tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_dates_are_ages_and_cycles(prepared):
    found, joined, seen = named(prepared, messy()), messy()["joined"].to_pylist(), messy()["seen"].to_pylist()
    ages = -np.array([[(day - dt.date(1970, 1, 1)).days] for day in joined], dtype=float)
    np.testing.assert_allclose(found["joined"], StandardScaler().fit_transform(ages)[:, 0], atol=1e-6)
    for part, turn in {
        "month": [(day.month - 1) / 12 for day in joined],
        "weekday": [day.weekday() / 7 for day in joined],
    }.items():
        for axis, function in {"sin": np.sin, "cos": np.cos}.items():
            expected = function(2 * np.pi * np.array(turn))
            np.testing.assert_allclose(found[f"joined {part} {axis}"], expected, atol=1e-6)
    turn = np.array([(time.hour + time.minute / 60) / 24 for time in seen])
    np.testing.assert_allclose(found["seen hour sin"], np.sin(2 * np.pi * turn), atol=1e-6)
    assert "joined hour sin" not in found


def test_dates_before_1970_and_missing_ones():
    days = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), None]
    found = named(preparation := Preparation.fit(pa.table({"d": days})), pa.table({"d": days}))
    assert preparation.columns[0].parts == ("month", "weekday")
    np.testing.assert_allclose(found["d month sin"], [np.sin(2 * np.pi * 11 / 12), 0, 0], atol=1e-6)
    np.testing.assert_allclose(
        found["d weekday cos"], np.cos(2 * np.pi * np.array([2, 3, 0]) / 7) * [1, 1, 0], atol=1e-6
    )
    assert found["d"].tolist() == [1, -1, 0]
    assert found["d: missing"].tolist() == [0, 0, 1]


def test_texts_are_tfidf_of_hashed_words():
    texts = [f"{a} {b} tree {i}" for i, (a, b) in enumerate(zip(["red", "blue"] * 6, ["old"] * 12, strict=True))]
    preparation = Preparation.fit(pa.table({"t": texts}))
    x = preparation.transform(pa.table({"t": [*texts, None, "never seen"]}))
    width = x.shape[1] // 2
    words = x[:, :width].toarray()
    counts = (words[:12] != 0).astype(float)
    assert counts.sum(1).tolist() == [3 if i < 10 else 4 for i in range(12)]  # single digits are no words
    np.testing.assert_allclose(
        words[:12], TfidfTransformer(sublinear_tf=True).fit_transform(counts).toarray(), rtol=1e-5
    )
    np.testing.assert_allclose(np.linalg.norm(x[:12, width:].toarray(), axis=1), 1, rtol=1e-5)
    assert x[[12]].nnz == 0
    assert np.isfinite(x.data).all()


def test_many_columns_of_texts_share_the_width():
    texts = {str(k): [f"some words {i} {k}" for i in range(30)] for k in range(5)}
    assert Preparation.fit(pa.table(texts)).transform(pa.table(texts)).shape[1] == 5 * 2 * 512


def test_restored_it_transforms_to_the_bit(prepared):
    record, arrays = prepared.state()
    restored = Preparation.restored(json.loads(json.dumps(record)), {k: dict(v) for k, v in arrays.items()})
    assert restored.columns == prepared.columns
    assert restored.feature_names == prepared.feature_names
    other = append(messy(), messy(50, seed=1))
    for table in (messy(), other.slice(N)):
        one, two = prepared.transform(table), restored.transform(table)
        assert np.array_equal(one.indices, two.indices)
        assert one.data.tobytes() == two.data.tobytes()
    assert "xx" not in json.dumps(record["groups"])  # rare values are not needed


def test_rows_that_are_not_learned_from_influence_nothing():
    table, seen = messy(), np.arange(N) % 3 > 0
    other = {name: table[name].to_pylist() for name in table.column_names}
    for i in np.flatnonzero(~seen):
        changes = {"age": 10**6, "country": f"c{i}", "joined": dt.date(1900, 1, 1), "note": "unheard of", "income": 1e9}
        for name, value in changes.items():
            other[name][i] = value
    changed = pa.table(other, schema=table.schema)
    one, two = (Preparation.fit(each, seen) for each in (table, changed))
    assert one.columns == two.columns
    assert json.dumps(one.state()[0]) == json.dumps(two.state()[0])
    kept = table.filter(pa.array(seen))
    assert (one.transform(kept) != two.transform(kept)).nnz == 0
    assert Preparation.fit(changed).columns != one.columns


def test_order_of_rows_and_columns_does_not_matter(prepared):
    order = np.random.default_rng(3).permutation(N)
    shuffled = messy().take(order).select(messy().column_names[::-1])
    x = prepared.transform(messy())
    assert (prepared.transform(shuffled) != x[order]).nnz == 0


def test_missing_and_unknown_columns_are_warned_of(prepared):
    rows = messy().drop_columns(["age", "note", "name", "currency"]).append_column("more", pa.array([1] * N))
    with pytest.warns(DataWarning) as told:
        found = named(prepared, rows)
    assert sorted(str(warning.message) for warning in told) == [
        "rows: ignored column 'more'; the model was trained without",
        "rows: no columns 'age', 'note', which the model was trained with; the values count as missing",
    ]
    assert (found["age"] == 0).all()
    assert (found["age: missing"] == 1).all()
    with pytest.raises(InputError, match=r"rows: none of the model's columns is there; .* columns 'age', 'income'"):
        prepared.transform(pa.table({"name": ["x"]}))


def test_other_types_of_the_same_kind(prepared):
    types = {"age": pa.string(), "income": pa.float32(), "active": pa.string(), "joined": pa.string()}
    types |= {"country": pa.dictionary(pa.int8(), pa.string()), "seen": pa.timestamp("ns"), "note": pa.string()}
    rows = messy()
    for name, type_ in types.items():
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(type_))
    np.testing.assert_allclose(dense(prepared.transform(rows)), dense(prepared.transform(messy())), atol=1e-4)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("age", ["30", "n/a", "old", None, "?"], r"column 'age' \(number\): 'n/a' in row 1 and 'old' in row 2 each is "
         r"not a number \(3 such rows\); correct or empty them"),
        ("age", [1.0, float("inf")], r"column 'age' \(number\): 'inf' in row 1 is not finite"),
        ("joined", ["2020-01-01", "soon"], r"column 'joined' \(date\): 'soon' in row 1 is not a date; correct"),
        ("joined", [1, 2], r"column 'joined' holds dates in the model, here its type is int64; give dates"),
        ("active", ["true", "maybe"], r"column 'active' \(boolean\): 'maybe' in row 1 is not true or false; correct"),
        ("age", [dt.date(2020, 1, 1)], r"column 'age' holds numbers in the model, here its type is date32\[day\]"),
    ],
)  # fmt: skip
def test_faults_are_told_by_column(prepared, column, values, message):
    rows = messy().slice(0, len(values))
    rows = rows.set_column(rows.column_names.index(column), column, pa.array(values))
    with pytest.raises(InputError, match=f"new: {message}"):
        prepared.transform(rows, "new")


def test_numbers_of_new_rows_do_not_overflow(prepared):
    rows = messy().slice(0, 2).set_column(0, "age", pa.array([1e300, -1e300]))
    assert named(prepared, rows)["age"].tolist() == [FARTHEST, -FARTHEST]
    huge = pa.table({"a": [1e300, -1e300, 1e299, 0.0]})
    assert np.isfinite(Preparation.fit(huge).transform(huge)).all()


def test_no_column_that_could_be_a_feature():
    table = pa.table({"name": ["a", "b", "c"], "same": [1, 1, 1]})
    assert Preparation.fit(table).transform(table).shape == (3, 0)


def test_many_categories_are_sparse():
    table = pa.table({str(k): [f"v{(i * k) % 97}" for i in range(1000)] for k in range(1, 13)})
    x = Preparation.fit(table).transform(table)
    assert isinstance(x, sp.csr_array)
    assert x.shape[1] == 12 * 97
    assert (x.sum(1) == 12).all()


@pytest.mark.parametrize("columns", [2000])
def test_many_numbers_are_few_transformers(columns):
    table = pa.table({f"c{k}": row for k, row in enumerate(np.random.default_rng(0).normal(size=(columns, 20)))})
    preparation = Preparation.fit(table)
    assert len(preparation.groups) == 1
    np.testing.assert_allclose(preparation.transform(table).std(0), 1, rtol=1e-5)


def test_rows_in_other_forms():
    rows = [{"a": 1, "b": "x"}, {"b": "y", "c": 2.5}]
    table = as_table(rows)
    assert table.to_pylist() == [{"a": 1, "b": "x", "c": None}, {"a": None, "b": "y", "c": 2.5}]
    assert as_table({"a": [1, 2]}).to_pylist() == [{"a": 1}, {"a": 2}]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, None], "b": ["x", None]}, index=[7, 8])
    assert as_table(frame).to_pylist() == [{"a": 1.0, "b": "x"}, {"a": None, "b": None}]
    with pytest.raises(InputError, match=r"rows of named columns are needed .*, got ndarray"):
        as_table(np.zeros((2, 2)))
    with pytest.raises(InputError, match="cannot be read as columns of one type each"):
        as_table([{"a": 1}, {"a": "x"}])


def test_appended_rows_keep_the_type_that_can_hold_them():
    old = pa.table(
        {"i": [1, 2], "d": [dt.date(2020, 1, 1)] * 2, "c": pa.array(["a", "b"]).dictionary_encode(), "l": [[1], [2]]}
    )
    same = append(old, pa.table({"c": ["z"], "i": [3.0], "d": ["2020-01-02"], "more": [1]}))
    assert same.schema == old.schema
    assert same.to_pylist()[2] == {"i": 3, "d": dt.date(2020, 1, 2), "c": "z", "l": None}
    wider = append(old, pa.table({"i": [2.5], "d": [dt.datetime(2020, 1, 1, 6)]}))
    assert wider["i"].to_pylist() == [1.0, 2.0, 2.5]
    assert wider["d"].to_pylist()[2] == dt.datetime(2020, 1, 1, 6)


@pytest.mark.parametrize("num_values", [6, 60, 130])
def test_categories_are_those_of_scikit_learn(num_values):
    """Though the encoder is made again from the frequent values alone; there are at most 100 columns."""
    rng = np.random.default_rng(num_values)
    texts = [None if v == 1 else f"v{v}" for v in np.minimum(rng.geometric(3 / num_values, 3000), num_values)]
    new = [None, "v2", "never seen", f"v{num_values}"]
    oracle = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, max_categories=100)
    oracle.fit(np.array(texts, dtype=object)[:, None])
    table = pa.table({"a": texts, "b": [f"w{i % 4}" for i in range(3000)]})
    preparation = Preparation.fit(table)
    for values in (texts, new):
        rows = pa.table({"a": values, "b": ["w0"] * len(values)})
        expected = oracle.transform(np.array(values, dtype=object)[:, None]).toarray()
        assert np.array_equal(dense(preparation.transform(rows))[:, :-4], expected)
    assert len(preparation.feature_names) == min(len(set(texts)), 100) + 4
