"""Avro records as columns, and that no bytes whatsoever do more than make their own record bad."""

import io
import json
import random
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.core.columns.schema import schema
from headrace.core.errors import SchemaError, SettingsError
from headrace.schema.codecs.avro import AvroCodec
from tests.support.examples import seeds

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def record(*fields: tuple[str, object], name: str = "R") -> dict:
    return {"type": "record", "name": name, "namespace": "test", "fields": [{"name": field, "type": kind} for field, kind in fields]}


CASES = [
    ("long", "bigint", number(-(2**63)), -(2**63)),
    ("int", "bigint", number(-5), -5),
    ("boolean", "boolean", b"\1", True),
    ("float", "double", struct.pack("<f", 1.5), 1.5),
    ("double", "double", struct.pack("<d", -2.25), -2.25),
    ("string", "string", text("grüße 😀"), "grüße 😀"),
    ("bytes", "binary", b"\2\xff", b"\xff"),
    (["null", "string"], "string", number(0), None),
    (["string", "null"], "string", number(0) + text("x"), "x"),
    ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "string", number(1), "Y"),
    ({"type": "fixed", "name": "F", "size": 3}, "binary", b"abc", b"abc"),
    ({"type": "array", "items": "int"}, "array<int>", number(2) + number(7) + number(8) + number(1) + number(9) + number(0), [7, 8, 9]),
    ({"type": "array", "items": "int"}, "array<int>", number(-1) + number(1) + number(7) + number(0), [7]),
    ({"type": "array", "items": ["null", "int"]}, "array<int>", number(2) + number(0) + number(1) + number(4) + number(0), [None, 4]),
    ({"type": "map", "values": "long"}, "map<string,bigint>", number(1) + text("k") + number(3) + number(0), [("k", 3)]),
    (record(("x", "int"), ("y", "string"), name="N"), "struct<x:int,y:string>", number(1) + text("q"), {"x": 1, "y": "q"}),
    ({"type": "int", "logicalType": "date"}, "date", number(20_454), date(2026, 1, 1)),
    ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp", number(1_767_268_800_000), NOON),
    ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp", number(1_767_268_800_000_000), NOON),
    ("long", "timestamp(ms)", number(1_767_268_800_000), NOON),
    ("int", "timestamp(s)", number(1_767_268_800), NOON),
    ("string", "timestamp", text("2026-01-01T12:00:00Z"), NOON),
    (record(("at", "long"), name="N"), "struct<at:timestamp(ms)>", number(1_767_268_800_000), {"at": NOON}),
    ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "decimal(6,2)", b"\4\xff\x00", Decimal("-2.56")),
    ({"type": "string", "logicalType": "uuid"}, "string", text("u"), "u"),
]


@pytest.mark.parametrize(("kind", "declared", "data", "expected"), CASES)
def test_every_type_is_read_between_its_neighbours(kind, declared, data, expected):
    codec = AvroCodec(schema(f"before string, v {declared}"), {None: record(("before", "string"), ("v", kind), ("after", "long"))})
    decoded = codec.decode([text("a") + data + number(1), b"", text("b") + data + number(2)])
    assert decoded.table.to_pylist() == [{"before": "a", "v": expected}, {"before": "b", "v": expected}]
    assert list(decoded.bad) == [1]


EVERYTHING = record(
    ("a", "long"), ("b", ["null", "string"]), ("c", {"type": "array", "items": record(("x", "string"), name="X")}),
    ("d", {"type": "map", "values": "double"}), ("e", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}),
    ("f", ["null", "int", "string"]),
)  # fmt: skip
SOUND = (
    number(7) + number(1) + text("hi") + number(1) + text("in") + number(0) + number(1) + text("k") + struct.pack("<d", 1) + number(0)
    + number(1) + number(2) + text("z")
)  # fmt: skip


@given(st.lists(st.binary(max_size=40) | st.tuples(st.integers(0, len(SOUND)), st.binary(max_size=3)), max_size=8))
def test_no_bytes_harm_a_neighbour(damage):
    """Any bytes, or sound ones with something changed: the others are as if it was not there, and alone it is judged alike."""
    odd = [bad if isinstance(bad, bytes) else SOUND[: bad[0]] + bad[1] + SOUND[bad[0] + 1 :] for bad in damage]
    codec = AvroCodec(schema("a bigint, b string, c array<struct<x:string>>, d map<string,double>, e string"), {None: EVERYTHING})
    decoded = codec.decode([value for bad in odd for value in (SOUND, bad)])
    decoded.table.validate(full=True)
    rows = dict(zip(decoded.places.tolist(), decoded.table.to_pylist(), strict=True))
    assert sorted([*rows, *decoded.bad]) == list(range(2 * len(odd)))
    for place, bad in enumerate(odd):
        assert rows[2 * place] == {"a": 7, "b": "hi", "c": [{"x": "in"}], "d": [("k", 1.0)], "e": "Q"}
        alone = codec.decode([bad])
        assert alone.bad.get(0) == decoded.bad.get(2 * place + 1)


def test_a_count_that_no_memory_holds_is_a_bad_record():
    codec = AvroCodec(schema("c array<string>"), {None: record(("c", {"type": "array", "items": "string"}))})
    assert codec.decode([number(2**60), number(1) + number(2**62)]).bad == {
        0: "a count extends past its end",
        1: "a length extends past its end",
    }


def test_records_of_several_schemas_are_told_by_the_number_in_front():
    old, new = record(("n", "int")), record(("n", "long"), ("more", "string"))
    codec = hr.avro(schemas={3: old, 300: json.dumps(new)}).codec(schema("n bigint, more string"))
    framed = [b"\0" + (3).to_bytes(4, "big") + number(1), b"\0" + (300).to_bytes(4, "big") + number(2) + text("x"), number(3),
              b"\0" + (4).to_bytes(4, "big") + number(4), b"\0" + (3).to_bytes(4, "big") + number(5)]  # fmt: skip
    decoded = codec.decode(framed)
    assert decoded.table.to_pylist() == [{"n": 1, "more": None}, {"n": 2, "more": "x"}, {"n": 5, "more": None}]
    assert decoded.bad == {2: "no schema number in front of it (a zero byte and four more)", 3: "its schema number 4 is not known"}


@pytest.mark.parametrize(
    ("given_schema", "columns", "reason"),
    [
        (record(("n", "long")), "m bigint", "no Avro schema has a field 'm'"),
        (record(("n", "long")), "n int", "declared as int"),
        (record(("n", ["null", "int", "string"])), "n int", "declared as int"),
        (record(("n", "Unknown")), "n int", "is not known"),
        (record(("next", ["null", "R"]), ("n", "int")), "n int", "contains itself"),
        ("long", "n bigint", "not JSON"),
        ('"long"', "n bigint", "is a record"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_before_anything_runs(given_schema, columns, reason):
    with pytest.raises(SchemaError, match=reason):
        hr.avro(given_schema).codec(schema(columns))


def test_a_format_without_a_schema_is_refused():
    with pytest.raises(SettingsError, match="needs a schema"):
        hr.avro()


KINDS = {
    "long": ("bigint", lambda chance: chance.randrange(-(2**63), 2**63)),
    "int": ("int", lambda chance: chance.randrange(-(2**31), 2**31)),
    "boolean": ("boolean", lambda chance: chance.random() < 0.5),
    "double": ("double", lambda chance: chance.uniform(-1e9, 1e9)),
    "string": ("string", lambda chance: "".join(chance.choice("aé😀 \n") for _ in range(chance.randrange(9)))),
    "bytes": ("binary", lambda chance: chance.randbytes(chance.randrange(9))),
}


@pytest.mark.parametrize("seed", seeds(40))
def test_records_of_random_schemas_are_what_fastavro_reads(seed: int) -> None:
    chance = random.Random(seed)
    fields, columns, draws = [], [], []
    for place in range(chance.randrange(1, 7)):
        kind, (declared, draw) = chance.choice(list(KINDS.items()))
        shape = chance.choice(["plain", "optional", "array"])
        avro = {"plain": kind, "optional": ["null", kind], "array": {"type": "array", "items": kind}}[shape]
        fields.append((f"f{place}", avro))
        columns.append(f"f{place} {f'array<{declared}>' if shape == 'array' else declared}")
        draws.append((f"f{place}", shape, draw))

    def value(shape: str, draw: object) -> object:
        if shape == "array":
            return [draw(chance) for _ in range(chance.randrange(4))]
        return None if shape == "optional" and chance.random() < 0.3 else draw(chance)

    parsed = fastavro.parse_schema(record(*fields))
    encoded = []
    for _ in range(chance.randrange(1, 60)):
        into = io.BytesIO()
        fastavro.schemaless_writer(into, parsed, {name: value(shape, draw) for name, shape, draw in draws})
        encoded.append(into.getvalue())
    decoded = AvroCodec(schema(", ".join(columns)), {None: record(*fields)}).decode(encoded)
    assert decoded.bad == {}
    assert decoded.table.to_pylist() == [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in encoded]
