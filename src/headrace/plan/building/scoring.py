"""Steps that score records, built from a model, names of columns and the type of the score."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.core.columns.names import Names
from headrace.core.columns.schema import data_type, type_name
from headrace.plan.building.functions import refuse_arity
from headrace.plan.building.step_place import StepPlace, refuse_twice
from headrace.plan.nodes import Node
from headrace.plan.scoring import VERSION, Model, OnnxFile, Score, ScoreByTable, Scorer


@dataclass(frozen=True)
class ScoreArguments:
    """The arguments of `score`: a model or the node of a table of models, the columns it sees, and the column it makes."""

    model: Any
    inputs: Names
    output: str
    returns: str
    version: str | None = None


def score(after: StepPlace, asked: ScoreArguments) -> Score | ScoreByTable:
    """Scores of one model, or of the newest of a table."""
    taken, output = after.columns_of(asked.inputs, "score input"), _output(after, asked)
    if not taken:
        raise after.refused(f"score() of {after.node.name!r} has no input", hint='name the columns that the model sees: inputs=["amount"]')
    if isinstance(asked.model, Node):
        return _by_table(after, asked.model, asked.version, taken, output)
    if asked.version is not None:
        raise after.refused(f"version={asked.version!r} of a model that is no table", hint="only the rows of a table have versions")
    made = _model(after, asked.model)
    if isinstance(made, OnnxFile):
        _refuse_what_is_no_number(after, taken, made)
    columns = pa.schema([*after.columns, output])
    refuse_twice(columns, after.at)
    return Score(after.called("score"), columns, after.at, after.node, made, taken, output)


def _by_table(after: StepPlace, models: Node, version: str | None, taken: tuple[str, ...], output: pa.Field) -> ScoreByTable:
    _refuse_without_onnx(after, f"a table of models {models.name!r}")
    _refuse_what_is_no_number(after, taken, "a table of models")
    versions = [models.columns.field(VERSION).with_name(version)] if version and VERSION in models.columns.names else []
    columns = pa.schema([*after.columns, output, *versions])
    refuse_twice(columns, after.at)
    # Records of one key stay in their order; where a stream has none, they are spread by what the model sees.
    keys = after.node.order_key
    by = keys if keys and set(keys) <= set(after.columns.names) else taken
    return ScoreByTable(after.called("score"), columns, after.at, after.node, models, by, taken, output, version or "")


def _output(after: StepPlace, asked: ScoreArguments) -> pa.Field:
    if not isinstance(asked.output, str) or not asked.output:
        raise after.refused(f"output={asked.output!r} is not a name for the score", hint='output="score"')
    return pa.field(asked.output, data_type(asked.returns))


def _model(after: StepPlace, model: Any) -> Model:
    if isinstance(model, str | Path):
        path = Path(model).absolute()
        if path.suffix != ".onnx" or not path.is_file():
            raise after.refused(
                f"score() of {after.node.name!r}: there is no ONNX file {str(model)!r}",
                hint="give the path of a file that ends in .onnx",
            )
        _refuse_without_onnx(after, path.name)
        return OnnxFile(path, hashlib.sha256(path.read_bytes()).hexdigest())
    refuse_arity(model, ("table",), f"score(...) of {after.node.name!r}", after.at)
    return Scorer(model)


def _refuse_without_onnx(after: StepPlace, what: str) -> None:
    if find_spec("onnxruntime") is None:
        raise after.refused(f"{what} needs the package onnxruntime", hint="pip install 'headrace[onnx]'")


def _refuse_what_is_no_number(after: StepPlace, taken: tuple[str, ...], model: object) -> None:
    for name in taken:
        kind = after.columns.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
            raise after.refused(
                f"input {name!r} of {model} is {type_name(kind)}",
                why="a model in ONNX takes numbers",
                hint="make it a number in with_columns(...), or score with a function",
            )
