"""Avro records to columns, against fastavro on the same bytes in one process: why the decoder is our own.

fastavro makes a Python dictionary of each record; ours decodes field by field over all records at once. Results are compared first.

usage: python bench/avro_decoder.py [--quick]
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable

import fastavro
import pyarrow as pa
from _harness import Measure, at_least, finish, interleave, machine, options

from headrace.core.columns.schema import schema
from headrace.schema.codecs.avro import AvroCodec

COLUMNS = schema("card string, amount double, country string, at timestamp, items array<int>")
SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "card", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "country", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "items", "type": {"type": "array", "items": "int"}},
    ],
}


def payments(count: int) -> list[bytes]:
    """Encoded records."""
    chance, parsed = random.Random(7), fastavro.parse_schema(SCHEMA)
    encoded = []
    for _ in range(count):
        into = io.BytesIO()
        record = {
            "card": f"card-{chance.randrange(100_000)}", "amount": chance.random() * 500, "country": chance.choice([None, "FR", "DE"]),
            "at": chance.randrange(10**15), "items": [chance.randrange(100) for _ in range(chance.randrange(4))],
        }  # fmt: skip
        fastavro.schemaless_writer(into, parsed, record)
        encoded.append(into.getvalue())
    return encoded


def by_fastavro(values: list[bytes]) -> pa.Table:
    parsed = fastavro.parse_schema(SCHEMA)
    return pa.Table.from_pylist([fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values], schema=COLUMNS)


def main() -> None:
    quick = options(__doc__ or "").quick
    values, codec = payments(50_000 if quick else 200_000), AvroCodec(COLUMNS, {None: SCHEMA})
    state = machine()
    correct = codec.decode(values).table.equals(by_fastavro(values))
    measure = Measure("Avro records to columns", "records/s")

    def timed(into: list[float], work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            started = time.perf_counter()
            work()
            into.append(len(values) / (time.perf_counter() - started))

        return run

    interleave(5, timed(measure.ours, lambda: codec.decode(values)), timed(measure.peer, lambda: by_fastavro(values)))
    print(measure.show(), flush=True)
    targets = {"Avro to columns against fastavro": at_least(measure, 3)}
    finish("avro_decoder", correct=correct, targets=targets, figures={measure.name: measure.figures()}, machine=state)


if __name__ == "__main__":
    main()
