//! The series that queries read: counters `x` and `y`, classic buckets `b`, gauges `g` and `h`,
//! each a fifth of all.
//!
//! An instance has ten series of each metric, which differ in `device`, in `interface` of `y`, in
//! `le` of `b`; so `x` and `y` can be aggregated together without their names. An instance is
//! scraped every 15 s at a time of its own, belongs to one of ten jobs and four clusters, and
//! restarts now and then, which resets its counters. Values of `x`, `g` and `h` use all bits of a
//! float, those of `y` and `b` are whole numbers. `g` and `h` have the same label sets except for
//! their name.
//!
//! [`Source`] makes all series for some minutes, one batch after the other: a day of them would
//! take gigabytes.

use tidepool_tests::clock::now_ms;
use tidepool_tests::series::{Dataset, Labels, Random, Sample, Series, Shape, Texture};

/// Interval between two samples of a series.
pub const INTERVAL_MS: i64 = 15_000;
const HOUR_MS: i64 = 3_600_000;
/// Age of the newest sample.
const AGE_MS: i64 = 300_000;
/// Number of samples of each series in a batch: minutes that no server refuses as out of order.
const BATCH_SCRAPES: usize = 20;
const BATCH_MS_MAX: i64 = 1_800_000;

const METRICS: [&str; 5] = ["x", "y", "b", "g", "h"];
/// Upper bounds of the buckets, as many as an instance has devices.
const BOUNDS: [&str; 10] =
    ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "5", "+Inf"];
/// Number of series of an instance, over all metrics.
const SERIES_PER_INSTANCE: usize = METRICS.len() * BOUNDS.len();
const JOBS: usize = 10;
const CLUSTERS: usize = 4;

/// Scrapes between two restarts of an instance; each instance has a number of its own in this
/// range.
const RESTART_SCRAPES: std::ops::Range<u64> = 1_500..4_000;

/// Returns the shape of a data set that ends some minutes ago, on a full minute. The number of
/// series is rounded up to whole instances.
pub fn shape(seed: u64, series: usize, hours: u32) -> Shape {
    let instances = series.div_ceil(SERIES_PER_INSTANCE).max(1);
    let end_ms = (now_ms() - AGE_MS) / 60_000 * 60_000;
    let length_ms = i64::from(hours) * HOUR_MS;
    Shape {
        seed,
        series: instances * SERIES_PER_INSTANCE,
        scrapes: (length_ms / INTERVAL_MS) as usize,
        start_ms: end_ms - length_ms,
        interval_ms: INTERVAL_MS,
        texture: Texture::Regular,
    }
}

/// Returns the end of the newest samples' interval.
pub fn end_ms(shape: &Shape) -> i64 {
    shape.start_ms + shape.scrapes as i64 * shape.interval_ms
}

/// Generator of all series, some minutes at a time.
pub struct Source {
    shape: Shape,
    values: Vec<Values>,
    /// Number of the next scrape.
    scrape: usize,
    /// The last batch; its labels are used again.
    batch: Dataset,
}

/// State of the generator of one series.
struct Values {
    instance: Instance,
    /// Number of the series among those of the instance and metric.
    device: usize,
    metric: &'static str,
    value: f64,
    random: Random,
}

/// Properties that the series of an instance share.
#[derive(Clone, Copy)]
struct Instance {
    offset_ms: i64,
    restart_scrapes: u64,
    first_restart: u64,
}

impl Source {
    /// Begins with the first scrape of a shape that [`shape`] returned.
    pub fn new(shape: Shape) -> Source {
        let (values, series) = (0..shape.series).map(|index| start(&shape, index)).unzip();
        Source { shape, values, scrape: 0, batch: Dataset { shape, series } }
    }

    /// Returns the next minutes of all series, as one scrape that has several samples of each;
    /// `None` at the end.
    pub fn next_batch(&mut self) -> Option<&Dataset> {
        self.next_scrapes(BATCH_SCRAPES)
    }

    /// Returns the end of the next scrape's interval: by then all its samples have been taken.
    pub fn next_end_ms(&self) -> i64 {
        self.shape.start_ms + (self.scrape as i64 + 1) * self.shape.interval_ms
    }

    /// As [`next_batch`](Source::next_batch), with at most this number of samples of each series.
    pub fn next_scrapes(&mut self, most: usize) -> Option<&Dataset> {
        let scrapes_max = (BATCH_MS_MAX / self.shape.interval_ms).max(1) as usize;
        let count = BATCH_SCRAPES.min(scrapes_max).min(most).min(self.shape.scrapes - self.scrape);
        if count == 0 {
            return None;
        }
        let first = self.scrape;
        // Increases of the lower buckets; an instance's buckets are consecutive series.
        let mut below = [0.0; BATCH_SCRAPES];
        for (values, series) in self.values.iter_mut().zip(&mut self.batch.series) {
            if values.device == 0 {
                below = [0.0; BATCH_SCRAPES];
            }
            series.samples.clear();
            for (scrape, below) in (first..first + count).zip(&mut below) {
                let time_ms = self.shape.start_ms + scrape as i64 * self.shape.interval_ms;
                let timestamp_ms = time_ms + values.instance.offset_ms;
                let value = values.step(scrape as u64, below);
                series.samples.push(Sample { timestamp_ms, value });
            }
        }
        self.scrape += count;
        self.batch.shape = Shape {
            scrapes: 1,
            start_ms: self.shape.start_ms + first as i64 * self.shape.interval_ms,
            interval_ms: count as i64 * self.shape.interval_ms,
            ..self.shape
        };
        Some(&self.batch)
    }
}

/// Returns the number of instances of a shape that [`shape`] returned.
pub fn instances(shape: &Shape) -> usize {
    shape.series / SERIES_PER_INSTANCE
}

/// Returns cluster and job of an instance. Forty consecutive instances have different pairs.
pub fn place(instance: usize) -> (String, String) {
    let (cluster, job) = (instance % CLUSTERS, instance / CLUSTERS % JOBS);
    (format!("cluster-{cluster}"), format!("service-{job}"))
}

/// Returns a series before its first sample. Series are ordered by metric, then by instance.
fn start(shape: &Shape, index: usize) -> (Values, Series) {
    let per_metric = shape.series / METRICS.len();
    let metric = METRICS[index / per_metric % METRICS.len()];
    let (number, device) = (index % per_metric / BOUNDS.len(), index % BOUNDS.len());
    let mut own = Random::new(shape.seed ^ 0x1257_a9ce, number as u64);
    let restart_scrapes =
        RESTART_SCRAPES.start + own.below(RESTART_SCRAPES.end - RESTART_SCRAPES.start);
    let instance = Instance {
        offset_ms: own.below(shape.interval_ms as u64) as i64,
        restart_scrapes,
        first_restart: own.below(restart_scrapes),
    };
    let last = match metric {
        "b" => ("le", BOUNDS[device].to_string()),
        "y" => ("interface", format!("eth{device}")),
        _ => ("device", format!("disk{device}")),
    };
    let (cluster, job) = place(number);
    let labels = Labels::from_pairs([
        ("__name__", metric.to_string()),
        ("cluster", cluster),
        ("instance", format!("node-{number:05}.internal:9100")),
        ("job", job),
        last,
    ]);
    let mut random = Random::new(shape.seed, index as u64);
    let value = match metric {
        "x" => random.fraction() * 1e6,
        "y" => random.below(50_000_000) as f64,
        "b" => 0.0,
        _ => 50.0 + random.fraction() * 100.0,
    };
    let values = Values { instance, device, metric, value, random };
    (values, Series { labels, samples: Vec::new() })
}

impl Values {
    /// Returns the next value; `below` is the increase of the lower buckets since the last scrape.
    fn step(&mut self, scrape: u64, below: &mut f64) -> f64 {
        let Instance { restart_scrapes, first_restart, .. } = self.instance;
        let is_counter = matches!(self.metric, "x" | "y" | "b");
        if is_counter && scrape > 0 && scrape % restart_scrapes == first_restart {
            self.value = 0.0;
        }
        self.value += match self.metric {
            "x" => self.random.fraction() * 15.0,
            // Many counters do not change between scrapes.
            "y" if self.random.one_in(3) => 0.0,
            "y" => self.random.below(2_000) as f64,
            "b" => {
                *below += self.random.below(9) as f64;
                *below
            }
            _ => (self.random.fraction() - 0.5) * 4.0,
        };
        // Gauges stay positive, so that quotients have no poles.
        if !is_counter {
            self.value = self.value.abs().max(1.0 / 16.0);
        }
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const SHAPE: Shape = Shape {
        seed: 3,
        series: 4 * SERIES_PER_INSTANCE,
        scrapes: 4_001,
        start_ms: 1_760_000_000_000,
        interval_ms: INTERVAL_MS,
        texture: Texture::Regular,
    };

    /// Returns all samples of the source.
    fn whole() -> Vec<Series> {
        let mut source = Source::new(SHAPE);
        let mut all: Vec<Series> = Vec::new();
        while let Some(batch) = source.next_batch() {
            let scrapes: Vec<_> = batch.scrapes().collect();
            assert_eq!(scrapes.len(), 1);
            if all.is_empty() {
                all.extend(batch.series.iter().cloned());
                continue;
            }
            for (series, row) in all.iter_mut().zip(&scrapes[0]) {
                assert_eq!(series.labels, *row.labels);
                series.samples.extend_from_slice(row.samples);
            }
        }
        all
    }

    #[test]
    fn every_series_has_every_scrape_in_order() {
        let all = whole();
        let labels: BTreeSet<_> = all.iter().map(|series| &series.labels).collect();
        assert_eq!(labels.len(), SHAPE.series);
        for series in &all {
            assert_eq!(series.samples.len(), SHAPE.scrapes, "{}", series.labels);
            assert!(series.samples.is_sorted_by(|a, b| a.timestamp_ms < b.timestamp_ms));
            let last = series.samples.last().map_or(0, |sample| sample.timestamp_ms);
            assert!((end_ms(&SHAPE) - INTERVAL_MS..end_ms(&SHAPE)).contains(&last));
        }
    }

    #[test]
    fn counters_are_reset_and_buckets_are_cumulative() {
        let all = whole();
        let resets = |name: &str| {
            let series = all.iter().filter(|series| series.labels.value("__name__") == name);
            series.map(|s| s.samples.windows(2).filter(|w| w[1].value < w[0].value).count()).sum()
        };
        for name in ["x", "y", "b"] {
            let count: usize = resets(name);
            // One to three resets of each of forty series.
            assert!((40..=120).contains(&count), "{name}: {count} resets");
        }
        let buckets = all.iter().filter(|series| series.labels.value("__name__") == "b");
        for instance in buckets.collect::<Vec<_>>().chunks(BOUNDS.len()) {
            for pair in instance.windows(2) {
                let mut both = pair[0].samples.iter().zip(&pair[1].samples);
                assert!(both.all(|(low, high)| low.value <= high.value));
            }
        }
    }

    #[test]
    fn counters_of_both_names_differ_without_them() {
        let source = Source::new(SHAPE);
        let without_name: BTreeSet<_> = source
            .batch
            .series
            .iter()
            .filter(|series| matches!(series.labels.value("__name__"), "x" | "y"))
            .map(|series| series.labels.pairs()[1..].to_vec())
            .collect();
        assert_eq!(without_name.len(), SHAPE.series / METRICS.len() * 2);
    }

    #[test]
    fn gauges_of_both_names_have_the_same_labels() {
        let source = Source::new(SHAPE);
        let mut by_labels: BTreeMap<Vec<_>, usize> = BTreeMap::new();
        for series in &source.batch.series {
            if matches!(series.labels.value("__name__"), "g" | "h") {
                *by_labels.entry(series.labels.pairs()[1..].to_vec()).or_default() += 1;
            }
        }
        assert_eq!(by_labels.len(), SHAPE.series / METRICS.len());
        assert!(by_labels.values().all(|count| *count == 2));
    }
}
