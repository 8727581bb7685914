//! Histograms, exemplars and metadata through the whole engine.

use super::*;
use crate::head::{Exemplar, RefusalReason};
use crate::model::histogram::{BucketLayout, CUSTOM_BUCKETS_SCHEMA, STALE_NAN_BITS, Span};
use crate::model::{FloatHistogram, Histogram, MatchOp};

const STALE: f64 = f64::from_bits(STALE_NAN_BITS);

fn histogram(observations: u64) -> Histogram {
    let spans = [Span { offset: 0, length: 1 }];
    Histogram {
        layout: Rc::new(BucketLayout { positive_spans: spans.into(), ..BucketLayout::default() }),
        count: observations,
        positive_buckets: vec![observations as i64],
        ..Histogram::stale()
    }
    .with_sum(1.5)
}

impl Histogram {
    fn with_sum(self, sum: f64) -> Histogram {
        Histogram { sum, ..self }
    }
}

fn stored(node: &Node, name: &str) -> Vec<(i64, Value)> {
    let mut all = node.select(Vec::new(), TimeRange::ALL);
    all.remove(name).into_iter().flatten().collect()
}

#[test]
fn an_end_is_of_the_kind_that_ended() {
    let mut node = Node::new();
    node.append_value("whole", 100, &histogram(3).into());
    node.append_value("fractions", 100, &FloatHistogram::stale().into());
    node.append_value("float", 100, &1.0.into());
    for restarts in 0..2 {
        for name in ["whole", "fractions", "float"] {
            let outcome = node.append_value(name, 200, &STALE.into());
            assert_eq!(outcome.refused, 0, "{name}, sent again after {restarts} restarts");
        }
        assert!(matches!(&stored(&node, "whole")[1].1, Value::Histogram(h) if h.is_stale()));
        assert!(matches!(&stored(&node, "fractions")[1].1, Value::FloatHistogram(_)));
        assert!(matches!(&stored(&node, "float")[1].1, Value::Float(_)));
        node.restart();
    }
}

#[test]
fn kinds_change_within_a_series_and_nothing_is_lost() {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    let mut sent = Vec::new();
    for step in 0..400i64 {
        let value: Value = match step / 7 % 3 {
            0 => (step as f64).into(),
            1 => histogram(step as u64).into(),
            _ => histogram(step as u64 % 50).with_sum(step as f64).into(),
        };
        node.append_value("s", 10 * step, &value);
        sent.push((10 * step, value));
    }
    for restart in [false, true] {
        let got = stored(&node, "s");
        assert_eq!(got.len(), sent.len());
        assert!(got.iter().zip(&sent).all(|(a, b)| a.0 == b.0 && a.1.same_observations(&b.1)));
        if !restart {
            node.compact();
            node.restart();
        }
    }
    let again = node.append_value("s", 3990, &sent[399].1);
    assert_eq!((again.refused, again.histograms_written + again.samples_written), (0, 1));
    let other = node.append_value("s", 3990, &histogram(1).with_sum(-1.0).into());
    assert_eq!(other.refusals[0].reason, RefusalReason::DuplicateSample);
}

/// The log separates kinds; the first rows of a request must not be read back last.
#[test]
fn kinds_change_within_a_request() {
    for options in [OPTIONS, WITH_OUT_OF_ORDER] {
        let mut node = Node::with(options);
        let custom = |observations: u64| {
            let bounds = [0.5];
            let before = histogram(observations);
            let layout = BucketLayout {
                schema: CUSTOM_BUCKETS_SCHEMA,
                custom_values: bounds.into(),
                ..(*before.layout).clone()
            };
            Histogram { layout: Rc::new(layout), ..before }
        };
        let value = |i: u64| -> Value {
            match i % 8 {
                0 | 4 => histogram(i).into(),
                1 => custom(i).into(),
                2 | 6 => FloatHistogram::stale().into(),
                3 => custom(i + 1).into(),
                _ => (i as f64).into(),
            }
        };
        let sent: Vec<_> = (0..40).map(|i| (10 * i as i64, value(i))).collect();
        let labels = Labels::from_sorted([(LABEL_NAME, "s"), ("job", "test")]);
        let outcome = node.engine.append_batch("append", 1_000_000, |head, batch| {
            let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
            for (timestamp_ms, value) in &sent {
                head.check(batch, slot, *timestamp_ms, value.clone()).expect("sound chunks");
            }
            Ok(())
        });
        assert_eq!(outcome.expect("storage that works").refused, 0);
        for restart in [false, true] {
            let got = stored(&node, "s");
            assert_eq!(got.len(), sent.len(), "after a restart: {restart}");
            assert!(got.iter().zip(&sent).all(|(a, b)| a.0 == b.0 && a.1.same_observations(&b.1)));
            node.restart();
        }
    }
}

impl Node {
    fn append_exemplar(&mut self, name: &str, exemplar: &Exemplar) -> WriteOutcome {
        let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
        let outcome = self.engine.append_batch("append", 1_000_000, |head, batch| {
            let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
            head.check_exemplar(batch, slot, exemplar.clone());
            Ok(())
        });
        outcome.expect("storage that works")
    }

    fn exemplars(&self, name: &str) -> Vec<Exemplar> {
        let op = MatchOp::Equal;
        let matcher = MatcherSpec { name: LABEL_NAME.into(), op, value: name.into() };
        let found = self.engine.exemplars(&[vec![matcher]], TimeRange::ALL);
        let found = found.expect("a valid selection").next(u32::MAX);
        found.into_iter().flat_map(|one| one.exemplars).collect()
    }
}

fn exemplar(trace: &str, timestamp_ms: i64) -> Exemplar {
    let labels = Labels::from_sorted([("trace_id", trace)]);
    Exemplar { labels, value: -0.0, timestamp_ms }
}

#[test]
fn exemplars_come_back_from_the_log() {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    node.append("s", 5000, 1);
    let sent = [exemplar("a", 4990), exemplar("b", 5000), exemplar("c", 5000)];
    for restart in [false, true] {
        for exemplar in &sent {
            let outcome = node.append_exemplar("s", exemplar);
            assert_eq!((outcome.exemplars_written, outcome.refused), (1, 0));
        }
        assert_eq!(node.exemplars("s"), sent);
        assert_eq!(node.exemplars("t"), []);
        if !restart {
            node.restart();
        }
    }
    let out_of_order = node.append_exemplar("s", &exemplar("d", 4000));
    assert_eq!(out_of_order.refused, 0, "within the window");
    let old = node.append_exemplar("s", &exemplar("d", 2000));
    assert_eq!(old.refusals[0].reason, RefusalReason::OutOfOrder);
    let long = node.append_exemplar("s", &exemplar(&"é".repeat(121), 5001));
    assert_eq!(long.refusals[0].reason, RefusalReason::InvalidExemplar);
    assert_eq!(node.append_exemplar("s", &exemplar(&"é".repeat(120), 5001)).refused, 0);
    let ahead = node.append_exemplar("s", &exemplar("e", 2_000_000));
    assert_eq!(ahead.refusals[0].reason, RefusalReason::TooFarInFuture);
    let mut node = Node::with(HeadOptions { exemplars_max: 0, ..OPTIONS });
    node.append("s", 5000, 1);
    let off = node.append_exemplar("s", &exemplar("a", 5000));
    assert_eq!(off.refusals[0].reason, RefusalReason::ExemplarsOff);
}

/// Of 888 exemplars, 315 were left after a `kill -9`: the others were in segments whose samples
/// were in blocks.
#[test]
fn exemplars_outlive_the_segments_that_they_came_in() {
    let mut node = Node::new();
    let mut sent = Vec::new();
    for time_ms in (0..6000).step_by(50) {
        node.append("s", time_ms, 1);
        if time_ms < 500 {
            node.append("ends", time_ms, 1);
            assert_eq!(node.append_exemplar("ends", &exemplar("e", time_ms)).refused, 0);
        }
        sent.push(exemplar(&format!("at {time_ms}"), time_ms));
        assert_eq!(node.append_exemplar("s", sent.last().expect("one")).refused, 0);
        node.compact();
    }
    // 130 were sent, and a hundred are kept.
    let (kept, ended) = (node.exemplars("s"), node.exemplars("ends"));
    assert_eq!((kept.len() + ended.len(), kept.last()), (100, sent.last()));
    for restart in 0..3 {
        assert!(node.wal.segments(LogKind::InOrder)[0] > 5);
        assert_eq!(node.exemplars("s"), kept, "after {restart} restarts");
        node.restart();
    }
    let mut node = Node::new();
    node.append("ends", 0, 1);
    node.append_exemplar("ends", &exemplar("e", 0));
    for time_ms in (50..6000).step_by(50) {
        node.append("s", time_ms, 1);
        node.compact();
    }
    assert_eq!(node.engine.figures().expect("a head").head_series, 1, "its series is gone");
    for _ in 0..3 {
        assert_eq!(node.exemplars("ends"), [exemplar("e", 0)]);
        assert_eq!(node.append("t", 5_960, 1).refused, 0, "no two series have one number");
        node.restart();
        assert_eq!(stored(&node, "t").len(), 1);
    }
}

/// A cut drops a series whose exemplar is newer: the segment stays, and its record names a number
/// without a series.
#[test]
fn exemplars_behind_a_cut_outlive_their_series() {
    for late_ms in [1000, 1200, 1400] {
        let mut node = Node::new();
        node.append("ends", 0, 1);
        let sent = exemplar("late", late_ms);
        for time_ms in (50..1800).step_by(50) {
            if time_ms > late_ms && node.exemplars("ends").is_empty() {
                assert_eq!(node.append_exemplar("ends", &sent).exemplars_written, 1);
            }
            node.append("s", time_ms, 1);
            node.compact();
        }
        assert_eq!(node.engine.figures().expect("a head").head_series, 1, "its series is gone");
        for restart in 0..6 {
            if restart == 3 {
                // Once it is there again, under another number.
                for time_ms in (1800..2700).step_by(50) {
                    node.append("s", time_ms, 1);
                    node.append("ends", time_ms, 1);
                    node.compact();
                }
            }
            let kept = node.exemplars("ends");
            assert_eq!(kept, std::slice::from_ref(&sent), "{late_ms}, {restart} restarts");
            node.restart();
        }
    }
}

#[test]
fn metadata_outlives_restarts_and_checkpoints() {
    let mut node = Node::new();
    node.append("requests_total", 0, 1);
    node.append("latency_bucket", 0, 1);
    {
        let owned = node.engine.owned.as_ref().expect("a head");
        let table = &mut owned.head.borrow_mut().metadata;
        table.set(b"requests", 1, b"Requests served.", b"");
        table.set_of_series(b"latency_bucket", 3, b"How long it took.", b"seconds");
        table.set(b"of_no_series", 2, b"Nobody sends it.", b"");
        table.set_of_series(b"requests", 0, b"", b"");
        table.set_of_series(b"silent", 9, b"", b"");
    }
    let known = |family: &str, kind, help: &str, unit: &str| {
        (family.to_owned(), kind, help.to_owned(), unit.to_owned())
    };
    let latency = known("latency", 3, "How long it took.", "seconds");
    let of_none = known("of_no_series", 2, "Nobody sends it.", "");
    let requests = known("requests", 1, "Requests served.", "");
    assert_eq!(node.engine.metadata("", u32::MAX), [latency.clone(), of_none, requests.clone()]);
    // The next batch takes it to the log.
    node.append("requests_total", 10, 1);
    node.restart();
    assert_eq!(node.engine.metadata("", u32::MAX), [latency.clone(), requests.clone()]);
    // Cuts replace the segment that it is in; one series ends.
    for time_ms in (50..6000).step_by(50) {
        node.append("requests_total", time_ms, 1);
        node.compact();
    }
    assert!(node.wal.segments(LogKind::InOrder)[0] > 5);
    node.restart();
    assert_eq!(node.engine.metadata("", u32::MAX), [requests]);
}
