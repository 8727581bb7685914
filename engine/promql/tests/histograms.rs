//! Native histograms compared with those of Prometheus: `tests/peers/promqlcases` makes the table.

mod golden;

use golden::{alike, all_near, assert_none, histogram, near, number, rows};
use serde_json::Value;
use tidepool_promql::histogram::{Compensation, Keep};
use tidepool_promql::model::Histogram;
use tidepool_promql::quantile::{
    ClassicBucket, Skew, bucket_fraction, bucket_quantile, histogram_fraction, histogram_quantile,
};

type Combine =
    fn(
        &mut Histogram,
        &Histogram,
    )
        -> Result<tidepool_promql::histogram::Reconciled, tidepool_promql::histogram::Incompatible>;

fn combined(apply: Combine, expected: &Value, operands: &[Value]) -> bool {
    let mut result = histogram(&operands[0]);
    let Ok(reconciled) = apply(&mut result, &histogram(&operands[1])) else {
        return expected.is_null();
    };
    result.compact();
    !expected.is_null()
        && alike(&result, &histogram(&expected[0]))
        && expected[1] == reconciled.counter_resets
        && expected[2] == reconciled.custom_bounds
}

fn summed(expected: &Value, operands: &Value) -> bool {
    let mut all = operands.as_array().expect("a list").iter().map(histogram);
    let mut total = all.next().expect("a histogram");
    let mut lost = Compensation::default();
    for other in all {
        if total.add_compensated(&other, &mut lost).is_err() {
            return expected.is_null();
        }
    }
    lost.apply(&mut total);
    total.compact();
    !expected.is_null() && alike(&total, &histogram(expected))
}

fn trimmed(keep: Keep, expected: &Value, operands: &[Value]) -> bool {
    let mut result = histogram(&operands[0]);
    result.trim(number(&operands[1]), keep);
    alike(&result, &histogram(expected))
}

fn buckets(expected: &Value, histogram: &Histogram) -> bool {
    let expected = expected.as_array().expect("a list");
    let found: Vec<_> = histogram.buckets().collect();
    let mut backwards: Vec<_> = histogram.buckets().rev().collect();
    backwards.reverse();
    let is_same = found.iter().zip(expected).all(|(bucket, expected)| {
        let numbers = [&expected[0], &expected[1], &expected[4]].map(number);
        numbers == [bucket.lower, bucket.upper, bucket.count]
            && expected[2] == bucket.has_lower
            && expected[3] == bucket.has_upper
    });
    found.len() == expected.len() && is_same && backwards == found
}

fn quantile((result, skew): (f64, Skew), expected: &Value) -> bool {
    near(result, number(&expected[0])) && (skew != Skew::Nothing) == (expected[1] == 1)
}

fn classic(buckets: &Value) -> Vec<ClassicBucket> {
    let bucket =
        |bucket: &Value| ClassicBucket { upper: number(&bucket[0]), count: number(&bucket[1]) };
    buckets.as_array().expect("a list").iter().map(bucket).collect()
}

#[test]
fn histograms_are_computed_as_by_upstream() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (line, name, fields) in rows(include_str!("cases/histograms.tsv")) {
        let (expected, operands) = (&fields[0], &fields[1..]);
        let is_right = match name {
            "add" => combined(Histogram::add, expected, operands),
            "subtract" => combined(Histogram::subtract, expected, operands),
            "reset" => *expected == histogram(&operands[0]).detect_reset(&histogram(&operands[1])),
            "sum" => summed(expected, &operands[0]),
            "text" => *expected == histogram(&operands[0]).to_string(),
            "buckets" => buckets(expected, &histogram(&operands[0])),
            "trim_upper" => trimmed(Keep::Below, expected, operands),
            "trim_lower" => trimmed(Keep::Above, expected, operands),
            "quantile" => {
                let histogram = histogram(&operands[0]);
                quantile(histogram_quantile(number(&operands[1]), &histogram), expected)
            }
            "fraction" => {
                let [lower, upper] = [1, 2].map(|i| number(&operands[i]));
                quantile(histogram_fraction(lower, upper, &histogram(&operands[0])), expected)
            }
            "classic_quantile" => {
                let mut buckets = classic(&operands[0]);
                let (quantile, raised) = bucket_quantile(number(&operands[1]), &mut buckets, 0);
                let figures = raised.map(|r| [r.min_bucket, r.max_bucket, r.max_diff]);
                let expected_figures = [2, 3, 4].map(|i| number(&expected[i]));
                near(quantile, number(&expected[0]))
                    && expected[1] == raised.is_some()
                    && figures.is_none_or(|figures| all_near(&figures, &expected_figures))
            }
            "classic_fraction" => {
                let [lower, upper] = [1, 2].map(|i| number(&operands[i]));
                let fraction = bucket_fraction(lower, upper, &mut classic(&operands[0]));
                near(fraction, number(expected))
            }
            name => panic!("no such operation: {name}"),
        };
        count += 1;
        if !is_right {
            wrong.push(line.to_owned());
        }
    }
    assert_none(count, &wrong);
}
