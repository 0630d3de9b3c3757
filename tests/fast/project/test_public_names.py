"""The public names are few, listed once for people and once for type checkers, and each is where it says."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import headrace

NAMES = [
    "Aggregate",
    "App",
    "ConnectorError",
    "Consumer",
    "GroupConsumer",
    "HeadraceError",
    "JobError",
    "Log",
    "LogError",
    "PlanError",
    "PlanWarning",
    "Producer",
    "SchemaError",
    "Secret",
    "Settings",
    "SettingsError",
    "Stream",
    "Table",
    "TestDriver",
    "Topic",
    "TopicConfig",
    "__version__",
    "avro",
    "bounded",
    "calendar",
    "connect",
    "connector",
    "count_window",
    "custom",
    "delta",
    "global_",
    "hopping",
    "http",
    "iceberg",
    "kafka",
    "load_settings",
    "log",
    "loss_budget",
    "parquet",
    "perfect",
    "postgres",
    "processing_time",
    "protobuf",
    "redis",
    "search",
    "session",
    "sliding",
    "tumbling",
]


def test_the_public_names_are_exactly_these():
    assert dir(headrace) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_a_public_name_can_be_imported_and_has_a_docstring(name):
    value = getattr(headrace, name)
    assert inspect.getdoc(value)
    assert getattr(headrace, name) is value


def test_type_checkers_see_the_same_names_from_the_same_modules():
    tree = ast.parse(Path(headrace.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {name.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert seen == headrace._HOME


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Strem'"):
        headrace.Strem  # noqa: B018
    with pytest.raises(ImportError):
        importlib.import_module("headrace.strem")
