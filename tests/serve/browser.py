"""A service in a process of its own, and Debian's Chromium."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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
    command = [sys.executable, "-c", _COMMAND, "serve", *arguments, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True, env=environment)
        _running[process] = said
        try:
            yield until(lambda: _address(process, said), "the service"), process
        finally:
            del _running[process]
            if process.poll() is None:
                process.terminate()
            process.wait(30)


_COMMAND = """import faulthandler, runpy, signal
faulthandler.register(signal.SIGUSR1)
runpy.run_module("lignn", run_name="__main__", alter_sys=True)"""
_running: dict[subprocess.Popen[str], IO[str]] = {}
"""Services, and the files of what they say."""


def _address(process: subprocess.Popen[str], said: IO[str]) -> str | None:
    assert process.poll() is None, f"the service has ended: {_read(said)}"
    found = re.search(r"^(https?://\S+): ", _read(said), re.MULTILINE)
    return found and found[1]


def _read(said: IO[str]) -> str:
    """Return what was written so far; the place at which the process writes stays where it is."""
    return os.pread(said.fileno(), 10**6, 0).decode(errors="replace")


def _doings() -> str:
    """Return what each service has said, what its threads are doing, and what each browser shows."""
    for process in _running:
        if process.poll() is None:
            process.send_signal(signal.SIGUSR1)
    time.sleep(1)
    services = [f"a service, exit code {process.poll()}: {_read(said)}" for process, said in _running.items()]
    browsers = [f"a browser: {one.execute_script(_SEEN)}, {one.get_log('browser')}" for one in _open]
    return "\n".join(services + browsers)


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
        _open.append(driver)
        try:
            yield driver
        finally:
            _open.remove(driver)
            driver.quit()


_open: list[Any] = []
"""Browsers."""
_SEEN = """return {address: location.href, cursor: document.activeElement?.outerHTML.slice(0, 200),
    connected: window.socket?.connected, messages: window.nextMessageId,
    text: document.body.innerText.slice(0, 1500)}"""


def until(found: Any, what: str = "", seconds: float = SECONDS) -> Any:
    """Wait until a function returns something true, and return that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"in vain: {what}\n{_doings()}")


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
    driver.get(f"{address}/health")  # has the same storage as the page
    driver.execute_script("localStorage.setItem('lignn-name', arguments[0])", name)
    driver.get(address)
    until(lambda: node_id(driver), "the first node")


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read()


def picture(driver: Any, file: Path) -> None:
    """Save a screenshot of the whole page."""
    file.write_bytes(driver.get_screenshot_as_png())
