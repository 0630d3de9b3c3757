"""Named places in product code where a test may kill the process, raise an error, or wait. Switched off, each costs one `if`.

`HEADRACE_FAILPOINTS="disk.sync.before=kill@3;disk.write.before=error(ENOSPC)@1-5"` acts on the third hit, or on hits one to five;
`"seed=7;sink.write.after=kill@5%"` acts on each hit with a chance of one in twenty. `*` stands for all failpoints. `record(FILE)` writes
down which failpoints are passed. `stop(FILE)` does so, too, and stops the process until another one wakes it (SIGCONT). The names are
listed in `failpoint_names`; another package puts its own name and a colon before its names.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from random import Random

from headrace.core.errors import SettingsError
from headrace.core.failpoint_names import FAILPOINTS

VARIABLE = "HEADRACE_FAILPOINTS"
ALL = "*"

active = False
hits: Counter[str] = Counter()

_RULE = re.compile(
    r"(?P<name>[\w.:*]+)=(?P<action>kill|error|delay|record|stop)(?:\((?P<argument>[^()]+)\))?"
    r"(?:@(?:(?P<share>\d+(?:\.\d+)?)%|(?P<first>\d+)(?P<on>-(?P<last>\d+)?)?))?"
)
_SEED = re.compile(r"seed=(\d+)")
_lock = threading.Lock()
_rules: dict[str, FailpointRule] = {}


@dataclass(frozen=True)
class FailpointRule:
    """The action at one failpoint, and the hits it applies to (first to last, counted from one) or its chance on each hit."""

    action: str
    argument: str
    first: int = 1
    last: float = float("inf")
    chance: float = 1.0
    random: Random | None = None

    def due(self, count: int) -> bool:
        return self.first <= count <= self.last and (self.random is None or self.random.random() < self.chance)

    def act(self, name: str) -> None:
        if self.action in ("record", "stop"):
            with open(self.argument, "ab", buffering=0) as file:  # noqa: PTH123 - one append, whole among those of other processes
                file.write(f"{name}\n".encode())
            if self.action == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
        elif self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "delay":
            time.sleep(float(self.argument))
        else:
            number = getattr(errno, self.argument)
            raise OSError(number, os.strerror(number), name)


def hit(name: str) -> None:
    """Pass the failpoint `name`. Callers guard it: `if failpoints.active: failpoints.hit(...)`."""
    with _lock:
        hits[name] += 1
        hits[ALL] += 1
        found = name if name in _rules else ALL
        rule = _rules.get(found)
        due = rule is not None and rule.due(hits[found])
    if rule is not None and due:
        rule.act(name)


def reach(name: str) -> None:
    """Pass the failpoint `name` where the cost of a call does not matter: no guard is needed."""
    if active:
        hit(name)


def configure(text: str | None) -> None:
    """Set the rules from `name=action@hits;...`; the name `*` counts every failpoint; `None` switches all off.

    >>> from headrace.core import failpoints
    >>> failpoints.configure("disk.sync.before=error(EIO)@2"); failpoints.active
    True
    >>> failpoints.configure("disk.snyc.before=kill")
    Traceback (most recent call last):
    headrace.core.errors.SettingsError: HEADRACE_FAILPOINTS: there is no failpoint 'disk.snyc.before'
      hint: disk.sync.before, ... All of them: headrace failpoints
    >>> failpoints.configure(None); failpoints.active
    False
    """
    global active  # noqa: PLW0603 - a module attribute is the cheapest guard a hot path can read
    hits.clear()
    _rules.clear()
    parts = [part.strip() for part in (text or "").split(";") if part.strip()]
    seeds = [found[1] for part in parts if (found := _SEED.fullmatch(part))]
    rules = dict(_parsed(part, seeds[-1] if seeds else "0") for part in parts if not _SEED.fullmatch(part))
    _rules.update(rules)
    active = text is not None


def _parsed(part: str, seed: str) -> tuple[str, FailpointRule]:
    found = _RULE.fullmatch(part)
    if found is None:
        hint = "write name=kill@3, name=error(EIO)@1-5, name=delay(0.5), name=kill@5%, name=record(FILE) or stop(FILE); seed=7 for chances"
        raise SettingsError(f"{VARIABLE}: cannot read {part!r}", hint=hint)
    name, action, argument = found["name"], found["action"], found["argument"]
    _check(name)
    if argument is None and action in ("delay", "record", "stop"):
        needed = "give the seconds to wait: delay(0.5)" if action == "delay" else f"give the file to write to: {action}(FILE)"
        raise SettingsError(f"{VARIABLE}: {part!r} does not say enough", hint=f"give {needed}")
    if found["share"]:
        # Every process draws the same numbers, so that a seed repeats its run.
        return name, FailpointRule(action, argument or "EIO", chance=float(found["share"]) / 100, random=Random(f"{seed}/{name}"))
    first = int(found["first"] or 1)
    last = first if found["first"] and not found["on"] else float(found["last"] or "inf")
    return name, FailpointRule(action, argument or "EIO", first, last)


def _check(name: str) -> None:
    if name == ALL or ":" in name or name in FAILPOINTS:
        return
    near = difflib.get_close_matches(name, FAILPOINTS, cutoff=0.5)
    hint = f"{', '.join(near[:-1])} or {near[-1]}?" if len(near) > 1 else f"{near[0]}?" if near else ""
    raise SettingsError(f"{VARIABLE}: there is no failpoint {name!r}", hint=f"{hint} All of them: headrace failpoints".strip())


configure(os.environ.get(VARIABLE))
