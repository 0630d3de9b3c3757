"""Functions that are left to Spark although they are common, each with its result type and the reason.

A function is here when its result could not be made equal to Spark's in every digit and character.
"""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions.kinds import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP_NTZ

_LAST_DIGIT = "Java's and the processor's mathematics differ in the last digit"
_TEXT = "its letters and words follow tables of Spark's own"
_FORMAT = "date and number formats are read by Java"
_JSON = "JSON is read and written by Spark's own library"
_HASH = "the hash is computed by Spark"
_CAPTURED = "what a regular expression captures is decided by Java"
MOVING = "it changes from call to call, so a replay would differ"

_MATHEMATICS = (
    "expm1", "log1p", "cbrt", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot",
)  # fmt: skip

UNFUSED: dict[str, tuple[pa.DataType | None, str]] = {
    **dict.fromkeys(_MATHEMATICS, (DOUBLE, _LAST_DIGIT)),
    **dict.fromkeys(("initcap", "soundex"), (STRING, _TEXT)),
    **dict.fromkeys(("levenshtein",), (INT, _TEXT)),
    **dict.fromkeys(("md5", "sha", "sha1", "sha2"), (STRING, _HASH)),
    **dict.fromkeys(("hash",), (INT, _HASH)),
    **dict.fromkeys(("xxhash64", "crc32"), (BIGINT, _HASH)),
    **dict.fromkeys(("from_unixtime", "format_number", "format_string", "printf", "to_char"), (STRING, _FORMAT)),
    **dict.fromkeys(("get_json_object", "to_json"), (STRING, _JSON)),
    **dict.fromkeys(("from_json", "json_tuple", "parse_json", "schema_of_json"), (None, _JSON)),
    **dict.fromkeys(("regexp_substr",), (STRING, _CAPTURED)),
    **dict.fromkeys(("regexp_extract_all",), (pa.list_(pa.field("element", STRING)), _CAPTURED)),
    **dict.fromkeys(("regexp_count", "regexp_instr"), (INT, _CAPTURED)),
    **dict.fromkeys(("months_between",), (DOUBLE, _LAST_DIGIT)),
    **dict.fromkeys(("current_timestamp", "now"), (TIMESTAMP, MOVING)),
    **dict.fromkeys(("localtimestamp",), (TIMESTAMP_NTZ, MOVING)),
    **dict.fromkeys(("current_date", "curdate"), (DATE, MOVING)),
    **dict.fromkeys(("rand", "random", "randn"), (DOUBLE, MOVING)),
    **dict.fromkeys(("uuid",), (STRING, MOVING)),
}  # fmt: skip
