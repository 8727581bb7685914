//! Parts of which expressions are composed.

pub(super) const FLOATS: [&str; 8] = [
    "up",
    "build_info",
    "target_info",
    "cpu_seconds_total",
    "temperature",
    "request_seconds_bucket",
    "request_seconds_count",
    "request_seconds_sum",
];

pub(super) const HISTOGRAMS: [&str; 4] =
    ["latency_counter", "latency_gauge", "latency_custom", "latency_counter_fractions"];

pub(super) const MATCHERS: [&str; 9] = [
    "job=\"api\"",
    "job!=\"api\"",
    "job=~\"a.*|db\"",
    "instance=~\"[ab]:.\"",
    "instance!~\"d.*\"",
    "mode=~\"user|idle\"",
    "room=\"\"",
    "le=\"1\"",
    "none=\"\"",
];

pub(super) const DURATIONS: [&str; 9] =
    ["1s", "15s", "45s", "1m", "5m", "7m30s", "20m", "1h", "300"];

/// Computed durations; `step()` and `range()` are zero in an instant query.
pub(super) const COMPUTED_DURATIONS: [&str; 8] = [
    "1m + 30s",
    "2 * 45s",
    "1h / 4",
    "1m + step()",
    "max_of(1m, step())",
    "min_of(5m, 15s + range())",
    "-(30s - 5m)",
    "2 ^ 8",
];

pub(super) const GROUPS: [&str; 6] =
    ["", " by (job)", " by (instance, mode)", " without (instance)", " by (le)", " without (le)"];

pub(super) const OVER_TIME: [&str; 24] = [
    "rate",
    "increase",
    "irate",
    "delta",
    "idelta",
    "deriv",
    "resets",
    "changes",
    "avg_over_time",
    "sum_over_time",
    "count_over_time",
    "min_over_time",
    "max_over_time",
    "last_over_time",
    "first_over_time",
    "present_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "mad_over_time",
    "absent_over_time",
    "ts_of_max_over_time",
    "ts_of_min_over_time",
    "ts_of_last_over_time",
    "ts_of_first_over_time",
];

pub(super) const OF_NUMBERS: [&str; 39] = [
    "abs",
    "ceil",
    "floor",
    "exp",
    "ln",
    "log2",
    "log10",
    "sqrt",
    "sgn",
    "round",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atanh",
    "sinh",
    "cosh",
    "sin",
    "cos",
    "tan",
    "atan",
    "tanh",
    "deg",
    "rad",
    "timestamp",
    "minute",
    "hour",
    "day_of_week",
    "month",
    "year",
    "day_of_month",
    "day_of_year",
    "days_in_month",
    "histogram_stddev",
    "histogram_stdvar",
    "histogram_count",
    "histogram_sum",
    "histogram_avg",
    "absent",
];

pub(super) const AGGREGATIONS: [&str; 8] =
    ["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"];

pub(super) const ARITHMETIC: [&str; 7] = ["+", "-", "*", "/", "%", "^", "atan2"];

pub(super) const COMPARISONS: [&str; 6] = ["==", "!=", "<", ">", "<=", ">="];

/// Functions that accept anchored ranges, then those that accept smoothed ranges.
pub(super) const OF_ANCHORED: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
pub(super) const OF_SMOOTHED: [&str; 3] = ["delta", "increase", "rate"];

pub(super) const FILLS: [&str; 6] = [
    " fill (0)",
    " fill (-23)",
    " fill_left (1)",
    " fill_right (NaN)",
    " fill_left (2) fill_right (3)",
    " fill (Inf)",
];

/// Selectors of info metrics; without a selector `info` uses `target_info`.
pub(super) const INFOS: [&str; 6] = [
    "",
    ", {zone=~\".+\"}",
    ", {zone=\"north\"}",
    ", {__name__=\"build_info\"}",
    ", {__name__=~\".+_info\", version!=\"1.2\"}",
    ", {host=~\".*\"}",
];
