import base64
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lignn.errors import InputError
from lignn.evaluation import compare_report
from tests.evaluation.test_compare import MODELS, comparison

SCORES = {method: [0.1 * number, 0.1 * number + 0.05] for number, method in enumerate(MODELS, 1)}


def test_one_file_with_everything_in_it(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    compare_report.write(comparison(SCORES), file)
    text = file.read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    for title in ("GCN", "LPA", "GCN + C&amp;S", "Label Input GCN", "Label Reuse GCN (10)", "LI-GCN, free"):
        assert f">{title}<" in text
    assert "62.50 ± 3.54" in text
    picture = re.search(r"data:image/svg\+xml;base64,([^\"]+)", text)
    assert picture is not None
    assert ElementTree.fromstring(base64.b64decode(picture[1])).tag.endswith("svg")


def test_names_are_escaped(tmp_path: Path) -> None:
    found = comparison(SCORES)
    file = tmp_path / "report.html"
    compare_report.write(replace(found, graph={**found.graph, "name": "<b>&"}, guess=None), file)
    text = file.read_text(encoding="utf-8")
    assert "<b>" not in text
    assert "Do labels help on &lt;b&gt;&amp;?" in text


def test_the_picture_shows_every_run() -> None:
    upper, lower = compare_report.draw(comparison(SCORES)).axes
    dots = [tuple(round(x, 6) for x in path.get_offsets()[:, 0]) for path in upper.collections]
    assert dots == [(10.0 * n, 10.0 * n + 5) for n in range(1, len(MODELS) + 1)]
    assert "LI-GCN, free" in [label.get_text() for label in upper.get_yticklabels()]
    assert len(lower.lines) == len(MODELS)
    assert lower.get_ylabel() == "validation F1-micro (%)"


def test_places_are_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a.html").mkdir()
    for name, message in (("a.html", "is a folder"), ("b.pdf", "an .html file"), ("no/c.html", "there is no folder")):
        with pytest.raises(InputError, match=message):
            compare_report.check(tmp_path / name)
