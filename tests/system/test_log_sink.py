"""A topic of the log, and a view, as outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.log.output import LogOutput
from headrace.log import Log
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject


class LogSubject(Subject):
    def __init__(self, directory: Path, key: tuple[str, ...]) -> None:
        self.key = key
        self._log = Log(directory)
        config = {"cleanup.policy": "compact"} if key else {}
        self._log.create_topic("out", partitions=2, schema=COLUMNS, config=config)

    def output(self) -> LogOutput:
        return LogOutput(self._log.path, "out", self.key)

    def rows(self) -> list[dict[str, Any]]:
        found = self._log.snapshot("out").table if self.key else self._log.read("out")
        return list(found.select(COLUMNS.names).to_pylist())


@pytest.mark.parametrize("key", [(), KEY], ids=["facts", "table"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_topic_keeps_what_an_output_promises(case: Any, key: tuple[str, ...], tmp_path: Path) -> None:
    case(LogSubject(tmp_path, key))
