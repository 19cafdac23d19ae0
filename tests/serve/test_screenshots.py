"""The picture of the labelling page in the documents is up to date."""

from pathlib import Path

from PIL import Image

from tests.serve import screenshots


def test_the_picture_of_the_documents_is_that_of_this_page():
    """`make figures` takes it again."""
    with Image.open(Path(__file__).parents[2] / "docs" / "images" / "label.png") as picture:
        assert picture.text["Source"] == screenshots.source()
