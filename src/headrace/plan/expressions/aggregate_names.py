"""The names of aggregate functions that Headrace knows: Spark's, and heavy_hitters."""

AGGREGATES = frozenset({
    "count", "sum", "min", "max", "avg", "mean", "first", "first_value", "last", "last_value", "any_value",
    "min_by", "max_by", "count_if", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop",
    "collect_list", "collect_set", "array_agg", "approx_count_distinct", "approx_percentile", "percentile_approx",
    "bool_and", "every", "bool_or", "any", "some", "approx_top_k", "heavy_hitters",
})  # fmt: skip
