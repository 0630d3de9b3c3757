"""Random expressions over the nasty table, typed so that Spark accepts nearly all of them."""

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]

_COLUMNS = {
    "whole": ["i", "i2", "l", "l2", "y", "h"], "double": ["d", "d2", "f"], "decimal": ["m", "n", "o", "m2"], "text": ["s", "s2", "z", "w"],
    "truth": ["b", "b2"], "date": ["a", "a2"], "moment": ["t", "t2"],
}  # fmt: skip
_LITERALS = {
    "whole": ["0", "1", "-1", "7", "100", "2147483647", "3000000000", "5Y"], "double": ["0D", "1.5D", "-2D", "1e10"],
    "decimal": ["0.5", "1.25", "-3.0", "100"], "text": ["''", "'a'", "'12'", "'abc'", "' x '", "'ß'"], "truth": ["true", "false", "null"],
    "date": ["date'2024-02-29'", "date'1969-12-31'"], "moment": ["timestamp'2024-02-29 12:34:56.789'", "timestamp'1900-01-01'"],
}  # fmt: skip
# A shape is a template; {name} is a tree of that kind, {name!} a column of it, so that no shape is a constant.
_SHAPES = {
    "whole": [
        "({whole!} + {whole})", "({whole} - {whole!})", "({whole!} * {whole})", "({whole!} % {whole})", "({whole!} div {whole})",
        "(- {whole!})",
        "abs({whole!})", "length({text!})", "year({date!})", "month({moment!})", "hour({moment!})", "datediff({date!}, {date})",
        "sign({whole!})",
        "coalesce({whole!}, {whole})", "if({truth!}, {whole}, {whole})", "greatest({whole!}, {whole})", "least({whole!}, {whole})",
        "case when {truth!} then {whole} when {truth} then {whole} end", "try_cast({text!} as int)", "cast({double!} as bigint)",
        "instr({text!}, {text})", "unix_seconds({moment!})", "nullif({whole!}, {whole})", "pmod({whole!}, {whole})",
        "cast({whole!} as int)",
        "floor({double!})", "try_add({whole!}, {whole})", "({whole!} & 255)",
    ],
    "double": [
        "({double!} + {double})", "({double} * {double!})", "({double!} / {double})", "({whole!} / {whole})", "({double!} % {double})",
        "round({double!}, 2)", "sqrt({double!})", "cast({whole!} as double)", "cast({decimal!} as double)", "nanvl({double!}, {double})",
        "coalesce({double!}, {double})", "if({truth!}, {double}, {double})", "try_divide({double!}, {double})",
        "least({double!}, {double})",
        "try_cast({text!} as double)",
    ],
    "decimal": [
        "({decimal!} + {decimal!})", "({decimal!} * {decimal!})", "({decimal!} / {decimal!})", "round({decimal!}, 1)",
        "cast({whole!} as decimal(12,2))",
        "cast({decimal!} as decimal(9,1))", "coalesce({decimal!}, {decimal!})", "if({truth!}, {decimal!}, {decimal!})", "(- {decimal!})",
        "({decimal!} % {decimal!})", "greatest({decimal!}, {decimal!})", "try_cast({text!} as decimal(10,3))",
    ],
    "text": [
        "upper({text!})", "lower({text!})", "concat({text!}, {text})", "({text!} || {text})", "substring({text!}, 2, 3)",
        "substring({text!}, {whole!})",
        "trim({text!})", "replace({text!}, 'a', 'bb')", "coalesce({text!}, {text})", "if({truth!}, {text}, {text})",
        "cast({whole!} as string)",
        "cast({date!} as string)", "cast({moment!} as string)", "cast({decimal!} as string)", "left({text!}, 2)", "reverse({text!})",
        "split_part({text!}, ',', 2)", "lpad({text!}, 5, '*')", "concat_ws('-', {text!}, {text})",
        "case when {truth!} then {text} else {text} end",
        "nullif({text!}, {text})", "greatest({text!}, {text})",
    ],
    "truth": [
        "({whole!} > {whole})", "({whole!} = {whole})", "({double!} < {double})", "({decimal!} >= {decimal})", "({text!} = {text})",
        "({date!} <= {date})",
        "({moment!} > {moment})", "({truth!} and {truth})", "({truth!} or {truth})", "(not {truth!})", "({text!} is null)",
        "({whole!} is not null)",
        "({whole!} in (1, 2, {whole}))", "({text!} like '%a%')", "({text!} rlike '[a-c]+$')", "({whole!} between {whole} and {whole})",
        "({double!} <=> {double})", "isnan({double!})", "startswith({text!}, {text})", "contains({text!}, {text})",
        "coalesce({truth!}, {truth})",
        "({truth!} is true)", "({text!} <> {text})", "(({truth!}) and {whole} > {whole!})",
    ],
    "date": [
        "date_add({date!}, {whole_small})", "last_day({date!})", "trunc({date!}, 'month')", "add_months({date!}, {whole_small})",
        "cast({moment!} as date)",
        "coalesce({date!}, {date})", "if({truth!}, {date}, {date})", "({date!} + interval 1 month)", "greatest({date!}, {date})",
        "try_cast({text!} as date)",
    ],
    "moment": [
        "({moment!} + interval 90 minutes)", "({moment!} - interval 1 day)", "({moment!} + interval 1 month)",
        "date_trunc('hour', {moment!})",
        "date_trunc('week', {moment!})", "coalesce({moment!}, {moment})", "if({truth!}, {moment}, {moment})", "timestamp_seconds({whole!})",
        "cast({date!} as timestamp)", "least({moment!}, {moment})", "try_cast({text!} as timestamp)",
    ],
}  # fmt: skip
KINDS = list(_SHAPES)


def trees(kind: str, depth: int = 3) -> Texts:
    """Expressions of a kind, at most so deep."""
    if kind == "whole_small":
        return st.sampled_from(["1", "-1", "30", "y", "400"])
    leaves = st.sampled_from(_COLUMNS[kind] + _LITERALS[kind])
    return leaves if depth == 0 else st.one_of(leaves, _grown(kind, depth), _grown(kind, depth))


def columns(kind: str, depth: int) -> Texts:
    """Like `trees`, but never a constant."""
    leaves = st.sampled_from(_COLUMNS[kind])
    return leaves if depth == 0 else st.one_of(leaves, _grown(kind, depth))


def _grown(kind: str, depth: int) -> Texts:
    return st.sampled_from(_SHAPES[kind]).flatmap(lambda shape: _filled(shape, depth - 1))


def _filled(shape: str, depth: int) -> Texts:
    pieces: list[Texts] = []
    for place, piece in enumerate(shape.replace("}", "{").split("{")):
        if place % 2 == 0:
            pieces.append(st.just(piece))
        else:
            pieces.append(columns(piece[:-1], depth) if piece.endswith("!") else trees(piece, depth))
    return st.tuples(*pieces).map("".join)


def any_trees() -> Texts:
    """Expressions of every kind, never a mere column."""
    return st.sampled_from(KINDS).flatmap(lambda kind: _grown(kind, 3))
