"""Pictures of every view, for the documents and to look at: `python -m tests.serve.screenshots FOLDER`.

`python -m tests.serve.screenshots docs/images/label.png` writes the one picture of the documents.
"""

from __future__ import annotations

import csv
import io
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from examples.__main__ import hash_of
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from lignn import Graph, NodeClassifier
from lignn.serve import page
from tests.serve import browser

VIEWS = ("Label", "Overview", "People")
LOOKS = {"light": (1280, 800, False, False), "dark": (1280, 900, True, False), "narrow": (360, 740, False, True)}
PAYMENTS = Path(__file__).parents[2] / "examples" / "payments"


def source() -> str:
    """Return the hash of what the picture of the documents is made of."""
    return hash_of([Path(__file__), *sorted(Path(page.__file__).parent.glob("*.*")), *sorted(PAYMENTS.glob("*.csv"))])


def main(place: Path, name: str = "Ada") -> None:
    """Write all pictures into a folder; or only that of the documents, if a file is named."""
    one = place.suffix == ".png"
    if not one:
        place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        graph = Graph.read(shutil.copytree(PAYMENTS, Path(work) / "payments"))
        NodeClassifier(backbone="sage", refit=False).fit(graph).save(Path(work) / "model")
        graph.replace(y=None, class_names=None, splits=()).write(Path(work) / "unlabelled.npz")
        _several(graph).save(Path(work) / "several")
        sources = {"": "model"} if one else {"": "model", "start-": "unlabelled.npz", "several-": "several"}
        for kind, source in sources.items():
            with browser.service(str(Path(work) / source)) as (address, _):
                for look in ["light"] if one else LOOKS:
                    with _looking(look) as (driver, size):
                        browser.enter(driver, address, name)
                        for view in VIEWS[:1] if one else VIEWS:
                            file = place if one else place / f"{kind}{view.lower()}-{look}.png"
                            _view(driver, view, file, size, kind)
    if one:
        _signed(place)


@contextmanager
def _looking(look: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Start a browser with a look, and return its size too."""
    width, height, dark, mobile = LOOKS[look]
    with browser.chromium(width, height) as driver:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield driver, size


def _several(graph: Graph) -> NodeClassifier:
    """Return a model whose nodes may have several classes, and whose edges have types."""
    assert graph.y is not None
    y = torch.stack([graph.y == 0, graph.y != 2], 1).to(torch.int8)
    y[graph.y < 0] = -1
    types = torch.arange(graph.num_edges) % 3
    several = graph.replace(
        y=y, class_names=("private", "pays"), splits=(), edge_type=types, edge_types=("card", "cash", "transfer")
    )
    return NodeClassifier(backbone="rgcn", max_epochs=30).fit(several)


def _view(driver, view: str, file: Path, size: dict[str, int], kind: str) -> None:
    browser.choose_tab(driver, view)
    if view == "Label":
        _label_some(driver, kind)
    time.sleep(4)  # charts draw by themselves
    whole = driver.execute_script("return document.documentElement.scrollHeight")
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": max(whole, size["height"])})
    time.sleep(2)
    browser.picture(driver, file)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def _signed(file: Path) -> None:
    """Write into a picture what it is made of."""
    text = PngInfo()
    text.add_text("Source", source())
    with Image.open(file) as picture:
        picture.load()
    picture.save(file, optimize=True, pnginfo=text)


def _label_some(driver, kind: str) -> None:
    """Give two labels, so that there is something to tell of, and go to a node whose prediction has reasons."""
    for key in "12":
        before = browser.node_id(driver)
        if kind == "start-":
            browser.press(driver, "+")
            browser.until(lambda: browser.focused(driver) == "New class", "the field")
            browser.press(driver, {"1": "customer", "2": "shop"}[key], "\ue007")
        else:
            browser.press(driver, key)
            if kind == "several-":
                browser.press(driver, "\ue007")
        browser.until(lambda before=before: browser.node_id(driver) != before, "the next node")
    if kind != "start-":
        node = _with_evidence(driver.current_url)
        browser.press(driver, "/")
        browser.until(lambda: browser.focused(driver) == "Search by id", "the search")
        browser.press(driver, node, "\ue007")
        browser.until(lambda: browser.node_id(driver) == node, "the node")
        browser.until(lambda: driver.find_elements("css selector", ".why-row"), "why")


def _with_evidence(address: str) -> str:
    """Return the first node without a label that known labels reach."""
    rows = csv.DictReader(io.StringIO(browser.get(f"{address}predictions.csv").decode()))
    return next(row["id"] for row in rows if row["evidence"] == "true" and not row["given"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
