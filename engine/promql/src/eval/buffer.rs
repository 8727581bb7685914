//! Buffer of the samples of one series, between the store and the folds (see `eval::fold`).

use super::budget::Usage;
use super::column::{Column, histogram_held};
use crate::error::EvalError;
use crate::model::{CounterReset, FloatPoint, Histogram, HistogramPoint, Samples, is_stale_nan};
use crate::plan::Grid;
use crate::source::SeriesSet;
use std::rc::Rc;
use tidepool_model::sort;

/// Minimum number of unneeded samples that are removed from the front at once.
const DROP_MIN: usize = 512;

/// Samples that were read and may still be needed. [`Places`] are positions from the first sample
/// of the series, even after samples at the front were removed.
#[derive(Debug, Default)]
pub struct Buffer {
    samples: Samples,
    stale: Vec<i64>,
    base: Places,
    /// Newest time up to which all samples are known.
    pub known_ms: i64,
    /// Usage of the histograms in the buffer, which count as several samples each.
    histograms: Usage,
    read: u64,
    /// Whether histograms lose their buckets. `previous` keeps those of the last histogram.
    is_without_buckets: bool,
    previous: Option<Rc<Histogram>>,
}

/// Positions in the lists of floats, histograms and stale markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub float: usize,
    pub histogram: usize,
    pub stale: usize,
}

impl Places {
    pub fn min(self, other: Places) -> Places {
        Places {
            float: self.float.min(other.float),
            histogram: self.histogram.min(other.histogram),
            stale: self.stale.min(other.stale),
        }
    }
}

impl Buffer {
    pub fn set_without_buckets(&mut self, is_without_buckets: bool) {
        self.is_without_buckets = is_without_buckets;
    }

    pub fn clear(&mut self) {
        self.previous = None;
        self.samples.clear();
        self.stale.clear();
        self.base = Places::default();
        self.known_ms = i64::MIN;
        self.histograms = Usage::default();
        self.read = 0;
    }

    /// Reads more samples; returns whether further samples may follow.
    pub fn read(&mut self, set: &mut dyn SeriesSet) -> Result<bool, EvalError> {
        let (floats, histograms) = (self.samples.floats.len(), self.samples.histograms.len());
        let has_more = set.read(&mut self.samples)?;
        self.read += (self.samples.len() - floats - histograms) as u64;
        let mut newest = self.known_ms;
        if let Some(last) = self.samples.floats[floats..].last() {
            newest = newest.max(last.time_ms);
        }
        if let Some(last) = self.samples.histograms[histograms..].last() {
            newest = newest.max(last.time_ms);
        }
        // After the last sample nothing newer can arrive, so every step can be evaluated.
        self.known_ms = if has_more { newest } else { i64::MAX };
        if self.is_without_buckets {
            for point in &mut self.samples.histograms[histograms..] {
                strip(&mut point.histogram, &mut self.previous);
            }
        }
        // Histograms are counted after stale markers were removed from their list.
        self.take_stale(floats, histograms);
        for point in &self.samples.histograms[histograms.min(self.samples.histograms.len())..] {
            let held = histogram_held(&point.histogram);
            self.histograms.bytes += held.bytes;
            self.histograms.samples += held.samples;
        }
        Ok(has_more)
    }

    /// Returns the memory that the values of a subquery need in a buffer.
    pub fn held_of(column: &Column) -> Usage {
        let floats = column.present().count();
        let mut held = Usage { bytes: floats * size_of::<FloatPoint>(), samples: floats as u64 };
        if column.has_histograms() {
            for histogram in (0..column.len()).filter_map(|step| column.histogram(step)) {
                let one = histogram_held(histogram);
                held.bytes += one.bytes;
                held.samples += one.samples;
            }
        }
        held
    }

    /// Replaces the samples by the values of a subquery. Histograms lose their counter reset hint,
    /// because a subquery may skip samples or return a sample twice.
    pub fn fill(&mut self, column: &Column, grid: Grid) {
        self.clear();
        self.samples.floats.reserve_exact(column.present().count());
        for step in column.present().iter() {
            let point = FloatPoint { time_ms: grid.time(step), value: column.floats()[step] };
            self.samples.floats.push(point);
        }
        if column.has_histograms() {
            for step in 0..column.len() {
                let Some(histogram) = column.histogram(step) else { continue };
                let histogram = match histogram.counter_reset {
                    CounterReset::Reset | CounterReset::NotReset => {
                        let counter_reset = CounterReset::Unknown;
                        Rc::new(Histogram { counter_reset, ..(**histogram).clone() })
                    }
                    _ => histogram.clone(),
                };
                self.samples
                    .histograms
                    .push(HistogramPoint { time_ms: grid.time(step), histogram });
            }
        }
        self.known_ms = i64::MAX;
        self.take_stale(0, 0);
    }

    /// Moves stale markers among the newest samples to their own list.
    fn take_stale(&mut self, floats: usize, histograms: usize) {
        let samples = &mut self.samples;
        if has_stale(&samples.floats[floats..]) {
            let mut kept = floats;
            for at in floats..samples.floats.len() {
                let point = samples.floats[at];
                if is_stale_nan(point.value) {
                    self.stale.push(point.time_ms);
                    continue;
                }
                samples.floats[kept] = point;
                if let Some(start) = samples.float_starts.get(at).copied() {
                    samples.float_starts[kept] = start;
                }
                kept += 1;
            }
            samples.floats.truncate(kept);
            samples.float_starts.truncate(kept);
        }
        if samples.histograms[histograms..].iter().any(|p| is_stale_nan(p.histogram.sum)) {
            let mut kept = histograms;
            for at in histograms..samples.histograms.len() {
                if is_stale_nan(samples.histograms[at].histogram.sum) {
                    self.stale.push(samples.histograms[at].time_ms);
                    continue;
                }
                samples.histograms.swap(kept, at);
                if at < samples.histogram_starts.len() {
                    samples.histogram_starts.swap(kept, at);
                }
                kept += 1;
            }
            samples.histograms.truncate(kept);
            samples.histogram_starts.truncate(kept);
            sort::sort(&mut self.stale);
        }
    }

    /// Removes samples before these positions, if enough samples can be removed.
    pub fn drop_before(&mut self, places: Places) {
        let floats = places.float - self.base.float;
        // At least half of the list is removed, so that the cost of moving the rest is amortised.
        if floats >= DROP_MIN && floats * 2 >= self.samples.floats.len() {
            self.samples.floats.drain(..floats);
            let starts = floats.min(self.samples.float_starts.len());
            self.samples.float_starts.drain(..starts);
            self.base.float = places.float;
        }
        let histograms = places.histogram - self.base.histogram;
        // Histograms are large, so even a single histogram is worth its removal.
        if histograms > 0 && histograms * 2 >= self.samples.histograms.len() {
            for point in self.samples.histograms.drain(..histograms) {
                let held = histogram_held(&point.histogram);
                self.histograms.bytes -= held.bytes.min(self.histograms.bytes);
                self.histograms.samples -= held.samples.min(self.histograms.samples);
            }
            let starts = histograms.min(self.samples.histogram_starts.len());
            self.samples.histogram_starts.drain(..starts);
            self.base.histogram = places.histogram;
        }
        let stale = places.stale - self.base.stale;
        if stale >= DROP_MIN {
            self.stale.drain(..stale);
            self.base.stale = places.stale;
        }
    }

    /// Returns samples and stale markers, with the positions of the first entry of each list.
    pub fn parts(&self) -> (&Samples, &[i64], Places) {
        (&self.samples, &self.stale, self.base)
    }

    pub fn samples_read(&self) -> u64 {
        self.read
    }

    pub fn held(&self) -> Usage {
        Usage {
            bytes: self.samples.floats.capacity() * 16
                + self.samples.float_starts.capacity() * 8
                + self.samples.histograms.capacity() * size_of::<HistogramPoint>()
                + self.samples.histogram_starts.capacity() * 8
                + self.stale.capacity() * 8
                + self.histograms.bytes,
            samples: self.samples.floats.len() as u64 + self.histograms.samples,
        }
    }
}

/// Returns whether any sample is a stale marker, with few branches, because markers are rare.
fn has_stale(floats: &[FloatPoint]) -> bool {
    let is_stale = |any, point: &FloatPoint| any | is_stale_nan(point.value);
    let (blocks, rest) = floats.as_chunks::<8>();
    blocks.iter().any(|block| block.iter().fold(false, is_stale))
        || rest.iter().fold(false, is_stale)
}

/// Compares the buckets with the previous ones to find a counter reset, then removes them.
fn strip(histogram: &mut Rc<Histogram>, previous: &mut Option<Rc<Histogram>>) {
    let mut stripped = Histogram {
        counter_reset: histogram.counter_reset,
        schema: histogram.schema,
        count: histogram.count,
        sum: histogram.sum,
        ..Histogram::default()
    };
    // A stale marker is no value to compare the next histogram with.
    if !is_stale_nan(histogram.sum) {
        let last = previous.replace(histogram.clone());
        if let (Some(last), CounterReset::Unknown) = (last, histogram.counter_reset) {
            stripped.counter_reset = match histogram.detect_reset(&last) {
                true => CounterReset::Reset,
                false => CounterReset::NotReset,
            };
        }
    }
    *histogram = Rc::new(stripped);
}
