"""Columns of a graph's table as features, wherever a classifier meets rows."""

import datetime as dt
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.preprocessing import StandardScaler

import lignn
from lignn import NodeClassifier
from lignn.classifier.spec import Spec
from lignn.errors import ConfigError, DataWarning, InputError
from lignn.features import Preparation
from tests.classifier.small import fitted, small_graph, small_split

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
NEW = {"height": 1.5, "colour": "never seen", "since": dt.date(2022, 2, 2), "name": "new"}


@cache
def table():
    graph, rng = small_graph(), np.random.default_rng(0)
    y = graph.y.numpy()
    return pa.table(
        {
            "height": pa.array([None if i % 9 == 0 else float(v) for i, v in enumerate(graph.x[:, 0])]),
            "colour": pa.array([["red", "green", "blue"][(c + (rng.random() < 0.3)) % 3] for c in y]),
            "since": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 700, len(y))]),
            "name": [f"person {i}" for i in range(len(y))],
            "same": [5] * len(y),
        }
    )


def tabular(**changes):
    return small_graph().replace(**({"x": None, "table": table(), "name": "people"} | changes))


def weights(classifier):
    return [value.numpy().tobytes() for value in classifier.method_.state_dict().values()]


def with_rows(nodes, **values):
    """The table with other values at some nodes."""
    changed = table()
    for name, value in values.items():
        column = changed[name].to_pylist()
        for node in nodes:
            column[node] = value
        changed = changed.set_column(changed.column_names.index(name), name, pa.array(column, changed[name].type))
    return changed


def test_a_table_is_the_same_as_its_prepared_features():
    one = fitted(graph=tabular(), max_epochs=3)
    x = Preparation.fit(table()).transform(table())
    other = fitted(graph=small_graph().replace(x=x), max_epochs=3, features="raw")
    assert weights(one) == weights(other)
    assert np.array_equal(one.predict_proba(), other.predict_proba())
    assert one.graph_.table is table()
    assert one.graph_.x is None
    assert one.n_features_in_ == x.shape[1]
    assert [column.name for column in one.features_ if not column.used] == ["name", "same"]
    assert other.features_ == ()


def test_features_without_a_table_are_taken_as_they_are():
    one, other = (fitted(max_epochs=3, features=choice) for choice in ("auto", "raw"))
    assert weights(one) == weights(other)
    assert torch.equal(one._fitted.prediction.problem.x, small_graph().x)


def test_of_both_the_choice_takes_one():
    both = tabular(x=small_graph().x)
    auto, raw = (fitted(graph=both, max_epochs=2, features=choice) for choice in ("auto", "raw"))
    assert weights(auto) == weights(fitted(graph=tabular(), max_epochs=2))
    assert weights(raw) == weights(fitted(max_epochs=2))
    for classifier in (auto, raw):
        assert np.array_equal(classifier.predict_proba(both), classifier.predict_proba())


def test_raw_is_the_papers_preset_and_refuses_columns():
    shown = r"'height' \(10 missing\), 'colour' \(category\), 'since' \(date\)"
    told = f"features='raw' needs features as numbers, which {shown}"
    with pytest.raises(InputError, match=f"people: {told} and 1 more cannot be; leave it out, or give 'auto'"):
        NodeClassifier(preset="paper").fit(tabular())
    with pytest.raises(ConfigError, match="features 'rwa' is unknown"):
        NodeClassifier(features="rwa").fit(tabular())
    with pytest.raises(ConfigError, match="features: 'auto', 'raw' or a fitted transformer is needed, got 3"):
        NodeClassifier(features=3).fit(tabular())


def test_columns_that_are_all_ignored_are_no_features():
    graph = tabular(table=table().select(["name", "same"]))
    with pytest.raises(InputError, match="people has no features, which method 'backbone' needs"):
        NodeClassifier("backbone").fit(graph)
    assert fitted(graph=graph, max_epochs=2).n_features_in_ == 0


def test_inductive_features_are_learned_from_training_nodes_only():
    split = small_split()
    test, val = (part.nonzero().flatten().tolist() for part in (split.test, split.val))
    rows = {"height": 1e6, "colour": "else", "since": dt.date(1950, 1, 1)}
    changed = tabular(table=with_rows(test, **rows))
    one, other = (fitted(graph=g, split=split, inductive=True, max_epochs=3) for g in (tabular(), changed))
    losses = [[epoch["loss"] for epoch in classifier.history_.epochs] for classifier in (one, other)]
    assert (
        losses[0] == losses[1]
    )  # the best epoch may be another one: validation nodes have neighbours in the test part
    assert weights(fitted(graph=tabular(), inductive=True, max_epochs=1)) == weights(
        fitted(graph=changed, inductive=True, max_epochs=1)
    )
    assert one.features_ == other.features_
    assert repr(one._fitted.preparation.state()) == repr(other._fitted.preparation.state())
    third = fitted(graph=tabular(table=with_rows(val, **rows)), split=split, inductive=True, max_epochs=3)
    assert repr(third._fitted.preparation.state()) == repr(one._fitted.preparation.state())
    transductive = [fitted(graph=g, split=split, max_epochs=3) for g in (tabular(), changed)]
    assert transductive[0].features_ != transductive[1].features_


@pytest.mark.parametrize("inductive", [False, True])
def test_labels_do_not_influence_features(inductive):
    graph, split = tabular(), small_split()
    flipped = graph.replace(y=torch.where(split.train, graph.y, (graph.y + 1) % 3))
    one, other = (fitted(graph=g, split=split, inductive=inductive, max_epochs=2) for g in (graph, flipped))
    assert torch.equal(one._fitted.prediction.problem.x, other._fitted.prediction.problem.x)
    assert repr(one._fitted.preparation.state()) == repr(other._fitted.preparation.state())


def test_other_graphs_in_another_order_and_with_unseen_values():
    classifier = fitted(graph=tabular(), max_epochs=3)
    other = tabular(table=with_rows([0, 1], colour="never seen", height=None), y=None)
    expected = classifier.predict_proba(other)
    mixed = other.replace(table=other.table.select(["since", "colour", "height"]))
    assert np.array_equal(classifier.predict_proba(mixed), expected)
    named = classifier.predict_proba(tabular(y=None, table=table().select(["height", "colour", "since"])))
    assert np.array_equal(named, classifier.predict_proba(tabular(y=None)))
    with pytest.warns(DataWarning, match="people: no columns 'colour', 'since', which the model was trained with"):
        heights = classifier.predict_proba(tabular(y=None, table=table().select(["height"])))
    x = np.nan_to_num(table()["height"].to_numpy())[:, None]
    plain = tabular(y=None, table=None, x=x, feature_names=["height"])
    with pytest.warns(DataWarning, match="no columns 'colour', 'since'"):
        assert not np.array_equal(classifier.predict_proba(plain), heights)
    with pytest.raises(InputError, match="people has features without names, the model was trained on a table"):
        classifier.predict(plain.replace(feature_names=None))
    with pytest.raises(InputError, match="people has no features, the model was trained on a table"):
        classifier.predict(tabular(y=None, table=None))
    texts = table().set_column(0, "height", pa.array(["1", "2"] + ["tall"] * 88))
    told = (
        r"people: column 'height' \(number\): 'tall' in row 2 and 'tall' in row 3 each is not a number \(88 such rows\)"
    )
    with pytest.raises(InputError, match=told):
        classifier.predict(tabular(table=texts))


def test_which_graph_is_the_fitted_one_is_a_matter_of_its_table_too():
    classifier = fitted(graph=tabular(), max_epochs=2)
    assert np.array_equal(classifier.predict_proba(tabular(name="copy")), classifier.predict_proba())
    turned = tabular(table=table().select(table().column_names[::-1]))
    assert np.array_equal(classifier.predict_proba(turned), classifier.predict_proba())
    ignored = tabular(table=with_rows([0], name="other"))
    assert classifier.decision(ignored).known.sum() == 90  # another graph: all of its labels are inputs
    assert classifier.decision().known.sum() < 90


def test_new_rows_join_the_table():
    classifier = fitted(graph=tabular(), max_epochs=3, tol=1e-12, max_steps=3000)
    known = classifier._fitted.prediction.problem.labels
    edges = [[f"node{i}" for i in (0, 3)], ["new"] * 2]
    found = classifier.add_nodes([NEW], edges, ["new"])
    assert classifier.graph_.table.num_rows == 91
    assert classifier.graph_.table.to_pylist()[90] == NEW | {"same": None}
    y = torch.cat([torch.where(known.mask, known.onehot.argmax(1), -1), torch.tensor([-1])])
    whole = classifier.graph_.replace(y=y, name="whole", edge_index=classifier.graph_.edge_index.flip(1))
    np.testing.assert_allclose(found.probabilities, classifier.predict_proba(whole)[90:], atol=1e-8)
    classifier.update_labels({"new": 1})
    classifier.update_labels({"node1": 1}, epochs=1)
    assert classifier.explain("new").id == "new"


def test_new_rows_that_do_not_fit():
    classifier = fitted(graph=tabular(), max_epochs=2)
    before, edges = classifier._fitted, [["node0"], ["new"]]
    with pytest.raises(InputError, match=r"new nodes: column 'height' \(number\): 'tall' in row 0 is not a number"):
        classifier.add_nodes([NEW | {"height": "tall"}], edges, ["new"])
    with pytest.raises(InputError, match="rows of named columns are needed"):
        classifier.add_nodes(np.zeros((1, 5)), edges, ["new"])
    assert classifier._fitted is before
    with pytest.warns(DataWarning) as told:
        classifier.add_nodes({"height": [2], "colour": ["red"], "size": [1]}, edges, ["new"])
    assert [str(warning.message) for warning in told] == [
        "new nodes: no column 'since', which the model was trained with; the values count as missing",
        "new nodes: ignored column 'size'; the model was trained without",
    ]


def test_saved_and_loaded_it_prepares_the_same(tmp_path):
    classifier = fitted(graph=tabular(), max_epochs=3)
    classifier.save(tmp_path / "m")
    loaded = lignn.load(tmp_path / "m")
    assert loaded.features_ == classifier.features_
    assert loaded.graph_.table.equals(table())
    other = tabular(table=with_rows([3, 4], height=7.0, colour="else"), y=None)
    for each in (None, other):
        assert np.array_equal(loaded.predict_proba(each), classifier.predict_proba(each))
    found = [c.add_nodes([NEW], [["node0"], ["new"]], ["new"]).probabilities for c in (loaded, classifier)]
    assert np.array_equal(*found)
    loaded.save(tmp_path / "m")
    assert np.array_equal(lignn.load(tmp_path / "m").predict_proba(), classifier.predict_proba())


def test_a_transformer_of_ones_own_comes_back_by_load(tmp_path):
    scaler = StandardScaler().fit(small_graph().x.numpy())
    classifier = fitted(max_epochs=3, features=scaler)
    expected = scaler.transform(small_graph().x.numpy()).astype(np.float32)
    assert np.array_equal(classifier._fitted.prediction.problem.x, expected)
    assert classifier.features_ == ()
    classifier.save(tmp_path / "m")
    with pytest.raises(InputError, match=r"made with a features of your own; give load\(…, features=…\)"):
        lignn.load(tmp_path / "m")
    loaded = lignn.load(tmp_path / "m", features=scaler)
    new = small_graph().x[:1].numpy() + 1
    found = [c.add_nodes(new, [["node0"], ["new"]], ["new"]).probabilities for c in (loaded, classifier)]
    assert np.array_equal(*found)
    assert np.array_equal(classifier.graph_.x[90:], new)
    with pytest.raises(ConfigError, match="features: StandardScaler is not fitted"):
        fitted(max_epochs=1, features=StandardScaler())


def test_a_checkpoint_knows_the_table_and_the_choice_of_features():
    split = small_split()

    def identity(graph, **parameters):
        return Spec.resolve(parameters).identity(graph, split)

    graph = tabular()
    assert identity(graph) == identity(tabular(), features="auto")
    assert identity(graph) != identity(tabular(table=with_rows([0], name="other")))
    x = small_graph().x
    assert identity(tabular(x=x)) != identity(tabular(x=x), features="raw")
    one, other = (StandardScaler(with_mean=mean).fit(x.numpy()) for mean in (True, False))
    assert identity(small_graph(), features=one) != identity(small_graph(), features=other)


def test_a_table_that_can_be_read_needs_no_warning(recwarn):
    fitted(graph=tabular(), max_epochs=1).predict(tabular(y=None))
    assert not [warning for warning in recwarn if issubclass(warning.category, DataWarning)]
