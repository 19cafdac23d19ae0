import pytest

from lignn.datasets import catalogue
from lignn.errors import DatasetError


def test_names_are_unique_and_found() -> None:
    names = catalogue.names()
    assert len(names) == len(set(names)) == 30
    assert [catalogue.find(name).name for name in names] == names


@pytest.mark.parametrize("entry", catalogue.ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_has_its_functions(entry: catalogue.Entry) -> None:
    assert callable(entry.maker())
    if entry.is_stored:
        assert callable(entry.downloader())
    else:
        with pytest.raises(DatasetError, match="nothing to download"):
            entry.downloader()


def test_chains_take_any_length() -> None:
    entry = catalogue.find("chains-37")
    assert (entry.name, entry.arguments, entry.is_stored) == ("chains-37", (37,), False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("corra", "unknown dataset 'corra'; did you mean 'cora'?"),
        ("ogbn-arxiv", "unknown dataset 'ogbn-arxiv'; did you mean 'ogbn_arxiv'?"),
        ("zzz", "unknown dataset 'zzz'; choose from amazon_computers, "),
        ("chains", "chains are called chains-<length>, e.g. chains-10"),
        ("chains-ten", "chains are called chains-<length>, e.g. chains-10"),
        ("chains-<length>", "chains are called chains-<length>, e.g. chains-10"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(DatasetError) as error:
        catalogue.find(name)
    assert message in str(error.value)
