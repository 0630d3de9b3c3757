"""A real browser that looks at the page: Debian's Chromium, driven by Selenium, with a fresh profile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1280,860",
)  # fmt: skip
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE = 60


class Looker:
    """What a person does with a page: look, click, type. Each waits until what it needs is there."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Open an address as in a new tab."""
        self.driver.get("about:blank")
        self.driver.get(address)

    def until(self, seen: Callable[[], Any], patience: float = PATIENCE) -> Any:
        """What `seen` gives as soon as it is something."""
        ignored = [WebDriverException, StaleElementReferenceException]
        return WebDriverWait(self.driver, patience, 0.2, ignored_exceptions=ignored).until(lambda _: seen())

    def text(self, selector: str = "main") -> str:
        return str(self.driver.find_element(By.CSS_SELECTOR, selector).text)

    def sees(self, words: str, selector: str = "main", patience: float = PATIENCE) -> None:
        """Wait until words are to be read."""
        self.until(lambda: words in self.text(selector), patience)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def click(self, words: str, selector: str = "a, button") -> None:
        """Click what has these words, and nothing else, on it."""

        def clicked() -> bool:
            found = [one for one in self.all(selector) if one.is_displayed() and one.text.strip() == words]
            if found:
                found[0].click()
            return bool(found)

        self.until(clicked)

    def press(self, selector: str) -> None:
        """Click the first of what a selector finds."""

        def clicked() -> bool:
            found = [one for one in self.all(selector) if one.is_displayed()]
            if found:
                found[0].click()
            return bool(found)

        self.until(clicked)

    def screen(self, name: str) -> None:
        """Click a screen in the row of screens; its figure may follow its name."""

        def clicked() -> bool:
            found = [one for one in self.all("nav a") if one.text.startswith(name)]
            found[0].click()
            return True

        self.until(clicked)

    def hosts(self) -> set[str]:
        """The hosts that the page has asked since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return {url.split("/")[2] for url in urls if url.startswith("http")}

    def errors(self) -> list[str]:
        """What the page has said on the console since the last call that is an error."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def scheme(self, name: str) -> None:
        """Let the system like light or dark colors."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def width(self, pixels: int | None) -> None:
        """Make the page so wide; None for as wide as the window."""
        if pixels is None:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            return
        metrics = {"width": pixels, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def findings(self) -> list[str]:
        """What axe finds serious or critical, with the first place of each."""
        assert AXE.is_file(), "axe is not installed: cd web && npm ci"
        self.driver.execute_script(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script("axe.run(document).then(arguments[arguments.length - 1])")
        return [
            f"{one['id']}: {one['help']} ({one['nodes'][0]['html'][:160]})"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]


@contextmanager
def looking(profile: Path) -> Iterator[Looker]:
    """A browser for as long as the block lasts."""
    chrome, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    assert chrome is not None, "chromium is not installed"
    assert driver is not None, "chromedriver is not installed"
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.binary_location = chrome
    opened = webdriver.Chrome(options=options, service=Service(driver))
    opened.set_script_timeout(PATIENCE)
    try:
        yield Looker(opened)
    finally:
        opened.quit()


@contextmanager
def served(home: Path, looker: Looker, port: int | None = None, *, leaves: bool = True) -> Iterator[Server]:
    """A server of a home for as long as the block lasts.

    The browser leaves its page in the end, unless the test wants to see what a page does without its server: a server that stops waits
    for those who listen, for seconds.
    """
    server = Server(home, ServeSettings(port=port or free_ports(1)[0]))
    with server.background():
        try:
            yield server
        finally:
            if leaves:
                looker.driver.get("about:blank")
