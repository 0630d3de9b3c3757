"""Waiting for shared memory to change: nothing is missed, and nobody waits longer than told."""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Callable, Sequence

import pytest

from headrace.log import bell
from headrace.log.bell import Watch, Word

pytestmark = pytest.mark.parametrize("wait", [bell.wait, bell.poll])
Wait = Callable[[Sequence[Watch], float], None]
_LONG = 60


@pytest.fixture
def memory():
    return memoryview(mmap.mmap(-1, 4096))


def test_a_change_before_the_wait_is_not_waited_for(wait: Wait, memory):
    word = Word(memory, 8)
    watch = word.watch()
    memory[8] = 1
    wait([watch], _LONG)
    assert watch.changed


def test_a_change_of_any_word_ends_the_wait(wait: Wait, memory):
    words = [Word(memory, 64 * place) for place in range(8)]
    watches = [word.watch() for word in words]
    waiter = threading.Thread(target=wait, args=(watches, _LONG))
    waiter.start()
    memory[64 * 5] = 1
    words[5].ring()
    waiter.join(_LONG / 2)
    assert not waiter.is_alive()


def test_a_change_by_another_process_ends_the_wait(wait: Wait, memory):
    ours, theirs = Word(memory, 0), Word(memory, 64)
    child = os.fork()
    if child == 0:
        for turn in range(1, 101):
            while theirs.watch().seen < turn:
                wait([Watch(theirs, turn - 1)], _LONG)
            memory[0] = turn
            ours.ring()
        os._exit(0)
    for turn in range(1, 101):
        memory[64] = turn
        theirs.ring()
        while ours.watch().seen < turn:
            wait([Watch(ours, turn - 1)], _LONG)
    assert os.waitpid(child, 0)[1] == 0


def test_a_wait_without_a_change_ends_in_time(wait: Wait, memory):
    watch = Word(memory, 0).watch()
    wait([watch], 0.01)
    wait([watch], 0)
    assert not watch.changed


def test_more_words_than_the_system_takes_are_waited_for_too(wait: Wait, memory):
    watches = [Word(memory, 4 * place).watch() for place in range(1000)]
    memory[4 * 999] = 1
    wait(watches, _LONG)
    assert watches[-1].changed


def test_without_a_word_a_wait_is_a_pause(wait: Wait, memory):
    wait([], 0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems poll")
def test_linux_has_futexes(wait: Wait, memory):
    assert bell._FUTEX is not None
