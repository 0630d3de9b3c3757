"""Rules about the life of a job: whether it runs, and whether its input was declared complete."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.ops.why.facts import JobFacts
from headrace.ops.why.finding import Finding

_START = "start it: headrace run app.py"


def not_running(facts: JobFacts) -> Iterator[Finding]:
    """A job that does not run emits nothing."""
    found, name = facts.listed, facts.listed.job
    if found.state == "never ran":
        yield Finding("not running", f"job {name!r} never ran", remedy=_START)
    elif found.state == "killed":
        yield Finding(
            "not running",
            f"job {name!r} was killed",
            why="its last run ended without a message: kill -9, no memory, or the machine went down",
            remedy="start it again: it continues after its last epoch; headrace logs shows what it said",
        )
    elif found.state == "failed":
        yield Finding(
            "not running",
            f"job {name!r} failed: {found.last_error}",
            found.since,
            "a job that fails stops, so that nothing is lost",
            "remove the cause and start it again: it continues after its last epoch",
        )
    elif found.state == "stopped" and (found.lag or not _ended(facts)):
        waiting = f"; {found.lag:,} records wait" if found.lag else ""
        yield Finding("not running", f"job {name!r} is stopped{waiting}", found.since, remedy=_START)


def starting(facts: JobFacts) -> Iterator[Finding]:
    """A job that runs and has committed nothing yet."""
    if facts.listed.state == "running" and facts.plan is None:
        yield Finding(
            "starting",
            f"job {facts.listed.job!r} runs and has finished no epoch yet",
            facts.listed.since,
            "Spark takes some seconds to start, and the first epoch takes in all that waits",
            "wait; headrace logs shows what it does",
            wrong=False,
        )


def complete(facts: JobFacts) -> Iterator[Finding]:
    """An input that was declared complete closes every window, and all that comes later is late."""
    if _ended(facts):
        waiting = f"; {facts.listed.lag:,} records came since" if facts.listed.lag else ""
        yield Finding(
            "input complete",
            f"the input was declared complete in epoch {_ended(facts)} (--until end){waiting}",
            why="every window is closed, so a record that comes now is late",
            remedy="run with --until flushed to close windows and continue later; headrace reset app.py starts from the beginning",
            wrong=bool(facts.listed.lag),
        )


def _ended(facts: JobFacts) -> int:
    return 0 if facts.plan is None else facts.plan.ended
