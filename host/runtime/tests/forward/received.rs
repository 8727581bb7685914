//! The rows in requests by series, decoded with the generated messages.

use crate::TestResult;
use prost::Message as _;
use std::collections::BTreeMap;
use tidepool_runtime::{Destination, RemoteWriteVersion};
use tidepool_tests::proto::{prometheus, write_v2};
use tidepool_tests::series::Series;

/// Time and bits of each row, in the order of arrival, by `name=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(pub BTreeMap<String, Vec<(i64, u64)>>);

impl Rows {
    pub fn of(series: &[Series]) -> Rows {
        let mut rows = Rows::default();
        for Series { labels, samples } in series {
            let pairs = labels.pairs().iter().map(|(n, v)| (n.as_str(), v.as_str()));
            let samples = samples.iter().map(|s| (s.timestamp_ms, s.value.to_bits()));
            rows.0.entry(key(pairs)).or_default().extend(samples);
        }
        rows
    }

    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    pub fn extend(&mut self, other: Rows) {
        for (series, rows) in other.0 {
            self.0.entry(series).or_default().extend(rows);
        }
    }

    /// Sorts rows by time, for tests in which the order of arrival varies.
    pub fn by_time(mut self) -> Rows {
        self.0.values_mut().for_each(|rows| rows.sort_unstable());
        self
    }
}

fn key<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

pub fn key_v1(labels: &[prometheus::Label]) -> String {
    key(labels.iter().map(|label| (label.name.as_str(), label.value.as_str())))
}

pub fn key_v2(request: &write_v2::Request, refs: &[u32]) -> String {
    let symbol = |at: u32| request.symbols[at as usize].as_str();
    key(refs.chunks_exact(2).map(|pair| (symbol(pair[0]), symbol(pair[1]))))
}

/// The rows of a request.
pub fn decoded(version: RemoteWriteVersion, body: &[u8]) -> TestResult<Rows> {
    let mut rows = Rows::default();
    match version {
        RemoteWriteVersion::V1 => {
            for series in prometheus::WriteRequest::decode(body)?.timeseries {
                let samples = series.samples.iter().map(|s| (s.timestamp, s.value.to_bits()));
                rows.0.entry(key_v1(&series.labels)).or_default().extend(samples);
            }
        }
        RemoteWriteVersion::V2 => {
            let request = write_v2::Request::decode(body)?;
            for series in &request.timeseries {
                let samples = series.samples.iter().map(|s| (s.timestamp, s.value.to_bits()));
                let key = key_v2(&request, &series.labels_refs);
                rows.0.entry(key).or_default().extend(samples);
            }
        }
    }
    Ok(rows)
}

/// Takes the next rows of a shard and marks them as delivered; `None` at the end.
pub fn deliver(from: &mut Destination, shard: u32, rows_max: u32) -> TestResult<Option<Rows>> {
    let version = RemoteWriteVersion::V2;
    let Some(request) = from.take(shard, version, rows_max, i64::MIN)? else { return Ok(None) };
    let rows = decoded(version, &request.body)?;
    assert_eq!(request.samples as usize, rows.count());
    from.done(shard)?;
    Ok(Some(rows))
}

/// Delivers all that is queued.
pub fn deliver_all(from: &mut Destination) -> TestResult<Rows> {
    let mut rows = Rows::default();
    for shard in 0..from.pending()?.len() as u32 {
        while let Some(next) = deliver(from, shard, 7)? {
            rows.extend(next);
        }
    }
    Ok(rows)
}
