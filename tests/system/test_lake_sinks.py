"""Parquet files and Delta tables as outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

import headrace as hr
from headrace.connectors.output import Output
from headrace.testing.conformance import CASES, COLUMNS, KEY, Subject
from headrace.testing.conformance.cases import expect, the_facts_of_a_key_keep_their_order
from headrace.testing.conformance.subject import Hand, made


class ParquetSubject(Subject):
    stall = "stage.middle"

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "out"
        self.output().prepare(2)

    def output(self) -> Output:
        return hr.parquet(self.directory).output(COLUMNS, ())

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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_delta_table_keeps_what_an_output_promises(case: Any, tmp_path: Path) -> None:
    case(DeltaSubject(tmp_path, KEY))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_iceberg_table_keeps_what_an_output_promises(case: Any, tmp_path: Path) -> None:
    case(IcebergSubject(tmp_path, KEY))


@pytest.mark.parametrize("subject", [DeltaSubject, IcebergSubject])
def test_facts_are_added_to_a_table(subject: type[DeltaSubject | IcebergSubject], tmp_path: Path) -> None:
    the_facts_of_a_key_keep_their_order(subject(tmp_path, ()))


def test_an_epoch_of_several_tasks_is_one_commit_and_seen_only_then(tmp_path: Path) -> None:
    subject = DeltaSubject(tmp_path, KEY)
    first, second = Hand(subject), Hand(subject, task=1)
    before = DeltaTable(subject.directory).version()
    first.stage(1, made(1)[:3])
    second.stage(1, made(1)[3:])
    expect(subject, [])
    first.output.publish(first.writer.job, first.writer.sink, 1)
    expect(subject, made(1))
    assert DeltaTable(subject.directory).version() == before + 1


def test_what_a_run_staged_and_did_not_publish_is_published_by_the_next(tmp_path: Path) -> None:
    subject = ParquetSubject(tmp_path)
    hand = Hand(subject, generation=1)
    hand.stage(1, made(1))
    hand.stage(2, made(2))
    expect(subject, [])
    later = Hand(subject, generation=2)
    later.output.publish(later.writer.job, later.writer.sink, 1)
    expect(subject, made(1))
    assert later.write(3, made(3))
    expect(subject, [*made(1), *made(2), *made(3)])
