"""The public names of Headrace, loaded when first used: importing it starts no JVM and loads no engine.

To add a name, write it in `_HOME` and in the block for type checkers; a test checks that both agree.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.api.stream import Stream as Stream
    from headrace.api.stream import Table as Table
    from headrace.api.windows import bounded as bounded
    from headrace.api.windows import calendar as calendar
    from headrace.api.windows import count_window as count_window
    from headrace.api.windows import custom as custom
    from headrace.api.windows import global_ as global_
    from headrace.api.windows import hopping as hopping
    from headrace.api.windows import loss_budget as loss_budget
    from headrace.api.windows import perfect as perfect
    from headrace.api.windows import processing_time as processing_time
    from headrace.api.windows import session as session
    from headrace.api.windows import sliding as sliding
    from headrace.api.windows import tumbling as tumbling
    from headrace.app import App as App
    from headrace.connectors.delta.declaration import delta as delta
    from headrace.connectors.http.declaration import http as http
    from headrace.connectors.iceberg.declaration import iceberg as iceberg
    from headrace.connectors.kafka.declaration import kafka as kafka
    from headrace.connectors.parquet.declaration import parquet as parquet
    from headrace.connectors.postgres.declaration import postgres as postgres
    from headrace.connectors.redis.declaration import redis as redis
    from headrace.connectors.registered import connector as connector
    from headrace.connectors.search.declaration import search as search
    from headrace.core.errors import ConnectorError as ConnectorError
    from headrace.core.errors import HeadraceError as HeadraceError
    from headrace.core.errors import JobError as JobError
    from headrace.core.errors import LogError as LogError
    from headrace.core.errors import PlanError as PlanError
    from headrace.core.errors import SchemaError as SchemaError
    from headrace.core.errors import SettingsError as SettingsError
    from headrace.core.remarks import PlanWarning as PlanWarning
    from headrace.core.secret import Secret as Secret
    from headrace.core.settings import Settings as Settings
    from headrace.core.settings import load_settings as load_settings
    from headrace.log import LogTopic as log  # noqa: F401, N813 - hr.log("topic"), which gives one
    from headrace.log.consumer import Consumer as Consumer
    from headrace.log.groups.consumer import GroupConsumer as GroupConsumer
    from headrace.log.log import Log as Log
    from headrace.log.producer import Producer as Producer
    from headrace.log.topic import Topic as Topic
    from headrace.log.topic import TopicConfig as TopicConfig
    from headrace.plan.aggregates.user_aggregate import Aggregate as Aggregate
    from headrace.schema.formats import avro as avro
    from headrace.schema.formats import protobuf as protobuf
    from headrace.serve.client import connect as connect
    from headrace.testing.driver import TestDriver as TestDriver

__version__ = "0.1.0"

_HOME = {
    "Aggregate": "headrace.plan.aggregates.user_aggregate",
    "App": "headrace.app",
    "ConnectorError": "headrace.core.errors",
    "Consumer": "headrace.log.consumer",
    "GroupConsumer": "headrace.log.groups.consumer",
    "HeadraceError": "headrace.core.errors",
    "JobError": "headrace.core.errors",
    "Log": "headrace.log.log",
    "LogError": "headrace.core.errors",
    "PlanError": "headrace.core.errors",
    "PlanWarning": "headrace.core.remarks",
    "Producer": "headrace.log.producer",
    "SchemaError": "headrace.core.errors",
    "Secret": "headrace.core.secret",
    "Settings": "headrace.core.settings",
    "SettingsError": "headrace.core.errors",
    "Stream": "headrace.api.stream",
    "Table": "headrace.api.stream",
    "TestDriver": "headrace.testing.driver",
    "Topic": "headrace.log.topic",
    "TopicConfig": "headrace.log.topic",
    "avro": "headrace.schema.formats",
    "bounded": "headrace.api.windows",
    "calendar": "headrace.api.windows",
    "connect": "headrace.serve.client",
    "connector": "headrace.connectors.registered",
    "count_window": "headrace.api.windows",
    "custom": "headrace.api.windows",
    "delta": "headrace.connectors.delta.declaration",
    "global_": "headrace.api.windows",
    "hopping": "headrace.api.windows",
    "http": "headrace.connectors.http.declaration",
    "iceberg": "headrace.connectors.iceberg.declaration",
    "kafka": "headrace.connectors.kafka.declaration",
    "load_settings": "headrace.core.settings",
    "log": "headrace.log",
    "loss_budget": "headrace.api.windows",
    "parquet": "headrace.connectors.parquet.declaration",
    "perfect": "headrace.api.windows",
    "postgres": "headrace.connectors.postgres.declaration",
    "processing_time": "headrace.api.windows",
    "protobuf": "headrace.schema.formats",
    "redis": "headrace.connectors.redis.declaration",
    "search": "headrace.connectors.search.declaration",
    "session": "headrace.api.windows",
    "sliding": "headrace.api.windows",
    "tumbling": "headrace.api.windows",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        # Python suggests the nearest name of `obj`.
        raise AttributeError(f"module 'headrace' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    module = import_module(_HOME[name])
    # `log` is a function to its callers, and a folder to its importers.
    value = module if name == "log" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
