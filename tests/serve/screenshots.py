"""Pictures of every view, for the documents and to look at: `python -m tests.serve.screenshots FOLDER`."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from lignn import Graph, NodeClassifier
from tests.serve import browser

VIEWS = ("Label", "Overview", "People")
LOOKS = {"light": (1280, 900, False, False), "dark": (1280, 900, True, False), "narrow": (360, 740, False, True)}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        examples = Path(__file__).parents[2] / "examples"
        graph = Graph.read(shutil.copytree(examples / "payments", Path(work) / "payments"))
        classifier = NodeClassifier(max_epochs=60).fit(graph)
        decision = classifier.decision()
        node = str(decision.node_ids[(decision.evidence & ~decision.known).nonzero()[0][0]])
        classifier.save(Path(work) / "model")
        with browser.service(str(Path(work) / "model")) as (address, _):
            for look, (width, height, dark, mobile) in LOOKS.items():
                with browser.chromium(width, height, dark) as driver:
                    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
                    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
                    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
                    _views(driver, address, node, folder, look, size)


def _views(driver, address, node, folder, look, size) -> None:
    browser.enter(driver, address, "Ada")
    for view in VIEWS:
        click = "[...document.querySelectorAll('.q-tab')].find(t => t.innerText.trim() == arguments[0]).click()"
        driver.execute_script(click, view)
        if view == "Label":
            box = driver.find_element("css selector", "[aria-label='Search by id']")
            box.send_keys(node, "\ue007")
            browser.until(lambda: browser.node_id(driver) == node, "the node")
            browser.until(lambda: driver.find_elements("css selector", ".why-row"), "why")
        time.sleep(5)  # charts draw by themselves
        whole = driver.execute_script("return document.documentElement.scrollHeight")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": max(whole, size["height"])})
        time.sleep(2)
        browser.picture(driver, folder / f"{view.lower()}-{look}.png")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
