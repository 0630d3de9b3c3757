"""Models at work: loaded once for each process, called with the inputs of many records; records they fail for are separated."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from headrace.core.errors import JobError
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import dtype
from headrace.operators.frames import columns_of
from headrace.operators.user_errors import raised
from headrace.plan.scoring import Model, OnnxFile, OnnxModel, Scorer

Run = Callable[[pl.DataFrame], pl.Series]
# The types of inputs in ONNX. Any other is given what most models take, and refuses that itself.
_KINDS = {
    "tensor(float)": pl.Float32, "tensor(double)": pl.Float64, "tensor(int64)": pl.Int64, "tensor(int32)": pl.Int32,
    "tensor(bool)": pl.Boolean,
}  # fmt: skip


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
        if not isinstance(self._model, Scorer):
            missing = pl.coalesce(
                pl.when(pl.col(name).is_null()).then(pl.lit(f"{name} is null, an input of {self._model}")) for name in self._taken
            )
            reasons = inputs.select_seq(missing).to_series()
            if reasons.null_count() < len(reasons):
                bad = frame.with_columns_seq(reasons.alias(REASON)).filter(pl.col(REASON).is_not_null())
                frame, inputs = frame.filter(reasons.is_null()), inputs.filter(reasons.is_null())
        scores, failed = self._tried(self._run(), inputs)
        made = frame.with_columns_seq(scores.alias(self._output.name))
        if not failed:
            return made, bad
        wrong = pl.Series([failed.get(place) for place in range(made.height)], dtype=pl.String)
        broken = frame.with_columns_seq(wrong.alias(REASON)).filter(pl.col(REASON).is_not_null())
        return made.filter(wrong.is_null()), broken if bad is None else pl.concat([bad, broken])

    def _run(self) -> Run:
        if isinstance(self._model, OnnxFile):
            return _file(self._model.path, self._model.digest)
        return loaded(self._model.contents) if isinstance(self._model, OnnxModel) else self._called

    def _tried(self, run: Run, inputs: pl.DataFrame, first: int = 0) -> tuple[pl.Series, dict[int, str]]:
        """The scores of records, and the reasons of those that the model fails for, by their places: found by halving."""
        kind = dtype(self._output.type)
        if inputs.is_empty():
            return pl.Series([], dtype=kind), {}
        try:
            scores = run(inputs)
            if scores.dtype.is_nested() and not kind.is_nested():
                raise ValueError("several values for a record, not one")
            scores = scores.cast(kind)
            if len(scores) != inputs.height:
                raise ValueError(f"{len(scores)} scores of {inputs.height} records")
        except Exception as error:  # noqa: BLE001 - whatever a model raises is about these records
            if inputs.height == 1:
                return pl.Series([None], dtype=kind), {first: raised(error, getattr(self._model, "function", None))}
            half = inputs.height // 2
            left, wrong = self._tried(run, inputs[:half], first)
            right, more = self._tried(run, inputs[half:], first + half)
            return pl.concat([left, right]), wrong | more
        return scores, {}

    def _called(self, inputs: pl.DataFrame) -> pl.Series:
        assert isinstance(self._model, Scorer)
        table = inputs.to_arrow(compat_level=pl.CompatLevel.oldest())
        return _series(self._model.function(table))


def _series(values: Any) -> pl.Series:
    """The result of a function: an Arrow or numpy array, a series or a list."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        made = pl.from_arrow(values)
        assert isinstance(made, pl.Series)
        return made
    if isinstance(values, pl.Series) or not hasattr(values, "__array__"):
        return values if isinstance(values, pl.Series) else pl.Series(list(values))
    array = np.asarray(values)
    return pl.Series(array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array)


@cache
def _file(path: Path, digest: str) -> Run:
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


@lru_cache(maxsize=8)
def loaded(contents: bytes) -> Run:
    """A model by its contents, loaded once a process; the last ones are kept."""
    import onnxruntime

    session = onnxruntime.InferenceSession(contents, providers=["CPUExecutionProvider"])
    wanted = session.get_inputs()
    # The last output of a classifier has the probabilities of its classes.
    output = session.get_outputs()[-1].name

    def run(inputs: pl.DataFrame) -> pl.Series:
        _refuse_other_inputs(wanted, inputs.columns)
        if len(wanted) == 1:
            given = {wanted[0].name: np.column_stack([_numbers(inputs, name, wanted[0].type) for name in inputs.columns])}
        else:
            named = {one.name for one in wanted} == set(inputs.columns)
            pairs = [(one, one.name if named else name) for one, name in zip(wanted, inputs.columns, strict=True)]
            given = {one.name: _numbers(inputs, name, one.type).reshape(-1, 1) for one, name in pairs}
        return pl.Series(_of_each(session.run([output], given)[0]))

    return run


def _refuse_other_inputs(wanted: Sequence[Any], given: Sequence[str]) -> None:
    """Raise if a model takes its inputs as one matrix of another width, or has another number of inputs."""
    if len(wanted) > 1:
        names = ", ".join(one.name for one in wanted)
        if len(wanted) != len(given):
            raise ValueError(f"the model has {len(wanted)} inputs ({names}), not {len(given)} ({', '.join(given)})")
        return
    width = wanted[0].shape[-1] if len(wanted[0].shape) == 2 else None
    if isinstance(width, int) and width != len(given):
        raise ValueError(f"the model takes {width} values a record, not {len(given)} ({', '.join(given)})")


def _numbers(inputs: pl.DataFrame, name: str, wanted: str) -> np.ndarray:
    """A column as the numbers that an input takes. A number that it cannot hold, such as NaN for a whole one, raises."""
    return inputs.get_column(name).cast(_KINDS.get(wanted, pl.Float32)).to_numpy()


def _of_each(answer: Any) -> np.ndarray:
    """One number for each record: with two classes, the probability of the second."""
    if isinstance(answer, list):
        answer = np.array([list(one.values()) for one in answer])
    found = np.asarray(answer)
    if found.ndim == 2 and found.shape[1] in (1, 2):
        found = found[:, -1]
    if found.ndim != 1:
        many = " x ".join(str(size) for size in found.shape[1:])
        raise ValueError(f"the model gives {many} values for a record, not one" if many else "the model gives one value for all records")
    return found
