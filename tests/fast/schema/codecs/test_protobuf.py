"""Protobuf messages as columns."""

import pickle
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.timestamp_pb2 import Timestamp

import headrace as hr
from headrace.core.columns.schema import schema
from headrace.core.errors import SchemaError, SettingsError


def payment_class():
    """As protoc would generate it."""
    file = FileDescriptorProto(name="pay.proto", package="test", syntax="proto3", dependency=[Timestamp.DESCRIPTOR.file.name])
    kind = file.enum_type.add(name="Kind")
    for number, name in enumerate(["CARD", "CASH"]):
        kind.value.add(name=name, number=number)
    place = file.message_type.add(name="Place")
    place.field.add(name="city", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    message = file.message_type.add(name="Payment")
    entry = message.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=Field.TYPE_INT64, label=Field.LABEL_OPTIONAL)
    message.oneof_decl.add(name="_note")
    for number, (name, kind_of, more) in enumerate([
        ("id", Field.TYPE_INT64, {}), ("amount", Field.TYPE_DOUBLE, {}), ("kind", Field.TYPE_ENUM, {"type_name": ".test.Kind"}),
        ("note", Field.TYPE_STRING, {"proto3_optional": True, "oneof_index": 0}),
        ("at", Field.TYPE_MESSAGE, {"type_name": ".google.protobuf.Timestamp"}),
        ("place", Field.TYPE_MESSAGE, {"type_name": ".test.Place"}), ("items", Field.TYPE_STRING, {"label": Field.LABEL_REPEATED}),
        ("tags", Field.TYPE_MESSAGE, {"type_name": ".test.Payment.TagsEntry", "label": Field.LABEL_REPEATED}),
        ("big", Field.TYPE_UINT64, {}), ("raw", Field.TYPE_BYTES, {}), ("small", Field.TYPE_INT32, {}),
    ], 1):  # fmt: skip
        message.field.add(name=name, number=number, type=kind_of, **{"label": Field.LABEL_OPTIONAL, **more})
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(Timestamp.DESCRIPTOR.file.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Payment"))


COLUMNS = (
    "id bigint, amount double, kind string, note string, at timestamp, place struct<city:string>, items array<string>, "
    "tags map<string,bigint>, big decimal(20,0), raw binary, small bigint"
)


@pytest.fixture(scope="module")
def payment():
    return payment_class()


def test_every_kind_of_field_is_a_column(payment):
    full = payment(id=7, amount=1.5, kind=1, note="", items=["a", "b"], tags={"k": 3}, big=2**64 - 1, raw=b"\xff", small=-1)
    full.at.FromJsonString("2026-01-01T12:00:00.123456Z")
    full.place.city = "Köln"
    odd = payment(kind=9)
    codec = pickle.loads(pickle.dumps(hr.protobuf(payment))).codec(schema(COLUMNS))
    decoded = codec.decode([full.SerializeToString(), b"\xff\xff", b"", odd.SerializeToString()])
    assert decoded.table.to_pylist() == [
        {"id": 7, "amount": 1.5, "kind": "CASH", "note": "", "at": datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC),
         "place": {"city": "Köln"}, "items": ["a", "b"], "tags": [("k", 3)], "big": Decimal(2**64 - 1), "raw": b"\xff", "small": -1},
        *({"id": 0, "amount": 0.0, "kind": kind, "note": None, "at": None, "place": None, "items": [], "tags": [], "big": Decimal(0),
           "raw": b"", "small": 0} for kind in ("CARD", "9")),
    ]  # fmt: skip
    assert list(decoded.bad) == [1]
    assert "not a message test.Payment" in decoded.bad[1]


def test_what_registries_put_in_front_is_taken_off(payment):
    data = payment(id=7).SerializeToString()
    codec = hr.protobuf(payment, framed=True).codec(schema("id bigint"))
    front = b"\0\0\0\0\1"
    decoded = codec.decode([front + b"\0" + data, front + b"\2\0" + data, data, front, b""])
    assert decoded.table["id"].to_pylist() == [7, 7]
    assert list(decoded.bad) == [2, 3, 4]


def test_a_type_may_be_given_by_its_name_and_files(payment):
    files = hr.protobuf(payment).files
    assert hr.protobuf("test.Payment", files=files).codec(schema("id bigint")).decode([b"\x08\x05"]).table["id"].to_pylist() == [5]
    with pytest.raises(SettingsError, match="does not tell its fields"):
        hr.protobuf("test.Payment")
    with pytest.raises(SchemaError, match=r"no message 'test\.Other'"):
        hr.protobuf("test.Other", files=files).codec(schema("id bigint"))


@pytest.mark.parametrize(
    ("columns", "reason"), [("other int", "no field 'other'"), ("id int", "its field is bigint"), ("kind int", "its field is string")]
)
def test_columns_that_do_not_fit_are_refused_before_anything_runs(payment, columns, reason):
    with pytest.raises(SchemaError, match=reason):
        hr.protobuf(payment).codec(schema(columns))
