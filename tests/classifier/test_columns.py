"""Features are matched by name, where both graphs have names."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import lignn
from lignn import Graph
from lignn.errors import InputError
from tests.classifier.small import fitted, small_graph

NAMES = tuple("uvwxyz")
ORDER = [3, 0, 5, 1, 4, 2]
OTHERS = tuple(NAMES[i] for i in ORDER)


def named():
    return small_graph().replace(feature_names=NAMES)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_in_another_order_are_put_in_the_models(tmp_path, sparse):
    fitted(graph=named(), max_epochs=2).save(tmp_path / "m")
    classifier = lignn.load(tmp_path / "m")
    assert classifier.graph_.feature_names == NAMES
    x = named().x[:, ORDER]
    other = named().replace(x=sp.csr_array(x.numpy()) if sparse else x, feature_names=OTHERS)
    np.testing.assert_allclose(classifier.predict_proba(other), classifier.predict_proba(named()), rtol=1e-10)
    assert classifier.score("test", other) == classifier.score("test", named())
    mixed_up = classifier.predict_proba(other.replace(feature_names=None))
    assert not np.allclose(mixed_up, classifier.predict_proba(named()), rtol=1e-2)


def test_other_names_are_refused_by_the_first():
    classifier = fitted("lpa", graph=named())
    with pytest.raises(
        InputError, match="small: 'v', a feature of the model, is missing, and 'b' is no feature of the"
    ):
        classifier.predict(named().replace(feature_names="ubcxyz"))
    with pytest.raises(InputError, match="small: 'z', a feature of the model, is missing; the columns"):
        classifier.predict(named().replace(x=named().x[:, :5], feature_names="uvwxy"))


def test_a_graph_without_names_is_taken_by_the_number_of_features():
    unnamed, one = small_graph(), fitted("lpa", graph=named())
    assert np.array_equal(one.predict(unnamed), fitted("lpa", graph=unnamed).predict(named()))
    with pytest.raises(InputError, match="5 features a node, the model was trained with 6"):
        one.predict(unnamed.replace(x=unnamed.x[:, :5]))


def test_new_nodes_as_a_data_frame():
    pandas = pytest.importorskip("pandas")
    new = np.arange(12.0).reshape(2, 6)
    one, other = (fitted("lignn", graph=named(), max_epochs=2) for _ in range(2))
    plain = one.add_nodes(new, [[0, 1], [90, 91]], ["p", "q"])
    frame = other.add_nodes(pandas.DataFrame(new[:, ORDER], columns=OTHERS), [[0, 1], [90, 91]], ["p", "q"])
    assert np.array_equal(plain.probabilities, frame.probabilities)
    assert other.graph_.feature_names == NAMES
    with pytest.raises(InputError, match="features: 'u', a feature of the model, is missing, and 'U' is no"):
        other.add_nodes(pandas.DataFrame(new, columns=list("Uvwxyz")), [[0, 1], [92, 93]], ["r", "s"])


def test_names_stay_with_the_features():
    graph = Graph([[0], [1]], x=np.eye(2), feature_names=["a", "b"])
    assert graph.to_undirected().feature_names == ("a", "b")
    assert graph.replace(x=torch.ones(2, 2)).feature_names == ("a", "b")
    assert graph.replace(x=torch.ones(2, 3)).feature_names is None
    assert graph.replace(x=None, num_nodes=2).feature_names is None
