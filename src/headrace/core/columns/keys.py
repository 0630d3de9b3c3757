"""Keys as the bytes that Kafka's clients would send, and their place by murmur2 hash, computed over whole columns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.columns.words import hashed

# State is moved in units of key groups, so no job can have more shards than this. It is part of where state is found.
KEY_GROUPS = 1024
_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)
_WORD = np.dtype("<u4")
_MOMENT = pa.timestamp("us", "UTC")


def partitions_of(keys: pa.Array, count: int) -> np.ndarray:
    """Kafka's partition of each key, -1 where the key is null.

    >>> partitions_of(pa.array([b"21", b"foobar", None]), 1000)
    array([340, 166,  -1])
    """
    hashes = murmur2(keys).astype(np.int64)
    partitions = (hashes & 0x7FFFFFFF) % count
    return np.where(keys.is_null().to_numpy(zero_copy_only=False), -1, partitions) if keys.null_count else partitions


def key_groups_of(keys: pa.Array) -> np.ndarray:
    """The key group of each key; keys that are null are in the first.

    >>> key_groups_of(pa.array([b"21", b"foobar", None]))
    array([236, 958,   0])
    """
    groups: np.ndarray = np.maximum(partitions_of(keys, KEY_GROUPS), 0)
    return groups


def murmur2(keys: pa.Array) -> np.ndarray:
    """The 32-bit murmur2 hash of each binary value, as Kafka's clients compute it; null counts as empty."""
    return hashed(keys, _WORD, _murmur2)


def _murmur2(words: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    whole, rest = lengths // 4, lengths % 4
    hashes = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    for word in range(int(whole.max())):
        # Only keys of at least this length take part; usually that is nearly all of them.
        longer = np.flatnonzero(whole > word)
        mixed = words[starts[longer] + 4 * word] * _MULTIPLIER
        mixed ^= mixed >> np.uint32(24)
        mixed *= _MULTIPLIER
        hashes[longer] = (hashes[longer] * _MULTIPLIER) ^ mixed
    tailed = np.flatnonzero(rest)
    masks = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)[rest[tailed]]
    tails = words[starts[tailed] + 4 * whole[tailed]] & masks
    hashes[tailed] = (hashes[tailed] ^ tails) * _MULTIPLIER
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    return hashes


def encode_keys(columns: list[pa.Array]) -> pa.Array:
    """Key columns as the bytes that Kafka's usual serializers produce.

    Text is UTF-8, whole numbers are big-endian, times are their microseconds; several columns are a JSON array.
    """
    if len(columns) > 1:
        texts = pc.binary_join_element_wise(*map(_json, columns), ",")
        return pc.binary_join_element_wise("[", texts, "]", "").cast(pa.binary())
    column = columns[0]
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column.cast(pa.binary())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.binary())
    if pa.types.is_timestamp(kind):
        return _big_endian(column.cast(pa.int64()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _big_endian(column)
    return pc.cast(column, pa.string()).cast(pa.binary())


def _json(column: pa.Array) -> pa.Array:
    """Each value as JSON, null included; a value that JSON cannot express becomes its text."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_integer(column.type):
        texts = column.cast(pa.string())
    elif _plain_text(column):
        texts = pc.binary_join_element_wise('"', column.cast(pa.string()), '"', "")
    elif _plain_moments(column):
        written = pc.replace_substring(pc.strftime(column, format="%Y-%m-%d %H:%M:%S"), ".000000", "")
        texts = pc.binary_join_element_wise('"', written, '+00:00"', "")
    elif pa.types.is_nested(column.type):
        texts = _dumped(column)
    else:
        # Compared by their bits: the two zeros are equal but are written differently.
        bits = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}.get(column.type, column.type)
        distinct = column.view(bits).dictionary_encode() if bits != column.type else column.dictionary_encode()
        texts = _dumped(distinct.dictionary.view(column.type) if bits != column.type else distinct.dictionary).take(distinct.indices)
    return texts.fill_null("null")


def _dumped(values: pa.Array) -> pa.Array:
    return pa.array([json.dumps(value, default=str, separators=(",", ":")) for value in values.to_pylist()], pa.string())


def _plain_text(column: pa.Array) -> bool:
    """Whether the column is text in which JSON escapes no character."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    special = pc.match_substring_regex(column, r"[^ !#-\[\]-~]")
    return not pc.any(special, min_count=0).as_py()


def _plain_moments(column: pa.Array) -> bool:
    """Whether the column has times in UTC, all in years with four digits."""
    if column.type != _MOMENT:
        return False
    years = pc.min_max(pc.year(column))
    return years["min"].as_py() is None or (years["min"].as_py() >= 1000 and years["max"].as_py() <= 9999)


def _big_endian(column: pa.Array) -> pa.Array:
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    width = values.dtype.itemsize
    swapped = values.astype(values.dtype.newbyteorder(">")).tobytes()
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(swapped)])
    keys = fixed.cast(pa.binary())
    return pc.if_else(column.is_valid(), keys, pa.scalar(None, pa.binary())) if column.null_count else keys
