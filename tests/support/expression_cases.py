"""The expressions that Spark judges over the nasty table: those of tests/spark/expressions.sql, and every cast."""

from itertools import product
from pathlib import Path

SOURCES = {
    "y": "tinyint", "h": "smallint", "i": "int", "l": "bigint", "f": "float", "d": "double", "m": "decimal(5,2)", "o": "decimal(18,6)",
    "p": "decimal(38,18)", "q": "decimal(38,0)", "s": "string", "z": "string", "w": "string", "a": "date", "t": "timestamp", "b": "boolean",
}  # fmt: skip
TARGETS = [
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(20,10)", "decimal(38,18)", "string", "boolean",
    "date", "timestamp", "timestamp_ntz", "binary",
]  # fmt: skip
CASTS = [f"cast({column} as {target})" for column, target in product(SOURCES, TARGETS)]


def cases(file: str = "expressions.sql") -> dict[str, list[str]]:
    """Group by group; a line `-- name` begins a group."""
    groups: dict[str, list[str]] = {}
    name = ""
    for line in (Path(__file__).parents[1] / "spark" / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("-- "):
            name = line.removeprefix("-- ")
        elif line:
            groups.setdefault(name, []).append(line)
    return groups
