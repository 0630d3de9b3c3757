"""What stopped a query, as an error of ours: Spark passes on errors of its Python workers as text only."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.errors import StreamingQueryException

from headrace.core.errors import HeadraceError, JobError

_OURS = re.compile(
    r"^(?:pyspark\.\S+: .*?)?headrace\.[\w.]+: (?P<fact>.+(?:\n(?!  why: |  hint: |  where: |\s*$|\S*\s+at ).*)*)"
    r"(?:\n  why: (?P<why>.+))?(?:\n  hint: (?P<hint>.+))?(?:\n  where: .+)?",
    re.MULTILINE,
)
_PYTHON = re.compile(r"^(?P<kind>[\w.]+(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)


def failure(job: str, error: StreamingQueryException, spark_log: Path | None) -> HeadraceError:
    """The error that a worker raised, if it was one of ours; else what Spark says."""
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        return JobError(f"job {job!r} stopped: {ours['fact'].strip()}", why=ours["why"], hint=ours["hint"])
    found = _PYTHON.findall(text)
    said = f"{found[-1][0]}: {found[-1][1]}" if found else text.strip().splitlines()[0]
    return JobError(
        f"job {job!r} stopped: {said}",
        why="nothing of its last epoch is committed",
        hint=f"the whole story is in {spark_log}; start it again to go on from the last epoch" if spark_log else None,
    )
