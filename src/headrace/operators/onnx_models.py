"""Models in ONNX: loaded once for each process, and given numbers as the types of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from headrace.operators.frames import rows_at

# The types of inputs in ONNX that are numbers.
_KINDS: dict[str, np.dtype[Any]] = {
    f"tensor({name})": np.dtype(kind)
    for name, kind in {
        "float": "float32", "double": "float64", "float16": "float16", "bool": "bool",
        **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    }.items()
}  # fmt: skip


class WrongScores(ValueError):
    """What a model takes or gives is wrong for all records alike."""


class OnnxSession:
    """A model that was loaded: `run` gives scores of records, for which `unfit` gave no reason."""

    def __init__(self, contents: bytes) -> None:
        import onnxruntime

        self._session = onnxruntime.InferenceSession(contents, providers=["CPUExecutionProvider"])
        self._wanted = self._session.get_inputs()
        # The last output of a classifier has the probabilities of its classes.
        self._output = self._session.get_outputs()[-1].name
        # Some models are exported for one size of a batch.
        sizes = {one.shape[0] if one.shape else None for one in self._wanted}
        size = sizes.pop() if len(sizes) == 1 else None
        self._size = size if isinstance(size, int) and size > 0 else None

    def run(self, inputs: pl.DataFrame) -> pl.Series:
        size, count = self._size, inputs.height
        if size is None or size == count:
            return self._scored(inputs)
        # The last record fills up the last batch.
        parts = [self._scored(rows_at(inputs, np.minimum(np.arange(first, first + size), count - 1))) for first in range(0, count, size)]
        if any(len(part) != size for part in parts):
            raise WrongScores(f"the model does not give {size} scores for a batch of its size {size}")
        return pl.concat(parts)[:count]

    def _scored(self, inputs: pl.DataFrame) -> pl.Series:
        taken = self._taken(inputs.columns)
        if len(self._wanted) == 1:
            one = self._wanted[0]
            columns = [_numbers(inputs.get_column(name), one.type) for name, _ in taken]
            given = {one.name: columns[0] if len(one.shape) == 1 else np.column_stack(columns)}
        else:
            given = {one.name: _numbers(inputs.get_column(name), one.type) for name, one in taken}
            given = {one.name: given[one.name] if len(one.shape) == 1 else given[one.name].reshape(-1, 1) for one in self._wanted}
        return pl.Series(_of_each(self._session.run([self._output], given)[0]))

    def unfit(self, inputs: pl.DataFrame, model: str) -> pl.Series:
        """Why the values of each record cannot be given to the model as its types, null where they can; nulls are fit."""
        found = [
            _unfit(inputs.get_column(name), one.type, f"the input {one.name!r} of {model}") for name, one in self._taken(inputs.columns)
        ]
        return (
            pl.DataFrame([reason.alias(f"{number}") for number, reason in enumerate(found)]).select_seq(pl.coalesce(pl.all())).to_series()
        )

    def _taken(self, given: Sequence[str]) -> list[tuple[str, Any]]:
        """The columns of records, each with the input that takes it."""
        wanted = self._wanted
        if len(wanted) == 1:
            width = _width(wanted[0].shape)
            if width is not None and width != len(given):
                values = "one value" if width == 1 else f"{width} values"
                raise WrongScores(f"the model takes {values} a record, not {len(given)} ({', '.join(given)})")
            return [(name, wanted[0]) for name in given]
        if len(wanted) != len(given):
            names = ", ".join(one.name for one in wanted)
            raise WrongScores(f"the model has {len(wanted)} inputs ({names}), not {len(given)} ({', '.join(given)})")
        named = {one.name for one in wanted} == set(given)
        return [(one.name if named else name, one) for one, name in zip(wanted, given, strict=True)]


@lru_cache(maxsize=8)
def loaded(contents: bytes) -> OnnxSession:
    """A model by its contents, loaded once a process; the last ones are kept."""
    return OnnxSession(contents)


def _width(shape: Sequence[Any]) -> int | None:
    """The values of a record that an input takes; None if the model does not say."""
    if len(shape) == 1:
        return 1
    return shape[-1] if len(shape) == 2 and isinstance(shape[-1], int) else None


def _numbers(column: pl.Series, kind: str) -> np.ndarray:
    """A column as the type of an input, which holds its values."""
    wanted = _KINDS[kind]
    if wanted.kind in "iu" and not column.dtype.is_integer():
        column = column.cast(pl.UInt64 if wanted.kind == "u" else pl.Int64)
    elif wanted.kind == "f" and not column.dtype.is_float():
        column = column.cast(pl.Float32 if wanted == np.float32 else pl.Float64)
    with np.errstate(over="ignore"):
        return column.to_numpy().astype(wanted)


def _unfit(column: pl.Series, kind: str, taker: str) -> pl.Series:
    wanted = _KINDS.get(kind)
    said = kind.removeprefix("tensor(").removesuffix(")")
    if wanted is None:
        raise WrongScores(f"{taker} is {said}, and {column.name} a number")
    if wanted.kind == "f":
        wrong = _beyond(column, wanted)
    else:
        low, high = (0, 1) if wanted.kind == "b" else (int(np.iinfo(wanted).min), int(np.iinfo(wanted).max))
        wrong = pl.Series(np.zeros(len(column), bool)) if column.dtype == pl.Boolean else _no_whole(column, low, high)
    if not wrong.any():
        return pl.Series([None], dtype=pl.String).new_from_index(0, len(column))
    frame = pl.DataFrame([column.cast(pl.String).alias("value"), wrong.alias("wrong")])
    reason = pl.format(f"{column.name} is {{}}, and {taker} is {said}", pl.col("value"))
    return frame.select_seq(pl.when(pl.col("wrong")).then(reason)).to_series()


def _beyond(column: pl.Series, wanted: np.dtype[Any]) -> pl.Series:
    """Whether each number becomes infinite as a smaller float. It may be rounded."""
    values = column.cast(pl.Float64).to_numpy()
    with np.errstate(over="ignore"):
        return pl.Series(np.isfinite(values) & np.isinf(values.astype(wanted)))


def _no_whole(column: pl.Series, low: int, high: int) -> pl.Series:
    """Whether each number is none from `low` to `high` without a fraction."""
    if column.dtype.is_integer():
        # Of a column that cannot reach a bound, the bound has no value in its type.
        bounds = (max(low, -(2**63)), min(high, 2**63 - 1))
        return (~column.is_between(*bounds)).fill_null(False)
    if column.dtype.is_float():
        whole = column.is_finite() & (column == column.floor()) & (column >= float(low)) & (column < float(high + 1))
        return (~whole).fill_null(False)
    number = column.cast(pl.Int64, strict=False)
    return column.is_not_null() & ~(
        number.cast(column.dtype, strict=False).eq_missing(column) & number.is_between(low, min(high, 2**63 - 1))
    )


def _of_each(answer: Any) -> np.ndarray:
    """One number for each record: with two classes, the probability of the second."""
    if isinstance(answer, list):
        if not all(isinstance(one, Mapping) for one in answer):
            raise WrongScores("the model gives a list of tensors, not one score for each record")
        answer = np.array([list(one.values()) for one in answer])
    found = np.asarray(answer)
    if found.ndim == 2 and found.shape[1] in (1, 2):
        found = found[:, -1]
    if found.ndim != 1:
        many = " x ".join(str(size) for size in found.shape[1:])
        raise WrongScores(f"the model gives {many} values for a record, not one" if many else "the model gives one value for all records")
    return found
