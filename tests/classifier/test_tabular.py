"""Tables without a graph: scikit-learn's own checks, and numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks

from lignn import TabularClassifier
from lignn.errors import DataWarning, InputError

EXCEPTIONS = {
    "check_classifiers_classes": "it ends with the classes -1 and 1, and -1 is unlabelled here, as in LabelSpreading, "
    "which scikit-learn leaves out of this part by its name",
}


@parametrize_with_checks([TabularClassifier(n_neighbors=5)], expected_failed_checks=lambda _: EXCEPTIONS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def half_labelled_digits(labels=100, seed=0):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    table, new = order[:600], order[600:900]
    known = np.where(np.arange(600) < labels, y[table], -1)
    return X[table], known, y[table], X[new], y[new]


def test_is_as_good_as_label_spreading_on_rows_of_the_table_and_new_ones():
    X, known, y, X_new, y_new = half_labelled_digits()
    ours = TabularClassifier(n_neighbors=7).fit(X, known)
    theirs = LabelSpreading(kernel="knn", n_neighbors=7, max_iter=200).fit(X, known)
    assert np.mean(ours.transduction_ == y) > np.mean(theirs.transduction_ == y) - 0.01
    assert ours.score(X_new, y_new) > theirs.score(X_new, y_new) - 0.01


def test_known_rows_keep_their_label():
    X, known, *_ = half_labelled_digits()
    ours = TabularClassifier(n_neighbors=7).fit(X, known)
    assert np.array_equal(ours.transduction_[known >= 0], known[known >= 0])


def test_an_answer_does_not_depend_on_what_else_is_asked():
    X, known, _, X_new, _ = half_labelled_digits()
    ours = TabularClassifier(n_neighbors=7).fit(X, known)
    together = ours.predict_proba(X_new[:12])
    alone = np.concatenate([ours.predict_proba(row[None]) for row in X_new[:12]])
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_any_method_of_the_family():
    X, known, _, X_new, y_new = half_labelled_digits()
    ours = TabularClassifier(7, "lignn", options={"max_epochs": 30}).fit(X, known)
    assert ours.score(X_new, y_new) > 0.8
    assert ours.node_classifier_.n_iter_ == ours.n_iter_ <= 30


@pytest.mark.parametrize(("method", "options"), [("label_input", {}), ("label_reuse", {"iterations": 2})])
def test_new_rows_get_as_many_passes_as_the_table(method, options):
    X = np.random.default_rng(0).normal(size=(40, 2)) + 3 * (np.arange(40) % 2)[:, None]
    known = np.where(np.arange(40) < 20, np.arange(40) % 2, -1)
    ours = TabularClassifier(3, method, missing=[-1], options={"max_epochs": 5, "method_options": options}).fit(
        X, known
    )
    passes, step = [], ours.node_classifier_.method_.step
    bind = step.bind

    def counted(problem):
        bound = bind(problem)
        return lambda state: passes.append(1) or bound(state)

    step.bind = counted
    ours.predict_proba(X[:2] + 0.1)
    assert len(passes) == 1 + options.get("iterations", 0)


def test_text_labels():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    ours = TabularClassifier(n_neighbors=1).fit(X, np.array(["a", -1, "b", -1], dtype=object))
    assert ours.predict([[0.05], [5.2]]).tolist() == ["a", "b"]
    assert ours.transduction_.tolist() == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([-1, -1, -1, -1], {"missing": [-1]}, "at least two classes"),
        ([1, 1, -1, -1], {"missing": [-1]}, "at least two classes"),
        ([0, 1, 0, 1], {"n_neighbors": 0}, "n_neighbors: at least 1"),
        ([0, 1, 0, 1], {"options": {"lrr": 1}}, "did you mean 'lr'"),
    ],
)
def test_bad_input_is_one_sentence(y, options, message):
    with pytest.raises(InputError, match=message):
        TabularClassifier(**options).fit(np.arange(8.0).reshape(4, 2), y)


@pytest.mark.parametrize("mark", [None, np.nan, pd.NA, "", "-1", "NA", -1])
def test_any_usual_mark_is_unknown(mark):
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    ours = TabularClassifier(n_neighbors=1).fit(X, np.array(["a", mark, "b", mark], dtype=object))
    assert ours.classes_.tolist() == ["a", "b"]
    assert ours.transduction_.tolist() == ["a", "a", "b", "b"]


def test_minus_one_is_a_class_where_another_mark_is_there_or_one_says_so():
    X = np.arange(12.0).reshape(6, 2)
    gaps = TabularClassifier(1).fit(X, np.array([-1, 0, 1, -1, None, np.nan], dtype=object))
    assert gaps.classes_.tolist() == [-1, 0, 1]
    assert TabularClassifier(1, missing=[]).fit(X, [-1, 0, 1, -1, 0, 1]).classes_.tolist() == [-1, 0, 1]
    with pytest.warns(DataWarning, match=r"y: -1 \(2 rows\) is read as unknown; give missing=\[\] if it is a class"):
        assert TabularClassifier(1).fit(X, [-1, 0, 1, -1, 0, 1]).classes_.tolist() == [0, 1]


def test_columns_of_very_different_size_are_scaled():
    X, y = load_wine(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    ours, by_hand, raw = [], [], []
    for seed in range(5):
        seen, new = train_test_split(np.arange(len(X)), test_size=0.5, random_state=seed, stratify=y)
        ours.append(TabularClassifier().fit(X[seen], y[seen]).score(X[new], y[new]))
        by_hand.append(KNeighborsClassifier(10).fit(scaled[seen], y[seen]).score(scaled[new], y[new]))
        raw.append(KNeighborsClassifier(10).fit(X[seen], y[seen]).score(X[new], y[new]))
    assert np.mean(ours) >= np.mean(by_hand) - 0.01
    assert np.mean(ours) > np.mean(raw) + 0.2


def test_a_mixed_frame_scores_as_the_same_frame_made_numbers_by_hand():
    rng = np.random.default_rng(0)
    n = 300
    y = rng.integers(0, 2, n)
    paid = 1000 + 800 * y + rng.normal(0, 300, n)
    frame = pd.DataFrame(
        {
            "paid": [f"{value:,.2f}" for value in paid],
            "age": np.where(rng.random(n) < 0.1, np.nan, 40 + rng.normal(0, 10, n)),
            "city": np.where(rng.random(n) < 0.8, np.array(["Bonn", "Kiel"])[y], "Ulm"),
        }
    )
    frame.loc[3, "city"] = None
    given = np.where(np.arange(n) < 100, np.array(["no", "yes"], object)[y], None)
    ours = TabularClassifier().fit(frame, given)
    by_hand = frame.assign(paid=paid)
    cleaned = TabularClassifier().fit(by_hand, given)
    truth = np.array(["no", "yes"])[y][100:]
    assert abs(np.mean(ours.transduction_[100:] == truth) - np.mean(cleaned.transduction_[100:] == truth)) <= 0.01
    assert np.mean(ours.transduction_[100:] == truth) > 0.85
    assert set(ours.predict(frame.iloc[:5])) <= {"no", "yes"}
    assert ours.feature_names_in_.tolist() == ["paid", "age", "city"]
