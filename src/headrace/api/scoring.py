"""The arguments of `stream.score(...)`, read and checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.api.arguments import Namer
from headrace.core.columns.names import Names
from headrace.core.columns.schema import data_type, type_name
from headrace.core.errors import PlanError
from headrace.plan.building.functions import refuse_arity
from headrace.plan.building.step_place import columns_of, refuse_twice
from headrace.plan.nodes import Node, Source, upstream
from headrace.plan.scoring import VERSION, Model, OnnxFile, Score, ScoreByTable, Scorer


@dataclass(frozen=True)
class Scored:
    """A model as the user gave it, the columns it sees, and the name and type of the column it makes."""

    model: Any
    inputs: Names
    output: str
    returns: str
    version: str | None = None


def scored(node: Node, namer: Namer, asked: Scored, at: str | None) -> Score | ScoreByTable:
    """The step that scores the records of a node: with one model, or with the newest of a table (whose node is `model`)."""
    taken, output = columns_of(asked.inputs, node, "score input"), _output(asked, at)
    if not taken:
        raise PlanError(f"score() of {node.name!r} has no input", hint='name the columns that the model sees: inputs=["amount"]', where=at)
    if isinstance(asked.model, Node):
        return _by_table(node, namer, asked, (taken, output), at)
    if asked.version is not None:
        raise PlanError(f"version={asked.version!r} of a model that is no table", hint="only the rows of a table have versions", where=at)
    made = _model(asked.model, node, at)
    if isinstance(made, OnnxFile):
        _refuse_what_is_no_number(node, taken, made, at)
    columns = pa.schema([*node.columns, output])
    refuse_twice(columns, at)
    return Score(namer.step_name(f"{node.name}.score"), columns, at, node, made, taken, output)


def _by_table(node: Node, namer: Namer, asked: Scored, made: tuple[tuple[str, ...], pa.Field], at: str | None) -> ScoreByTable:
    taken, output = made
    _refuse_without_onnx(f"a table of models {asked.model.name!r}", at)
    _refuse_what_is_no_number(node, taken, "a table of models", at)
    versions = (
        [asked.model.columns.field(VERSION).with_name(asked.version)] if asked.version and VERSION in asked.model.columns.names else []
    )
    columns = pa.schema([*node.columns, output, *versions])
    refuse_twice(columns, at)
    # Records of one key stay in their order; where a stream has none, they are spread by what the model sees.
    keys = next((one.key for one in upstream(node) if isinstance(one, Source)), ())
    by = keys if keys and set(keys) <= set(node.columns.names) else taken
    name = namer.step_name(f"{node.name}.score")
    return ScoreByTable(name, columns, at, node, asked.model, by, taken, output, asked.version or "")


def _output(asked: Scored, at: str | None) -> pa.Field:
    if not isinstance(asked.output, str) or not asked.output:
        raise PlanError(f"output={asked.output!r} is no name for the score", hint='output="score"', where=at)
    return pa.field(asked.output, data_type(asked.returns))


def _model(model: Any, node: Node, at: str | None) -> Model:
    if isinstance(model, str | Path):
        path = Path(model).absolute()
        if path.suffix != ".onnx" or not path.is_file():
            raise PlanError(
                f"score() of {node.name!r}: there is no ONNX file {str(model)!r}",
                hint="give the path of a file that ends in .onnx",
                where=at,
            )
        _refuse_without_onnx(path.name, at)
        return OnnxFile(path, hashlib.sha256(path.read_bytes()).hexdigest())
    refuse_arity(model, ("table",), f"score(...) of {node.name!r}", at)
    return Scorer(model)


def _refuse_without_onnx(what: str, at: str | None) -> None:
    if find_spec("onnxruntime") is None:
        raise PlanError(f"{what} needs the package onnxruntime", hint="pip install 'headrace[onnx]'", where=at)


def _refuse_what_is_no_number(node: Node, taken: tuple[str, ...], model: object, at: str | None) -> None:
    for name in taken:
        kind = node.columns.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
            raise PlanError(
                f"input {name!r} of {model} is {type_name(kind)}",
                why="a model in ONNX takes numbers",
                hint="make it a number in with_columns(...), or score with a function",
                where=at,
            )
