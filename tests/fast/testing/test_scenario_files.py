"""Files of scenarios: what they may contain, and the error for a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.api.declaration import Declaration
from headrace.core.errors import HeadraceError
from headrace.testing.driver import TestDriver
from headrace.testing.scenarios.performance import perform
from headrace.testing.scenarios.scenario import Scenario

STORY = """
title: Counting
teaches: One after the other.
streams:
  clicks:
    schema: page string, price decimal(5,2), at timestamp
    key: page
    time: at
    watermark: {bounded: 10 seconds, idle: 1 minute, max_ahead: 1 hour}
views:
  per_minute:
    - clicks
    - window: {tumbling: 1 minute, by: page}
    - agg: {clicks: count(*), price: max(price)}
transcript:
  - send: {clicks: [{page: /a, price: 1.50, at: 12:00:05}]}
  - expect: {watermark: 11:59:55, per_minute: []}
  - end
  - expect: {per_minute: [{page: /a, clicks: 1, price: 1.50, window_end: 12:01:00}]}
"""


def load(folder: Path, text: str) -> Scenario:
    file = folder / "story.yaml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def performed(scenario: Scenario) -> int:
    app = Declaration(scenario.name)
    scenario.declare(app)
    with TestDriver(app, starts_at=scenario.starts_at) as driver:
        return perform(scenario, driver)


def test_a_story_is_read_and_performed(tmp_path: Path) -> None:
    scenario = load(tmp_path, STORY)
    assert (scenario.name, scenario.title, scenario.partitions) == ("story", "Counting", {"clicks": 1})
    assert performed(scenario) == 3


@pytest.mark.parametrize(
    ("former", "other", "said"),
    [
        ("title: Counting", "titel: Counting", "'titel' is not known here"),
        ("teaches: One after the other.", "", "'teaches' is missing"),
        ("title: Counting", "title: [", "not YAML"),
        ("key: page", "keys: page", "story.yaml.streams.clicks: 'keys' is not known"),
        ("key: page", "key: url", "no such column"),
        ("bounded: 10 seconds", "bounded: soon", "'soon' is not a duration"),
        ("{bounded: 10 seconds, idle: 1 minute, max_ahead: 1 hour}", "{idle: 1 minute}", "does not say which it is"),
        ("- clicks\n", "- taps\n", r"per_minute\[0\]: there is no stream or step 'taps'"),
        ("- window: {tumbling: 1 minute, by: page}", "- windows: {tumbling: 1 minute}", "'windows' is not known here"),
        ("tumbling: 1 minute, ", "", "does not say which window it is"),
        ("tumbling: 1 minute", "session: 1 minute, every: 5 seconds", "every"),
        ("    - window: {tumbling: 1 minute, by: page}\n", "", "follows a stream"),
        ("    - agg: {clicks: count(*), price: max(price)}\n", "", "ends with windows or groups"),
        ("max(price)", "max(cost)", "cost"),
        ("send: {clicks: [{page: /a", "send: {taps: [{page: /a", "'taps' is not known here"),
        ("{page: /a, price: 1.50, at: 12:00:05}", "{url: /a}", "'url' is not known here"),
        ("at: 12:00:05", "at: noon", "'noon' is not a time"),
        ("  - end\n", "  - ends\n", "names with values is expected here, not 'ends'"),
        ("  - end\n", "  - {wait: 1 minute, send: {}}\n", "one thing at a time, not wait, send"),
        ("  - end\n", "  - wait: a while\n", "'a while' is not a duration"),
        ("clicks: 1, price", "visits: 1, price", "'visits' is not known here"),
        ("per_minute: []}", "per_hour: []}", "'per_hour' is not known here"),
        ("per_minute: []}", "accounting: {clicks: {inn: 1}}}", "'inn' is not known here"),
        ("window_end: 12:01:00}]", "window_end: 12:01:00}, {page: /a}]", "names other columns"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, former: str, other: str, said: str) -> None:
    assert former in STORY
    with pytest.raises(HeadraceError, match=said) as error:
        load(tmp_path, STORY.replace(former, other))
    assert "story.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("former", "other", "said"),
    [
        ("per_minute: []}", "per_minute: [{clicks: 1}]}", r"transcript\[1\].expect.per_minute:\s+expected:\s+clicks=1\s+there is: nothing"),
        ("clicks: 1, price", "clicks: 2, price", r"clicks=2.*\s+there is:\s+page='/a', clicks=1"),
        ("watermark: 11:59:55", "watermark: 12:00:00", "watermark: expected 2026-01-01 12:00:00.*there is 2026-01-01 11:59:55"),
        ("per_minute: []}", "accounting: {clicks: {in: 2}}}", "clicks: expected {'in': 2}, there is {'in': 1}"),
        ("per_minute: []}", "accounting: {taps: {in: 2}}}", "no step 'taps' counted anything; steps: clicks"),
    ],
)
def test_what_does_not_hold_is_shown_next_to_what_was_expected(tmp_path: Path, former: str, other: str, said: str) -> None:
    assert former in STORY
    scenario = load(tmp_path, STORY.replace(former, other))
    with pytest.raises(AssertionError, match=said):
        performed(scenario)
