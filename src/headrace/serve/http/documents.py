"""OpenAPI 3.1 and AsyncAPI 3.0 documents, generated from the operations and the views."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

import headrace
from headrace.serve.http.ingest import EVENT, EVENTS, JSON, NDJSON
from headrace.serve.http.problems import MEDIA_TYPE
from headrace.serve.http.tokens import Role
from headrace.serve.views.hub import Hub

if TYPE_CHECKING:
    from headrace.serve.http.api import Operation

FILTERS, RECORDS = "filters", "Records"
"""The parameters of a view that are named by its columns, and the body that has several content types."""
_INTEGERS = ("limit", "partition", "offset", "epoch")
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_RECORD = {"type": "object", "additionalProperties": True}
_TEXT = {"type": "string"}
_FILTERS = {
    "name": "filters", "in": "query", "style": "form", "explode": True, "schema": {"type": "object", "additionalProperties": _TEXT},
    "description": "Conditions on columns: column=value, or column.op=value with ne, lt, le, gt, ge, in, prefix or null.",
}  # fmt: skip
_SCHEMAS: dict[str, Any] = {
    "Problem": {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "hint": {"type": "string"},
        },
    },
    "SqlQuery": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    RECORDS: {"oneOf": [_RECORD, {"type": "array", "items": _RECORD}]},
    "CloudEvent": {
        "type": "object",
        "required": ["specversion", "id", "source", "type"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string"},
            "source": {"type": "string"},
            "type": {"type": "string"},
            "time": {"type": ["string", "null"]},
            "data": _RECORD,
            "data_base64": {"type": "string"},
        },
    },
    "Letters": {
        "type": "object",
        "properties": {
            "letters": {
                "type": ["array", "null"],
                "items": {
                    "type": "object",
                    "required": ["partition", "offset"],
                    "properties": {"partition": {"type": "integer"}, "offset": {"type": "integer"}, "record": _RECORD},
                },
            }
        },
    },
    "Crash": {"type": "object", "properties": {"what": {"enum": ["driver", "worker"]}}},
    "Seek": {
        "type": "object",
        "required": ["topic", "to"],
        "properties": {"topic": {"type": "string"}, "to": {"type": ["string", "integer"]}, "partition": {"type": "integer"}},
    },
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """The parameters and results of each path, and the role it needs."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        if operation.method != "WEBSOCKET":
            path = re.sub(r":\w+\}", "}", operation.path)
            paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace", "version": headrace.__version__},
        "paths": paths,
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def asyncapi(hub: Hub) -> dict[str, Any]:
    """A channel for each view, with the columns of its rows."""
    channels = {
        followed.view.name: {
            "address": f"/api/v1/views/{quote(followed.view.name, safe='')}",
            "messages": {
                kind: {"payload": {"type": "object", "properties": {**_every(kind), **content}}}
                for kind, content in _messages(followed.view.columns).items()
            },
        }
        for followed in hub.follower.views()
    }
    operations = {f"subscribe_{name}": {"action": "receive", "channel": {"$ref": f"#/channels/{name}"}} for name in channels}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Headrace", "version": headrace.__version__},
        "channels": channels,
        "operations": operations,
    }


def _operation(operation: Operation) -> dict[str, Any]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in re.findall(r"\{(\w+)", operation.path)
    ]
    in_query = [
        _FILTERS
        if name == FILTERS
        else {"name": name, "in": "query", "schema": {"type": "integer", "minimum": 0} if name in _INTEGERS else _TEXT}
        for name in operation.query
    ]
    in_head = [{"name": name, "in": "header", "schema": _TEXT} for name in operation.headers]
    described: dict[str, Any] = {
        "operationId": operation.handler.__qualname__.lower(),
        "summary": operation.summary,
        "parameters": [*in_path, *in_query, *in_head],
        "responses": {
            "2XX": {"description": "done"},
            "304": {"description": "nothing changed"},
            "4XX": {"description": "refused", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}},
            "503": {"description": "not ready yet", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}},
        },
        "x-role": operation.role.name.lower(),
        "security": [] if operation.role == Role.NONE else [{"token": []}],
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    return described


def _content(body: str) -> dict[str, Any]:
    """The content types of a body: JSON, and for records lines of JSON and CloudEvents, too."""
    named = {name: {"$ref": f"#/components/schemas/{name}"} for name in (body, "CloudEvent")}
    kinds: dict[str, Any] = {JSON: named[body]}
    if body == RECORDS:
        kinds |= {NDJSON: _TEXT, EVENT: named["CloudEvent"], EVENTS: {"type": "array", "items": named["CloudEvent"]}}
    return {kind: {"schema": schema} for kind, schema in kinds.items()}


def _messages(columns: pa.Schema) -> dict[str, dict[str, Any]]:
    row = {"type": "object", "properties": {field.name: {"type": [_json_type(field.type), "null"]} for field in columns}}
    change = {
        "type": "object",
        "properties": {
            "op": {"enum": ["insert", "update", "delete"]},
            "partition": {"type": "integer"},
            "offset": {"type": "integer"},
            "row": row,
        },
    }
    flag = {"type": "boolean"}
    return {
        "snapshot": {"rows": {"type": "array", "items": row}, "first": flag, "last": flag},
        "changes": {"changes": {"type": "array", "items": change}},
        "progress": {"watermark": {"type": ["string", "null"]}},
    }


def _every(kind: str) -> dict[str, Any]:
    """The parts that every message has."""
    return {"type": {"const": kind}, "id": _TEXT, "epoch": {"type": "integer"}}


def _json_type(kind: pa.DataType) -> str:
    """The type of a value as `as_json` writes it: a decimal is text, a map has an entry for each key."""
    types = pa.types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind):
        return "number"
    if types.is_list(kind) or types.is_map(kind):
        return "array"
    return "object" if types.is_struct(kind) else "string"
