"""An epoch reads about as many bytes of a topic as it may, whatever the size of its records, and in the end all of them."""

import pyarrow as pa
import pytest

from headrace.connectors.log.input import LogInput
from headrace.log import Log

SIZES = [10, 50_000, 100, 3_000, 200_000, 10]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_an_epoch_is_bounded_in_bytes(tmp_path, compression):
    log = Log(tmp_path)
    log.create_topic("t", partitions=2, config={"compression.type": compression, "segment.bytes": 1_000_000})
    for number in range(60):
        rows = pa.table({"value": [b"x" * SIZES[number % len(SIZES)]] * 4})
        log.append_epoch("t", rows, writer="w", epoch=number, partition=number % 2)
    source = LogInput(tmp_path, "t", ("value",), None, epoch_bytes=600_000)
    position, end, epochs = source.beginning(), source.end(), []
    while position != end:
        after = source.ahead(position, end, None, 0).position
        assert all(after[index] >= position[index] for index in end)
        moved = [index for index in end if after[index] > position[index]]
        epochs.append([batch for index in moved for batch in source.read(index, position[index], after[index])])
        position = after
    sizes = [sum(len(value) for batch in batches for value in batch.column("value").to_pylist()) for batches in epochs]
    assert sum(batch.num_rows for batches in epochs for batch in batches) == 240
    # A batch is cut by the number of its records, and at least one record of each partition is read.
    assert max(sizes) <= 600_000 + 2 * 200_000
    assert len(epochs) >= sum(sizes) // 1_000_000


def test_what_fits_is_read_in_one_epoch(tmp_path):
    log = Log(tmp_path)
    log.create_topic("t", partitions=2)
    log.append_epoch("t", pa.table({"value": [b"x" * 100] * 50}), writer="w", epoch=1, partition=0)
    source = LogInput(tmp_path, "t", ("value",), None, epoch_bytes=600_000)
    assert source.ahead(source.beginning(), source.end(), None, 0).position == {0: 50, 1: 0}
