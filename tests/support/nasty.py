"""Values on which evaluators differ: ends of ranges, NaN, zeros with a sign, odd Unicode, odd dates, odd texts."""

from decimal import Decimal

import polars as pl
import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.core.columns.schema import schema as columns

NAN, INFINITY = float("nan"), float("inf")
BYTES = [None, 0, 1, -1, 2, 7, 100, 127, -128, -127]
SHORTS = [None, 0, 1, -1, 3, 255, 32767, -32768, 181, -182]
INTS = [None, 0, 1, -1, 2, -2, 3, 7, 10, -10, 100, 46341, -46341, 65536, 2147483647, -2147483648, 2147483646, 86400, 12, -13]
LONGS = [
    None, 0, 1, -1, 2, -3, 10, 1000, 2**31, -(2**31) - 1, 2**53 + 1, 3037000500, -3037000500, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1,
    1_700_000_000, 1_700_000_000_123, 9223372036854, -9223372036855,
]  # fmt: skip
DOUBLES = [
    None, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 2.675, 0.1, 1e-300, 1e300, 1.7976931348623157e308, 5e-324, NAN, INFINITY, -INFINITY,
    2147483647.9, -2147483648.9, 9.223372036854775e18, -9.223372036854776e18, 1e20, 9.223372036854775807e18, 127.99, -129.0, 3.0, 1e16,
]  # fmt: skip
FLOATS = [
    None,
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.10000000149011612,
    3.4028234663852886e38,
    1.401298464324817e-45,
    NAN,
    INFINITY,
    -INFINITY,
    127.5,
    16777216.0,
]
DECIMALS_5_2 = [None, "0.00", "1.00", "-1.00", "0.01", "2.50", "-2.50", "1.25", "999.99", "-999.99", "0.05", "10.10"]
DECIMALS_10_0 = [None, "0", "1", "-1", "5", "15", "25", "9999999999", "-9999999999", "4999999999", "5000000000", "1234567890"]
DECIMALS_18_6 = [
    None,
    "0",
    "1",
    "-0.000001",
    "0.000005",
    "2.500000",
    "-3.141593",
    "999999999999.999999",
    "-999999999999.999999",
    "0.333333",
]
DECIMALS_38_18 = [
    None,
    "0",
    "1",
    "-1",
    "0.000000000000000001",
    "12345678901234567890.123456789012345678",
    "-0.5",
    "99999999999999999999",
    "3",
]
DECIMALS_38_0 = [
    None,
    "0",
    "1",
    "-1",
    "9" * 38,
    "-" + "9" * 38,
    "1" + "0" * 37,
    "18446744073709551616",
    "9223372036854775807",
    "127",
    "12345678901234567890123456789012345678",
]
TEXTS = [
    None, "", " ", "a", "A", "abc", "ABC", "aXbXc", "  padded  ", "\ttab\n", "naïve", "e\u0301te\u0301", "été", "ß", "STRASSE", "İstanbul",
    "ıI",
    "ΑΣ", "Σ", "ὈΔΥΣΣΕΎΣ", "👍🏽", "😀a😀", "中文字", "a,b,,c", ",", "a.b.c", "100%", "under_score", "back\\slash", "line\nbreak", "end\n",
    "cr\r\n",
    "ﬁ", "ǅ", "ŉ", "\u0000nul", "x" * 40, "foo bar baz", "aaa", "aa", "Zürich", "a\u200bb", "\u2028", "abcabc",
]  # fmt: skip
NUMBER_TEXTS = [
    None, "", " ", "0", "1", "-1", "+5", " 7 ", "\t8\n", "1.5", "-0", "-0.0", "1e3", "1E-3", "1e400", "-1e400", "2147483647", "2147483648",
    "-2147483648", "9223372036854775807", "9223372036854775808", "127", "128", "32768", "00012", "1.", ".5", ".", "1d", "1f", "1D", "0x10",
    "0x1p3",
    "0x1.8p1d", "NaN", "nan", "NAN", "-NaN", "+NaN", "Infinity", "-Infinity", "inf", "+INF", "-inf", "infin", "1,000", "1_000", "abc",
    "--1", "+-1",
    "12 34", "true", "TRUE", " t ", "false", "F", "yes", "no", "y", "n", "on", "off", "1.005", "99.995", "999.994", "999.995", "0.004",
    "0.005", "-0.005",
    "123456789012345678901234567890123456789", "1e37", "1e38", "5e-1", "1e-40", "1e999999999999", "1e-999999999999", "0e5", "٣", "５",
    "1\u00a0",
    "\u00001", "1\u007f", "4.9e-324", "2.2250738585072011e-308", "0.1e1", "1e+2", "1e", "e1", "1.5.5", "tr", "100000000000000000000.5",
]  # fmt: skip
DATE_TEXTS = [
    None, "", "2024-02-29", "2023-02-29", "2024-2-3", "2024", "2024-05", "2024-13-01", "2024-00-10", "2024-04-31", "0001-01-01",
    "0000-01-01",
    "-0001-01-01", "+2024-01-01", "12024-01-01", "9999999-12-31", "-5877641-06-23", "5881580-07-11", "5881580-07-12", "999999-12-31",
    " 2024-01-01 ",
    "2024-01-01T", "2024-01-01 ", "2024-01-01 10", "2024-01-01T10:11", "2024-01-01 10:11:12", "2024-01-01T10:11:12.5",
    "2024-01-01 10:11:12.123456789",
    "2024-01-01 10:11:12.", "2024-01-01 24:00:00", "2024-01-01 10:60:00", "2024-01-01 10:11:60", "2024-01-01 1:2:3", "2024-01-01 10:11:12Z",
    "2024-01-01 10:11:12 Z", "2024-01-01 10:11:12+01:00", "2024-01-01 10:11:12+1:00", "2024-01-01 10:11:12+01:0",
    "2024-01-01 10:11:12-0530",
    "2024-01-01 10:11:12+05", "2024-01-01 10:11:12+5", "2024-01-01 10:11:12 UTC", "2024-01-01 10:11:12 UTC+8",
    "2024-01-01 10:11:12GMT-03:30",
    "2024-01-01 10:11:12 UT+01:30:15", "2024-01-01 10:11:12+18:00", "2024-01-01 10:11:12+18:01", "2024-01-01 10:11:12+010203",
    "2024-01-01 10:11:12 Europe/Paris", "2024-07-01 10:11:12 Europe/Paris", "2024-03-31 02:30:00 Europe/Paris",
    "2024-10-27 02:30:00 Europe/Paris",
    "2024-03-10 02:30:00 America/New_York", "2024-11-03 01:30:00 America/New_York", "1890-01-01 00:00:00 Europe/Paris",
    "2024-01-01 10:11:12 PST",
    "2024-06-01 10:11:12 EST", "2024-01-01 10:11:12 Mars/Base", "2024-01-01 10:11:12 europe/paris", "2024-01-01 10:11:12 CET",
    "1969-12-31 23:59:59.999999",
    "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808",
    "-290308-12-21 19:59:05.224192",
    "-290308-12-21 19:59:05.224191", "2024/01/01", "01-01-2024", "20240101", "now", "today", "epoch", "2024-01-01x", "2024-01-01Tx",
    "2024-01-01 10:11Z",
    "2024-01-01 10:11:12.5+02:00", "2024-01-01 10:11:12.5.5", "2024-1-1T1:1:1Z", "1970-01-01", "202-01-01", "2024-01-001", "2024-001-01",
    "２０２４-01-01",
    "2024-01-01\n", "\u00002024-01-01", "2024-01-01 10:11:12\u00a0Z", "2024-01-01 10:11:12 Asia/Kolkata", "2024-01-01 10:11:12 +01:00",
    "2024-02-29T12:34:56.789Z", "2024-02-29T12:34:56.123456789+05:30", "2024-02-29T12:34:56-18:00", "2024-02-29T12:34:56.Z",
    "2023-02-29T00:00:00Z", "0000-12-31T00:00:00Z", "2024-02-29T12:34:56.1Z", "2024-02-29T12:34:56.12-00:30", "2024-02-29t12:34:56",
    "2024-02-29T12:34:5६", "2024-02-29T12:34:56+0530x", "2024-02-29T12:34:56z", "2024-02-29X12:34:56", "2024-12-31 23:59:59.999999+14:00",
]  # fmt: skip
DAYS = [
    None, 0, -1, 1, 59, 365, 10957, 11016, 19782, 19783, 19813, -719162, -719528, -719163, 2932896, 2932897, -141428, 19448, 20089, 19723,
    106751991,
    -106751991, 2147483647, -2147483648, 16800,
]  # fmt: skip
MICROS = [
    None, 0, -1, 1, 999_999, -999_999, 1_709_210_096_789_012, 1_711_846_800_000_000, 1_729_990_800_000_000, -62_135_596_800_000_000,
    253_402_300_799_999_999, 253_402_300_800_000_000, -2_208_988_800_000_001, 951_782_400_000_000, 1_704_067_199_999_999,
    1_704_067_200_000_000,
    2**63 - 1, -(2**63), -(2**63) + 5, 86_399_999_999, -86_400_000_001, 1_718_000_000_500_000, -1_500_000,
]  # fmt: skip
TRUTHS = [None, True, False]

_COLUMNS = {
    "y": ("tinyint", BYTES), "h": ("smallint", SHORTS), "i": ("int", INTS), "l": ("bigint", LONGS), "f": ("float", FLOATS), "d": ("double",
    DOUBLES),
    "m": ("decimal(5,2)", DECIMALS_5_2), "n": ("decimal(10,0)", DECIMALS_10_0), "o": ("decimal(18,6)", DECIMALS_18_6),
    "p": ("decimal(38,18)", DECIMALS_38_18), "q": ("decimal(38,0)", DECIMALS_38_0), "s": ("string", TEXTS), "z": ("string", NUMBER_TEXTS),
    "w": ("string", DATE_TEXTS), "a": ("date", DAYS), "t": ("timestamp", MICROS), "b": ("boolean", TRUTHS),
}  # fmt: skip
ROWS = 45 * 45


def nasty_table() -> pa.Table:
    """Two columns of each type (i and i2, s and s2), so arranged that every pair of their values meets."""
    arrays: dict[str, pa.Array] = {}
    for name, (kind, values) in _COLUMNS.items():
        count = len(values)
        arrays[name] = _array(kind, [values[row % count] for row in range(ROWS)])
        arrays[name + "2"] = _array(kind, [values[(row // count) % count] for row in range(ROWS)])
    arrays |= _nested()
    return pa.table(arrays)


def _array(kind: str, values: list[object]) -> pa.Array:
    target = columns(f"x {kind}").field(0).type
    if pa.types.is_decimal(target):
        return pa.array([None if value is None else Decimal(str(value)) for value in values], target)
    if kind == "date":
        return pa.array(values, pa.int32()).cast(target)
    if kind == "timestamp":
        return pa.array(values, pa.int64()).cast(TIMESTAMP)
    return pa.array(values, target)


def _nested() -> dict[str, pa.Array]:
    arrays = [None, [], [1], [1, None, 3], [None], [5, 4, 3, 2, 1], [2147483647, -2147483648]]
    words = [None, [], ["a"], ["a", None], ["", "ß", "👍🏽"], ["x", "y", "x"]]
    maps = [None, [], [("a", 1)], [("a", None), ("b", 2)], [("", 0), ("ß", 5)]]
    structs = [
        None,
        {"x": 1, "Name": "n", "inner": {"deep": 1.5}},
        {"x": None, "Name": None, "inner": None},
        {"x": 7, "Name": "", "inner": {"deep": None}},
    ]
    kinds = columns("ia array<int>, sa array<string>, mp map<string,int>, st struct<x:int,Name:string,inner:struct<deep:double>>")
    return {
        name: pa.array([values[row % len(values)] for row in range(ROWS)], kinds.field(name).type)
        for name, values in (("ia", arrays), ("sa", words), ("mp", maps), ("st", structs))
    }


def nasty_frame() -> pl.DataFrame:
    frame = pl.from_arrow(nasty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def never_null_table() -> pa.Table:
    """Every pair of a few ints, in columns declared never to be null."""
    ints = (0, 1, -1, 2147483647, -2147483648, 5)
    pairs = [(one, two) for one in ints for two in ints]
    kinds = columns("i int not null, j int not null, s string not null, d double not null, m decimal(5,2) not null")
    rows = [(one, two, str(one), float(two), Decimal("1.50")) for one, two in pairs]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=kinds)
