//! Exemplars as protobuf messages: field 1 labels or symbol references, 2 value, 3 time.

use super::WireError;
use super::body_position::BodyPosition;
use super::fields::Value;
use super::series_parts::{label_pair, narrow_ref, packed_refs};

/// An observation with labels of its own, such as its trace.
#[derive(Clone, Debug)]
pub struct Exemplar<'a> {
    /// Labels of the exemplar, in the sender's order.
    pub labels: ExemplarLabels<'a>,
    pub value: f64,
    /// Milliseconds since the Unix epoch; 0 if the sender states no time.
    pub timestamp_ms: i64,
}

/// Labels of an exemplar as the request encodes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExemplarLabels<'a> {
    /// Names and values, from a 1.0 request.
    Pairs(Vec<(&'a [u8], &'a [u8])>),
    /// References to names and values in turn, from a 2.0 request.
    Refs(Vec<u32>),
}

impl PartialEq for Exemplar<'_> {
    /// Values are compared by their bits, so that NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.labels == other.labels
            && self.value.to_bits() == other.value.to_bits()
            && self.timestamp_ms == other.timestamp_ms
    }
}

pub(super) fn decode_exemplar_v1<'r>(
    place: &BodyPosition<'r>,
    message: &'r [u8],
) -> Result<Exemplar<'r>, WireError> {
    let mut pairs = Vec::new();
    let (value, timestamp_ms) = walk(place, message, |field| {
        if let Value::Bytes(label) = field {
            pairs.push(label_pair(place, label)?);
        }
        Ok(())
    })?;
    Ok(Exemplar { labels: ExemplarLabels::Pairs(pairs), value, timestamp_ms })
}

pub(super) fn decode_exemplar_v2<'r>(
    place: &BodyPosition<'r>,
    message: &'r [u8],
) -> Result<Exemplar<'r>, WireError> {
    let mut refs = Vec::new();
    let (value, timestamp_ms) = walk(place, message, |field| {
        match field {
            Value::Bytes(packed) => packed_refs(place, packed, &mut refs)?,
            Value::Varint(symbol_ref) => refs.push(narrow_ref(symbol_ref)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(Exemplar { labels: ExemplarLabels::Refs(refs), value, timestamp_ms })
}

/// Returns value and time, and passes each value of field 1 to `labels`.
fn walk<'r>(
    place: &BodyPosition<'r>,
    message: &'r [u8],
    mut labels: impl FnMut(Value<'r>) -> Result<(), WireError>,
) -> Result<(f64, i64), WireError> {
    let (mut value, mut timestamp_ms) = (0.0, 0);
    place.walk(message, |number, field| {
        match (number, field) {
            (1, field) => labels(field)?,
            (2, Value::Fixed64(bits)) => value = f64::from_bits(bits),
            (3, Value::Varint(time)) => timestamp_ms = time as i64,
            _ => {}
        }
        Ok(())
    })?;
    Ok((value, timestamp_ms))
}
