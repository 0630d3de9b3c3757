"""The pictures of the page in docs/pictures: every screen of the running demo, light and dark, wide and on a phone.

    python scripts/pictures.py [--url http://127.0.0.1:7070/?token=...] [--out docs/pictures] [--only time,views]

Without --url it starts the demo, lets it run for some minutes, crashes its job once, and ends it. The pictures are put in place together,
once all of them are taken.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import struct
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from headrace.cli.demos.pageviews import PageViews
from headrace.core.settings import load_settings
from headrace.serve.server import Server, ServeSettings, free_port

ROOT = Path(__file__).parents[1]
Look = Callable[[], object]
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip
SCREENS = {
    "pipeline": "pipeline/page_views.window", "time": "time/page_views", "views": "views/top_urls", "topics": "topics/page_views",
    "epochs": "epochs", "late": "late/page_views.dead", "health": "health",
}  # fmt: skip
SIZES = {"wide": (1240, 760), "phone": (390, 844)}
# What is there, and how often, once a screen shows everything; a loaded machine takes its time.
READY = {
    "pipeline": (".flow", 5), "time": (".columns tr.late", 1), "views": (".bars i", 10), "topics": ("main tbody tr", 20),
    "epochs": ("[data-crash]", 1), "late": ("main tbody tr", 2), "health": ("[data-rule]", 1),
}  # fmt: skip
# What is clicked before a picture is taken.
CLICKS = {"late": "main table tbody tr"}
# A page that does not come to show everything is loaded again.
_LOADS, _PATIENCE = 5, 60.0
# Long enough for windows that closed, some late records and a few dead letters.
_BEFORE, _AFTER = 300.0, 60.0


@contextmanager
def demo(rate: float) -> Iterator[tuple[str, Look]]:
    """The demo with the page, after it has run for a while and was crashed once; gives the address, and what keeps its job running."""
    with tempfile.TemporaryDirectory() as home:
        settings = load_settings(home=Path(home))
        server = Server(settings.home, ServeSettings(port=free_port(7070), development=True))
        with PageViews(settings, rate=rate) as running, server.background():
            _run(running, _BEFORE)
            headers = {"Authorization": f"Bearer {server.tokens.operate}", "Content-Type": "application/json"}
            asked = urllib.request.Request(f"{server.url}/api/v1/jobs/pageviews/crash", b"{}", headers)  # noqa: S310 - our own server
            urllib.request.urlopen(asked).close()  # noqa: S310
            _run(running, _AFTER)
            yield f"{server.url}/?token={server.tokens.operate}", running.look


def _run(running: PageViews, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        # A look also starts a job again that was killed.
        running.look()
        time.sleep(1)


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """A browser with a fresh profile."""
    chrome, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    assert chrome is not None, "chromium is not installed"
    options = webdriver.ChromeOptions()
    options.binary_location = chrome
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        opened = webdriver.Chrome(options=options, service=Service(driver))
        try:
            yield opened
        finally:
            opened.quit()


def take(opened: webdriver.Chrome, shown: tuple[str, Look], out: Path, asked: argparse.Namespace) -> None:
    """Screens in sizes and both color schemes, one file each."""
    address, look = shown
    base = address.partition("/?")[0]
    opened.get(address)
    for size, (width, height) in ((size, SIZES[size]) for size in asked.sizes.split(",")):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            for screen in asked.only.split(","):
                load(opened, f"{base}/#/pageviews/{SCREENS[screen]}", screen, look)
                time.sleep(3)
                if screen in CLICKS:
                    opened.execute_script(f"document.querySelector({json.dumps(CLICKS[screen])})?.click()")
                    time.sleep(1)
                shot = opened.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})
                file = out / f"{screen}-{size}-{scheme}.png"
                file.write_bytes(squeezed(base64.b64decode(shot["data"])))
                print(f"{file.name}  {file.stat().st_size / 1000:.0f} kB", flush=True)
    # A server that ends while the page listens waits for it.
    opened.get("about:blank")


def load(opened: webdriver.Chrome, address: str, screen: str, look: Look) -> None:
    """Load a screen and wait until it shows everything."""
    selector, number = READY[screen]
    for _ in range(_LOADS):
        opened.get("about:blank")
        opened.get(address)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            # A look also starts a job again that has ended.
            look()
            if _count(opened, selector) >= number:
                return
            time.sleep(0.5)
    text = opened.execute_script("return document.body.innerText")
    raise AssertionError(f"{screen} has {_count(opened, selector)} of {number} {selector!r}:\n{text}")


def _count(opened: webdriver.Chrome, selector: str) -> int:
    return int(opened.execute_script(f"return document.querySelectorAll({json.dumps(selector)}).length"))


def squeezed(png: bytes) -> bytes:
    """The same picture, compressed as much as zlib can."""
    place, chunks, data = 8, list[tuple[bytes, bytes]](), b""
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        data += content if kind == b"IDAT" else b""
        if kind in (b"IHDR", b"IEND"):
            chunks.append((kind, content))
        place += 12 + length
    chunks.insert(1, (b"IDAT", zlib.compress(zlib.decompress(data), 9)))
    parts = [struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content)) for kind, content in chunks]
    return png[:8] + b"".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="take the pictures of a demo that runs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--only", default=",".join(SCREENS), help="some of the screens, with commas between them")
    parser.add_argument("--sizes", default=",".join(SIZES), help="wide, phone, or both")
    parser.add_argument("--rate", type=float, default=1000)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with browser() as opened, tempfile.TemporaryDirectory() as taken:
        if asked.url:
            take(opened, (asked.url, lambda: None), Path(taken), asked)
        else:
            with demo(asked.rate) as shown:
                take(opened, shown, Path(taken), asked)
        for file in Path(taken).iterdir():
            shutil.copyfile(file, asked.out / file.name)


if __name__ == "__main__":
    main()
