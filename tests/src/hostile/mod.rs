//! Writes beside reads of the largest allowed size: latency of each write, quiet and beside the
//! reads.
//!
//! [`filled`] starts a server whose head has a flood of series of one metric, exemplars and
//! metadata; [`Writes`] sends other series at a steady rate; [`Kind`] is the request that is
//! repeated beside them. Each write's latency counts from its sending, so that a server that stands
//! still shows in one of them.

mod kind;
mod writes;

pub use kind::Kind;
pub use writes::{Phase, Writes};

use crate::http::HttpError;
use crate::proto::prometheus::{MetricMetadata, WriteRequest};
use crate::proto::write_v2;
use crate::remote_write::{Symbols, Version, Writer};
use crate::series::{Labels, Row, Sample};
use crate::tidepool::{Store, StoreError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Number of series in a request that fills the head.
const ROWS: usize = 2_000;

/// Content of the head before the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// Series of the metric `flood`, each with its own value of the label `i`.
    pub series: usize,
    /// Number of exemplars of these series.
    pub exemplars: usize,
    /// Number of metric families with metadata.
    pub families: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum HostileError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A write or a read was refused.
    #[error("{what} was answered with {status}: {body}")]
    Refused {
        what: &'static str,
        status: u16,
        /// Body of the server's response.
        body: String,
    },
    /// A metric is missing from `/metrics`.
    #[error("/metrics has no {0}")]
    NoMetric(&'static str),
}

/// Returns the labels of a series of the flood.
fn flood(number: usize) -> Labels {
    let (i, job) = (number.to_string(), format!("job-{}", number % 10));
    Labels::from_pairs([("__name__", "flood"), ("i", &i), ("job", &job)])
}

/// Starts a server and fills its head with samples of this time.
pub fn filled(flags: &[String], contents: Contents, now_ms: i64) -> Result<Store, HostileError> {
    let store = Store::start_with(|config| {
        let config = config.flag("--enable-admin-api");
        flags.iter().fold(config, |config, flag| config.flag(flag))
    })?;
    let writer = store.writer();
    let samples = [Sample { timestamp_ms: now_ms, value: 1.0 }];
    let labels: Vec<Labels> = (0..contents.series).map(flood).collect();
    for part in labels.chunks(ROWS) {
        let rows: Vec<_> = part.iter().map(|labels| Row { labels, samples: &samples }).collect();
        taken("series", writer.send(Version::V2, &rows)?)?;
    }
    send_exemplars(&writer, contents, now_ms)?;
    send_metadata(&writer, contents.families)?;
    Ok(store)
}

fn taken(what: &'static str, response: crate::http::Response) -> Result<(), HostileError> {
    match response.is_success() {
        true => Ok(()),
        false => {
            Err(HostileError::Refused { what, status: response.status, body: response.text() })
        }
    }
}

/// Sends exemplars spread over the series of the flood, as many as requested.
fn send_exemplars(writer: &Writer, contents: Contents, now_ms: i64) -> Result<(), HostileError> {
    let labels: Vec<Labels> = (0..contents.series.min(ROWS)).map(flood).collect();
    let mut sent = 0;
    let mut round = 0;
    while sent < contents.exemplars && !labels.is_empty() {
        round += 1;
        let traces: Vec<String> =
            (0..labels.len()).map(|n| format!("{round:08x}{n:08x}")).collect();
        let mut symbols = Symbols::default();
        let mut timeseries = Vec::new();
        for (labels, trace) in labels.iter().zip(&traces) {
            let labels_refs = symbols.labels(labels);
            let trace = vec![symbols.position("trace_id"), symbols.position(trace)];
            let timestamp = now_ms + round;
            timeseries.push(write_v2::TimeSeries {
                labels_refs,
                samples: vec![write_v2::Sample { value: 1.0, timestamp, start_timestamp: 0 }],
                exemplars: vec![write_v2::Exemplar { labels_refs: trace, value: 1.0, timestamp }],
                ..write_v2::TimeSeries::default()
            });
        }
        sent += labels.len();
        let message = write_v2::Request { symbols: symbols.into_strings(), timeseries };
        taken("exemplars", writer.send_message(Version::V2, &message)?)?;
    }
    Ok(())
}

fn send_metadata(writer: &Writer, families: usize) -> Result<(), HostileError> {
    let numbers: Vec<usize> = (0..families).collect();
    for part in numbers.chunks(ROWS) {
        let family = |number: &usize| MetricMetadata {
            r#type: 1,
            metric_family_name: format!("family_{number:06}_total"),
            help: format!("What number {number} counts, said in as many words as people use."),
            unit: "seconds".into(),
        };
        let metadata = part.iter().map(family).collect();
        let message = WriteRequest { metadata, ..WriteRequest::default() };
        taken("metadata", writer.send_message(Version::V1, &message)?)?;
    }
    Ok(())
}

/// Figures of writes beside readers of one kind.
#[derive(Clone, Debug)]
pub struct Beside {
    pub phase: Phase,
    /// Number of answered reads in this time.
    pub answered: u64,
    /// Number of refused reads in this time.
    pub refused: u64,
}

/// Writes for a time, beside readers that repeat their request until the end.
pub fn beside(
    store: &Store,
    writes: &mut Writes,
    kind: Kind,
    contents: Contents,
    readers: usize,
    time: Duration,
) -> Result<Beside, HostileError> {
    let stop = AtomicBool::new(false);
    let (answered, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                let (stop, answered, refused) = (&stop, &answered, &refused);
                scope.spawn(move || -> Result<(), HostileError> {
                    let asker = kind.asker(&store.server.url(), contents);
                    while !stop.load(Relaxed) {
                        let counted = if asker.ask()? { answered } else { refused };
                        counted.fetch_add(1, Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        let phase = writes.send_for(time);
        stop.store(true, Relaxed);
        for reader in readers {
            match reader.join() {
                Ok(asked) => asked?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let (answered, refused) = (answered.load(Relaxed), refused.load(Relaxed));
        Ok(Beside { phase: phase?, answered, refused })
    })
}

/// Memory of a server: used in the head, the head's instance, the process.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Used bytes of the head.
    pub head_used: f64,
    /// Bytes of the head's instance, which never shrinks.
    pub head: f64,
    /// Resident bytes of the process.
    pub resident: f64,
}

impl Memory {
    /// Reads the memory of a server.
    pub fn of(store: &Store) -> Result<Memory, HostileError> {
        let metric = |name| store.metric(name).ok_or(HostileError::NoMetric(name));
        Ok(Memory {
            head_used: metric("tidepool_head_memory_used_bytes")?,
            head: metric("tidepool_head_memory_bytes")?,
            resident: metric("process_resident_memory_bytes")?,
        })
    }
}
