"""Compressed topics: batches are smaller on disk, and the same when they are read."""

import pyarrow as pa
import pytest

from headrace.log.errors import CorruptLog


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


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_batch_is_checked_and_unpacked_once_however_many_polls_it_takes(log, codec):
    log.create_topic("a", config={"compression.type": codec})
    with log.producer() as producer:
        producer.send_table("a", pa.table({"value": [b"%d" % number for number in range(1_000)]}))
    with log.consumer("a") as consumer:
        found = consumer.poll(max_rows=10)["value"].to_pylist()
        (path,) = log.path.glob("topics/a/0/*.segment")
        data = bytearray(path.read_bytes())
        data[-200:-100] = bytes(100)
        path.write_bytes(data)
        while len(found) < 1_000:
            found += consumer.poll(max_rows=10)["value"].to_pylist()
        assert found == [b"%d" % number for number in range(1_000)]
        consumer.seek(0)
        with pytest.raises(CorruptLog):
            consumer.poll()
