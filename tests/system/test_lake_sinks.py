"""Parquet files, Delta tables and Iceberg tables as outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

import headrace as hr
from headrace.connectors.output import Changes, Output, Writer
from headrace.connectors.staged_output import StagedOutput
from headrace.core.columns.schema import schema
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject
from headrace.testing.conformance.cases import (
    a_writer_killed_at_any_step_has_written_all_or_nothing,
    expect,
    the_facts_of_a_key_keep_their_order,
)
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.conformance.victim import Victim

OF_FACTS = (the_facts_of_a_key_keep_their_order, a_writer_killed_at_any_step_has_written_all_or_nothing)


class ParquetSubject(Subject):
    stall = "stage.middle"

    def __init__(self, directory: Path, roll: str | None = None) -> None:
        self.directory, self.roll = directory / "out", roll
        self.output().prepare(2)

    def output(self) -> Output:
        return hr.parquet(self.directory, roll=self.roll).output(COLUMNS, ())

    def rows(self) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        return [row for file in sorted(self.directory.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


class DeltaSubject(Subject):
    stall = "stage.middle"

    def __init__(self, directory: Path, key: tuple[str, ...]) -> None:
        self.key, self.directory = key, directory / "out"
        self.output().prepare(2)

    def output(self) -> Output:
        return hr.delta(self.directory).output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        found = DeltaTable(self.directory).to_pyarrow_table()
        return list(found.sort_by("n").to_pylist())


class IcebergSubject(Subject):
    stall = "stage.middle"

    def __init__(self, directory: Path, key: tuple[str, ...]) -> None:
        self.key, self.directory = key, directory / "lake"
        self.output().prepare(2)

    def output(self) -> Output:
        return hr.iceberg("shop.out", warehouse=self.directory).output(COLUMNS, self.key)

    def rows(self) -> list[dict[str, Any]]:
        with SqlCatalog("headrace", uri=f"sqlite:///{self.directory}/catalog.db", warehouse=self.directory.as_uri()) as catalog:
            return list(catalog.load_table("shop.out").scan().to_arrow().sort_by("n").to_pylist())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_parquet_files_keep_what_an_output_promises(case: Any, tmp_path: Path) -> None:
    case(ParquetSubject(tmp_path))


def test_epochs_wait_to_become_one_file_and_a_kill_amid_that_loses_and_repeats_nothing(tmp_path: Path) -> None:
    subject = ParquetSubject(tmp_path, roll="1 hour")
    held = list[dict[str, Any]]()
    for first, failpoint in ((1, "publish.commit.before"), (4, "publish.commit.after")):
        hand, rows = SubjectWriter(subject, generation=first), [row for epoch in range(first, first + 3) for row in made(epoch)]
        for epoch in range(first, first + 3):
            assert hand.write(epoch, made(epoch))
        expect(subject, held)
        _age(subject, hours=2)
        killed = Victim(hand.output, hand.writer, first + 2, made(first + 2), f"{failpoint}=kill").killed()
        assert killed
        expect(subject, held if failpoint.endswith("before") else [*held, *rows])
        # Another run repeats the last epoch, and the files come when it ends.
        later = SubjectWriter(subject, generation=first + 1)
        later.write(first + 2, made(first + 2))
        finish(later, first + 2)
        held += rows
        expect(subject, held)
    assert len(list(subject.directory.glob("*.parquet"))) == 2
    assert later.output.last_epoch(later.writer) == 6


def finish(hand: SubjectWriter, epoch: int) -> None:
    """What the driver does when a run ends."""
    assert isinstance(hand.output, StagedOutput)
    hand.output.finish(hand.writer.job, hand.writer.sink, epoch)


def _age(subject: ParquetSubject, *, hours: int) -> None:
    """As if what is staged had been so for some hours."""
    for file in (subject.directory / ".staged").rglob("*.parquet"):
        moment = file.stat().st_mtime - 3600 * hours
        os.utime(file, (moment, moment))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_delta_table_keeps_what_an_output_promises(case: Any, tmp_path: Path) -> None:
    case(DeltaSubject(tmp_path, KEY))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_iceberg_table_keeps_what_an_output_promises(case: Any, tmp_path: Path) -> None:
    case(IcebergSubject(tmp_path, KEY))


@pytest.mark.parametrize("subject", [DeltaSubject, IcebergSubject])
@pytest.mark.parametrize("case", OF_FACTS, ids=lambda case: case.__name__)
def test_facts_are_added_to_a_table(case: Any, subject: type[DeltaSubject | IcebergSubject], tmp_path: Path) -> None:
    case(subject(tmp_path, ()))


def test_an_epoch_of_several_tasks_is_one_commit_and_seen_only_then(tmp_path: Path) -> None:
    subject = DeltaSubject(tmp_path, KEY)
    first, second = SubjectWriter(subject), SubjectWriter(subject, task=1)
    before = DeltaTable(subject.directory).version()
    first.stage(1, made(1)[:3])
    second.stage(1, made(1)[3:])
    expect(subject, [])
    first.output.publish(first.writer.job, first.writer.sink, 1)
    expect(subject, made(1))
    assert DeltaTable(subject.directory).version() == before + 1


def test_what_a_run_staged_and_did_not_publish_is_published_by_the_next(tmp_path: Path) -> None:
    subject = ParquetSubject(tmp_path)
    hand = SubjectWriter(subject, generation=1)
    hand.stage(1, made(1))
    hand.stage(2, made(2))
    expect(subject, [])
    later = SubjectWriter(subject, generation=2)
    later.output.publish(later.writer.job, later.writer.sink, 1)
    expect(subject, made(1))
    assert later.write(3, made(3))
    expect(subject, [*made(1), *made(2), *made(3)])


WIDER = schema("user string, n bigint, note string, tags array<string>")


def lake(kind: str, directory: Path, columns: pa.Schema, key: tuple[str, ...] = KEY, **options: Any) -> Any:
    """A table of some kind, prepared for these columns."""
    targets = {
        "parquet": lambda: hr.parquet(directory),
        "delta": lambda: hr.delta(directory, **options),
        "iceberg": lambda: hr.iceberg("shop.out", warehouse=directory, **options),
    }
    output = targets[kind]().output(columns, () if kind == "parquet" else key)
    output.prepare(2)
    return output


def put(output: Any, epoch: int, rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows, schema_overrides={"n": pl.Int64})
    assert output.write(Writer("job", "sink"), epoch, Changes(frame), None)
    output.publish("job", "sink", epoch)


def read(kind: str, directory: Path) -> list[tuple[Any, ...]]:
    """What DuckDB sees of a table."""
    if kind == "parquet":
        return duckdb.sql(f"from read_parquet('{directory}/*.parquet', union_by_name=true) order by n").fetchall()
    if kind == "delta":
        return duckdb.from_arrow(DeltaTable(directory).to_pyarrow_dataset()).order("n").fetchall()
    with SqlCatalog("headrace", uri=f"sqlite:///{directory}/catalog.db", warehouse=directory.as_uri()) as catalog:
        return catalog.load_table("shop.out").scan().to_duckdb("held").sql("from held order by n").fetchall()


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_table_gets_the_columns_that_results_have_since_it_was_made_and_duckdb_reads_all(kind: str, tmp_path: Path) -> None:
    put(lake(kind, tmp_path, COLUMNS), 1, [{"user": "a", "n": 1, "note": "old"}])
    put(lake(kind, tmp_path, WIDER), 2, [{"user": "b", "n": 2, "note": "new", "tags": ["x", "y"]}])
    # An older job goes on writing what it knows.
    put(lake(kind, tmp_path, COLUMNS), 3, [{"user": "c", "n": 3, "note": "late"}])
    assert read(kind, tmp_path) == [("a", 1, "old", None), ("b", 2, "new", ["x", "y"]), ("c", 3, "late", None)]
    with pytest.raises(hr.SchemaError, match=r"column 'n' of .* is bigint, but results have it as string"):
        lake(kind, tmp_path, schema("user string, n string"))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_small_files_are_merged_and_nothing_of_them_is_lost(kind: str, tmp_path: Path) -> None:
    output = lake(kind, tmp_path, COLUMNS, (), compact_every=4)
    for epoch in range(1, 10):
        put(output, epoch, [{"user": "a", "n": epoch, "note": None}])
        # A commit that is there is not made again behind the one that merged files.
        assert not output.write(Writer("job", "sink"), epoch, Changes(pl.DataFrame()), None)
    assert [row[1] for row in read(kind, tmp_path)] == list(range(1, 10))
    files = DeltaTable(tmp_path).file_uris() if kind == "delta" else list(output._table().scan().plan_files())
    assert len(files) <= 5
