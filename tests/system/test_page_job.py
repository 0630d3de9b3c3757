"""The page over a running job in a real browser: every screen lives, a newcomer finds what matters, and a crash loses nothing."""

import operator
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from selenium.webdriver.common.by import By

from headrace.cli.demos.pageviews import PageViews
from headrace.core.settings import load_settings
from headrace.log import Log
from headrace.ops.servers.ports import free_ports
from headrace.serve.server import Server, ServeSettings
from tests.support.browser import looking

SCREENS = ("Pipeline", "Time", "Views", "Topics", "Epochs", "Late & dead", "Health")
# Seconds in which Spark starts on a machine with many times the load of a quiet one.
STARTED = 240
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo with its page; a thread looks at it as the terminal does, and with that starts a killed job again."""
    home = tmp_path_factory.mktemp("home")
    server = Server(home, ServeSettings(port=free_ports(1)[0], development=True))
    ended = threading.Event()
    with PageViews(load_settings(home=home), rate=200) as running:

        def look():
            while not ended.wait(0.25):
                running.look()

        thread = threading.Thread(target=look)
        thread.start()
        try:
            with server.background():
                yield SimpleNamespace(home=home, server=server, running=running)
        finally:
            ended.set()
            thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with looking(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser, demo):
    """The page with everything to see on it: results, late records, and a dead letter."""
    browser.open(f"{demo.server.url}/?token={demo.server.tokens.operate}")
    browser.until(lambda: figure(browser, "epoch") > 1, STARTED)
    browser.until(lambda: browser.text("[data-watermark]").startswith(("0", "1", "2")))
    long_ago = datetime.now(UTC) - timedelta(minutes=30)
    with Log(demo.home / "log") as log, log.producer(linger=None) as producer:
        producer.send("page_views", {"url": "/late", "user": "ada", "viewed_at": long_ago})
        producer.send("page_views", {"url": "/broken", "user": "ada", "viewed_at": None}, key="/broken")
    browser.until(lambda: browser.all("nav i") and int(browser.text("nav i").replace(",", "")) >= 2)
    yield browser
    # A server that stops waits for those who listen.
    browser.driver.get("about:blank")


def figure(browser, name):
    """A figure of the bar, by its name; 0 before it is there."""
    found = [fact.text for fact in browser.all(".fact") if fact.text.startswith(name)]
    return int(found[0].removeprefix(name).strip().replace(",", "")) if found else 0


def changes(browser, seen):
    """Wait until something that is shown has become something else."""
    before = browser.until(seen)
    browser.until(lambda: seen() not in (before, None, ""))


def test_each_screen_shows_the_job_with_a_value_that_changes_and_asks_no_other_host(page, demo):
    page.hosts(), page.errors()
    page.driver.get(f"{demo.server.url}/")
    page.screen("Pipeline")
    page.press("[data-node=page_views]")
    assert {node.get_attribute("data-node") for node in page.all(".node")} >= {"page_views", "top_urls", "page_views.late"}
    changes(page, lambda: page.text("aside tbody tr"))
    page.screen("Time")
    changes(page, lambda: page.text("[data-holds]"))
    page.screen("Views")
    changes(page, lambda: page.text("main table tbody"))
    assert page.all(".bars i")
    page.screen("Topics")
    changes(page, lambda: page.text("[data-records=page_views]"))
    page.screen("Epochs")
    changes(page, lambda: page.text("[data-identity=total]"))
    page.until(lambda: page.all(".strip span"))
    page.screen("Late & dead")
    page.sees("kept in the topic page_views.late")
    page.screen("Health")
    page.sees("dead letters")
    assert page.all("[data-rule='dead letters']")
    assert page.hosts() == {demo.server.url.split("/")[2]}
    assert page.errors() == []


def test_a_newcomer_finds_what_matters_by_clicks_alone(page, demo):
    page.driver.get(f"{demo.server.url}/")
    # Which partition holds the watermark: no click, the bar says it; one click on it shows every partition.
    page.sees("page_views/", "[data-watermark]")
    page.press("[data-watermark]")
    page.until(lambda: page.all("[data-holds]"))
    # How many records were late in the last minute, and where they are: on the same screen.
    page.sees("late in the last minute")
    page.press("[data-late-minute] a")
    page.sees("kept in the topic page_views.late")
    page.until(lambda: "/late" in page.text(".page"))
    # The current value of one key.
    page.screen("Views")
    page.click("views_so_far")
    page.sees("views_so_far", "h2")
    page.sees("/search", "main table")
    page.driver.find_element(By.CSS_SELECTOR, "input[data-filter]").send_keys("/search")
    page.until(lambda: all("/search" in row.text for row in page.all("main tbody tr")))
    # The record that made a dead letter.
    page.screen("Late & dead")
    page.press("[role=tab]:nth-child(2)")
    page.until(lambda: "/broken" in page.text(".page"))
    row = next(row for row in page.all("main tbody tr") if "/broken" in row.text)
    row.click()
    page.until(lambda: '"url": "/broken"' in page.text("[data-record]"))


@pytest.mark.parametrize(("scheme", "width"), [("light", None), ("dark", None), ("light", 390)])
def test_axe_finds_nothing_serious_on_any_screen(page, demo, scheme, width):
    page.driver.get(f"{demo.server.url}/")
    page.scheme(scheme)
    page.width(width)
    try:
        for screen in SCREENS:
            page.screen(screen)
            page.until(lambda: len(page.text()) > 40)
            assert page.findings() == [], screen
            over = page.driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            assert over <= 0, f"{screen} is wider than the window by {over} pixels"
    finally:
        page.scheme("light")
        page.width(None)


def counted(log, since):
    """The views of each page and minute from a moment on, by the log itself and by the view that the job keeps."""
    sent = log.read("page_views", columns=["url", "viewed_at"]).to_pylist()
    minutes = [(row["url"], row["viewed_at"].replace(second=0, microsecond=0)) for row in sent if row["viewed_at"] is not None]
    kept = {(row["url"], row["minute"]): row["views"] for row in log.snapshot("views_so_far").table.to_pylist()}
    return Counter(place for place in minutes if place[1] >= since), {place: views for place, views in kept.items() if place[1] >= since}


def test_a_crash_by_the_button_is_seen_and_loses_nothing(page, demo):
    page.driver.get(f"{demo.server.url}/")
    since = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    page.screen("Epochs")
    page.click("crash the driver")
    page.sees("Killed the driver")
    page.sees("then exact again", patience=STARTED)
    page.sees("the last one lost nothing")
    for side in ("before", "after"):
        assert page.all(f"[data-identity={side}]")[0].get_attribute("data-missing") == "0"
    before = figure(page, "epoch")
    page.until(lambda: figure(page, "epoch") > before)
    demo.running.stop_writing()
    with Log(demo.home / "log") as log:
        page.until(lambda: operator.eq(*counted(log, since)))
        assert counted(log, since)[0]
