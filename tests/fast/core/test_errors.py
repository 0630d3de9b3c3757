"""Every error says a fact, why it matters, and what to do, on both sides of a process border."""

import inspect
import pickle

import pytest

from headrace.core import errors
from headrace.core.errors import HeadraceError, LogError, PlanError

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, HeadraceError)]


class OffsetMissing(LogError):
    """An error with a constructor of its own, as the log has them."""

    def __init__(self, topic: str, offset: int) -> None:
        super().__init__(f"topic {topic!r} has no offset {offset}", hint="seek to the beginning")
        self.offset = offset


def test_an_error_prints_fact_why_hint_and_place_in_this_order():
    error = PlanError("join 'a' x 'b' has no time bound", why="its state would grow forever", hint="give within=", where="app.py:7")
    assert str(error).splitlines() == [
        "join 'a' x 'b' has no time bound",
        "  why: its state would grow forever",
        "  hint: give within=",
        "  where: app.py:7",
    ]


def test_what_is_not_said_is_not_printed():
    assert str(PlanError("a fact")) == "a fact"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_error_survives_pickling(kind):
    there = kind("a fact", why="a reason", hint="a way out", where="app.py:1")
    back = pickle.loads(pickle.dumps(there))
    assert type(back) is kind
    assert str(back) == str(there)


def test_an_error_with_its_own_constructor_survives_pickling():
    back = pickle.loads(pickle.dumps(OffsetMissing("clicks", 7)))
    assert (back.offset, back.hint, str(back).splitlines()[0]) == (7, "seek to the beginning", "topic 'clicks' has no offset 7")


def test_the_tree_in_the_docstring_names_every_kind():
    assert [kind.__name__ for kind in KINDS if kind.__name__ not in errors.__doc__] == []
