"""What the pictures of the page say: colours, rings, directions, types; and their contrast."""

import pytest

pytest.importorskip("nicegui", reason="the page needs the extra lignn[serve]")

from lignn.serve.page import neighbourhood, pictures

CLASSES = ("red", "blue")


def record(node, label="red", confidence=1.0, given=None):
    return {"id": node, "label": label, "confidence": confidence, "given": given}


def around(*nodes, edges=(), undirected=False):
    return {"id": nodes[0]["id"], "nodes": list(nodes), "edges": list(edges), "undirected": undirected}


def series(what, **more):
    return neighbourhood.draw(what, CLASSES, why=more.pop("why", {}), **more)["series"][0]


def test_colour_is_the_class_and_faintness_the_confidence():
    sure, unsure, unknown = series(around(record("a"), record("b", confidence=0.0), record("c", None, None)))["data"]
    assert sure["itemStyle"]["color"] == pictures.colour(0)
    blue = int(pictures.colour(0)[1:3], 16)
    assert int(unsure["itemStyle"]["color"][1:3], 16) == round(0.25 * blue + 0.75 * 255)
    assert unknown["value"] == "no prediction"


def test_a_ring_has_the_colour_of_the_given_label():
    same, other = series(around(record("a", given="red"), record("b", given="blue")))["data"]
    for node, number in ((same, 0), (other, 1)):
        stops = node["itemStyle"]["color"]["colorStops"]
        assert stops[0]["color"] == pictures.colour(0)
        assert stops[2]["color"] == "#FFFFFF"
        assert stops[-1]["color"] == pictures.colour(number)


def test_edges_have_direction_and_type_and_pairs_are_drawn_once():
    edges = [{"source": "a", "target": "b", "type": "pays"}, {"source": "b", "target": "a", "type": "owns"}]
    nodes = record("a"), record("b")
    directed = series(around(*nodes, edges=edges), why={"b": 0.5})["links"]
    assert [(link["source"], link["target"], link["symbol"][1]) for link in directed[:2]] == [
        (0, 1, "arrow"),
        (1, 0, "arrow"),
    ]
    assert [link["lineStyle"]["type"] for link in directed] == ["solid", "dashed", "dashed"]
    assert directed[2]["value"] == "why: +0.500"
    assert neighbourhood.edge_types(around(*nodes, edges=edges)) == {"pays": "solid", "owns": "dashed"}
    plain = [{"source": "a", "target": "b"}, {"source": "b", "target": "a"}]
    assert len(series(around(*nodes, edges=plain, undirected=True))["links"]) == 1


@pytest.mark.parametrize(
    ("label", "given", "expected"),
    [("red", None, "red"), ("blue|red", None, "blue"), ("|", "red", "red"), (None, "blue", "blue"), (None, None, None)],
)
def test_the_class_that_gives_the_colour(label, given, expected):
    assert neighbourhood.class_of({"label": label, "given": given}, CLASSES) == expected


def test_classes_are_told_apart_by_colour_then_by_shape():
    looks = [(pictures.colour(i), pictures.symbol(i)) for i in range(48)]
    assert len(set(looks)) == 48
