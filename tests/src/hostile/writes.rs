//! Writes at a steady rate: the same series repeatedly, each time with a later time.

use super::{HostileError, taken};
use crate::remote_write::{Version, Writer, compress, message_bytes};
use crate::series::{Labels, Row, Sample};
use std::time::{Duration, Instant};

/// Number of series in a request.
const ROWS: usize = 1_000;

/// Number of groups of series that are written in turn.
const GROUPS: usize = 10;

/// Interval between two samples of a series, in milliseconds.
const STEP_MS: i64 = 100;

/// A writer, and the time up to which it has written.
pub struct Writes {
    base_url: String,
    per_second: u32,
    /// Uncompressed messages in which only the times change.
    messages: Vec<Message>,
    next_ms: i64,
    sent: usize,
}

/// A message, and the offsets of its samples' times.
struct Message {
    bytes: Vec<u8>,
    times: Vec<usize>,
}

/// Latencies of the writes in one phase.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    /// Latency of each write, in ascending order.
    pub taken: Vec<Duration>,
}

impl Phase {
    /// Returns the latency that this part of the writes stayed below.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.taken.len().saturating_sub(1);
        let at = (last as f64 * part).round() as usize;
        self.taken.get(at).copied().unwrap_or_default()
    }
}

impl Writes {
    /// Makes a writer to the server at this base address: samples from a time on, and this number
    /// of requests a second.
    pub fn new(base_url: &str, start_ms: i64, per_second: u32) -> Writes {
        let messages = (0..GROUPS).map(|group| Message::new(group, start_ms)).collect();
        let (base_url, per_second) = (base_url.to_owned(), per_second.max(1));
        Writes { base_url, per_second, messages, next_ms: start_ms, sent: 0 }
    }

    /// Sends each request at its time, or as soon as the one before was answered. All must be
    /// accepted.
    pub fn send_for(&mut self, time: Duration) -> Result<Phase, HostileError> {
        // The server closes connections that are idle, and time between phases has no bound.
        let writer = Writer::new(&self.base_url);
        let every = Duration::from_secs(1) / self.per_second;
        let start = Instant::now();
        let mut due = start;
        let mut phase = Phase::default();
        while start.elapsed() < time {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // Writes that could not be sent in time are not sent later.
            due = (due + every).max(Instant::now());
            let body = self.next_body();
            let begun = Instant::now();
            taken("a write", writer.send_body(Version::V2, &body)?)?;
            phase.taken.push(begun.elapsed());
        }
        phase.taken.sort();
        Ok(phase)
    }

    fn next_body(&mut self) -> Vec<u8> {
        let group = self.sent % GROUPS;
        let time_ms = self.next_ms;
        self.sent += 1;
        if group == GROUPS - 1 {
            self.next_ms += STEP_MS;
        }
        match self.messages.get_mut(group) {
            Some(message) => compress(message.at(time_ms)),
            None => Vec::new(),
        }
    }
}

impl Message {
    fn new(group: usize, start_ms: i64) -> Message {
        let labels = |number: usize| {
            let (instance, path) = (format!("10.0.0.{}", number % 100), format!("/{number}"));
            Labels::from_pairs([("__name__", "written"), ("instance", &instance), ("path", &path)])
        };
        let labels: Vec<Labels> = (group * ROWS..(group + 1) * ROWS).map(labels).collect();
        let samples = [Sample { timestamp_ms: start_ms, value: 1.0 }];
        let rows: Vec<_> = labels.iter().map(|labels| Row { labels, samples: &samples }).collect();
        let bytes = message_bytes(Version::V2, &rows);
        let time = time_field(start_ms);
        let is_time = |at: &usize| bytes.get(*at..).is_some_and(|rest| rest.starts_with(&time));
        let times = (0..bytes.len()).filter(is_time).collect::<Vec<_>>();
        assert_eq!(times.len(), ROWS, "each sample has a time");
        Message { bytes, times }
    }

    fn at(&mut self, time_ms: i64) -> &[u8] {
        let time = time_field(time_ms);
        for at in &self.times {
            if let Some(place) = self.bytes.get_mut(*at..*at + time.len()) {
                place.copy_from_slice(&time);
            }
        }
        &self.bytes
    }
}

/// Encodes field 2 of a sample: a number that has the same length at all times of these decades.
fn time_field(time_ms: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::int64::encode(2, &time_ms, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::write_v2;
    use prost::Message as _;

    #[test]
    fn a_message_is_that_of_its_time() {
        let start_ms = 1_800_000_000_000;
        let mut message = Message::new(1, start_ms);
        let decoded = write_v2::Request::decode(message.at(start_ms + 123_456)).expect("a message");
        assert_eq!(decoded.timeseries.len(), ROWS);
        let times = decoded.timeseries.iter().flat_map(|series| &series.samples);
        assert!(times.into_iter().all(|sample| sample.timestamp == start_ms + 123_456));
    }
}
