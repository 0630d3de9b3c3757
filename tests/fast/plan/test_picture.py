"""A plan as a picture: every step once, nothing of the user's text taken for markup."""

import re

from headrace.core import html
from headrace.plan.picture import Box, picture


def test_every_box_is_drawn_once_and_behind_what_it_reads():
    boxes = [Box("a", "stream", ()), Box("b", "where x > 1", ("a",)), Box("c", "view", ("b",)), Box("d", "view", ("a", "b"))]
    drawn = picture(boxes)
    assert drawn.count("<rect") == 4
    assert drawn.count("<path") == 4
    places = {name: int(x) for x, name in re.findall(r'<text x="(\d+)" y="\d+" fill="currentColor" font-weight="600">(\w)<', drawn)}
    assert places["a"] < places["b"] < places["c"] == places["d"]


def test_words_of_the_user_are_text():
    drawn = picture([Box("a", "where url = '<script>'", ())])
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "<b>" not in html.table([{"url": "<b>"}])
