"""Lower case as Spark's Unicode library has it, down to the last sigma of a word.

Both libraries agree on every single character. However, a capital sigma becomes ς at the end of a word, and they disagree for some two
hundred rare characters on whether such a character belongs to a word.
"""

from __future__ import annotations

import polars as pl

_SIGMA = "Σ"
# Characters that Spark's library treats as a letter with cases, as an ignored accent, and as neither.
_AS_LETTERS = (
    "\u1c89-\u1c8a\ua7cb-\ua7cf\ua7d2\ua7d4\ua7da-\ua7dc"
    "\U00010d50-\U00010d65\U00010d70-\U00010d85\U00016ea0-\U00016eb8\U00016ebb-\U00016ed3"
)
_AS_ACCENTS = (
    "\u0897\u1acf-\u1add\u1ae0-\u1aeb\ua7f1\U00010d4e\U00010d69-\U00010d6d\U00010d6f\U00010ec5\U00010efa-\U00010efc"
    "\U000113bb-\U000113c0\U000113ce\U000113d0\U000113d2\U000113e1-\U000113e2\U00011b60\U00011b62-\U00011b64\U00011b66"
    "\U00011dd9\U00011f5a\U0001611e-\U00016129\U0001612d-\U0001612f\U00016d40-\U00016d42\U00016d6b-\U00016d6c"
    "\U00016ff2-\U00016ff3\U0001e5ee-\U0001e5ef\U0001e6e3\U0001e6e6\U0001e6ee-\U0001e6ef\U0001e6f5\U0001e6ff"
)
_AS_SIGNS = "\u0295\U0001171e"
_STAND_INS = {f"[{_AS_LETTERS}]": "A", f"[{_AS_ACCENTS}]": "\u0301", f"[{_AS_SIGNS}]": " "}


def lower(text: pl.Expr) -> pl.Expr:
    """The text in lower case."""
    return text.map_batches(_lowered, return_dtype=pl.String, is_elementwise=True)


def _lowered(text: pl.Series) -> pl.Series:
    lowered = text.str.to_lowercase()
    if not text.str.contains(_SIGMA, literal=True).any():
        return lowered
    rare = text.str.contains(_SIGMA, literal=True) & text.str.contains("|".join(_STAND_INS))
    if not rare.any():
        return lowered
    stand_ins = text.filter(rare)
    for pattern, stand_in in _STAND_INS.items():
        stand_ins = stand_ins.str.replace_all(pattern, stand_in)
    pairs = zip(stand_ins.str.to_lowercase(), lowered.filter(rare), strict=True)
    mended = ["".join(one if one in "σς" else other for one, other in zip(*pair, strict=True)) for pair in pairs]
    return lowered.scatter(rare.arg_true(), mended)
