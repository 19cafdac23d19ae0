"""The examples run, their pictures are drawn from them, and the page shows them as they are."""

import pytest
from examples import __main__ as gallery
from PIL import Image

from tests.forked import errors_of

NEEDS_DATA = {"live_labels", "minesweeper"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.data] * (name in NEEDS_DATA)) for name in gallery.NAMES]
)
def test_an_example_runs_and_draws(name, tmp_path, request):
    if name in NEEDS_DATA:
        request.getfixturevalue("data_root")
    assert not errors_of(gallery.draw, name, tmp_path / "picture.png", "--quick", folder=tmp_path)
    with Image.open(tmp_path / "picture.png") as picture:
        assert picture.text["Source"] == gallery.source_of(name)
        assert min(picture.size) >= 300


@pytest.mark.parametrize("name", gallery.NAMES)
def test_a_picture_is_that_of_its_example(name):
    """`make figures` draws them again."""
    with Image.open(gallery.PICTURES / f"{name}.png") as picture:
        assert picture.text["Source"] == gallery.source_of(name)


def test_the_page_shows_the_examples_as_they_are():
    """`make figures` writes it again."""
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()


def test_every_script_is_shown():
    scripts = {file.stem for file in gallery.EXAMPLES.glob("*.py")} - {"__main__", "make_payments", "make_fraud"}
    assert scripts == set(gallery.NAMES)
