//! `packed.answer`: an answer to a remote read of the store, converted to columns.

use crate::bindings::exports::tidepool::standalone::packed::{GuestAnswer, SeriesColumns};
use crate::bindings::tidepool::tsdb::store::{self, Cursor, FrameFormat, Selection};
use crate::bindings::tidepool::tsdb::types::{Damage, Error, Matcher, TimeRange};
use crate::packed::packed;
use prost::Message;
use serde_json::{Map, Value, json};
use std::cell::RefCell;

/// Tag and wire type of `prometheus.QueryResult.timeseries`.
const TIME_SERIES_TAG: u8 = 0x0a;

pub struct OpenAnswer {
    cursor: Cursor,
    /// Bytes read from the cursor that are not decoded yet.
    pending: RefCell<Vec<u8>>,
}

/// `prometheus.TimeSeries`, with only the fields that [`SeriesColumns`] needs.
#[derive(Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    histograms: Vec<Histogram>,
}

#[derive(Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp_ms: i64,
}

/// Without fields, because native histograms are only counted.
#[derive(Message)]
struct Histogram {}

#[derive(Default)]
struct Batch {
    series: Vec<Value>,
    timestamps_ms: Vec<[u8; 8]>,
    values: Vec<[u8; 8]>,
}

impl OpenAnswer {
    pub fn open(matchers: Vec<Matcher>, range: TimeRange) -> Result<OpenAnswer, Error> {
        let cursor = store::select(&Selection {
            matchers,
            range,
            format: FrameFormat::Samples,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: Vec::new(),
        })?;
        Ok(OpenAnswer { cursor, pending: RefCell::default() })
    }
}

impl GuestAnswer for OpenAnswer {
    fn next(&self, bytes_max: u32) -> Result<SeriesColumns, Error> {
        let mut pending = self.pending.borrow_mut();
        // The cursor splits series longer than `bytes_max`, so several reads may be needed.
        while !is_whole(&pending) {
            let piece = self.cursor.next_frames(bytes_max)?;
            if piece.is_empty() {
                if pending.is_empty() {
                    break;
                }
                return Err(undecodable(pending.len(), "the answer ends within a series"));
            }
            pending.extend(piece);
        }
        let mut batch = Batch::default();
        let mut taken = 0;
        while let Some((start, end)) = first_series(&pending[taken..]) {
            // The first series is always returned, because the contract promises at least one.
            if taken > 0 && taken + end > bytes_max as usize {
                break;
            }
            let series = TimeSeries::decode(&pending[taken + start..taken + end])
                .map_err(|error| undecodable(taken, &error.to_string()))?;
            batch.add(series);
            taken += end;
        }
        pending.drain(..taken);
        Ok(batch.columns())
    }
}

impl Batch {
    fn add(&mut self, series: TimeSeries) {
        let labels: Map<String, Value> =
            series.labels.into_iter().map(|label| (label.name, label.value.into())).collect();
        self.series.push(json!({
            "labels": labels,
            "samples": series.samples.len(),
            "histograms": series.histograms.len(),
        }));
        for Sample { value, timestamp_ms } in series.samples {
            self.timestamps_ms.push(timestamp_ms.to_le_bytes());
            self.values.push(value.to_le_bytes());
        }
    }

    fn columns(self) -> SeriesColumns {
        SeriesColumns {
            series: Value::Array(self.series).to_string(),
            timestamps_ms: packed(&self.timestamps_ms),
            values: packed(&self.values),
        }
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    first_series(bytes).is_some()
}

/// Returns start and end of the message of the first series; `None` if it is not complete.
fn first_series(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut rest = bytes.strip_prefix(&[TIME_SERIES_TAG])?;
    let len = prost::decode_length_delimiter(&mut rest).ok()?;
    let start = bytes.len() - rest.len();
    (rest.len() >= len).then_some((start, start + len))
}

fn undecodable(offset: usize, reason: &str) -> Error {
    let place = "an answer of the store".into();
    Error::Corrupt(Damage { where_: place, offset: offset as u64, reason: reason.into() })
}
