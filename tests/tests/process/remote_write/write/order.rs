//! Samples compared with stored samples: time and value.

use super::{Checked, assert_refused};
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{ORDINARY_NAN_BITS, STALE_MARKER_BITS, Series};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

fn named(name: &str, version: Version, samples: &[(i64, f64)]) -> Series {
    let version = version.to_string();
    Series::new(&[("__name__", name), ("version", &version)], samples)
}

#[test]
fn a_write_is_acknowledged_and_readable_at_once() {
    let mut store = Checked::start();
    let now = now_ms();
    for version in Version::ALL {
        let a = named("a", version, &[(now - 2_000, 1.0), (now - 1_000, 2.0)]);
        let b = named("b", version, &[(now, -3.5)]);
        store.accepts(version, &[&a, &b]);
        store.assert_held();
    }
}

#[test]
fn every_bit_of_a_value_is_kept() {
    let mut store = Checked::start();
    let start = now_ms() - MINUTE_MS;
    let values = [
        STALE_MARKER_BITS,
        ORDINARY_NAN_BITS,
        0xfff8_dead_beef_0001,
        0x7ff0_0000_0000_0001,
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
        0,
        1 << 63,
        1,
        f64::MAX.to_bits(),
        f64::MIN.to_bits(),
    ];
    let samples: Vec<_> =
        values.iter().zip(start..).map(|(&bits, time)| (time, f64::from_bits(bits))).collect();
    for version in Version::ALL {
        store.accepts(version, &[&named("bits", version, &samples)]);
    }
    store.assert_held();
}

/// A sender that got no answer sends again: that is not an error, and counts as written.
#[test]
fn exact_duplicates_are_accepted_and_counted() {
    let mut store = Checked::start();
    let now = now_ms();
    for version in Version::ALL {
        let nan = f64::from_bits(STALE_MARKER_BITS);
        let series = named("again", version, &[(now - 2, 1.0), (now - 1, nan), (now, 3.0)]);
        store.accepts(version, &[&series]);
        store.accepts_again(version, &[&series]);
        let older = named("again", version, &[(now - 1, nan)]);
        store.accepts_again(version, &[&older]);
        // Twice in one request, too.
        let twice = named("twice", version, &[(now, 1.0)]);
        let response = store.send(version, &[&twice, &twice]);
        super::assert_accepted(version, &response, 2);
        store.held.push(twice);
    }
    store.assert_held();
}

#[test]
fn another_value_at_the_same_time_is_refused_and_the_rest_kept() {
    let mut store = Checked::start();
    let now = now_ms();
    for version in Version::ALL {
        store.accepts(version, &[&named("a", version, &[(now - 1_000, 1.0)])]);
        let bad = named("a", version, &[(now - 1_000, 2.0)]);
        let rest = [&named("a", version, &[(now, 5.0)]), &named("b", version, &[(now, 6.0)])];
        store.refuses(version, &bad, &rest, &["duplicate"]);
        // The values differ in their bits, not as numbers.
        let zero = named("zero", version, &[(now, 0.0)]);
        store.accepts(version, &[&zero]);
        store.refuses(version, &named("zero", version, &[(now, -0.0)]), &[], &["duplicate"]);
    }
    store.assert_held();
}

/// A partly refused series keeps its other samples.
#[test]
fn rows_of_one_series_are_judged_one_by_one() {
    let mut store = Checked::start();
    let now = now_ms();
    for version in Version::ALL {
        store.accepts(version, &[&named("a", version, &[(now - 1_000, 1.0)])]);
        let mixed = named("a", version, &[(now - 1_000, 9.0), (now, 2.0)]);
        let response = store.send(version, &[&mixed]);
        assert_refused(version, &response, 1, &["duplicate"]);
        store.held.push(named("a", version, &[(now, 2.0)]));
    }
    store.assert_held();
}

/// Without an out-of-order window, older samples are refused.
#[test]
fn samples_before_the_newest_are_refused_for_good() {
    let mut store = Checked::start_with("--out-of-order-window=0s");
    let now = now_ms();
    for version in Version::ALL {
        store.accepts(version, &[&named("a", version, &[(now, 1.0)])]);
        for age_ms in [MINUTE_MS, 10 * DAY_MS] {
            let good = named(&format!("good_{age_ms}"), version, &[(now, 1.0)]);
            let bad = named("a", version, &[(now - age_ms, 1.0)]);
            store.refuses(version, &bad, &[&good], &["out of order", "out-of-order", "too old"]);
        }
        // A series of its own, but far older than all others.
        let bad = named("old", version, &[(now - 10 * DAY_MS, 1.0)]);
        store.refuses(version, &bad, &[], &["too old", "out of bounds"]);
    }
    store.assert_held();
}

/// Age is measured against stored samples; in an empty store against the clock, and only to refuse
/// samples of a clock that was never set.
#[test]
fn samples_of_any_age_begin_a_store_but_none_of_a_clock_that_was_never_set() {
    for version in Version::ALL {
        let mut store = Checked::start();
        let now = now_ms();
        for time_ms in [i64::MIN, i64::MIN + 1, -DAY_MS, 0, 1000, now - 11 * 366 * DAY_MS] {
            let bad = named("unset", version, &[(time_ms, 1.0)]);
            store.refuses(version, &bad, &[], &["too old"]);
        }
        store.accepts(version, &[&named("history", version, &[(now - 1000 * DAY_MS, 1.0)])]);
        store.accepts(version, &[&named("live", version, &[(now - 1_000, 1.0)])]);
        let bad = named("behind", version, &[(now - 121 * MINUTE_MS, 1.0)]);
        store.refuses(version, &bad, &[], &["too old"]);
        store.accepts(version, &[&named("behind", version, &[(now - 119 * MINUTE_MS, 1.0)])]);
        store.assert_held();
    }
}

/// Ten minutes ahead of the clock is the limit, as in Prometheus.
#[test]
fn samples_from_the_future_are_refused() {
    let mut store = Checked::start();
    for version in Version::ALL {
        let now = now_ms();
        let good = named("near", version, &[(now + 9 * MINUTE_MS, 1.0)]);
        for ahead_ms in [11 * MINUTE_MS, 400 * DAY_MS, i64::MAX - now] {
            let bad = named("far", version, &[(now + ahead_ms, 1.0)]);
            store.refuses(version, &bad, &[], &["future", "ahead", "too far", "out of bounds"]);
        }
        store.accepts(version, &[&good]);
    }
    store.assert_held();
}
