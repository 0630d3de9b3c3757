"""Large packets in files: the same records, taken once, and nothing left."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.jobs.start.restarts import may_pass
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark import wire
from headrace.spark.packet_files import PacketFiles, taken

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ODD = pl.DataFrame(
    {
        "text": ["a", None, "a text that is longer than a view", ""],
        "bytes": [b"", b"\xff", None, b"x" * 40],
        "number": [1.5, float("nan"), None, -0.0],
        "sum": [Decimal("1.20"), None, Decimal("-3.00"), Decimal("0.01")],
        "at": [NOON, None, NOON, NOON],
        "list": [[1], [], None, [2, None]],
        "struct": [{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 2, "b": ""}],
        "nothing": [None] * 4,
    }
)
SUMS = ODD.with_columns(total=pl.Series([2**100, None, -1, 0], dtype=pl.Int128))


@pytest.fixture
def files(tmp_path: Path) -> PacketFiles:
    made = PacketFiles(tmp_path / "exchange")
    made.clear()
    return made


@pytest.mark.parametrize("frame", [ODD, ODD[1:3], ODD.clear(), ODD.filter(pl.col("text") == "a"), SUMS, SUMS[1:2]])
def test_records_in_a_file_are_the_same(tmp_path: Path, frame: pl.DataFrame) -> None:
    files = PacketFiles(tmp_path, least=0)
    blob = files.put(frame)
    assert len(list(tmp_path.iterdir())) == 1
    found = taken(blob)
    assert found.schema == frame.schema
    assert found.equals(frame)
    assert not list(tmp_path.iterdir())


def test_only_large_packets_are_in_files(files: PacketFiles) -> None:
    small, large = pl.DataFrame({"n": range(10)}), pl.DataFrame({"n": range(100_000)})
    time = EpochTime(1, 0, 0, False, 0, 0)
    lines = wire.lines([Packet("a", 0, small), Packet("b", 1, large)], Accounting(), time, 0, files)
    assert len(list(files.root.iterdir())) == 1
    assert sum(len(line[-1]) for line in lines) < 1_000
    found = {packet.target: packet.frame for packet in wire.packets(wire.batch(lines).to_pylist())}
    assert found["a"].equals(small)
    assert found["b"].equals(large)


def test_a_shard_writes_its_own_records_and_not_those_of_others(files: PacketFiles) -> None:
    texts = pl.DataFrame({"text": [f"{number:0100}" for number in range(20_000)]})
    taken_sizes = []
    for part in (texts, texts[:4_000], texts.filter(pl.int_range(texts.height) % 5 == 0)):
        files.put(part)
        (file,) = files.root.iterdir()
        taken_sizes.append(file.stat().st_size)
        file.unlink()
    assert max(taken_sizes[1:]) < taken_sizes[0] / 4


def test_a_file_is_not_taken_twice(tmp_path: Path) -> None:
    blob = PacketFiles(tmp_path, least=0).put(ODD)
    taken(blob)
    with pytest.raises(OSError, match="repeated as a whole") as raised:
        taken(blob)
    assert may_pass(f"{type(raised.value).__name__}: {raised.value}")


def test_a_run_begins_without_the_files_of_one_that_was_cut_off(files: PacketFiles) -> None:
    files.put(pl.DataFrame({"n": range(100_000)}))
    files.clear()
    assert not list(files.root.iterdir())
