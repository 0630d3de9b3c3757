"""The functions that a query may call: none reads files, settings or anything outside of its rows.

`NODES` are classes of sqlglot's trees, by which it knows most functions; `NAMES` are those that it does not know.
"""

from __future__ import annotations

_LOGIC = "And Or Xor Case If Coalesce Nullif Greatest Least Exists Any All"
_AGGREGATES = """Count CountIf Sum Avg Min Max Median Mode Quantile ApproxQuantile PercentileCont PercentileDisc ApproxDistinct Stddev
    StddevPop StddevSamp Variance VariancePop Corr CovarSamp CovarPop ArgMax ArgMin First Last AnyValue ArrayAgg
    ArrayUniqueAgg GroupConcat LogicalAnd LogicalOr BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Skewness Kurtosis Grouping
    RegrIntercept RegrR2 RegrSlope"""
_WINDOWS = "RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue NthValue"
_NUMBERS = """Abs Ceil Floor Round Trunc Sign Sqrt Cbrt Exp Ln Log Pow Mod Pi Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Degrees
    Radians IsNan IsInf Factorial BitwiseCount"""
_TEXTS = """Length Lower Upper Trim Concat ConcatWs Substring Left Right StrPosition Replace Reverse Repeat Pad Initcap Split
    SplitPart RegexpSplit RegexpLike RegexpILike RegexpExtract RegexpReplace RegexpExtractAll StartsWith EndsWith Contains Ascii Chr
    Unicode Hex Unhex MD5 SHA SHA2 ToBase64 FromBase64 Levenshtein Translate ByteLength Format Overlay"""
_TIMES = """Extract DateTrunc TimestampTrunc DateAdd DateSub DateDiff TimestampAdd TimestampSub TimestampDiff TsOrDsAdd TsOrDsDiff
    Day Dayname Month Monthname Year Hour Minute Second Week WeekOfYear DayOfWeek DayOfWeekIso DayOfMonth DayOfYear Quarter LastDay
    TimeToStr StrToTime StrToDate TsOrDsToDate TsOrDsToTimestamp TimeToUnix UnixToTime DateFromParts TimestampFromParts
    MakeInterval Timestamp Date CurrentTimestamp CurrentDate DateBin"""
_VALUES = """Cast TryCast Array ArraySize ArrayContains ArrayConcat ArraySlice ArraySort ArrayToString ArrayFilter
    Transform ArrayDistinct ArrayMin ArrayMax ArraySum ArrayAny ArrayAll Explode Unnest Struct StructExtract Map MapKeys
    MapFromEntries JSONExtract JSONExtractScalar ParseJSON List ToMap VarMap StarMap"""
NODES = frozenset(" ".join((_LOGIC, _AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _VALUES)).split())
_NAMES = """array_length bar bit_count bool_and bool_or cardinality century count_star damerau_levenshtein date_part date_sub
    datepart datesub decade editdist3 element_at entropy epoch_ns epoch_us even fsum gcd hamming histogram ifnull
    isfinite isodow isoweek isoyear jaccard json_array_length kahan_sum lcm len list list_aggregate list_avg
    list_contains list_count list_reverse list_reverse_sort list_sort list_sum list_unique list_value listagg ln
    log10 log2 mad make_date make_timestamp map_entries map_extract map_values max_by min_by nextafter nfc_normalize
    prefix printf product quantile_cont quantile_disc regexp_split_to_array sem string_agg strip_accents strlen
    struct_pack suffix time_bucket weekday yearweek"""
NAMES = frozenset(_NAMES.split())
