//! Reads the message of one family: its own fields, and the positions of its metrics.

use crate::error::FamilyError;
use crate::metric::MetricType;
use std::ops::Range;

/// A family without its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Family {
    pub name: String,
    pub help: String,
    pub unit: String,
    pub kind: MetricType,
    /// Offset in the message at which the search for the next metric starts.
    pub next: usize,
}

struct Field {
    number: u64,
    value: Value,
}

enum Value {
    Varint(u64),
    Bytes(Range<usize>),
    Other,
}

impl Family {
    /// Reads all fields except the metrics; returns `None` if there are no metrics.
    pub fn read(message: &[u8]) -> Result<Option<Family>, FamilyError> {
        let mut family = Family::default();
        let (mut kind, mut has_metrics) = (0, false);
        let mut at = 0;
        while let Some((field, end)) = next_field(message, at)? {
            at = end;
            let Field { number, value } = field;
            match (number, value) {
                (1, Value::Bytes(range)) => family.name = text(message, range, number)?,
                (2, Value::Bytes(range)) => family.help = text(message, range, number)?,
                (3, Value::Varint(value)) => kind = value as i64,
                (4, Value::Bytes(_)) => has_metrics = true,
                (5, Value::Bytes(range)) => family.unit = text(message, range, number)?,
                // A known field with a wrong type is damage; newer senders add unknown fields.
                (1..=5, _) => return Err(FamilyError::Field { field: number }),
                _ => {}
            }
        }
        // A family without metrics stores nothing, so its other fields need not be valid.
        if !has_metrics {
            return Ok(None);
        }
        if family.name.is_empty() {
            return Err(FamilyError::NoName);
        }
        family.kind = match kind {
            0 => MetricType::Counter,
            1 => MetricType::Gauge,
            2 => MetricType::Summary,
            3 => MetricType::Unknown,
            4 => MetricType::Histogram,
            5 => MetricType::Gaugehistogram,
            other => return Err(FamilyError::Type(other)),
        };
        Ok(Some(family))
    }

    /// Returns the range of the next metric's message.
    pub fn next_metric(&mut self, message: &[u8]) -> Result<Option<Range<usize>>, FamilyError> {
        while let Some((field, end)) = next_field(message, self.next)? {
            self.next = end;
            if let Field { number: 4, value: Value::Bytes(range) } = field {
                return Ok(Some(range));
            }
        }
        Ok(None)
    }
}

/// Counts the fields of a message and of the messages in its fields `within`.
pub(super) fn fields(message: &[u8], within: &[u64]) -> Result<usize, FamilyError> {
    let (mut count, mut at) = (0, 0);
    while let Some((field, end)) = next_field(message, at)? {
        (count, at) = (count + 1, end);
        if let Field { number, value: Value::Bytes(range) } = field
            && within.contains(&number)
        {
            count += fields(message.get(range).unwrap_or_default(), &[])?;
        }
    }
    Ok(count)
}

fn text(message: &[u8], range: Range<usize>, field: u64) -> Result<String, FamilyError> {
    let bytes = message.get(range).unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(FamilyError::NotUtf8 { field }),
    }
}

/// Returns the field at an offset and its end; `None` at the end of the message.
fn next_field(message: &[u8], at: usize) -> Result<Option<(Field, usize)>, FamilyError> {
    let rest = message.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(None);
    }
    let cut_off = |field| FamilyError::Field { field };
    let (tag, mut used) = varint(rest).ok_or(cut_off(0))?;
    let number = tag >> 3;
    // Protobuf reserves the number 0.
    if number == 0 {
        return Err(cut_off(number));
    }
    let fixed = match tag & 7 {
        0 => {
            let (value, bytes) = rest.get(used..).and_then(varint).ok_or(cut_off(number))?;
            let field = Field { number, value: Value::Varint(value) };
            return Ok(Some((field, at + used + bytes)));
        }
        1 => 8,
        2 => {
            let (length, bytes) = rest.get(used..).and_then(varint).ok_or(cut_off(number))?;
            used += bytes;
            usize::try_from(length).map_err(|_| cut_off(number))?
        }
        5 => 4,
        // Groups (3 and 4) are not in the schema, and no other types exist.
        _ => return Err(cut_off(number)),
    };
    let start = at + used;
    // A hostile length must neither overflow nor exceed the message.
    let end = start.checked_add(fixed).filter(|end| *end <= message.len());
    let end = end.ok_or(cut_off(number))?;
    let value = if tag & 7 == 2 { Value::Bytes(start..end) } else { Value::Other };
    Ok(Some((Field { number, value }, end)))
}

/// Decodes a varint; returns its value and its length in bytes.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let part = u64::from(byte & 0x7f);
        // Nine bytes have 63 bits, so the tenth may have one more.
        if at == VARINT_BYTES_MAX - 1 && part > 1 {
            return None;
        }
        value |= part << (7 * at);
        if *byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

const VARINT_BYTES_MAX: usize = 10;
