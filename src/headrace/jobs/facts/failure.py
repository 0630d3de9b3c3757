"""The error that stopped a query: Spark passes on errors of its Python workers as text only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headrace.core.errors import HeadraceError, JobError

_OURS = re.compile(
    r"^(?:pyspark\.\S+: .*?)?headrace\.[\w.]+: (?P<fact>.+(?:\n(?!  why: |  hint: |  where: |\s*$|\S*\s+at ).*)*)"
    r"(?:\n  why: (?P<why>.+))?(?:\n  hint: (?P<hint>.+))?(?:\n  where: .+)?",
    re.MULTILINE,
)
_PYTHON = re.compile(r"^(?P<kind>[\w.]+(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)
# Spark's messages about data that an expression does not accept, and about an error in Python, with its files.
_DATA = re.compile(r"SQLSTATE: 22\w{3}")
_RAISED = re.compile(r"\[PYTHON_EXCEPTION\](?P<files>.*?)SQLSTATE", re.DOTALL)
_CRASHED = "Python worker exited unexpectedly"
_STATE = "[CANNOT_LOAD_STATE_STORE"
_OUR_FILES = re.compile(r"/headrace/(?:checkpoint|connectors|core|engine|log|operators|spark)/")


def failure(job: str, error: Exception, spark_log: Path | None, functions: Sequence[str] = ()) -> HeadraceError:
    """The error that a worker raised, if it was one of ours; else Spark's message.

    `functions` are the steps that are functions of the user's: nothing else of a job evaluates expressions that may fail.
    """
    text = str(error)
    # Python tells causes first: the last error is the one that was raised.
    ours = next(reversed([*_OURS.finditer(text)]), None)
    if ours is not None:
        return JobError(f"job {job!r} stopped: {ours['fact'].strip()}", why=ours["why"], hint=ours["hint"])
    story = f"the whole story is in {spark_log}" if spark_log else ""
    if _STATE in text:
        return JobError(
            f"job {job!r} stopped: Spark cannot load the state as of its last epoch",
            why=f"a file of it is torn or missing; {story}" if story else "a file of it is torn or missing",
            hint="headrace repair app.py goes back to the last epoch whose state is complete, or says why it cannot",
        )
    if _CRASHED in text:
        return JobError(
            f"job {job!r} stopped: a Python worker of Spark ended without a message",
            why=f"the system may have killed it, for lack of memory, or a library crashed; {story}",
            hint="give the machine more memory, or let an epoch read fewer records: rows_per_epoch=",
        )
    found = _PYTHON.findall(text)
    said = f"{found[-1][0]}: {found[-1][1]}" if found else text.strip().splitlines()[0]
    blamed = " or ".join(repr(step) for step in functions) if _of_the_user(text) else ""
    return JobError(
        f"job {job!r} stopped in the function of step {blamed}: {said}" if blamed else f"job {job!r} stopped: {said}",
        why="nothing of its last epoch is committed",
        hint=f"{story}; start it again to continue from the last epoch" if story else None,
    )


def _of_the_user(text: str) -> bool:
    raised = _RAISED.search(text)
    return _DATA.search(text) is not None if raised is None else _OUR_FILES.search(raised["files"]) is None
