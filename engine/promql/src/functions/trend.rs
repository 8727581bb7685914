//! Regression lines through samples, and smoothing.

use super::{Context, Entry, FunctionError, Window, range};
use crate::annotations::Note;
use crate::kahan;
use crate::model::{FloatPoint, Value};

pub(super) const TABLE: &[Entry] = &[
    range("deriv", |window, _, context| {
        // Relative times keep the products small.
        of_two(window, context, |floats| line(floats, floats[0].time_ms).0)
    }),
    range("double_exponential_smoothing", |window, args, context| {
        let (smoothing, trend) = (args[0], args[1]);
        check("smoothing", "sf", smoothing)?;
        check("trend", "tf", trend)?;
        of_two(window, context, |floats| smooth(floats, smoothing, trend))
    }),
    range("predict_linear", |window, args, context| {
        of_two(window, context, |floats| {
            let (slope, value) = line(floats, window.time_ms);
            slope * args[0] + value
        })
    }),
];

fn check(name: &str, short: &str, factor: f64) -> Result<(), FunctionError> {
    // NaN passes, because comparisons with NaN are false, as in upstream.
    if factor <= 0.0 || factor >= 1.0 {
        // Go prints infinities as `+Inf` and other numbers with six decimals.
        let got = match factor.is_infinite() {
            true => tidepool_model::number::plain(factor),
            false => format!("{factor:.6}"),
        };
        return Err(FunctionError(format!(
            "invalid {name} factor. Expected: 0 < {short} < 1, got: {got}"
        )));
    }
    Ok(())
}

/// Applies a function to at least two floats; histograms in the window are ignored.
fn of_two(
    window: &Window<'_>,
    context: &mut Context<'_>,
    apply: impl FnOnce(&[FloatPoint]) -> f64,
) -> Result<Option<Value>, FunctionError> {
    if !window.floats.is_empty() && !window.histograms.is_empty() {
        context.note(0, Note::HistogramIgnoredInMixedRange);
    }
    let has_two = window.floats.len() >= 2;
    Ok(has_two.then(|| Value::Float(apply(window.floats))))
}

/// Returns slope per second, and value at a time, of the least-squares line.
fn line(floats: &[FloatPoint], time_ms: i64) -> (f64, f64) {
    let first = floats[0].value;
    // Rounding would yield a slope for equal values; infinite values have no line at all.
    if floats[1..].iter().all(|point| point.value == first) {
        return match first.is_infinite() {
            true => (f64::NAN, f64::NAN),
            false => (0.0, first),
        };
    }
    let mut sums = [(0.0, 0.0); 4];
    for point in floats {
        let x = (point.time_ms - time_ms) as f64 / 1e3;
        let y = point.value;
        for ((sum, lost), term) in sums.iter_mut().zip([x, y, x * y, x * x]) {
            kahan::add(term, sum, lost);
        }
    }
    let [x, y, xy, xx] = sums.map(|(sum, lost)| sum + lost);
    let count = floats.len() as f64;
    let slope = (xy - x * y / count) / (xx - x * x / count);
    (slope, y / count - slope * x / count)
}

/// Returns the last value, smoothed together with its trend. Both factors are between zero and one;
/// a larger factor gives newer samples more weight.
fn smooth(floats: &[FloatPoint], smoothing: f64, trend_factor: f64) -> f64 {
    let mut before = 0.0;
    let mut smoothed = floats[0].value;
    let mut trend = floats[1].value - floats[0].value;
    for (i, point) in floats[1..].iter().enumerate() {
        // The first trend is the difference of the first two samples, as yet unsmoothed.
        if i > 0 {
            trend = trend_factor * (smoothed - before) + (1.0 - trend_factor) * trend;
        }
        let expected = (1.0 - smoothing) * (smoothed + trend);
        before = smoothed;
        smoothed = smoothing * point.value + expected;
    }
    smoothed
}
