"""The page in a real browser."""

from __future__ import annotations

import csv
import io
import json
import shutil

import numpy as np
import pytest

from lignn import Graph
from tests.serve import browser
from tests.serve.browser import body_text, enter, node_id, until

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "all there")
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def driver():
    with browser.chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def address(original, tmp_path_factory):
    folder = shutil.copytree(original, tmp_path_factory.mktemp("page") / "model")
    with browser.service(str(folder)) as (address, _):
        yield address


def press(driver, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(*keys).perform()


def history(address):
    return json.loads(browser.get(f"{address}/labels?limit=1000"))["changes"]


def labels(address):
    return {
        row["id"]: row["label"] for row in csv.DictReader(io.StringIO(browser.get(f"{address}/labels.csv").decode()))
    }


def text(driver, css):
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('\\n')", css
    )


def test_a_person_labels_by_keys_undoes_searches_and_finds_it_after_a_reload(driver, address):
    from selenium.webdriver.common.keys import Keys

    enter(driver, address, "Ada")
    start, seen = len(history(address)), []
    for turn in range(20):
        node = until(lambda: (found := node_id(driver)) not in seen and found, "another node")
        seen.append(node)
        press(driver, str(1 + turn % 3))
        until(lambda count=turn: len(history(address)) == start + count + 1, "a label")
    made = history(address)[start:]
    assert [(c["id"], c["new"], c["who"]) for c in made] == [(n, "abc"[i % 3], "Ada") for i, n in enumerate(seen)]
    until(lambda: f"{seen[-1]}: gave b. " in text(driver, ".told"), "what the label did")
    assert "predictions changed" in text(driver, ".told")
    press(driver, "u")
    until(lambda: node_id(driver) == seen[-1], "the node whose label was undone")
    assert history(address)[-1]["new"] is None
    press(driver, "/")
    until(lambda: driver.switch_to.active_element.get_attribute("aria-label") == "Search by id", "the search")
    press(driver, "node89")
    until(lambda: "node89" in text(driver, ".node-list"), "the node in the list")
    press(driver, Keys.ENTER)
    until(lambda: node_id(driver) == "node89", "the node that was searched for")
    until(lambda: driver.switch_to.active_element.tag_name == "body", "no field")
    press(driver, "?")
    until(lambda: "undo the last label" in body_text(driver), "the help")
    press(driver, Keys.ESCAPE)
    until(lambda: not driver.find_elements("css selector", ".q-dialog__inner"), "no help")
    expected = {node: "abc"[i % 3] for i, node in enumerate(seen[:-1])}
    driver.refresh()
    until(lambda: node_id(driver), "the page again")
    assert {node: labels(address)[node] for node in seen[:-1]} == expected
    assert "Ada" in text(driver, ".frame-tools")


def test_overview_and_people_are_drawn(driver, address):
    enter(driver, address, "Ada")
    for tab, wanted in (("Overview", "The last solve"), ("People", "Labels by person")):
        script = "[...document.querySelectorAll('.q-tab')].find(t => t.innerText.trim() == arguments[0]).click()"
        driver.execute_script(script, tab)
        until(lambda wanted=wanted: wanted in body_text(driver), tab)
        if tab == "Overview":
            until(lambda: len(driver.find_elements("css selector", ".chart-grid canvas")) >= 5, "charts")


def test_two_people_get_different_nodes(driver, address):
    enter(driver, address, "Ada")
    with browser.chromium() as other:
        enter(other, address, "Bo")
        seen = {node_id(driver), node_id(other)}
        assert len(seen) == 2
        start = len(history(address))
        for turn in range(3):
            for person in (driver, other):
                before = node_id(person)
                press(person, "1")
                until(lambda p=person, b=before: node_id(p) != b, "the next node")
            until(lambda count=turn: len(history(address)) == start + 2 * count + 2, "two labels")
            assert node_id(driver) != node_id(other)
        made = history(address)[start:]
        assert len({c["id"] for c in made}) == 6
        assert [c["who"] for c in made] == ["Ada", "Bo"] * 3


def test_everything_comes_from_the_service_itself(driver, address):
    driver.get_log("performance")
    enter(driver, address, "Ada")
    asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
    assert any("echart" in url for url in urls)
    assert {url for url in urls if not url.startswith((address, "data:"))} == set()


def test_narrow_screens_need_no_sideways_scrolling(driver, address):
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        enter(driver, address, "Ada")
        until(lambda: text(driver, ".why-row"), "why")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_large_graph_from_nothing_with_hostile_names(driver, tmp_path):
    """10⁵ nodes, of whose map a sample is drawn; ids and classes are texts, whatever they hold."""
    from selenium.webdriver.common.keys import Keys

    ids = [HOSTILE, *(f"n{i}" for i in range(99_999))]
    edges = np.random.default_rng(0).integers(100_000, size=(2, 300_000))
    Graph(edges, num_nodes=100_000, node_ids=ids).write(tmp_path / "g.npz")
    with browser.service(str(tmp_path / "g.npz")) as (address, _):
        enter(driver, address, HOSTILE)
        press(driver, "+")
        until(lambda: driver.switch_to.active_element.get_attribute("aria-label") == "New class", "the field")
        before = node_id(driver)
        press(driver, "<b>red</b>", Keys.ENTER)
        until(lambda: node_id(driver) != before, "the next node")
        until(lambda: "<b>red</b>" in text(driver, ".label-buttons"), "a button for the class")
        press(driver, "/")
        until(lambda: driver.switch_to.active_element.get_attribute("aria-label") == "Search by id", "the search")
        press(driver, "<script", Keys.ENTER)
        until(lambda: node_id(driver) == HOSTILE, "the hostile node")
        until(lambda: driver.switch_to.active_element.tag_name == "body", "no field")
        press(driver, "1")
        until(lambda: len(labels(address)) == 2, "two labels")
        assert set(labels(address).values()) == {"<b>red</b>"}
        assert driver.title == "lignn"
        click = "[...document.querySelectorAll('.q-tab')].find(t => t.innerText.trim() == 'Overview').click()"
        driver.execute_script(click)
        until(lambda: "5000 of 100000 nodes" in body_text(driver), "the map")
