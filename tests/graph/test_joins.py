"""Edges of one table: by values that rows share, by order, and to the nearest rows."""

import numpy as np
import pyarrow as pa
import pytest

from lignn.errors import ConfigError, InputError
from lignn.graph import nearest
from lignn.graph.joins import joined, shared
from lignn.graph.links import Links

SHOPS = pa.table(
    {
        "card": ["a", "b", "a", None, "a", "b", "z"],
        "shop": ["s"] * 7,
        "day": [3, 1, 2, 1, 9, 5, 4],
    }
)


def pairs(found, kind):
    """The edges of a type in one direction, sorted."""
    here = found.edges[:, found.kinds == kind]
    return sorted((a, b) for a, b in here.T.tolist() if a < b)


def test_rows_that_share_a_value_are_joined_through_it():
    found = joined(SHOPS, Links(("card",)))
    assert found.values == ("a", "b")
    assert pairs(found, 0) == [(0, 7), (1, 8), (2, 7), (4, 7), (5, 8)]
    assert found.notes == ("card: 2 values join 5 of 7 rows; 1 rows have none; 1 have one of their own",)


def test_every_edge_is_there_both_ways():
    found = joined(SHOPS, Links(("card",), 0, "day"))
    typed = [*zip(*found.edges.tolist(), found.kinds.tolist(), strict=True)]
    assert len(set(typed)) == len(typed)
    assert {(b, a, k) for a, b, k in typed} == set(typed)


def test_a_value_that_nearly_all_rows_share_joins_nothing():
    found = shared(pa.chunked_array([["s"] * 19 + ["t"]]), "shop")
    assert (found.code.max(), found.values) == (-1, ())
    assert "'s', which 19 rows share, joins nothing" in found.note
    assert shared(pa.chunked_array([["s"] * 18 + ["t"] * 2]), "shop").values == ("s", "t")


def test_edges_are_linear_in_rows():
    n = 5000
    found = joined(pa.table({"one": ["x"] * (n // 2) + ["y"] * (n // 2)}), Links(("one",)))
    assert found.edges.shape[1] == 2 * n


def test_an_order_joins_the_two_rows_before_and_after_that_have_the_same_value():
    found = joined(SHOPS, Links(("card",), 0, "day"))
    # of card a: days 2 (row 2), 3 (row 0), 9 (row 4); of card b: days 1 (row 1), 5 (row 5)
    assert pairs(found, 1) == [(0, 2), (0, 4), (1, 5), (2, 4)]
    assert Links(("card",), 0, "day").types == ("card", "card by day")


def test_an_order_alone_joins_all_rows_and_skips_gaps():
    found = joined(pa.table({"day": [4, None, 1, 2, 3]}), Links((), 0, "day"))
    assert pairs(found, 0) == [(0, 3), (0, 4), (2, 3), (2, 4), (3, 4)]


def test_values_of_any_type_join_rows():
    for values in ([1, 2, 1], [1.5, None, 1.5], [True, False, True], [" a", "b", "a "]):
        found = shared(pa.chunked_array([values]), "v")
        assert found.code[0] == found.code[2] == 0
        assert found.code[1] == -1
    with pytest.raises(InputError, match="--link v: values of the type list<item: int64> cannot join rows"):
        shared(pa.chunked_array([[[1], [2]]]), "v")


def test_nearest_rows_are_the_nearest_of_all():
    x = np.random.default_rng(0).normal(size=(60, 3))
    table = pa.table({f"x{i}": x[:, i] for i in range(3)})
    scaled = (x - x.mean(0)) / x.std(0)
    distance = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    expected = {tuple(sorted((i, j))) for i in range(60) for j in np.argsort(distance[i])[:4].tolist()}
    assert set(zip(*nearest.pairs(table, 4, "table").tolist(), strict=True)) == expected


def test_equal_rows_are_joined_to_others_not_to_themselves():
    found = nearest.pairs(pa.table({"x": [1.0] * 30 + [2.0] * 3}), 2, "table")
    assert (found[0] < found[1]).all()
    assert set(range(33)) == set(found.ravel().tolist())


def test_too_many_rows_for_nearest_ones(monkeypatch):
    monkeypatch.setattr(nearest, "LARGEST", 5)
    with pytest.raises(
        InputError, match=r"--link nearest: big has 6 rows, and nearest rows are searched among at most 5"
    ):
        nearest.pairs(pa.table({"x": range(6)}), 2, "big")


def test_rules_are_said_in_words_and_kept():
    rules = Links.of(["card", "nearest:3", "card", "shop"], "day")
    assert rules == Links(("card", "shop"), 3, "day")
    assert Links.of("nearest").nearest == 10
    assert Links.restored({"columns": ["card", "shop"], "nearest": 3, "order": "day"}) == rules
    for wrong in ("nearest:0", "nearest:", "nearest:x"):
        with pytest.raises(ConfigError, match=f"--link {wrong}: a number of nearest rows above 0 is needed"):
            Links.of([wrong])
