"""The observer of sinks finds what readers must not see."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.connectors.output import Output
from headrace.testing.conformance import KEY, Subject
from headrace.testing.conformance.observer import Seen, observed
from headrace.testing.conformance.subject import made

Rows = list[dict[str, Any]]


class Shown(Subject):
    """A target that shows one thing after the other, and the last one from then on."""

    def __init__(self, *views: Rows, key: tuple[str, ...] = (), whole: bool = True) -> None:
        self.key, self.whole = key, whole
        self._views = list(views)

    def output(self) -> Output:
        raise AssertionError("nobody writes to it")

    def rows(self) -> Rows:
        return self._views.pop(0) if len(self._views) > 1 else self._views[0]


def judged(subject: Shown, looks: int) -> list[str]:
    seen = Seen()
    for _ in range(looks):
        seen.take(subject.parts())
    return seen.faults(subject)


def test_whole_epochs_one_after_the_other_are_as_they_should_be() -> None:
    assert judged(Shown([], made(1), [*made(1), *made(2)]), 3) == []
    assert judged(Shown([], made(1), made(2), key=KEY), 3) == []


@pytest.mark.parametrize(
    ("views", "key", "said"),
    [
        (([], made(1)[:4], made(1)), (), "a part of epoch 1"),
        ((made(1), [*made(1), *made(2)[:1]], [*made(1), *made(2)]), (), "a part of epoch 2"),
        ((made(1), [*made(1), *made(1)], made(1)), (), "epoch 1 twice"),
        ((made(1), [*made(2), *made(1)]), (), "u0: 100 after 200"),
        ((made(1), [*made(2)[:3], *made(1)[3:]], made(2)), KEY, "of a table at once"),
    ],
)
def test_what_must_not_be_seen_is_found_even_if_it_is_gone_in_the_end(views: tuple[Rows, ...], key: tuple[str, ...], said: str) -> None:
    assert any(said in fault for fault in judged(Shown(*views, key=key), len(views)))


def test_where_records_are_seen_one_by_one_only_doubles_and_disorder_count() -> None:
    assert judged(Shown(made(1)[:2], made(1), whole=False), 2) == []
    assert judged(Shown([*made(1), *made(1)], whole=False), 1) == ["epoch 1 twice"]


def test_a_block_that_is_observed_fails_by_what_was_seen() -> None:
    with pytest.raises(AssertionError, match="epoch 1 twice"), observed(Shown([*made(1), *made(1)])):
        pass
