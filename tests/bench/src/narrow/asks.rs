//! Requests that concern few of many series, each about another part of the data.

use super::super::queries::answer::Answer;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::proto::prometheus::read_request::ResponseType;
use tidepool_tests::proto::prometheus::{Query, ReadRequest, ReadResponse};
use tidepool_tests::remote_read::{self, frames, matcher};
use tidepool_tests::remote_write::compress;
use tidepool_tests::series::Random;

/// Interval between two steps of a range.
const STEP_S: i64 = 60;
const HOUR_MS: i64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Newest values of ten series.
    Instant,
    /// Newest values of the series that a regular expression selects.
    Regex,
    /// A count over a thousand series.
    Count,
    /// A rate of ten series over the last hour.
    Range,
    /// Ten series over a time range, streamed.
    Streamed,
    /// The same read, as SAMPLES.
    Sampled,
    /// Label names of fifty series.
    Names,
    /// Values of a label of ten series.
    Values,
    /// Label sets of ten series.
    Series,
}

/// Properties of the data that requests depend on.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub instances: u64,
    /// The time of instant queries, and the end of ranges.
    pub end_ms: i64,
    /// Length of the range of reads and lookups in hours.
    pub hours: i64,
}

/// A request, and the description by which its answers are compared.
pub struct Ask {
    kind: Kind,
    pub request: Vec<u8>,
    read: Option<Query>,
}

impl Kind {
    /// All kinds in the order of the table.
    pub const ALL: [Kind; 9] = [
        Kind::Instant,
        Kind::Regex,
        Kind::Count,
        Kind::Range,
        Kind::Streamed,
        Kind::Sampled,
        Kind::Names,
        Kind::Values,
        Kind::Series,
    ];

    /// Returns the name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Instant => "instant, 10 series: `x{instance=\"…\"}`",
            Kind::Regex => "instant, 100 series: `x{instance=~\"node-0123.*\"}`",
            Kind::Count => "instant: `count by (job) (x{instance=~\"node-0[12].*\",device=\"…\"})`",
            Kind::Range => "range of an hour: `rate(x{instance=\"…\"}[5m])`",
            Kind::Streamed => "remote read, streamed, 10 series",
            Kind::Sampled => "remote read, SAMPLES, 10 series",
            Kind::Names => "label names, `match[]={instance=\"…\"}`",
            Kind::Values => "label values, `match[]=x{instance=\"…\"}`",
            Kind::Series => "series, `match[]=x{instance=\"…\"}`",
        }
    }
}

impl Ask {
    /// Makes a random request of a kind.
    pub fn some(kind: Kind, data: Data, random: &mut Random) -> Ask {
        let number = random.below(data.instances.max(1));
        let instance = format!("node-{number:05}.internal:9100");
        let ten = format!("x{{instance=\"{instance}\"}}");
        let (start_ms, end_ms) = (data.end_ms - data.hours * HOUR_MS, data.end_ms);
        let seconds = |ms: i64| ms as f64 / 1e3;
        let instant = |promql: &str| {
            get(&format!("/api/v1/query?query={}&time={}", percent_encode(promql), seconds(end_ms)))
        };
        let lookup = |path: &str, selector: &str| {
            let (start, end) = (seconds(start_ms), seconds(end_ms));
            let selector = percent_encode(selector);
            get(&format!("/api/v1/{path}?match[]={selector}&start={start}&end={end}"))
        };
        let read = remote_read::query(
            start_ms,
            end_ms,
            vec![matcher(Type::Eq, "__name__", "x"), matcher(Type::Eq, "instance", &instance)],
        );
        let is_read = matches!(kind, Kind::Streamed | Kind::Sampled);
        let request = match kind {
            Kind::Instant => instant(&ten),
            Kind::Regex => instant(&format!("x{{instance=~\"node-{:04}.*\"}}", number / 10)),
            Kind::Count => {
                let (thousand, device) = (number / 1000 % 10, random.below(10));
                let regex = format!("node-0[{thousand}{}].*", (thousand + 1) % 10);
                instant(&format!(
                    "count by (job) (x{{instance=~\"{regex}\",device=\"disk{device}\"}})"
                ))
            }
            Kind::Range => {
                let promql = percent_encode(&format!("rate({ten}[5m])"));
                let (start, end) = (seconds(end_ms - HOUR_MS), seconds(end_ms));
                get(&format!(
                    "/api/v1/query_range?query={promql}&start={start}&end={end}&step={STEP_S}"
                ))
            }
            Kind::Streamed => post(&read, ResponseType::StreamedXorChunks),
            Kind::Sampled => post(&read, ResponseType::Samples),
            Kind::Names => lookup("labels", &format!("{{instance=\"{instance}\"}}")),
            Kind::Values => lookup("label/device/values", &ten),
            Kind::Series => lookup("series", &ten),
        };
        Ask { kind, request, read: is_read.then_some(read) }
    }

    /// Returns the difference from another server's answer, if there is one.
    pub fn difference(&self, ours: &[u8], theirs: &[u8]) -> Result<Option<String>, String> {
        match self.kind {
            Kind::Instant | Kind::Regex | Kind::Count | Kind::Range => {
                let (ours, theirs) = (Answer::read(ours)?, Answer::read(theirs)?);
                if theirs.series() == 0 {
                    return Ok(Some("the answer is empty".to_owned()));
                }
                Ok(ours.difference(&theirs))
            }
            Kind::Names | Kind::Values | Kind::Series => {
                let (ours, theirs) = (listed(ours)?, listed(theirs)?);
                Ok((ours != theirs || theirs.is_empty())
                    .then(|| format!("{ours:?}, not {theirs:?}")))
            }
            Kind::Streamed | Kind::Sampled => {
                let (ours, theirs) = (self.samples(ours)?, self.samples(theirs)?);
                let is_same = ours == theirs && !theirs.is_empty();
                let count = |all: &Samples| all.values().map(Vec::len).sum::<usize>();
                Ok((!is_same).then(|| {
                    let (ours, theirs) = (count(&ours), count(&theirs));
                    format!("other samples: {ours} of them, not {theirs}")
                }))
            }
        }
    }

    /// Returns the samples of a read within its range.
    fn samples(&self, body: &[u8]) -> Result<Samples, String> {
        let Some(query) = &self.read else { return Err("this is no read".to_owned()) };
        let mut all = Samples::new();
        if self.kind == Kind::Sampled {
            let message = snap::raw::Decoder::new().decompress_vec(body);
            let message = message.map_err(|error| error.to_string())?;
            let message = ReadResponse::decode(&*message).map_err(|error| error.to_string())?;
            for series in message.results.into_iter().flat_map(|result| result.timeseries) {
                let labels: Vec<_> =
                    series.labels.into_iter().map(|label| (label.name, label.value)).collect();
                let samples = series.samples.iter();
                let samples = samples.map(|sample| (sample.timestamp, sample.value.to_bits()));
                all.entry(format!("{labels:?}")).or_default().extend(samples);
            }
            return Ok(all);
        }
        let range = query.start_timestamp_ms..=query.end_timestamp_ms;
        let queries = std::slice::from_ref(query);
        let mut rules = frames::StreamRules::new(queries);
        let mut frames = frames::FrameReader::new(body);
        while let Some(frame) = frames.next_frame().map_err(|error| error.to_string())? {
            let part = rules.check(&frame.payload).map_err(|error| error.to_string())?;
            let samples = part.samples.iter().filter(|sample| range.contains(&sample.timestamp_ms));
            let samples = samples.map(|sample| (sample.timestamp_ms, sample.value.to_bits()));
            all.entry(format!("{:?}", part.labels)).or_default().extend(samples);
        }
        all.retain(|_, samples| !samples.is_empty());
        Ok(all)
    }
}

/// Times and the bits of values, by labels.
type Samples = BTreeMap<String, Vec<(i64, u64)>>;

/// Returns the items of a lookup's answer.
fn listed(body: &[u8]) -> Result<Vec<String>, String> {
    let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let items = body["data"].as_array().ok_or_else(|| format!("no list: {body}"))?;
    let mut items: Vec<String> = items.iter().map(Value::to_string).collect();
    items.sort_unstable();
    Ok(items)
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

fn post(query: &Query, kind: ResponseType) -> Vec<u8> {
    let message =
        ReadRequest { queries: vec![query.clone()], accepted_response_types: vec![kind.into()] };
    let body = compress(&message.encode_to_vec());
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
         Content-Encoding: snappy\r\nX-Prometheus-Remote-Read-Version: 0.1.0\r\n\
         Content-Length: {}\r\n\r\n",
        remote_read::PATH,
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Data = Data { instances: 2000, end_ms: 1_760_000_000_000, hours: 1 };

    #[test]
    fn a_seed_decides_what_is_asked() {
        let asks = |seed: u64, kind| {
            let mut random = Random::new(seed, 0);
            let asks = (0..20).map(|_| Ask::some(kind, DATA, &mut random).request);
            asks.collect::<Vec<_>>()
        };
        for kind in Kind::ALL {
            assert_eq!(asks(1, kind), asks(1, kind));
            assert_ne!(asks(1, kind), asks(2, kind));
            let first = &asks(1, kind)[0];
            assert!(asks(1, kind).iter().any(|ask| ask != first), "{kind:?}");
        }
    }

    #[test]
    fn answers_that_differ_or_are_empty_are_told() {
        let mut random = Random::new(3, 0);
        let values = Ask::some(Kind::Values, DATA, &mut random);
        let answer = |items: &str| format!(r#"{{"status":"success","data":[{items}]}}"#);
        let differ = |ours: &str, theirs: &str| {
            let (ours, theirs) = (answer(ours), answer(theirs));
            values.difference(ours.as_bytes(), theirs.as_bytes()).expect("lists").is_some()
        };
        assert!(!differ(r#""a","b""#, r#""b","a""#));
        assert!(differ(r#""a""#, r#""b""#));
        assert!(differ("", ""));
        assert!(values.difference(b"{", b"{}").is_err());
    }
}
