//! Encoding of series as remote-write bodies: `prometheus.WriteRequest` (1.0) and
//! `io.prometheus.write.v2.Request` (2.0).
//!
//! A body is a sequence of fields, so it is written series by series. Series of 2.0 refer to
//! symbols that may be known only after the series; [`put_symbol`] writes the symbols.

use super::varint::{put_uvarint, uvarint_bytes};

/// Field of a series in both versions: one label in 1.0, references to symbols in 2.0.
pub const LABELS: u32 = 1;
/// Field of a series in both versions, one sample each.
pub const SAMPLES: u32 = 2;

/// Fields of `prometheus.WriteRequest`, and of a series in it.
pub mod v1 {
    pub const SERIES: u32 = 1;
    pub const HISTOGRAMS: u32 = 4;
}

/// Fields of `io.prometheus.write.v2.Request`, and of a series in it.
pub mod v2 {
    pub const SERIES: u32 = 5;
    pub const HISTOGRAMS: u32 = 3;
    pub const EXEMPLARS: u32 = 4;
}

pub fn put_message_field(out: &mut Vec<u8>, field: u32, message: &[u8]) {
    put_uvarint(out, u64::from(field << 3 | 2));
    put_uvarint(out, message.len() as u64);
    out.extend_from_slice(message);
}

/// Appends a label of a 1.0 series or exemplar, as field 1.
pub fn put_label(out: &mut Vec<u8>, name: &str, value: &str, scratch: &mut Vec<u8>) {
    scratch.clear();
    put_message_field(scratch, 1, name.as_bytes());
    put_message_field(scratch, 2, value.as_bytes());
    put_message_field(out, 1, scratch);
}

/// Appends references to symbols, packed, as field 1 of a 2.0 series or exemplar.
pub fn put_label_refs(out: &mut Vec<u8>, refs: &[u32], scratch: &mut Vec<u8>) {
    scratch.clear();
    refs.iter().for_each(|symbol| put_uvarint(scratch, u64::from(*symbol)));
    put_message_field(out, 1, scratch);
}

/// Appends value and time, which follow the labels of an exemplar.
pub fn put_exemplar_end(out: &mut Vec<u8>, value: f64, timestamp_ms: i64) {
    out.push(2 << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
    // Two's complement: protobuf's int64 is not zigzag-encoded.
    out.push(3 << 3);
    put_uvarint(out, timestamp_ms as u64);
}

/// Appends a symbol of a 2.0 request.
pub fn put_symbol(out: &mut Vec<u8>, symbol: &str) {
    put_message_field(out, 4, symbol.as_bytes());
}

/// Appends the metadata of a 2.0 series, as field 5; help and unit are references to symbols.
pub fn put_series_metadata(out: &mut Vec<u8>, metadata: SeriesMetadata) {
    out.push(5 << 3 | 2);
    // The message has three small numbers, so its length needs one byte.
    out.push(metadata.message_bytes() as u8);
    for (field, number) in metadata.fields() {
        out.push(field << 3);
        put_uvarint(out, u64::from(number));
    }
}

/// Metadata of a 2.0 series; help and unit are references to symbols.
#[derive(Clone, Copy, Debug)]
pub struct SeriesMetadata {
    /// Metric type, as numbered in records of the log.
    pub kind: u8,
    pub help: u32,
    pub unit: u32,
}

impl SeriesMetadata {
    /// Returns the number of bytes of the whole field.
    pub fn field_bytes(self) -> usize {
        2 + self.message_bytes()
    }

    fn message_bytes(self) -> usize {
        self.fields().map(|(_, number)| 1 + uvarint_bytes(u64::from(number))).sum()
    }

    /// Iterates over the fields that differ from the default.
    fn fields(self) -> impl Iterator<Item = (u8, u32)> {
        let all = [(1, u32::from(self.kind)), (3, self.help), (4, self.unit)];
        all.into_iter().filter(|(_, number)| *number != 0)
    }
}

/// Returns the bytes of a field, numbered below 16, with a message of `message_bytes`.
pub fn message_field_bytes(message_bytes: usize) -> usize {
    1 + uvarint_bytes(message_bytes as u64) + message_bytes
}

/// Appends the metadata of a family to a 1.0 request.
pub fn put_family_metadata(out: &mut Vec<u8>, kind: u8, family: &str, help: &str, unit: &str) {
    let mut message = Vec::with_capacity(family.len() + help.len() + 16);
    if kind != 0 {
        message.extend_from_slice(&[1 << 3, kind]);
    }
    for (field, text) in [(2, family), (4, help), (5, unit)] {
        if !text.is_empty() {
            put_message_field(&mut message, field, text.as_bytes());
        }
    }
    put_message_field(out, 3, &message);
}
