//! A remote-write sender for both versions of the protocol.
//!
//! [`message_v1`] and [`message_v2`] build the messages, [`encode`] makes a body of them (protobuf
//! in a snappy block), [`Writer`] posts bodies. Tests that send something invalid build their own
//! message or body and use the same [`Writer`].

use crate::http::{Client, HttpError, Response};
use crate::proto::{prometheus, write_v2};
use crate::series::{Labels, Row};
use prost::{Message, encoding};
use std::collections::HashMap;

/// Path at which a server accepts remote writes.
pub const PATH: &str = "/api/v1/write";

/// The version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Remote write 1.0, with messages `prometheus.WriteRequest`.
    V1,
    /// Remote write 2.0, with messages `io.prometheus.write.v2.Request`.
    V2,
}

/// Numbers of written items in a 2.0 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Written {
    pub samples: u64,
    /// Number of native histogram samples.
    pub histograms: u64,
    pub exemplars: u64,
}

/// Sends bodies to one server over one kept-alive connection.
#[derive(Clone, Debug)]
pub struct Writer {
    client: Client,
    url: String,
}

impl Version {
    /// Both versions, the older one first.
    pub const ALL: [Version; 2] = [Version::V1, Version::V2];

    /// Returns the `Content-Type` of a body.
    pub fn content_type(self) -> &'static str {
        match self {
            Version::V1 => "application/x-protobuf",
            Version::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }

    /// Returns the value of `X-Prometheus-Remote-Write-Version`.
    pub fn header(self) -> &'static str {
        match self {
            Version::V1 => "0.1.0",
            Version::V2 => "2.0.0",
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Version::V1 => "1.0",
            Version::V2 => "2.0",
        })
    }
}

/// Makes the 1.0 message of some rows.
pub fn message_v1(rows: &[Row<'_>]) -> prometheus::WriteRequest {
    let series = |row: &Row<'_>| prometheus::TimeSeries {
        labels: labels_v1(row.labels),
        samples: row
            .samples
            .iter()
            .map(|s| prometheus::Sample { value: s.value, timestamp: s.timestamp_ms })
            .collect(),
        ..Default::default()
    };
    prometheus::WriteRequest { timeseries: rows.iter().map(series).collect(), metadata: Vec::new() }
}

/// Converts labels to those of a 1.0 message.
pub fn labels_v1(labels: &Labels) -> Vec<prometheus::Label> {
    let label = |(name, value): &(String, String)| prometheus::Label {
        name: name.clone(),
        value: value.clone(),
    };
    labels.pairs().iter().map(label).collect()
}

/// Collects the symbols of a 2.0 message; the first is the empty string.
pub struct Symbols<'a> {
    positions: HashMap<&'a str, u32>,
    strings: Vec<String>,
}

impl Default for Symbols<'_> {
    fn default() -> Self {
        Symbols { positions: HashMap::from([("", 0)]), strings: vec![String::new()] }
    }
}

impl<'a> Symbols<'a> {
    /// Returns the position of a string, which is added at its first use.
    pub fn position(&mut self, string: &'a str) -> u32 {
        *self.positions.entry(string).or_insert_with(|| {
            self.strings.push(string.to_string());
            (self.strings.len() - 1) as u32
        })
    }

    /// Returns the references of a label set: name, value, name, value …
    pub fn labels(&mut self, labels: &'a Labels) -> Vec<u32> {
        let pairs = labels.pairs().iter();
        pairs.flat_map(|(name, value)| [self.position(name), self.position(value)]).collect()
    }

    pub fn into_strings(self) -> Vec<String> {
        self.strings
    }
}

/// Makes the 2.0 message of some rows.
pub fn message_v2(rows: &[Row<'_>]) -> write_v2::Request {
    let mut symbols = Symbols::default();
    let timeseries = rows
        .iter()
        .map(|row| write_v2::TimeSeries {
            labels_refs: symbols.labels(row.labels),
            samples: row
                .samples
                .iter()
                .map(|s| write_v2::Sample {
                    value: s.value,
                    timestamp: s.timestamp_ms,
                    start_timestamp: 0,
                })
                .collect(),
            ..Default::default()
        })
        .collect();
    write_v2::Request { symbols: symbols.into_strings(), timeseries }
}

/// Encodes the message of some rows, not compressed.
///
/// Samples are written field by field: prost, like Prometheus' own encoder, takes negative zero for
/// the default value and leaves it out.
pub fn message_bytes(version: Version, rows: &[Row<'_>]) -> Vec<u8> {
    message_bytes_with(version, rows, Symbols::default())
}

/// As [`message_bytes`], with these symbols at the beginning of the table.
pub fn message_bytes_with<'r>(
    version: Version,
    rows: &[Row<'r>],
    mut symbols: Symbols<'r>,
) -> Vec<u8> {
    let mut message = Vec::new();
    let mut series = Vec::new();
    for row in rows {
        series.clear();
        match version {
            Version::V1 => {
                for label in labels_v1(row.labels) {
                    encoding::message::encode(1, &label, &mut series);
                }
            }
            Version::V2 => {
                encoding::uint32::encode_packed(1, &symbols.labels(row.labels), &mut series);
            }
        }
        for sample in row.samples {
            let timestamp_bytes = encoding::int64::encoded_len(2, &sample.timestamp_ms);
            let value_bytes = encoding::double::encoded_len(1, &sample.value);
            encoding::encode_key(2, encoding::WireType::LengthDelimited, &mut series);
            encoding::encode_varint((value_bytes + timestamp_bytes) as u64, &mut series);
            encoding::double::encode(1, &sample.value, &mut series);
            encoding::int64::encode(2, &sample.timestamp_ms, &mut series);
        }
        let number = if version == Version::V1 { 1 } else { 5 };
        encoding::bytes::encode(number, &series, &mut message);
    }
    if version == Version::V2 {
        encoding::string::encode_repeated(4, &symbols.into_strings(), &mut message);
    }
    message
}

/// Returns the body of a request with these rows.
pub fn encode(version: Version, rows: &[Row<'_>]) -> Vec<u8> {
    compress(&message_bytes(version, rows))
}

/// Compresses a message into a snappy block.
///
/// # Panics
/// If the message is larger than a snappy block can be (4 GiB).
pub fn compress(message: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(message).expect("a message fits in a snappy block")
}

/// Returns the headers of a valid request.
pub fn headers(version: Version) -> [(&'static str, &'static str); 4] {
    [
        ("Content-Type", version.content_type()),
        ("Content-Encoding", "snappy"),
        ("X-Prometheus-Remote-Write-Version", version.header()),
        ("User-Agent", "tidepool-tests"),
    ]
}

impl Writer {
    /// Makes a sender to the server at this base address, such as `http://127.0.0.1:9201`.
    pub fn new(base_url: &str) -> Writer {
        Writer { client: Client::default(), url: format!("{base_url}{PATH}") }
    }

    pub fn send(&self, version: Version, rows: &[Row<'_>]) -> Result<Response, HttpError> {
        self.send_body(version, &encode(version, rows))
    }

    /// Sends a message, which may be invalid.
    pub fn send_message(
        &self,
        version: Version,
        message: &impl Message,
    ) -> Result<Response, HttpError> {
        self.send_body(version, &compress(&message.encode_to_vec()))
    }

    pub fn send_body(&self, version: Version, body: &[u8]) -> Result<Response, HttpError> {
        self.client.post(&self.url, &headers(version), body)
    }

    /// Sends a body with only these headers.
    pub fn send_with(&self, headers: &[(&str, &str)], body: &[u8]) -> Result<Response, HttpError> {
        self.client.post(&self.url, headers, body)
    }
}

impl Written {
    /// Reads the headers of written items; `None` unless all three exist and are numbers.
    pub fn from_response(response: &Response) -> Option<Written> {
        let number = |kind: &str| {
            response.header(&format!("X-Prometheus-Remote-Write-{kind}-Written"))?.parse().ok()
        };
        Some(Written {
            samples: number("Samples")?,
            histograms: number("Histograms")?,
            exemplars: number("Exemplars")?,
        })
    }

    /// Returns whether an answer has any header of written items.
    pub fn is_mentioned(response: &Response) -> bool {
        response.headers.iter().any(|(name, _)| {
            name.starts_with("x-prometheus-remote-write-") && name.ends_with("-written")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Dataset, Shape, Texture};

    #[test]
    fn both_ways_to_encode_agree() {
        let data = Dataset::generate(Shape {
            seed: 5,
            series: 30,
            scrapes: 4,
            start_ms: 1_000,
            interval_ms: 1_000,
            texture: Texture::Regular,
        });
        let rows: Vec<Row<'_>> = data.series.iter().map(|s| s.row()).collect();
        let v1 = prometheus::WriteRequest::decode(message_bytes(Version::V1, &rows).as_slice());
        assert_eq!(v1.expect("it decodes"), message_v1(&rows));
        let v2 = write_v2::Request::decode(message_bytes(Version::V2, &rows).as_slice());
        assert_eq!(v2.expect("it decodes"), message_v2(&rows));
    }

    #[test]
    fn negative_zero_stays() {
        let labels = Labels::from_pairs([("__name__", "a")]);
        let samples = [crate::series::Sample { timestamp_ms: 1, value: -0.0 }];
        let bytes = message_bytes(Version::V1, &[Row { labels: &labels, samples: &samples }]);
        assert!(bytes.windows(8).any(|window| window == (-0.0f64).to_le_bytes()));
    }
}
