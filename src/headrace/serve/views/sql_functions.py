"""The functions that a query may call: none reads files, settings or anything outside of its rows.

`NODES` are classes of sqlglot's trees, by which it knows most functions; `NAMES` are those that it does not know.
"""

from __future__ import annotations

_LOGIC = "And Or Xor Case If Coalesce Nullif Greatest Least Exists Any All"
_AGGREGATES = """Count CountIf Sum Avg Min Max Median Mode Quantile ApproxQuantile PercentileCont PercentileDisc ApproxDistinct Stddev
    StddevPop StddevSamp Variance VariancePop Corr CovarSamp CovarPop ArgMax ArgMin First Last AnyValue ArrayAgg
    ArrayUniqueAgg GroupConcat LogicalAnd LogicalOr BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Skewness Kurtosis Grouping"""
_WINDOWS = "RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue NthValue"
_NUMBERS = """Abs Ceil Floor Round Trunc Sign Sqrt Cbrt Exp Ln Log Pow Mod Pi Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Degrees
    Radians IsNan IsInf Factorial Gcd Lcm BitwiseCount"""
_TEXTS = """Length Lower Upper Trim Concat ConcatWs Substring Left Right StrPosition Replace Reverse Repeat Pad Initcap Split
    SplitPart RegexpLike RegexpILike RegexpExtract RegexpReplace RegexpExtractAll StartsWith EndsWith Contains Ascii Chr
    Unicode Hex Unhex MD5 SHA SHA2 ToBase64 FromBase64 Levenshtein Translate ByteLength Format Overlay"""
_TIMES = """Extract DateTrunc TimestampTrunc DateAdd DateSub DateDiff TimestampAdd TimestampSub TimestampDiff TsOrDsAdd TsOrDsDiff
    Day Month Year Hour Minute Second Week WeekOfYear DayOfWeek DayOfWeekIso DayOfMonth DayOfYear Quarter LastDay TimeToStr
    StrToTime StrToDate TsOrDsToDate TsOrDsToTimestamp TimeToUnix UnixToTime Epoch EpochMs DateFromParts TimestampFromParts
    MakeInterval Timestamp Date CurrentTimestamp CurrentDate DateBin"""
_VALUES = """Cast TryCast Array ArraySize ArrayContains ArrayConcat ArraySlice ArraySort SortArray ArrayToString ArrayFilter
    Transform ArrayDistinct ArrayMin ArrayMax ArraySum ArrayAny ArrayAll Explode Unnest Struct StructExtract Map MapKeys
    MapValues MapFromEntries JSONExtract JSONExtractScalar JSONArrayLength ParseJSON List ToMap VarMap StarMap"""
NODES = frozenset(" ".join((_LOGIC, _AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _VALUES)).split())
_NAMES = """approx_top_k array_length bar bool_and bool_or cardinality century count_star damerau_levenshtein dayname decade
    editdist3 element_at entropy epoch_ns epoch_us even fsum hamming histogram ifnull isfinite isodow isoyear jaccard
    kahan_sum len list list_aggregate list_avg list_contains list_count list_reverse_sort list_sort list_sum list_unique
    list_value listagg ln log10 log2 mad make_date make_timestamp map_entries map_extract max_by min_by monthname nextafter
    nfc_normalize prefix printf product quantile_cont quantile_disc regexp_split_to_array regr_intercept regr_r2 regr_slope
    sem string_agg string_split_regex strip_accents struct_pack suffix time_bucket"""
NAMES = frozenset(_NAMES.split())
