use super::testing::{TestCount, any_histogram, parse, upstream_lines};
use super::*;
use proptest::prelude::*;

fn rule(result: Result<(), HistogramError>) -> String {
    match result {
        Ok(()) => "ok".to_owned(),
        // Upstream has one rule for all buckets.
        Err(HistogramError::NegativeZeroCount) => "NegativeBucketCount".to_owned(),
        Err(error) => {
            let name = format!("{error:?}");
            name.split([' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

fn checks_as_upstream<C: TestCount>() {
    let lines = upstream_lines::<C>("valid");
    assert!(lines.len() > 50);
    for line in lines {
        let [wanted, text] = line.as_slice() else { panic!("{line:?}") };
        assert_eq!(rule(parse::<C>(text).validate()), *wanted, "{text}");
    }
}

#[test]
fn what_upstream_refuses_is_refused_for_the_same_reason() {
    checks_as_upstream::<u64>();
    checks_as_upstream::<f64>();
}

fn reduces_as_upstream<C: TestCount>() {
    let lines = upstream_lines::<C>("reduce");
    assert!(lines.len() > 3);
    for line in lines {
        let [schema, before, after] = line.as_slice() else { panic!("{line:?}") };
        let mut histogram = parse::<C>(before);
        let schema = schema.parse().expect("a schema");
        assert_eq!(histogram.reduce_resolution(schema), Ok(()), "{before}");
        assert_eq!(histogram, parse(after), "{before}");
    }
}

#[test]
fn buckets_are_joined_as_upstream_joins_them() {
    reduces_as_upstream::<u64>();
    reduces_as_upstream::<f64>();
}

fn whole(text: &str) -> Histogram {
    parse(text)
}

#[test]
fn the_picture_above_is_right() {
    let histogram = whole("0;0;0;0;23;0;[2:2,1:3];[];[2,1,2,1,1];[];[]");
    let counts: Vec<_> = histogram.counts(Side::Positive).collect();
    assert_eq!(counts, [(2, 2), (3, 3), (5, 5), (6, 6), (7, 7)]);
    assert_eq!(histogram.validate(), Ok(()));
}

#[test]
fn errors_name_side_and_place() {
    let error = whole("0;0;0;0;1;0;[0:1];[0:1,-3:1];[1];[1,1];[]").validate();
    let wanted = HistogramError::SpanNegativeOffset { side: Side::Negative, span: 2, offset: -3 };
    assert_eq!(error, Err(wanted));
    assert_eq!(
        wanted.to_string(),
        "negative side: span 2 of the histogram has the negative offset -3"
    );
    let error = whole("0;9;0;0;0;0;[];[];[];[];[]").validate();
    assert_eq!(error, Err(HistogramError::InvalidSchema { schema: 9 }));
}

#[test]
fn hostile_spans_are_refused_without_walking_over_them() {
    let all = u32::MAX;
    let text = format!("0;20;0;0;0;0;[2147483647:{all},2147483647:{all}];[];[1,1];[];[]");
    let mut histogram = whole(&text);
    assert!(matches!(histogram.validate(), Err(HistogramError::InvalidSchema { .. })));
    assert!(matches!(
        histogram.limit_resolution(),
        Err(HistogramError::SpansBucketsMismatch { wanted: 8_589_934_590, given: 2, .. })
    ));
    assert_eq!(histogram.counts(Side::Positive).count(), 2);
}

#[test]
fn the_same_observations_may_be_written_differently() {
    let plain = whole("0;0;0;1;4;0;[2:2];[];[1,1];[];[]");
    let split = whole("2;0;0;1;4;0;[1:1,0:1,0:0,0:2];[];[0,1,1,-2];[];[]");
    assert!(plain.same_observations(&split));
    assert_ne!(plain, split);
    assert!(!plain.same_observations(&whole("0;0;0;1;4;0;[2:2];[];[2,-1];[];[]")));
    assert!(!plain.same_observations(&whole("0;0;0;1;4;0;[2:1];[];[1];[];[]")));
    assert!(!plain.same_observations(&Histogram::stale()));
    let stale = Histogram { sum: Histogram::stale().sum, ..plain };
    assert!(stale.same_observations(&Histogram::stale()));
}

/// Found by fuzzing: such a histogram must be a duplicate of itself.
#[test]
fn a_threshold_that_is_no_number_equals_itself() {
    let layout = BucketLayout { zero_threshold: f64::NAN, ..BucketLayout::default() };
    let odd = Histogram { layout: Rc::new(layout), sum: 1.0, ..Histogram::stale() };
    assert!(odd.same_observations(&odd.clone()));
    assert!(!odd.same_observations(&Histogram { layout: Rc::default(), ..odd.clone() }));
}

proptest! {
    #[test]
    fn random_histograms_are_valid_and_can_be_made_coarser(histogram in any_histogram::<u64>()) {
        prop_assert_eq!(histogram.validate(), Ok(()));
        let mut coarser = histogram.clone();
        if coarser.layout.has_custom_buckets() {
            prop_assert!(coarser.reduce_resolution(0).is_err());
        } else if coarser.layout.schema > -4 {
            prop_assert_eq!(coarser.reduce_resolution(-4), Ok(()));
            prop_assert_eq!(coarser.validate(), Ok(()));
        }
    }
}
