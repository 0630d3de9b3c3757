"""Named places in product code where a test may kill the process, fail, or wait; one `if` when switched off.

`HEADRACE_FAILPOINTS="disk.sync.before=kill@3;disk.write.before=error(ENOSPC)@1-5"` acts on the third hit, or on hits one to five.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass

from headrace.core.errors import SettingsError

VARIABLE = "HEADRACE_FAILPOINTS"

active = False
hits: Counter[str] = Counter()

_RULE = re.compile(r"(?P<name>[\w.*]+)=(?P<action>kill|error|delay)(?:\((?P<argument>[\w.]+)\))?(?:@(?P<first>\d+)(?:-(?P<last>\d+)?)?)?$")
_lock = threading.Lock()
_rules: dict[str, Rule] = {}


@dataclass(frozen=True)
class Rule:
    """What happens at one failpoint, on which of its hits (first to last, counted from one)."""

    action: str
    argument: str
    first: int
    last: float


def hit(name: str) -> None:
    """Pass the failpoint `name`. Callers guard it: `if failpoints.active: failpoints.hit(...)`."""
    with _lock:
        hits[name] += 1
        hits["*"] += 1
        rule = _rules.get(name)
        count = hits[name]
        if rule is None and "*" in _rules:
            rule, count = _rules["*"], hits["*"]
    if rule is None or not rule.first <= count <= rule.last:
        return
    if rule.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if rule.action == "delay":
        time.sleep(float(rule.argument))
        return
    number = getattr(errno, rule.argument)
    raise OSError(number, os.strerror(number), name)


def reach(name: str) -> None:
    """Pass the failpoint `name` where a call is nothing beside the work around it: no guard is needed."""
    if active:
        hit(name)


def configure(text: str | None) -> None:
    """Set the rules from `name=action@hits;...`; the name `*` counts every failpoint; `None` switches all off.

    >>> from headrace.core import failpoints
    >>> failpoints.configure("disk.sync.before=error(EIO)@2"); failpoints.active
    True
    >>> failpoints.configure(None); failpoints.active
    False
    """
    global active  # noqa: PLW0603 - a module attribute is the cheapest guard a hot path can read
    hits.clear()
    _rules.clear()
    for part in filter(None, (text or "").split(";")):
        found = _RULE.match(part.strip())
        if found is None:
            raise SettingsError(f"{VARIABLE}: cannot read {part!r}", hint="write name=kill@3, name=error(EIO)@1-5 or name=delay(0.5)")
        first = int(found["first"] or 1)
        last = first if found["first"] and "-" not in part.split("@")[-1] else float(found["last"] or "inf")
        _rules[found["name"]] = Rule(found["action"], found["argument"] or "EIO", first, last)
    active = text is not None


configure(os.environ.get(VARIABLE))
