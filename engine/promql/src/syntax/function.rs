//! The functions of the language: names, types of arguments and result.

use super::ValueType;

/// Name and types of a function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function in PromQL.
    pub name: &'static str,
    /// Types of the arguments; optional arguments are last.
    pub args: &'static [ValueType],
    /// 0 if there are as many arguments as types. Otherwise the argument of the last type may be
    /// missing, or occur up to this many times, or any number of times for -1.
    pub variadic: i8,
    /// Type of the function's result.
    pub returns: ValueType,
    /// Whether the function is one of the experimental functions.
    pub is_experimental: bool,
}

impl Function {
    /// Looks up a function by its name.
    pub fn by_name(name: &str) -> Option<&'static Function> {
        // `FUNCTIONS` is sorted by name.
        let place = FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok()?;
        FUNCTIONS.get(place)
    }

    /// Returns all functions by ascending name.
    pub fn all() -> &'static [Function] {
        &FUNCTIONS
    }
}

use ValueType::{Matrix as M, Scalar as S, String as T, Vector as V};

const fn function(
    name: &'static str,
    args: &'static [ValueType],
    variadic: i8,
    returns: ValueType,
    is_experimental: bool,
) -> Function {
    Function { name, args, variadic, returns, is_experimental }
}

static FUNCTIONS: [Function; 90] = [
    function("abs", &[V], 0, V, false),
    function("absent", &[V], 0, V, false),
    function("absent_over_time", &[M], 0, V, false),
    function("acos", &[V], 0, V, false),
    function("acosh", &[V], 0, V, false),
    function("asin", &[V], 0, V, false),
    function("asinh", &[V], 0, V, false),
    function("atan", &[V], 0, V, false),
    function("atanh", &[V], 0, V, false),
    function("avg_over_time", &[M], 0, V, false),
    function("ceil", &[V], 0, V, false),
    function("changes", &[M], 0, V, false),
    function("clamp", &[V, S, S], 0, V, false),
    function("clamp_max", &[V, S], 0, V, false),
    function("clamp_min", &[V, S], 0, V, false),
    function("cos", &[V], 0, V, false),
    function("cosh", &[V], 0, V, false),
    function("count_over_time", &[M], 0, V, false),
    function("day_of_month", &[V], 1, V, false),
    function("day_of_week", &[V], 1, V, false),
    function("day_of_year", &[V], 1, V, false),
    function("days_in_month", &[V], 1, V, false),
    function("deg", &[V], 0, V, false),
    function("delta", &[M], 0, V, false),
    function("deriv", &[M], 0, V, false),
    function("double_exponential_smoothing", &[M, S, S], 0, V, true),
    function("end", &[], 0, S, true),
    function("exp", &[V], 0, V, false),
    function("first_over_time", &[M], 0, V, false),
    function("floor", &[V], 0, V, false),
    function("histogram_avg", &[V], 0, V, false),
    function("histogram_count", &[V], 0, V, false),
    function("histogram_fraction", &[S, S, V], 0, V, false),
    function("histogram_quantile", &[S, V], 0, V, false),
    function("histogram_quantiles", &[V, T, S, S], 9, V, true),
    function("histogram_stddev", &[V], 0, V, false),
    function("histogram_stdvar", &[V], 0, V, false),
    function("histogram_sum", &[V], 0, V, false),
    function("hour", &[V], 1, V, false),
    function("idelta", &[M], 0, V, false),
    function("increase", &[M], 0, V, false),
    function("info", &[V, V], 1, V, true),
    function("irate", &[M], 0, V, false),
    function("label_join", &[V, T, T, T], -1, V, false),
    function("label_replace", &[V, T, T, T, T], 0, V, false),
    function("last_over_time", &[M], 0, V, false),
    function("ln", &[V], 0, V, false),
    function("log10", &[V], 0, V, false),
    function("log2", &[V], 0, V, false),
    function("mad_over_time", &[M], 0, V, true),
    function("max_of", &[S, S], 0, S, true),
    function("max_over_time", &[M], 0, V, false),
    function("min_of", &[S, S], 0, S, true),
    function("min_over_time", &[M], 0, V, false),
    function("minute", &[V], 1, V, false),
    function("month", &[V], 1, V, false),
    function("pi", &[], 0, S, false),
    function("predict_linear", &[M, S], 0, V, false),
    function("present_over_time", &[M], 0, V, false),
    function("quantile_over_time", &[S, M], 0, V, false),
    function("rad", &[V], 0, V, false),
    function("range", &[], 0, S, true),
    function("rate", &[M], 0, V, false),
    function("resets", &[M], 0, V, false),
    function("round", &[V, S], 1, V, false),
    function("scalar", &[V], 0, S, false),
    function("sgn", &[V], 0, V, false),
    function("sin", &[V], 0, V, false),
    function("sinh", &[V], 0, V, false),
    function("sort", &[V], 0, V, false),
    function("sort_by_label", &[V, T], -1, V, true),
    function("sort_by_label_desc", &[V, T], -1, V, true),
    function("sort_desc", &[V], 0, V, false),
    function("sqrt", &[V], 0, V, false),
    function("start", &[], 0, S, true),
    function("start_timestamp", &[V], 0, V, true),
    function("stddev_over_time", &[M], 0, V, false),
    function("stdvar_over_time", &[M], 0, V, false),
    function("step", &[], 0, S, true),
    function("sum_over_time", &[M], 0, V, false),
    function("tan", &[V], 0, V, false),
    function("tanh", &[V], 0, V, false),
    function("time", &[], 0, S, false),
    function("timestamp", &[V], 0, V, false),
    function("ts_of_first_over_time", &[M], 0, V, true),
    function("ts_of_last_over_time", &[M], 0, V, true),
    function("ts_of_max_over_time", &[M], 0, V, true),
    function("ts_of_min_over_time", &[M], 0, V, true),
    function("vector", &[S], 0, V, false),
    function("year", &[V], 1, V, false),
];
