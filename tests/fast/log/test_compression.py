"""Compressed topics: batches are smaller on disk, and the same when they are read."""

import pyarrow as pa
import pytest


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_an_append_of_several_compressed_batches_is_read_back_whole(log, codec):
    log.create_topic("a", config={"compression.type": codec})
    rows = pa.table({"value": [b"%d" % number + bytes(1_000) for number in range(5_000)]})
    with log.producer() as producer:
        producer.send_table("a", rows)
        producer.send_table("a", rows)
    table = log.read("a")
    assert table["_offset"].num_chunks > 4
    assert table["value"].to_pylist() == rows["value"].to_pylist() * 2
    assert log.describe("a")["partitions"][0]["bytes"] < rows.nbytes / 10
