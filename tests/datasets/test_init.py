import subprocess
import sys

import pytest

import lignn
from lignn.errors import DatasetError


def test_names_need_nothing_heavy() -> None:
    code = """
import sys, lignn.datasets
assert "chains-100" in lignn.datasets.names()
assert not {"torch", "numpy", "scipy", "torch_geometric", "numba", "ogb"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("chains-10", "num_class", "chains-10 has no option 'num_class'; did you mean 'num_classes'?"),
        ("chains-10", "length", "chains-10 has no option 'length'; choose from chains_per_class, "),
        ("cora", "raw", "cora has no option 'raw'; choose from raw_features"),
        ("weekday", "seed", "weekday has no option 'seed'; it has none"),
        ("chameleon", "graph", "chameleon has no option 'graph'; it has none"),
    ],
)
def test_unknown_options_are_refused_before_anything_is_read(name: str, option: str, message: str) -> None:
    with pytest.raises(DatasetError) as error:
        lignn.datasets.load(name, root="no such folder", **{option: 1})
    assert message in str(error.value)


def test_graphs_carry_the_name_they_were_asked_by() -> None:
    assert lignn.datasets.load("chains-3").name == "chains-3"
    assert lignn.datasets.load("karate").name == "karate"


@pytest.mark.data
def test_stored_graphs_carry_their_name(data_root) -> None:
    assert lignn.datasets.load("cora", root=data_root).name == "cora"
