"""The progress of each writer in an index of a search service: documents in an index of their own, changed with optimistic concurrency."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from headrace.connectors.output import Writer
from headrace.core import failpoints
from headrace.core.errors import ConnectorError

INDEX = "headrace-epochs"
_SETTINGS = {"settings": {"number_of_shards": 1, "hidden": True}, "mappings": {"enabled": False}}
_CONFLICT = 409
_MOST_ATTEMPTS = 100

Ask = Callable[[str, str, bytes | None], tuple[int, Any]]


@dataclass(frozen=True)
class WriterProgress:
    """The newest run of a writer and its last epoch, and the version of the document that records them."""

    generation: int = -1
    epoch: int = -1
    state: str = "op_type=create"


class ProgressDocuments:
    """The progress documents of one index. `ask` sends a request and returns the status and the answer."""

    def __init__(self, index: str, ask: Ask) -> None:
        self._index = index
        self._ask = ask

    def prepare(self) -> None:
        status, said = self._ask("PUT", f"/{INDEX}", json.dumps(_SETTINGS).encode())
        if status >= 400 and "resource_already_exists_exception" not in json.dumps(said):
            raise ConnectorError(
                f"the index {INDEX} could not be created: {json.dumps(said)[:300]}", hint="the sink records its epochs there"
            )

    def of(self, writer: Writer) -> WriterProgress:
        found, state = self._read(writer.name)
        return WriterProgress(found["run"], found["epoch"], state) if found else WriterProgress()

    def enter(self, writer: Writer) -> WriterProgress:
        """The progress of a writer, which becomes the newest run; raises `WriterFenced` if a newer one has written."""
        progress = self.of(writer)
        if progress.generation > writer.generation:
            raise writer.fenced()
        return progress if progress.generation == writer.generation else self.leave(writer, progress, progress.epoch)

    def leave(self, writer: Writer, progress: WriterProgress, epoch: int) -> WriterProgress:
        """Record an epoch; raises `WriterFenced` if another run has written since the progress was read."""
        failpoints.reach("search.mark.before")
        state = self._change(writer.name, {"run": writer.generation, "epoch": epoch}, progress.state)
        if state is None:
            now = self.of(writer)
            # The answer to a request that was sent twice may refer to the first.
            if (now.generation, now.epoch) != (writer.generation, epoch):
                raise writer.fenced()
            return now
        failpoints.reach("search.mark.after")
        return WriterProgress(writer.generation, epoch, state)

    def number(self, sink: str) -> int:
        """The number of this job among the jobs that have written to the index, counted from one."""
        for _ in range(_MOST_ATTEMPTS):
            known, state = self._read("jobs")
            if sink in known:
                return int(known[sink])
            self._change("jobs", {**known, sink: len(known) + 1}, state)
        raise ConnectorError(f"other writers change the index {INDEX} all the time", hint="check which processes write to it")

    def _read(self, name: str) -> tuple[dict[str, Any], str]:
        status, said = self._ask("GET", self._path(name), None)
        if status >= 400 and not (status == 404 and "found" in said):
            raise ConnectorError(f"the index {INDEX} cannot be read: {json.dumps(said)[:300]}", hint="the sink records its epochs there")
        if not said.get("found"):
            return {}, "op_type=create"
        return said["_source"], f"if_seq_no={said['_seq_no']}&if_primary_term={said['_primary_term']}"

    def _change(self, name: str, document: dict[str, Any], state: str) -> str | None:
        """The new version; None if the document has changed since it was read."""
        status, said = self._ask("PUT", f"{self._path(name)}?{state}", json.dumps(document).encode())
        if status == _CONFLICT:
            return None
        if status >= 400:
            raise ConnectorError(f"the index {INDEX} cannot be written: {json.dumps(said)[:300]}", hint="the sink records its epochs there")
        return f"if_seq_no={said['_seq_no']}&if_primary_term={said['_primary_term']}"

    def _path(self, name: str) -> str:
        return f"/{INDEX}/_doc/{quote(f'{self._index}/{name}', safe='')}"
