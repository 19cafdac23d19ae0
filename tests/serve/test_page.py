"""The page in a real browser."""

from __future__ import annotations

import csv
import io
import json
import shutil
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest

from lignn import Graph, NodeClassifier
from tests.classifier.small import small_graph
from tests.problems import half_split, random_graph
from tests.serve import browser
from tests.serve.browser import body_text, choose_tab, enter, focused, node_id, press, until

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "all there")
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def driver():
    with browser.chromium() as driver:
        yield driver


@pytest.fixture(autouse=True)
def no_complaints(driver):
    """Fail a test during which the browser has logged an error."""
    browser.complaints(driver)
    yield
    assert browser.complaints(driver) == []


@pytest.fixture(scope="module")
def address(original, tmp_path_factory):
    folder = shutil.copytree(original, tmp_path_factory.mktemp("page") / "model")
    with browser.service(str(folder)) as (address, _):
        yield address


@contextmanager
def page_of(driver, path):
    """A service whose page is left before the service ends, which a browser would complain of."""
    with browser.service(str(path)) as (address, _):
        yield address
        driver.get("about:blank")


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
    assert " changed" in text(driver, ".told")
    press(driver, "u")
    until(lambda: node_id(driver) == seen[-1], "the node whose label was undone")
    assert history(address)[-1]["new"] is None
    press(driver, "s")
    until(lambda: node_id(driver) != seen[-1], "the node after the one that was skipped")
    assert len(history(address)) == start + 21
    press(driver, "/")
    until(lambda: focused(driver) == "Search by id", "the search")
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
    press(driver, "1")
    choose_tab(driver, "People")
    until(lambda: "Labels by person" in body_text(driver) and "Ada" in text(driver, ".history"), "who labelled what")
    choose_tab(driver, "Overview")
    until(lambda: "The last solve" in body_text(driver), "the certificate")
    until(lambda: len(driver.find_elements("css selector", ".chart-grid canvas")) >= 5, "charts")
    buttons = {
        button.text.split("\n")[-1]: button for button in driver.find_elements("css selector", ".tool-row button")
    }
    assert {"labels.csv", "predictions.csv", "predictions.parquet", "Train on"} <= set(buttons)
    buttons["Train on"].click()
    until(lambda: "training" in text(driver, ".frame-training"), "training")
    stop = urllib.request.Request(f"{address}/fit", method="DELETE")
    urllib.request.urlopen(stop, timeout=30).close()
    until(lambda: "training was ended before it was done" in body_text(driver), "its end")
    choose_tab(driver, "Label")
    until(lambda: driver.find_elements("css selector", ".graph-chart canvas"), "the neighbourhood again")


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


CONTRAST = """
const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => [r, g, b].map(c => linear(c / 255))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
const over = (top, below) => top.length < 4 ? top : top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
const ground = element => {
  const found = parts(getComputedStyle(element).backgroundColor);
  if (found.length < 4 || found[3] === 1) return found.slice(0, 3);
  return over(found, element.parentElement ? ground(element.parentElement) : [255, 255, 255]);
};
const poor = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].filter(n => n.nodeType === 3 && n.textContent.trim());
  const style = getComputedStyle(element);
  if (!own.length || !element.offsetParent || ['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
  if (element.closest('.disabled, [aria-hidden=true]')) continue;
  const below = ground(element);
  const [a, b] = [light(over(parts(style.color), below)), light(below)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5)) poor.push([own[0].textContent.trim(), style.color, below.join(), ratio]);
}
return poor;
"""
"""Texts whose contrast with what is behind them is below that of WCAG AA."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(driver, address, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        enter(driver, address, "Ada")
        until(lambda: text(driver, ".why-row"), "why")
        assert driver.execute_script("return document.body.classList.contains('body--dark')") == (scheme == "dark")
        for tab, wanted in (("Label", "Features"), ("Overview", "The last solve"), ("People", "Labels by person")):
            choose_tab(driver, tab)
            until(lambda wanted=wanted: wanted in body_text(driver), tab)
            assert driver.execute_script(CONTRAST) == [], tab
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_keyboard_reaches_everything(driver, address):
    """Tab goes to every view and button; each of them has a name."""
    from selenium.webdriver.common.keys import Keys

    enter(driver, address, "Ada")
    until(lambda: text(driver, ".why-row"), "why")
    named = """const e = document.activeElement, label = e.labels && e.labels[0] && e.labels[0].innerText;
        return e === document.body ? 'body' : e.ariaLabel || label || e.innerText.trim()"""
    seen = [""]
    while seen[-1] != "body" and len(seen) < 100:
        press(driver, Keys.TAB)
        seen.append(driver.execute_script(named))
    assert "" not in seen[1:]
    assert {"Your name", "Light or dark", "Help", "Which nodes come next", "Search by id", "New class"} <= set(seen)
    shown = "return [...document.querySelectorAll('button')].filter(b => b.offsetParent && !b.disabled).length"
    assert len(seen) - 1 > driver.execute_script(shown)
    while driver.execute_script(named) != "Label":
        press(driver, Keys.TAB)
    press(driver, Keys.ARROW_RIGHT)
    press(driver, Keys.ENTER)
    until(lambda: "The last solve" in body_text(driver), "the overview")


def test_several_classes_are_chosen_by_keys_and_saved_by_enter(driver, tmp_path):
    from selenium.webdriver.common.keys import Keys

    graph, split = random_graph(n=40, multilabel=True), half_split(40)
    NodeClassifier("lpa").fit(graph, split).save(tmp_path / "model")
    with page_of(driver, tmp_path / "model") as address:
        enter(driver, address, "Ada")
        first = node_id(driver)
        names = json.loads(browser.get(f"{address}/model"))["classes"]
        chosen_buttons = "[...document.querySelectorAll('.label-buttons [aria-pressed=true]')]"
        pressed = f"return {chosen_buttons}.map(e => e.innerText.split('\\n').pop())"
        for key, chosen in (("2", [names[1]]), ("1", names[:2]), ("2", names[:1]), ("2", names[:2])):
            press(driver, key)
            until(lambda chosen=chosen: driver.execute_script(pressed) == chosen, f"{chosen} after {key}")
        assert history(address) == []
        press(driver, Keys.ENTER)
        until(lambda: node_id(driver) != first, "the next node")
        second = node_id(driver)
        assert driver.execute_script(pressed) == []
        press(driver, Keys.ENTER)
        until(lambda: node_id(driver) != second, "the third node")
        until(lambda: f"{second}: gave none of the classes. " in text(driver, ".told"), "what was given")
        assert [(c["id"], c["new"]) for c in history(address)] == [(first, sorted(names[:2])), (second, [])]
        press(driver, "u")
        until(lambda: node_id(driver) == second, "the node whose label was undone")
        assert history(address)[-1]["new"] is None
        choose_tab(driver, "Overview")
        until(lambda: "micro-averaged F1" in body_text(driver), "the score")


def test_from_nothing_to_a_first_model(driver, tmp_path):
    """Classes are typed as they come; a model is there after three labels of two; names are texts."""
    from selenium.webdriver.common.keys import Keys

    graph = small_graph(30).replace(y=None, class_names=None)
    graph.write(tmp_path / "g.npz")
    with page_of(driver, tmp_path / "g.npz") as address:
        enter(driver, address, HOSTILE)
        for turn, name in enumerate(("<b>red</b>", "blue")):
            before = node_id(driver)
            press(driver, "+")
            until(lambda: focused(driver) == "New class", "the field")
            press(driver, name, Keys.ENTER)
            until(lambda before=before: node_id(driver) != before, "the next node")
            until(lambda name=name: name in text(driver, ".label-buttons"), "a button for the class")
            for _ in range(2):
                before = node_id(driver)
                press(driver, str(turn + 1))
                until(lambda before=before: node_id(driver) != before, "the next node")
        until(lambda: "Predicted: " in text(driver, ".node-card"), "a prediction of the first model")
        assert sorted(labels(address).values()) == ["<b>red</b>"] * 3 + ["blue"] * 3
        assert {entry["who"] for entry in history(address)} == {" ".join(HOSTILE.split())}
        assert driver.title == "lignn"


def test_the_page_of_a_large_model_with_hostile_ids(driver, tmp_path):
    """10⁵ nodes, of whose map a sample is drawn; an id is text, whatever it holds."""
    from selenium.webdriver.common.keys import Keys

    ids = [HOSTILE, *(f"n{i}" for i in range(99_999))]
    edges = np.random.default_rng(0).integers(100_000, size=(2, 300_000))
    y = np.where(np.arange(100_000) % 10 == 1, np.arange(100_000) % 3, -1)
    graph = Graph(edges, y=y, num_nodes=100_000, node_ids=ids, class_names=("<i>a</i>", "b", "c"))
    NodeClassifier("lpa").fit(graph).save(tmp_path / "model")
    with page_of(driver, tmp_path / "model") as address:
        enter(driver, address, "Ada")
        press(driver, "/")
        until(lambda: focused(driver) == "Search by id", "the search")
        press(driver, "<script", Keys.ENTER)
        until(lambda: node_id(driver) == HOSTILE, "the hostile node")
        until(lambda: driver.switch_to.active_element.tag_name == "body", "no field")
        press(driver, "1")
        until(lambda: node_id(driver) != HOSTILE, "the next node")
        assert labels(address)[HOSTILE] == "<i>a</i>"
        assert driver.title == "lignn"
        choose_tab(driver, "Overview")
        until(lambda: "5000 of 100000 nodes" in body_text(driver), "the map")
