//! Any expression over a few series of any values: it ends with an answer or an error, and holds no
//! more memory than its limits allow, counted at the allocator.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::alloc::{GlobalAlloc, Layout, System};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidepool_promql::annotations::Severity;
use tidepool_promql::eval::{Limits, Query};
use tidepool_promql::model::{
    CounterReset, FloatPoint, Histogram, HistogramPoint, Labels, STALE_NAN_BITS, Samples, Span,
};
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{MatchOp, ParserOptions, parse};
use tidepool_relabel::Pattern;

/// What an evaluation may hold. It is so little that expressions of a few bytes reach it.
const LIMITS: Limits =
    Limits { bytes_max: 1 << 20, samples_max: 20_000, steps_max: 1_000, depth_max: 200 };

/// What an evaluation may take of the allocator: a multiple of the limit, since counts are
/// estimates, and what a plan and a column of each operator take.
const ALLOCATED_MAX: usize = 8 << 20;

const GAP_MS: i64 = 15_000;

/// Samples of a series.
const SAMPLES: i64 = 60;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED_PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which counts.
struct Counting;

// SAFETY: all is done by the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = ALLOCATED.fetch_add(layout.size(), Relaxed) + layout.size();
        ALLOCATED_PEAK.fetch_max(now, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fuzz_target!(|input: (u32, u8, &str)| {
    let (seed, times, text) = input;
    let Ok(expr) = parse(text, &ParserOptions::all()) else { return };
    let store = Rc::new(Store::new(seed));
    let before = ALLOCATED.load(Relaxed);
    ALLOCATED_PEAK.store(before, Relaxed);
    let options = Options {
        limits: LIMITS,
        delayed_name_removal: times & 1 != 0,
        stats_per_step: times & 2 != 0,
        ..match times >> 2 {
            0..16 => Options::instant(GAP_MS * 40),
            16..60 => Options::range(GAP_MS * 10, GAP_MS * 70, i64::from(times >> 2) * 1_000),
            60 => Options::instant(i64::MAX),
            61 => Options::instant(i64::MIN),
            62 => Options::range(i64::MIN, i64::MAX, i64::MAX / 3),
            _ => Options::range(-10, 10, 1),
        }
    };
    evaluate(&expr, options, store, text);
    let taken = ALLOCATED_PEAK.load(Relaxed).saturating_sub(before);
    assert!(taken <= ALLOCATED_MAX, "{taken} bytes were taken for {text:?}");
});

fn evaluate(expr: &tidepool_promql::syntax::Expr, options: Options, store: Rc<Store>, text: &str) {
    let steps_max = if options.step_ms.is_some() { LIMITS.steps_max as usize } else { usize::MAX };
    let Ok(query) = Query::new(expr, options) else { return };
    let Ok(mut evaluation) = query.evaluate(store) else { return };
    for series in &mut evaluation {
        let Ok(series) = series else { break };
        let samples = &series.samples;
        assert!(samples.len() <= steps_max, "{text:?}");
        assert!(samples.floats.is_sorted_by(|a, b| a.time_ms < b.time_ms), "{text:?}");
        assert!(samples.histograms.is_sorted_by(|a, b| a.time_ms < b.time_ms), "{text:?}");
    }
    assert!(evaluation.stats().bytes_peak <= LIMITS.bytes_max * 2, "{text:?}");
    for severity in [Severity::Warning, Severity::Info] {
        evaluation.annotations().messages(severity, text, 10);
    }
}

/// Some series, in the order of their labels.
struct Store {
    series: Vec<(Labels, Samples)>,
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators".
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn float(&mut self) -> f64 {
        match self.below(40) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => f64::MAX,
            4 => f64::MIN_POSITIVE,
            5 => f64::from_bits(STALE_NAN_BITS),
            _ => self.below(2_000) as f64 / 4.0 - 100.0,
        }
    }

    fn spans(&mut self) -> (Vec<Span>, Vec<f64>) {
        let mut spans = Vec::new();
        let mut buckets = Vec::new();
        for number in 0..self.below(3) {
            let offset = self.below(5) as i32 - if number == 0 { 2 } else { 0 };
            let length = self.below(4) as u32;
            spans.push(Span { offset, length });
            buckets.extend((0..length).map(|_| self.below(20) as f64));
        }
        (spans, buckets)
    }

    fn histogram(&mut self) -> Histogram {
        let is_custom = self.below(4) == 0;
        let (positive_spans, positive_buckets) = match is_custom {
            true => (vec![Span { offset: 0, length: 3 }], vec![1.0, self.below(9) as f64, 2.0]),
            false => self.spans(),
        };
        let (negative_spans, negative_buckets) =
            if is_custom { Default::default() } else { self.spans() };
        let zero_count = if is_custom { 0.0 } else { self.below(5) as f64 };
        let counts = positive_buckets.iter().chain(&negative_buckets);
        Histogram {
            counter_reset: match self.below(4) {
                0 => CounterReset::Reset,
                1 => CounterReset::NotReset,
                2 => CounterReset::Gauge,
                _ => CounterReset::Unknown,
            },
            schema: if is_custom { -53 } else { self.below(13) as i32 - 4 },
            zero_threshold: if is_custom { 0.0 } else { self.below(3) as f64 / 1024.0 },
            zero_count,
            count: zero_count + counts.sum::<f64>(),
            sum: self.float(),
            positive_spans,
            positive_buckets,
            negative_spans,
            negative_buckets,
            custom_values: if is_custom { vec![1.0, 2.0 + self.below(2) as f64] } else { Vec::new() },
        }
    }
}

impl Store {
    fn new(seed: u32) -> Store {
        let mut random = Random(u64::from(seed) << 8 | 1);
        let mut labels: Vec<Labels> = Vec::new();
        for job in ["a", "b"] {
            for instance in ["1", "2"] {
                let of = |name| Labels::new([("__name__", name), ("instance", instance), ("job", job)]);
                labels.extend(["a", "b", "h", "target_info"].map(of));
            }
            for le in ["0.5", "1", "+Inf"] {
                labels.push(Labels::new([("__name__", "c_bucket"), ("job", job), ("le", le)]));
            }
        }
        labels.sort();
        let series = labels.into_iter().map(|labels| {
            let is_histogram = labels.get("__name__") == "h";
            let mut samples = Samples::default();
            for number in 0..SAMPLES {
                let time_ms = number * GAP_MS + random.below(100) as i64;
                if random.below(10) == 0 {
                    continue;
                }
                match is_histogram && random.below(8) > 0 {
                    true => {
                        let histogram = Rc::new(random.histogram());
                        samples.histograms.push(HistogramPoint { time_ms, histogram });
                    }
                    false => samples.floats.push(FloatPoint { time_ms, value: random.float() }),
                }
            }
            (labels, samples)
        });
        Store { series: series.collect() }
    }
}

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let mut matchers = Vec::new();
        for matcher in &selection.matchers {
            let pattern = match matcher.op {
                MatchOp::Equal | MatchOp::NotEqual => None,
                MatchOp::Regex | MatchOp::NotRegex => Some(
                    Pattern::new(&matcher.value)
                        .map_err(|error| SourceError { text: error.to_string() })?,
                ),
            };
            matchers.push((matcher, pattern));
        }
        let is_selected = |labels: &Labels| {
            matchers.iter().all(|(matcher, pattern)| {
                let value = labels.get(&matcher.name);
                let is_equal = match pattern {
                    Some(pattern) => pattern.is_match(value),
                    None => value == matcher.value,
                };
                is_equal == matches!(matcher.op, MatchOp::Equal | MatchOp::Regex)
            })
        };
        let found = self.series.iter().filter(|(labels, _)| is_selected(labels));
        let found: Vec<_> = found.cloned().collect();
        let (start_ms, end_ms) = (selection.start_ms, selection.end_ms);
        Ok(Box::new(SelectedSeries { rest: found.into_iter(), now: Samples::default(), start_ms, end_ms }))
    }
}

struct SelectedSeries {
    rest: std::vec::IntoIter<(Labels, Samples)>,
    now: Samples,
    start_ms: i64,
    end_ms: i64,
}

impl SeriesSet for SelectedSeries {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        let Some((labels, mut samples)) = self.rest.next() else { return Ok(None) };
        let range = self.start_ms..=self.end_ms;
        samples.floats.retain(|point| range.contains(&point.time_ms));
        samples.histograms.retain(|point| range.contains(&point.time_ms));
        self.now = samples;
        Ok(Some(labels))
    }

    /// Ten samples of time, so that windows cross the ends of what was read.
    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        let first_float = self.now.floats.first().map(|point| point.time_ms);
        let first_histogram = self.now.histograms.first().map(|point| point.time_ms);
        let Some(first) = first_float.into_iter().chain(first_histogram).min() else {
            return Ok(false);
        };
        let end = first + 10 * GAP_MS;
        let floats = self.now.floats.partition_point(|point| point.time_ms < end);
        samples.floats.extend(self.now.floats.drain(..floats));
        let histograms = self.now.histograms.partition_point(|point| point.time_ms < end);
        samples.histograms.extend(self.now.histograms.drain(..histograms));
        Ok(true)
    }
}
