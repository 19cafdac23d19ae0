"""A service in a process of its own, and Debian's Chromium."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = (
    "install Debian's packages chromium and chromium-driver, and selenium: apt-get install chromium chromium-driver"
)
SECONDS = 60.0


def missing() -> str:
    """Say what a browser test lacks; empty if nothing."""
    try:
        import selenium  # noqa: F401
    except ModuleNotFoundError:
        return PACKAGES
    return "" if shutil.which("chromium") and shutil.which("chromedriver") else PACKAGES


@contextmanager
def service(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start `lignn serve`; yield its address and process once it says that it is ready."""
    command = [sys.executable, "-m", "lignn", "serve", *arguments, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.match(r"(https?://\S+): ", line):
                yield found[1], process
                break
        else:
            raise AssertionError(f"the service has ended: {''.join(lines)}")
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(30)
        process.stdout.close()


@contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator[Any]:
    """Start a browser with a profile of its own; it can reach this machine only."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def until(found: Any, what: str = "", seconds: float = SECONDS) -> Any:
    """Wait until a function returns something true, and return that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"in vain: {what}")


def press(driver: Any, *keys: str) -> None:
    """Press keys, wherever the cursor is."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(*keys).perform()


def focused(driver: Any) -> str | None:
    """Return the name of the element that gets the keys."""
    return driver.switch_to.active_element.get_attribute("aria-label")


def choose_tab(driver: Any, name: str) -> None:
    script = "[...document.querySelectorAll('.q-tab')].find(t => t.innerText.trim() == arguments[0]).click()"
    driver.execute_script(script, name)


def complaints(driver: Any) -> list[str]:
    """Return the errors in the browser's log since the last call."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def body_text(driver: Any) -> str:
    return driver.execute_script("return document.body.innerText")


def node_id(driver: Any) -> str:
    return driver.execute_script("return (document.querySelector('.node-id') || {}).innerText || ''")


def enter(driver: Any, address: str, name: str) -> None:
    """Open the page as somebody, and wait for the first node."""
    driver.get(address)
    driver.execute_script("localStorage.setItem('lignn-name', arguments[0])", name)
    driver.get(address)
    until(lambda: node_id(driver), "the first node")


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read()


def picture(driver: Any, file: Path) -> None:
    """Save a screenshot of the whole page."""
    file.write_bytes(driver.get_screenshot_as_png())
