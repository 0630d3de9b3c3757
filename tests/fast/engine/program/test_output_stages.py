"""The stages in which the records of an output are written."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.engine.packet import Packet
from headrace.engine.program.compiler import compiled
from headrace.engine.program.output_stages import output_stages
from headrace.engine.program.program import Program
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.event_time.epoch_time import BEGINNING, LATEST, EpochTime


def clicks(app: Declaration) -> object:
    return app.stream("clicks", schema="user string, n bigint, at timestamp", key="user", time="at", watermark=hr.bounded("0s"))


def chained() -> Program:
    app = Declaration("chained")
    stream = clicks(app)
    per_minute = stream.window(hr.tumbling("1 minute"), by="user").agg(n="count(*)")
    per_hour = per_minute.window(hr.tumbling("1 hour")).agg(n="sum(n)")
    app.sink(stream.where("n > 1"), hr.log("some"), name="some")
    app.view("per_minute", per_minute)
    app.view("per_hour", per_hour)
    app.sink(per_minute.to_stream().select("user").union(per_hour.to_stream().select("'all' as user")), hr.log("both"), name="both")
    app.sink(stream.late().select("user"), hr.log("missed"), name="missed")
    app.sink(stream.where("soundex(user) is not null"), hr.log("sounding"), name="sounding")
    return compiled(app.plan(), 4)


def test_an_output_is_written_at_the_first_level_behind_all_that_emits_to_it() -> None:
    program = chained()
    assert program.levels == 2
    # Late records come from every level, and `both` gets rows of two.
    assert output_stages(program) == {"some": 1, "sounding": 1, "per_minute": 1, "per_hour": 2}


def test_without_an_operator_there_is_one_stage() -> None:
    app = Declaration("plain")
    app.sink(clicks(app), hr.log("all"))
    assert output_stages(compiled(app.plan(), 4)) == {}


def ingested(target: object, shards: int = 4) -> list[Packet]:
    """Records of three partitions on their way to a sink."""
    app = Declaration("plain")
    app.sink(clicks(app).where("n >= 0"), target, name="out")
    columns = {"user": [f"u{n % 7}" for n in range(60)], "n": range(-10, 50), PARTITION: [n % 3 for n in range(60)], OFFSET: range(60)}
    moment = pl.lit(0).cast(pl.Datetime("us", "UTC")).alias("at")
    records = pl.DataFrame(columns, schema_overrides={PARTITION: pl.Int32}).with_columns(moment)
    result = compiled(app.plan(), shards).ingest("clicks", records, EpochTime(1, BEGINNING, 0), LATEST)
    assert result.accounting.rows()[-1]["out"] == 50
    return [packet for packet in result.packets if packet.target == "out"]


def test_records_for_a_sink_without_a_key_are_spread_by_their_partition_and_stay_in_its_order() -> None:
    packets = ingested(hr.log("all"))
    assert len({packet.shard for packet in packets}) == 3
    for packet in packets:
        found = packet.frame.get_column("n").to_list()
        assert len({(n + 10) % 3 for n in found}) == 1
        assert all(before < after for before, after in pairwise(found))
    assert sorted(n for packet in packets for n in packet.frame.get_column("n")) == list(range(50))


def test_records_for_a_sink_with_a_key_are_spread_by_it() -> None:
    packets = ingested(hr.kafka("all", servers="127.0.0.1:1", key="user"))
    assert len(packets) > 1
    users = [user for packet in packets for user in packet.frame.get_column("user").unique()]
    assert len(users) == len(set(users)) == 7
    assert all(packet.frame.get_column("n").is_sorted() for packet in packets)


@pytest.mark.parametrize("target", [hr.log("all"), hr.kafka("all", servers="127.0.0.1:1", key="user")])
def test_a_job_of_one_shard_has_one_packet(target: object) -> None:
    (packet,) = ingested(target, shards=1)
    assert (packet.shard, packet.frame.height) == (0, 50)
