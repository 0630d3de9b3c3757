"""Packets as rows: none so large that a column of Spark's could not hold it."""

import polars as pl

from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark import wire


def test_a_large_packet_travels_in_pieces(monkeypatch):
    monkeypatch.setattr(wire, "LARGEST", 10_000)
    frame = pl.DataFrame({"n": range(5_000), "text": [f"{number}" for number in range(5_000)]})
    made = wire.lines([Packet("sink", 3, frame, "rows")], Accounting(), EpochTime(1, 0, 0, False, 0, 0), 0, None)
    assert len(made) >= frame.estimated_size() // 10_000
    arrived = list(wire.packets(wire.batch(made).to_pylist()))
    assert {(packet.target, packet.shard, packet.kind) for packet in arrived} == {("sink", 3, "rows")}
    assert max(packet.frame.estimated_size() for packet in arrived) <= 20_000
    assert pl.concat([packet.frame for packet in arrived]).equals(frame)
