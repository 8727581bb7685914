//! Protobuf bodies: delimited messages `io.prometheus.client.MetricFamily`, by field numbers of
//! client_model's `metrics.proto`.

use super::exposer::Page;

pub const KIND: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Numbers of the types of families.
pub const COUNTER: u64 = 0;
pub const GAUGE: u64 = 1;
pub const HISTOGRAM: u64 = 4;
pub const GAUGE_HISTOGRAM: u64 = 5;

#[derive(Clone, Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn number(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// Adds a field of type `sint32` or `sint64`.
    pub fn signed(self, field: u64, value: i64) -> Message {
        self.number(field, (value << 1 ^ value >> 63) as u64)
    }

    pub fn double(mut self, field: u64, value: f64) -> Message {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }
}

pub fn family(name: &str, kind: u64, metrics: &[Message]) -> Message {
    let head = Message::default().text(1, name).text(2, "What it is.").number(3, kind);
    metrics.iter().fold(head, |family, metric| family.message(4, metric))
}

/// Makes a metric with labels; the caller adds its value.
pub fn metric(labels: &[(&str, &str)]) -> Message {
    labels.iter().fold(Message::default(), |metric, pair| metric.message(1, &label(*pair)))
}

pub fn counter(labels: &[(&str, &str)], value: f64, exemplar: Option<&Message>) -> Message {
    let counter = Message::default().double(1, value);
    let counter = match exemplar {
        Some(exemplar) => counter.message(2, exemplar),
        None => counter,
    };
    metric(labels).message(3, &counter)
}

/// Makes an exemplar, with its time in seconds if it has one.
pub fn exemplar(id: &str, value: f64, seconds: Option<i64>) -> Message {
    let exemplar = Message::default().message(1, &label(("id", id))).double(2, value);
    match seconds {
        Some(seconds) => exemplar.message(3, &Message::default().number(1, seconds as u64)),
        None => exemplar,
    }
}

/// Makes a native histogram of one span of positive buckets, whose counts are given as differences,
/// with one observation in the zero bucket.
pub fn native(sum: f64, schema: i64, offset: i64, deltas: &[i64]) -> Message {
    let counts = deltas.iter().scan(0, |count, delta| {
        *count += delta;
        Some(*count as u64)
    });
    let count = 1 + counts.sum::<u64>();
    let span = Message::default().signed(1, offset).number(2, deltas.len() as u64);
    let head = Message::default().number(1, count).double(2, sum).signed(5, schema);
    let head = head.double(6, 0.001).number(7, 1).message(12, &span);
    deltas.iter().fold(head, |histogram, delta| histogram.signed(13, *delta))
}

/// Adds classic buckets: cumulative counts by upper bound.
pub fn with_buckets(histogram: Message, buckets: &[(f64, u64)]) -> Message {
    buckets.iter().fold(histogram, |histogram, (bound, count)| {
        histogram.message(3, &Message::default().number(1, *count).double(2, *bound))
    })
}

pub fn page(families: &[Message]) -> Page {
    let mut body = Message::default();
    for family in families {
        body.varint(family.0.len() as u64);
        body.0.extend(&family.0);
    }
    Page::new(KIND, body.0)
}

fn label((name, value): (&str, &str)) -> Message {
    Message::default().text(1, name).text(2, value)
}
