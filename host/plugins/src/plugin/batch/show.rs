//! Text form of the rows of a body, for people.

use super::columns::{Columns, part};
use super::{Interest, View};
use prost::Message as _;
use std::fmt::Write as _;
use tidepool_protocol::prom::native::Histogram;
use tidepool_runtime::{Error, RemoteWriteVersion};
use tidepool_store::StoreError;

/// Formats the rows of a remote-write body, a line each: series, value, milliseconds.
pub fn rows(
    version: RemoteWriteVersion,
    body: &[u8],
    bytes_max: usize,
) -> Result<Vec<String>, StoreError> {
    let view = view(version, body, Interest::all(), bytes_max)?;
    let columns = Columns::of(&view.batch);
    let samples = &view.batch.samples;
    let mut rows = Vec::with_capacity(samples.series.len());
    for ((place, timestamp_ms), value) in
        samples.series.iter().zip(&samples.timestamps_ms).zip(&samples.values)
    {
        rows.push(format!("{} {value} {timestamp_ms}", series(&columns, *place as usize)));
    }
    let histograms = &view.batch.histograms;
    for (number, place) in histograms.series.iter().enumerate() {
        let message = part(&histograms.ends, number).and_then(|r| histograms.messages.get(r));
        let histogram = Histogram::decode(message.unwrap_or_default()).unwrap_or_default();
        let Histogram { schema, sum, timestamp, .. } = histogram;
        let series = series(&columns, *place as usize);
        rows.push(format!("{series} {{schema {schema}, sum {sum}}} {timestamp}"));
    }
    Ok(rows)
}

/// Returns the time of a body's newest float sample; `None` if it has none.
pub fn newest_ms(
    version: RemoteWriteVersion,
    body: &[u8],
    bytes_max: usize,
) -> Result<Option<i64>, StoreError> {
    let view = view(version, body, Interest::SAMPLES, bytes_max)?;
    Ok(view.batch.samples.timestamps_ms.iter().copied().max())
}

fn view(
    version: RemoteWriteVersion,
    body: &[u8],
    interest: Interest,
    bytes_max: usize,
) -> Result<View, StoreError> {
    View::of(version, body, interest, bytes_max)
        .map_err(|error| StoreError::Refused(Error::Invalid(error.to_string())))
}

/// Formats a series in Prometheus' notation.
fn series(columns: &Columns<'_>, place: usize) -> String {
    let mut name = "";
    let mut labels = String::new();
    let (pairs, _) = columns.refs(place).as_chunks::<2>();
    for [label, value] in pairs {
        match (columns.symbol(*label), columns.symbol(*value)) {
            ("__name__", value) => name = value,
            (label, value) => {
                let comma = if labels.is_empty() { "" } else { "," };
                // Writing to a string cannot fail.
                let _ = write!(labels, "{comma}{label}={value:?}");
            }
        }
    }
    format!("{name}{{{labels}}}")
}
