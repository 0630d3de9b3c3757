"""Models at work: loaded once for each process, called with the inputs of many records; records they fail for are separated."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.core.columns.schema import type_name
from headrace.core.errors import JobError
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.frames import columns_of
from headrace.operators.onnx_models import OnnxSession, WrongScores, loaded
from headrace.operators.user_errors import raised
from headrace.plan.scoring import Model, OnnxFile, Scorer


class Scored(NamedTuple):
    """The model that was asked, with its version, and for how many microseconds."""

    model: str
    micros: int


class Scoring:
    """A model with its inputs and its output column."""

    def __init__(self, model: Model, taken: tuple[str, ...], output: pa.Field) -> None:
        self._model, self._taken, self._output = model, list(taken), output

    def timed(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None, Scored | None]:
        """The same as `scored`, and how long it took; None where there was nothing to ask."""
        began = time.perf_counter_ns()
        made, bad = self.scored(frame)
        took = Scored(self._model.version, (time.perf_counter_ns() - began) // 1_000)
        return made, bad, None if frame.is_empty() else took

    def scored(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Records with their score, and those without one, with the `_reason`."""
        if frame.is_empty():
            return frame.with_columns_seq(pl.lit(None, dtype(self._output.type)).alias(self._output.name)), None
        inputs, bad = columns_of(frame, self._taken), None
        reasons = None if isinstance(self._model, Scorer) else self._unfit(inputs)
        if reasons is not None and reasons.null_count() < len(reasons):
            bad = frame.with_columns_seq(reasons.alias(REASON)).filter(pl.col(REASON).is_not_null())
            frame, inputs = frame.filter(reasons.is_null()), inputs.filter(reasons.is_null())
        scores, wrong = self._tried(inputs)
        made = frame.with_columns_seq(scores.alias(self._output.name))
        if wrong.null_count() == len(wrong):
            return made, bad
        broken = frame.with_columns_seq(wrong.alias(REASON)).filter(pl.col(REASON).is_not_null())
        return made.filter(wrong.is_null()), broken if bad is None else pl.concat([bad, broken])

    def _unfit(self, inputs: pl.DataFrame) -> pl.Series:
        """Why each record cannot be given to a model in ONNX; null where it can."""
        missing = pl.coalesce(
            pl.when(pl.col(name).is_null()).then(pl.lit(f"{name} is null, an input of {self._model}")) for name in self._taken
        )
        try:
            unfit = self._session().unfit(inputs, str(self._model))
        except WrongScores as error:
            unfit = self._reasons(inputs.height, error)
        return inputs.select_seq(pl.coalesce(missing, unfit)).to_series()

    def _session(self) -> OnnxSession:
        assert not isinstance(self._model, Scorer)
        return _file(self._model.path, self._model.digest) if isinstance(self._model, OnnxFile) else loaded(self._model.contents)

    def _tried(self, inputs: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """The scores of records, and why a record has none. Those that the model raises for are found by halving."""
        none = pl.Series([None], dtype=pl.String).new_from_index(0, inputs.height)
        if inputs.is_empty():
            return pl.Series([], dtype=dtype(self._output.type)), none
        try:
            scores = self._asked(inputs)
            if len(scores) == inputs.height:
                return self._typed(scores)
            parts = self._in_halves(inputs, len(scores))
        except WrongScores as error:
            return self._failed(inputs.height, error)
        except Exception as error:  # noqa: BLE001 - whatever a model raises is about these records
            if inputs.height == 1:
                return self._failed(1, error)
            parts = [self._tried(half) for half in _halves(inputs)]
        return pl.concat([part[0] for part in parts]), pl.concat([part[1] for part in parts])

    def _in_halves(self, inputs: pl.DataFrame, count: int) -> list[tuple[pl.Series, pl.Series]]:
        """The scores of the halves of records that have another number of scores.

        A model that leaves out single records has as many scores of all as of both halves; any other scores no record by itself.
        """
        wrong = WrongScores(f"{count} score{'s' if count != 1 else ''} of {inputs.height} record{'s' if inputs.height != 1 else ''}")
        if not 0 < count < inputs.height:
            raise wrong
        halves = _halves(inputs)
        if sum(self._count(half) for half in halves) != count:
            raise wrong
        return [self._tried(half) for half in halves]

    def _count(self, inputs: pl.DataFrame) -> int:
        return 0 if inputs.is_empty() else len(self._asked(inputs))

    def _asked(self, inputs: pl.DataFrame) -> pl.Series:
        if isinstance(self._model, Scorer):
            return _series(self._model.function(inputs.to_arrow(compat_level=pl.CompatLevel.oldest())))
        return self._session().run(inputs)

    def _typed(self, scores: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Scores in the type of their column, and why one has no value in it."""
        kind = dtype(self._output.type)
        if scores.dtype.is_nested() != kind.is_nested() and scores.dtype != pl.Null:
            raise WrongScores("one value for a record, not several" if kind.is_nested() else "several values for a record, not one")
        try:
            made = scores.cast(kind, strict=False)
        except pl.exceptions.PolarsError:
            raise WrongScores(f"scores of the type {scores.dtype}, which are no {type_name(self._output.type)}") from None
        if made.null_count() == scores.null_count():
            return made, pl.Series([None], dtype=pl.String).new_from_index(0, len(made))
        reason = pl.format(f"the score {{}} is no {type_name(self._output.type)}", pl.col("score").cast(pl.String))
        frame = pl.DataFrame([scores.alias("score"), (made.is_null() & scores.is_not_null()).alias("wrong")])
        return made, frame.select_seq(pl.when(pl.col("wrong")).then(reason)).to_series()

    def _failed(self, count: int, error: Exception) -> tuple[pl.Series, pl.Series]:
        return pl.Series([None], dtype=dtype(self._output.type)).new_from_index(0, count), self._reasons(count, error)

    def _reasons(self, count: int, error: Exception) -> pl.Series:
        said = ValueError(*error.args) if isinstance(error, WrongScores) else error
        return pl.Series([raised(said, getattr(self._model, "function", None))]).new_from_index(0, count)


def _halves(inputs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    half = inputs.height // 2
    return inputs[:half], inputs[half:]


def _series(values: Any) -> pl.Series:
    """The result of a function: an Arrow or numpy array, a series or a list."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        made = pl.from_arrow(values)
        assert isinstance(made, pl.Series)
        return made
    if isinstance(values, pl.Series):
        return values
    array = np.asarray(values) if hasattr(values, "__array__") else None
    if (array is not None and not array.ndim) or not hasattr(values, "__iter__") or isinstance(values, str | bytes | Mapping):
        raise WrongScores(f"the function returns a value of type {type(values).__name__} for all records, not one score for each")
    if array is None:
        return pl.Series(list(values))
    return pl.Series(array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array)


@cache
def _file(path: Path, digest: str) -> OnnxSession:
    """The model of a file, loaded once a process."""
    contents = path.read_bytes()
    if hashlib.sha256(contents).hexdigest() != digest:
        raise JobError(
            f"model {path.name} has changed since the job was declared",
            why="records of one epoch would be scored by two models",
            hint="start the job again, or give the new model a file of its own",
        )
    try:
        return loaded(contents)
    except Exception as error:
        raise JobError(
            f"model {path.name} cannot be loaded: {raised(error, None)}",
            why="no record could be scored",
            hint="export the model as ONNX again; onnx.checker.check_model(...) tells what is wrong with a file",
        ) from error
