//! Series of a selection, whose chunks are decoded one at a time.

use super::histogram::{count_and_sum, to_histogram};
use super::source::{Failure, failed};
use crate::chunk::{Chunk, ChunkError, Encoding, Xor2Iter, read_floats, values};
use crate::error::{Error, Result};
use crate::model::{TimeRange, Value};
use crate::select::{SeriesSource, Windows};
use crate::wire::ChunkedSeries;
use std::rc::Rc;
use tidepool_promql::model::{
    CounterReset, FloatPoint, Histogram, HistogramPoint, Labels, Samples,
};
use tidepool_promql::source::{Hints, SeriesSet, SourceError};

pub(super) struct StoreSeries {
    source: Box<dyn SeriesSource>,
    windows: Windows,
    hints: Hints,
    bytes: usize,
    series: ChunkedSeries,
    chunks_read: usize,
    /// The last histogram of the series so far, if the query needs no buckets.
    before: Option<Value>,
    failure: Failure,
}

impl StoreSeries {
    pub(super) fn new(
        (source, bytes): (Box<dyn SeriesSource>, usize),
        windows: Windows,
        hints: Hints,
        failure: Failure,
    ) -> StoreSeries {
        let series = ChunkedSeries { labels: Default::default(), chunks: Vec::new() };
        let (chunks_read, before) = (0, None);
        StoreSeries { source, windows, hints, bytes, series, chunks_read, before, failure }
    }

    fn read_chunk(&mut self, samples: &mut Samples) -> Result<bool> {
        while let Some(chunk) = self.series.chunks.get(self.chunks_read) {
            self.chunks_read += 1;
            if !self.windows.touch(chunk.min_time_ms, chunk.max_time_ms) {
                // The next chunk does not directly follow the last one, so no reset can be found.
                self.before = None;
                continue;
            }
            let range = self.windows.range;
            let decoded = decode(chunk, range, self.hints, &mut self.before, samples);
            decoded.map_err(|source| Error::Chunk {
                series: self.series.labels.to_string(),
                source,
            })?;
            return Ok(true);
        }
        Ok(false)
    }
}

impl SeriesSet for StoreSeries {
    fn next(&mut self) -> std::result::Result<Option<Labels>, SourceError> {
        match self.source.next_series() {
            Ok(Some(series)) => {
                self.series = series;
                self.chunks_read = 0;
                self.before = None;
                let labels = &self.series.labels;
                Ok(Some(Labels::from_sorted(labels.packed().len(), labels.iter())))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(failed(&self.failure, error)),
        }
    }

    fn read(&mut self, samples: &mut Samples) -> std::result::Result<bool, SourceError> {
        self.read_chunk(samples).map_err(|error| failed(&self.failure, error))
    }

    fn estimate(&mut self) -> std::result::Result<usize, SourceError> {
        self.source.estimate().map_err(|error| failed(&self.failure, error))
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Appends the samples of a chunk in a range; only other writers' chunks have start timestamps.
fn decode(
    chunk: &Chunk,
    range: TimeRange,
    hints: Hints,
    before: &mut Option<Value>,
    out: &mut Samples,
) -> std::result::Result<(), ChunkError> {
    if chunk.encoding == Encoding::Xor {
        let point = |time_ms, value| FloatPoint { time_ms, value };
        let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
        // A chunk inside of the range needs no test for each sample.
        let cut = (!range.covers(&span)).then_some(range);
        read_floats(&chunk.data, cut, point, &mut out.floats)?;
    } else if chunk.encoding == Encoding::Xor2 {
        let mut all = Xor2Iter::new(&chunk.data)?;
        while let Some(sample) = all.next() {
            let sample = sample?;
            if range.contains(sample.timestamp_ms) {
                out.floats.push(FloatPoint { time_ms: sample.timestamp_ms, value: sample.value });
                if hints.start_times {
                    out.float_starts.push(all.start_ms());
                }
            }
        }
    } else {
        let mut all = values(chunk)?;
        while let Some(value) = all.next() {
            let (time_ms, value) = value?;
            if range.contains(time_ms) {
                let mut histogram = histogram_of(&value, hints);
                if hints.without_buckets {
                    histogram.counter_reset = reset_of(&value, histogram.counter_reset, before);
                }
                let histogram = Rc::new(histogram);
                out.histograms.push(HistogramPoint { time_ms, histogram });
                if hints.start_times {
                    out.histogram_starts.push(all.start_ms());
                }
            }
            // A staleness marker has no buckets to compare with.
            if hints.without_buckets && !value.is_stale() {
                *before = Some(value);
            }
        }
    }
    // Both lists of starts are as long as those of samples; 0 means an unknown start.
    if hints.start_times {
        out.float_starts.resize(out.floats.len(), 0);
        out.histogram_starts.resize(out.histograms.len(), 0);
    }
    Ok(())
}

/// Returns the reset hint of a histogram whose buckets are left out. Found by comparing buckets
/// with the histogram before, because the first histogram of a chunk has no hint.
fn reset_of(value: &Value, hint: CounterReset, before: &Option<Value>) -> CounterReset {
    match before {
        Some(before) if hint == CounterReset::Unknown && !value.is_stale() => {
            // The comparison needs the buckets, which the result leaves out.
            let whole = |value| histogram_of(value, Hints::default());
            match whole(value).detect_reset(&whole(before)) {
                true => CounterReset::Reset,
                false => CounterReset::NotReset,
            }
        }
        _ => hint,
    }
}

fn histogram_of(value: &Value, hints: Hints) -> Histogram {
    match (value, hints.without_buckets) {
        (Value::Histogram(histogram), false) => to_histogram(histogram),
        (Value::Histogram(histogram), true) => count_and_sum(histogram),
        (Value::FloatHistogram(histogram), false) => to_histogram(histogram),
        (Value::FloatHistogram(histogram), true) => count_and_sum(histogram),
        // Never used: a chunk of histograms has no floats.
        (Value::Float(_), _) => Histogram::default(),
    }
}
