"""The page in a real browser over views that are written by hand: forms, links, history, and a server that goes and comes back."""

import json

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from headrace.ops.servers.ports import free_ports
from headrace.testing.written import WrittenView, accounted
from tests.support.browser import looking, served


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with looking(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def totals(tmp_path):
    view = WrittenView(tmp_path, "url string, views bigint", ["url"])
    view.log.create_topic("facts", schema="url string, views bigint", exist_ok=True)
    yield view
    view.close()


def show(browser, server, screen, role="operate"):
    if role is not None:
        browser.open(f"{server.url}/?token={getattr(server.tokens, role)}")
        browser.sees("totals")
    browser.driver.get(f"{server.url}/#/totals-job/{screen}")


def type_into(browser, selector, text):
    field = browser.until(lambda: browser.driver.find_element(By.CSS_SELECTOR, selector))
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text)


def test_a_view_changes_by_itself_and_can_be_seen_as_of_an_epoch_before(browser, totals):
    totals.epoch([{"url": "/a", "views": 1}, {"url": "/b", "views": 7}])
    with served(totals.home, browser) as server:
        show(browser, server, "views/totals")
        browser.sees("2 rows")
        assert "token" not in browser.driver.current_url
        totals.epoch([{"url": "/a", "views": 4321}])
        browser.sees("4,321")
        totals.epoch([{"url": "/c", "views": 5}], removed=[{"url": "/b", "views": 7}])
        browser.sees("/c")
        assert "/b" not in browser.text(".scroll")
        slider = browser.driver.find_element(By.CSS_SELECTOR, "input[type=range]")
        slider.send_keys(Keys.HOME)
        browser.until(lambda: "/b" in browser.text(".scroll"))
        assert "4,321" not in browser.text(".scroll")
        browser.click("live again")
        browser.until(lambda: "4,321" in browser.text(".scroll"))


def test_every_state_of_the_page_is_a_link_and_a_key_leads_anywhere(browser, totals):
    accounted(totals, 1, facts={"taken": 2, "out": 2}, totals={"taken": 2, "out": 2})
    totals.epoch([{"url": "/a", "views": 1}])
    with served(totals.home, browser) as server:
        show(browser, server, "pipeline")
        browser.press("[data-node=totals]")
        browser.until(lambda: browser.driver.current_url.endswith("#/totals-job/pipeline/totals"))
        browser.sees("/a", "aside")
        browser.click("schema", "[role=tab]")
        browser.sees("bigint", "aside")
        browser.click("metrics", "[role=tab]")
        browser.sees("2 in = 2 out", "aside")
        browser.click("plan", "[role=tab]")
        browser.sees("read by", "aside")
        body = browser.driver.find_element(By.TAG_NAME, "body")
        body.send_keys("7")
        browser.sees("Watched, and fine")
        body.send_keys(Keys.CONTROL, "k")
        type_into(browser, ".dialog input", "tot" + Keys.ENTER)
        browser.until(lambda: browser.driver.current_url.endswith("#/totals-job/views/totals"))
        browser.driver.back()
        browser.sees("Watched, and fine")
        browser.driver.find_element(By.TAG_NAME, "body").send_keys("?")
        browser.sees("filter what is shown", ".dialog")
        browser.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
        browser.until(lambda: not browser.all(".dialog"))


def test_a_record_is_sent_from_the_page_and_found_by_its_key(browser, totals):
    totals.epoch([])
    with served(totals.home, browser) as server:
        show(browser, server, "topics/facts")
        browser.sees("Records of facts")
        type_into(browser, "textarea", json.dumps({"url": "/sent", "views": 3}))
        browser.click("send")
        browser.sees("1 record stored: partition 0, offset 0", "aside")
        browser.until(lambda: "/sent" in browser.text(".page"))
        assert totals.log.read("facts").to_pylist()[0]["url"] == "/sent"
        type_into(browser, "textarea", "{nothing")
        browser.click("send")
        browser.sees("this is not JSON", "aside")


def test_a_group_goes_on_from_another_place(browser, totals):
    totals.epoch([])
    with totals.log.producer(linger=None) as producer:
        producer.send("facts", {"url": "/a", "views": 1})
    with totals.log.consumer("facts", group="readers", start="beginning") as consumer:
        while consumer.poll(timeout="1 second") is None:
            pass
        consumer.commit()
    with served(totals.home, browser) as server:
        show(browser, server, "topics/facts")
        browser.sees("readers", "aside")
        Select(browser.until(lambda: browser.driver.find_element(By.CSS_SELECTOR, "aside select"))).select_by_visible_text("beginning")
        browser.click("seek readers")
        browser.sees("partition 0 at 0", "aside")
    assert totals.log.describe_group("readers")["partitions"][0]["committed"] == 0


def test_a_dead_letter_is_fixed_and_sent_again(browser, totals):
    totals.log.create_topic("facts.dead", schema="step string, reason string, partition int, offset bigint, record string")
    with totals.log.producer(linger=None) as producer:
        letter = {"step": "facts", "reason": "no number", "partition": 0, "offset": 7, "record": '{"url": "/a", "views": null}'}
        producer.send("facts.dead", letter)
    totals.epoch([])
    with served(totals.home, browser) as server:
        show(browser, server, "late/facts.dead")
        browser.press("main tbody tr")
        browser.sees("no number", "aside")
        assert "offset 7" in browser.text("aside")
        type_into(browser, "aside textarea", json.dumps({"url": "/a", "views": 12}))
        browser.click("send again")
        browser.sees("1 record sent again", "aside")
        browser.click("send again")
        browser.sees("had been sent again before", "aside")
    assert [row["views"] for row in totals.log.read("facts").to_pylist()] == [12]


def test_a_page_goes_on_after_the_server_restarts_without_a_gap(browser, totals):
    totals.epoch([{"url": "/a", "views": 1}])
    port = free_ports(1)[0]
    with served(totals.home, browser, port, leaves=False) as server:
        show(browser, server, "views/totals", "read")
        browser.sees("1 row")
    browser.until(lambda: browser.all(".stale"))
    totals.epoch([{"url": "/while-it-was-gone", "views": 2}])
    with served(totals.home, browser, port):
        browser.sees("/while-it-was-gone")
        browser.until(lambda: not browser.all(".stale"))
        totals.epoch([{"url": "/after", "views": 3}])
        browser.sees("3 rows")


def test_a_reader_is_told_which_token_it_takes(browser, totals):
    totals.epoch([])
    with served(totals.home, browser) as server:
        show(browser, server, "topics/facts", "read")
        browser.sees("To send records, open the page with the token of the role operate")
        show(browser, server, "epochs", None)
        browser.sees("headrace serve --development")


def test_without_a_token_there_is_no_page(browser, totals):
    totals.epoch([])
    with served(totals.home, browser) as server:
        browser.driver.delete_all_cookies()
        browser.open(f"{server.url}/?token=wrong")
        browser.until(lambda: "a token is needed" in browser.driver.page_source)
