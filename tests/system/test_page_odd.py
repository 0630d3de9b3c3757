"""The page in a real browser over names, values and states that nobody drew it for: it stays readable, and its numbers exact."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from headrace.core.clock import ManualClock
from headrace.jobs.facts.last_run import Recorder, recorded
from headrace.jobs.facts.progress import Progress
from headrace.ops.servers.ports import free_ports
from headrace.testing.written import WrittenView, accounted
from tests.support.browser import looking, served

LONG = "a_name_that_somebody_generated_from_a_path_of_a_warehouse_and_never_shortened_again_0123456789"
BEYOND = 2**53 + 1
SCREENS = ("pipeline", "time", "views", "topics", "epochs", "late", "health")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with looking(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def written(tmp_path):
    views = []

    def make(columns="url string, views bigint", key=("url",), name="totals"):
        views.append(WrittenView(tmp_path, columns, key, name=name))
        return views[-1]

    yield make
    for view in views:
        view.close()


def show(browser, server, place, role="operate"):
    browser.open(f"{server.url}/?token={getattr(server.tokens, role)}")
    browser.until(lambda: browser.all("nav a"))
    browser.errors()
    go_on(browser, server, place)


def go_on(browser, server, place):
    """Go to another place of the page that is open, as a link does, and wait for its screen."""
    browser.driver.get(f"{server.url}/#/{place}")
    screen = place.split("/")[1]
    browser.until(lambda: browser.all(f"nav a[aria-current=page][href*='/{screen}']"))


def too_wide(browser):
    return browser.driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")


def cells(browser):
    return [cell.text for cell in browser.all("main tbody tr:first-child td")]


def test_a_wide_view_of_odd_values_under_a_long_name_stays_readable(browser, written):
    numbers = ", ".join(f"column_{number} bigint" for number in range(30))
    view = written(f"url string, {numbers}, deep struct<a:int,b:map<string,int>>, price decimal(10,2)", name=LONG)
    texts = ["", "🚀 日本 \u202e abc", "<b>bold</b>", "x" * 3_000, None]
    rows = [{"url": text, **{f"column_{number}": BEYOND + number for number in range(30)}} for text in texts]
    accounted(view, 1, facts={"taken": 5, "out": 5}, **{LONG: {"taken": 5, "out": 5}})
    view.epoch(rows)
    with served(view.home, browser) as server:
        for width in (None, 390, 827):
            browser.width(width)
            show(browser, server, f"{LONG}-job/pipeline")
            for screen in SCREENS:
                go_on(browser, server, f"{LONG}-job/{screen}")
                browser.until(lambda: len(browser.text()) > 40)
                assert too_wide(browser) <= 0, (screen, width)
        browser.width(None)
        go_on(browser, server, f"{LONG}-job/views/{LONG}")
        browser.sees("5 rows")
        heads = [head.text for head in browser.all("main th")]
        assert heads[0] == "url"
        assert heads[-2:] == ["deep", "price"]
        body = browser.text("main tbody")
        assert "9,007,199,254,740,993" in body
        assert "🚀 日本" in body
        assert "<b>bold</b>" in body
        field = browser.driver.find_element(By.CSS_SELECTOR, "input[data-filter]")
        field.send_keys("9007199254740993")
        browser.until(lambda: len(browser.all("main tbody tr")) == 5)
        field.send_keys("7")
        browser.sees("No row passes the filter.")
        assert browser.errors() == []


def test_a_view_and_a_job_without_rows_say_so_with_what_would_change_it(browser, written):
    view = written()
    view.epoch([])
    with served(view.home, browser) as server:
        show(browser, server, "totals-job/views/totals")
        browser.sees("The view has no rows yet.")
        go_on(browser, server, "totals-job/topics/totals")
        browser.sees("headrace produce totals")
        go_on(browser, server, "totals-job/epochs")
        browser.sees("No epoch with records is committed yet.")
        go_on(browser, server, "totals-job/late")
        browser.sees("No record of this job was late or a dead letter.")
        show(browser, server, "no-such-job/views")
        browser.sees("There is no job no-such-job in this home.")


def test_records_with_binary_values_and_keys_are_shown_and_a_large_number_is_sent_as_it_is(browser, written):
    view = written()
    view.epoch([])
    view.log.create_topic("raw", schema="content binary, n bigint")
    with view.log.producer(linger=None) as producer:
        producer.send("raw", {"content": b"\x00\xff", "n": BEYOND}, key=b"\xff\xfe")
        producer.send("raw", {"content": None, "n": None})
        producer.send("raw", {"content": b"text", "n": 1}, key="schlüssel")
    with served(view.home, browser) as server:
        show(browser, server, "totals-job/topics/raw")
        browser.sees("9,007,199,254,740,993")
        text = browser.text(".page")
        assert "//4=" in text
        assert "null" in text
        browser.all("main .page tbody tr.link")[-1].click()
        browser.sees(f'"n": {BEYOND}', ".card")
        field = browser.driver.find_element(By.CSS_SELECTOR, "aside textarea")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(json.dumps({"content": None, "n": BEYOND}))
        browser.click("send")
        browser.sees("1 record stored", "aside")
        Select(browser.driver.find_element(By.CSS_SELECTOR, "select[aria-label='find by']")).select_by_value("key")
        browser.driver.find_element(By.CSS_SELECTOR, "input[data-find]").send_keys("schlüssel" + Keys.ENTER)
        browser.until(lambda: [row.text.split()[0] for row in browser.all("[aria-label='records of raw'] tbody tr")] == ["2"])
        assert browser.errors() == []
    assert view.log.read("raw").to_pylist()[-1]["n"] == BEYOND


def test_a_key_is_found_in_every_partition_and_a_dead_letter_leads_to_its_record(browser, written):
    view = written()
    view.epoch([])
    view.log.create_topic("orders", schema="id string, n bigint", key=["id"], partitions=4)
    view.log.create_topic("orders.dead", schema="step string, reason string, partition int, offset bigint, record string")
    with view.log.producer(linger=None) as producer:
        places = [producer.send("orders", {"id": f"order-{number}", "n": number}) for number in range(40)]
        place = places[17].result()
        letter = {"step": "orders", "reason": "odd", "partition": place.partition, "offset": place.offset, "record": '{"id": "order-17"}'}
        producer.send("orders.dead", letter)
    with served(view.home, browser) as server:
        show(browser, server, "totals-job/topics/orders")
        browser.sees("Records of orders")
        Select(browser.until(lambda: browser.driver.find_element(By.CSS_SELECTOR, "select[aria-label='find by']"))).select_by_value("key")
        browser.driver.find_element(By.CSS_SELECTOR, "input[data-find]").send_keys("order-17" + Keys.ENTER)
        browser.until(lambda: len(browser.all("[aria-label='records of orders'] tbody tr")) == 1)
        browser.driver.get(f"{server.url}/#/totals-job/topics/orders%2F{place.partition}%2F{place.offset}")
        browser.until(lambda: "order-17" in browser.driver.find_element(By.CSS_SELECTOR, "[aria-label='records of orders'] tr.on").text)


def test_a_job_that_failed_says_why_on_every_screen(browser, written):
    view = written()
    view.epoch([{"url": "/a", "views": 1}])
    with pytest.raises(ZeroDivisionError), recorded(view.place, ManualClock(1_767_268_800_000_000)):
        raise ZeroDivisionError("no total to divide by")
    with served(view.home, browser) as server:
        show(browser, server, "totals-job/pipeline")
        for screen in SCREENS:
            go_on(browser, server, f"totals-job/{screen}")
            browser.sees("no total to divide by", "[data-stopped=failed]")
            assert "headrace run" in browser.text("[data-stopped]")


def test_a_job_that_runs_for_the_first_time_can_be_chosen_without_a_new_page(browser, written):
    first = written()
    first.epoch([{"url": "/first", "views": 1}])
    with served(first.home, browser) as server:
        show(browser, server, "totals-job/views")
        browser.sees("/first")
        second = written(name="others")
        second.epoch([{"url": "/second", "views": 2}])
        chooser = browser.driver.find_element(By.CSS_SELECTOR, ".bar select")
        browser.until(lambda: len(Select(chooser).options) == 2)
        Select(chooser).select_by_visible_text("others-job")
        browser.sees("/second")
        assert "/first" not in browser.text()


def test_a_tab_opens_and_goes_on_however_many_others_are_open(browser, written):
    view = written()
    view.epoch([{"url": "/a", "views": 1}])
    first = browser.driver.current_window_handle
    with served(view.home, browser) as server:
        browser.driver.set_page_load_timeout(30)
        try:
            for _ in range(8):
                show(browser, server, "totals-job/views/totals")
                browser.sees("1 row")
                browser.driver.switch_to.new_window("tab")
            view.epoch([{"url": "/b", "views": 2}])
            browser.driver.switch_to.window(first)
            browser.sees("2 rows")
        finally:
            browser.driver.set_page_load_timeout(300)
            for tab in [tab for tab in browser.driver.window_handles if tab != first]:
                browser.driver.switch_to.window(tab)
                browser.driver.close()
            browser.driver.switch_to.window(first)


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(502)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_page_goes_on_after_a_proxy_has_refused_for_a_while(browser, written):
    view = written()
    view.epoch([{"url": "/a", "views": 1}])
    port = free_ports(1)[0]
    with served(view.home, browser, port, leaves=False) as server:
        show(browser, server, "totals-job/views/totals")
        browser.sees("1 row")
    with ThreadingHTTPServer(("127.0.0.1", port), _Refusing) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        browser.until(lambda: any("502" in said for said in browser.errors()))
        proxy.shutdown()
        thread.join()
    view.epoch([{"url": "/later", "views": 2}])
    with served(view.home, browser, port):
        browser.sees("/later")
        browser.until(lambda: not browser.all(".stale"))


def test_the_keyboard_alone_leads_to_a_node_a_record_and_back(browser, written):
    view = written()
    accounted(view, 1, facts={"taken": 2, "out": 2}, totals={"taken": 2, "out": 2})
    view.epoch([{"url": "/a", "views": 1}])
    with view.log.producer(linger=None) as producer:
        view.log.create_topic("facts", schema="url string, views bigint", exist_ok=True)
        producer.send("facts", {"url": "/a", "views": 1})

    def focused():
        return browser.driver.switch_to.active_element

    def tab_to(selector):
        for _ in range(60):
            focused().send_keys(Keys.TAB)
            if focused() in browser.all(selector):
                outline = focused().value_of_css_property("outline-style")
                assert outline != "none"
                return
        raise AssertionError(f"{selector} is not reached by Tab")

    with served(view.home, browser) as server:
        show(browser, server, "totals-job/pipeline")
        browser.until(lambda: browser.all("[data-node=totals]"))
        tab_to("[data-node=totals]")
        focused().send_keys(Keys.ENTER)
        browser.sees("/a", "aside")
        tab_to("aside [role=tab]:nth-child(2)")
        focused().send_keys(Keys.ENTER)
        browser.sees("bigint", "aside")
        focused().send_keys(Keys.CONTROL, "k")
        browser.until(lambda: browser.all(".dialog input"))
        focused().send_keys("topics" + Keys.ENTER)
        browser.sees("Records of")
        tab_to("[data-topic=facts]")
        focused().send_keys(Keys.ENTER)
        browser.sees("Records of facts")
        tab_to("[aria-label='records of facts'] tbody tr")
        focused().send_keys(Keys.ENTER)
        browser.sees('"url": "/a"', ".card")


def test_without_a_clipboard_what_would_be_copied_is_shown(browser, written):
    view = written()
    view.epoch([{"url": "/a", "views": 1}])
    with served(view.home, browser) as server:
        show(browser, server, "totals-job/views/totals")
        browser.sees("1 row")
        browser.driver.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        browser.click("SQL")
        browser.sees("select * from totals limit 100", "[data-copy]")
        assert "copied" not in browser.text()


def test_a_crash_that_no_server_saw_is_shown_as_over(browser, written):
    view, clock = written(), ManualClock(1_767_268_800_000_000)
    Recorder(view.place, clock)
    accounted(view, 1, facts={"taken": 10, "out": 9, "dead_letter": 1})
    view.epoch([])
    run = Recorder(view.place, clock)
    view.epoch([])
    run.record(Progress(2, None, 0, 0, 0.0))
    accounted(view, range(2, 403), facts={"taken": 1, "out": 1})
    for kind in ("offsets", "commits"):
        for batch in range(2):
            (view.place.checkpoint / kind / str(batch)).unlink()
    view.number = 402
    view.commit()
    with served(view.home, browser) as server:
        show(browser, server, "totals-job/epochs")
        browser.sees("then exact again")
        assert "not yet" not in browser.text("[data-crash]")
        assert "epoch 2" in browser.text("[data-crash]")
        assert "10 in = 9 out" in browser.text("[data-identity=before]")
