"""The cost of an epoch for a task of a lake sink does not grow with the table. Files opened and directories listed are counted."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headrace as hr
from headrace.connectors.output import Changes, Writer
from headrace.core.columns.schema import schema
from headrace.testing.conformance import COLUMNS


class Spy:
    """Counts what Python asks of the system, while it is on."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.on = False
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in ("os.listdir", "os.scandir"):
            self.on = False
            self.counts["names listed"] += len(list(Path(arguments[0]).iterdir()))
            self.on = True
        elif self.on and event == "open":
            self.counts["opened"] += 1

    def cost_of(self, work: Any) -> Counter[str]:
        self.counts, self.on = Counter(), True
        try:
            work()
        finally:
            self.on = False
        return self.counts


# The system keeps an audit hook for the life of the process.
spy = Spy()


def targets(directory: Path) -> dict[str, Any]:
    return {
        "parquet": hr.parquet(directory),
        "delta": hr.delta(directory, compact_every=0),
        "iceberg": hr.iceberg("shop.out", warehouse=directory, compact_every=0),
        "search": hr.search(directory),
    }


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg", "search"])
def test_a_task_stages_an_epoch_without_a_look_at_the_table(kind, tmp_path):
    output = targets(tmp_path / "table")[kind].output(COLUMNS, ())
    output.prepare(1)
    writer, costs = Writer("job", "sink"), []
    for epoch in range(1, 31):
        changes = Changes(pl.DataFrame({"user": ["a"], "n": [epoch], "note": ["x"]}))
        costs.append(spy.cost_of(lambda: output.write(writer, epoch, changes, None)))  # noqa: B023 - it runs at once
        if epoch == 5:
            hidden = hide(tmp_path, output.staged_in)
            assert not output.write(writer, 1, changes, None)
            assert output.write(writer, epoch + 1, changes, None) is True
            show(hidden)
        output.publish("job", "sink", epoch)
    assert costs[9] == costs[-1]
    assert output.last_epoch(writer) == 30


def hide(directory: Path, staged: Path) -> list[tuple[Path, Path]]:
    """Take away every file of a table but what is staged."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_relative_to(staged)]
    moved = [(path, path.with_name(f"{path.name}.hidden")) for path in files]
    for path, away in moved:
        path.rename(away)
    return moved


def show(moved: list[tuple[Path, Path]]) -> None:
    for path, away in moved:
        away.rename(path)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_epochs_that_wait_become_one_commit_with_the_last_row_of_each_key(kind, tmp_path):
    made = hr.delta(tmp_path, roll="1 hour") if kind == "delta" else hr.iceberg("shop.out", warehouse=tmp_path, roll="1 hour")
    output = made.output(schema("k string, n bigint"), ("k",))
    output.prepare(1)
    writer = Writer("job", "sink")
    for epoch, (rows, removed) in enumerate([({"k": ["a", "b"], "n": [1, 1]}, [False, False]), ({"k": ["a"], "n": [2]}, [False]),
                                            ({"k": ["b"], "n": [9]}, [True]), ({"k": ["c"], "n": [4]}, [False])], 1):  # fmt: skip
        assert output.write(writer, epoch, Changes(pl.DataFrame(rows), pl.Series(removed)), None)
        output.publish("job", "sink", epoch)
    assert output.last_epoch(writer) is None
    output.finish("job", "sink", 4)
    assert output.last_epoch(writer) == 4
    assert sorted((row["k"], row["n"]) for row in rows_of(kind, output)) == [("a", 2), ("c", 4)]


def rows_of(kind: str, output: Any) -> list[dict[str, Any]]:
    if kind == "delta":
        from deltalake import DeltaTable

        return list(DeltaTable(output.directory).to_pyarrow_table().to_pylist())
    return list(output._table().scan().to_arrow().to_pylist())
