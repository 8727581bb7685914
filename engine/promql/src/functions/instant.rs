//! Functions of one float, of dates, and of scalars.

use std::f64::consts::{LN_2, PI};

use super::{Entry, float, scalar};
use crate::date::Date;
use crate::logarithm::log2;

pub(super) const TABLE: &[Entry] = &[
    float("abs", |v, _| Some(v.abs())),
    float("acos", |v, _| Some(v.acos())),
    float("acosh", |v, _| Some(acosh(v))),
    float("asin", |v, _| Some(v.asin())),
    float("asinh", |v, _| Some(v.asinh())),
    float("atan", |v, _| Some(v.atan())),
    float("atanh", |v, _| Some(v.atanh())),
    float("ceil", |v, _| Some(v.ceil())),
    float("clamp", |v, args| clamp(v, args[0], args[1])),
    float("clamp_max", |v, args| clamp(v, f64::NEG_INFINITY, args[0])),
    float("clamp_min", |v, args| clamp(v, args[0], f64::INFINITY)),
    float("cos", |v, _| Some(v.cos())),
    float("cosh", |v, _| Some(v.cosh())),
    float("day_of_month", |v, _| Some(Date::of_value(v).day.into())),
    float("day_of_week", |v, _| Some(Date::of_value(v).weekday.into())),
    float("day_of_year", |v, _| Some(Date::of_value(v).day_of_year.into())),
    float("days_in_month", |v, _| Some(Date::of_value(v).days_in_month().into())),
    float("deg", |v, _| Some(v * 180.0 / PI)),
    float("exp", |v, _| Some(v.exp())),
    float("floor", |v, _| Some(v.floor())),
    float("hour", |v, _| Some(Date::of_value(v).hour.into())),
    float("ln", |v, _| Some(v.ln())),
    float("log10", |v, _| Some(v.log10())),
    float("log2", |v, _| Some(log2(v))),
    float("minute", |v, _| Some(Date::of_value(v).minute.into())),
    float("month", |v, _| Some(Date::of_value(v).month.into())),
    float("rad", |v, _| Some(v * PI / 180.0)),
    float("round", |v, args| Some(round(v, args.first().copied().unwrap_or(1.0)))),
    float("sgn", |v, _| Some(sign(v))),
    float("sin", |v, _| Some(v.sin())),
    float("sinh", |v, _| Some(v.sinh())),
    float("sqrt", |v, _| Some(v.sqrt())),
    float("tan", |v, _| Some(v.tan())),
    float("tanh", |v, _| Some(v.tanh())),
    float("year", |v, _| Some(Date::of_value(v).year as f64)),
    scalar("max_of", |args| max(args[0], args[1])),
    scalar("min_of", |args| min(args[0], args[1])),
    scalar("pi", |_| PI),
];

/// Area hyperbolic cosine; Rust's loses digits near one and overflows for large values.
fn acosh(value: f64) -> f64 {
    // The cases and bounds avoid cancellation next to one and an overflow of the square.
    let above = value - 1.0;
    if above < 0.0 {
        f64::NAN
    } else if above < 1.0 {
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    } else if value < 1e8 {
        (value + (value * value - 1.0).sqrt()).ln()
    } else {
        value.ln() + LN_2
    }
}

/// Returns the larger value: infinity if either value is, else NaN if either value is.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    // `f64::max` ignores NaN and leaves the sign of zero open; Go's `math.Max` does neither.
    match (a, b) {
        (f64::INFINITY, _) | (_, f64::INFINITY) => f64::INFINITY,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        _ if a == 0.0 && b == 0.0 => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        _ => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

/// Returns the smaller value: negative infinity if either value is, else NaN if either value is.
pub(crate) fn min(a: f64, b: f64) -> f64 {
    // Negation is exact and swaps the infinities, so all cases of `max` hold.
    -max(-a, -b)
}

fn clamp(value: f64, low: f64, high: f64) -> Option<f64> {
    // Bounds in the wrong order yield no element, but NaN as a bound yields NaN.
    (high >= low || high.is_nan() || low.is_nan()).then(|| max(low, min(high, value)))
}

/// Returns the nearest multiple of a step, and of two equally near multiples the higher.
fn round(value: f64, step: f64) -> f64 {
    // Upstream multiplies by the inverse too; a division by the step would round differently.
    let inverse = 1.0 / step;
    (value * inverse + 0.5).floor() / inverse
}

fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if value > 0.0 {
        1.0
    } else {
        // Zero keeps its sign, and NaN stays NaN.
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_those_of_go() {
        let nan = f64::NAN;
        assert!(max(nan, 1.0).is_nan() && max(1.0, nan).is_nan());
        assert!(min(nan, 1.0).is_nan() && min(1.0, nan).is_nan());
        assert_eq!(max(nan, f64::INFINITY), f64::INFINITY);
        assert_eq!(min(f64::NEG_INFINITY, nan), f64::NEG_INFINITY);
        assert!(max(-0.0, 0.0).is_sign_positive() && min(0.0, -0.0).is_sign_negative());
        assert_eq!((max(1.0, 2.0), min(1.0, 2.0)), (2.0, 1.0));
    }

    #[test]
    fn rounding_goes_up_between_two_steps() {
        for (value, step, rounded) in
            [(0.5, 1.0, 1.0), (-0.5, 1.0, 0.0), (2.3, 0.5, 2.5), (7.0, 5.0, 5.0), (8.0, 5.0, 10.0)]
        {
            assert_eq!(round(value, step), rounded);
        }
    }

    #[test]
    fn clamping_between_bounds_in_the_wrong_order_gives_nothing() {
        assert_eq!(clamp(5.0, 1.0, 3.0), Some(3.0));
        assert_eq!(clamp(5.0, 6.0, 9.0), Some(6.0));
        assert_eq!(clamp(5.0, 3.0, 1.0), None);
        assert!(clamp(5.0, f64::NAN, 1.0).is_some_and(f64::is_nan));
    }
}
