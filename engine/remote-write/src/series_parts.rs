//! Parts of a series in a remote-write request: labels, references to symbols, samples.

use super::WireError;
use super::body_position::BodyPosition;
use super::bytes::bytes_equal;
use super::fields::Value;
use super::sample::Sample;
use super::varint::{split_uvarint, uvarint_of_six};

/// Labels of a series of a 1.0 request. Most labels equal the label at the same position of the
/// previous series. Comparing bytes finds this faster than decoding, and the caller, who gets the
/// same slices again, need not compare texts.
#[derive(Default)]
pub(super) struct Labels<'r> {
    pairs: Vec<(&'r [u8], &'r [u8])>,
    /// Messages from which `pairs` were decoded.
    messages: Vec<&'r [u8]>,
    /// Number of labels of this series so far; later entries belong to earlier series.
    count: usize,
}

impl<'r> Labels<'r> {
    pub fn pairs(&self) -> &[(&'r [u8], &'r [u8])] {
        &self.pairs[..self.count]
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }

    #[inline]
    pub fn push(&mut self, place: &BodyPosition<'r>, message: &'r [u8]) -> Result<(), WireError> {
        match self.messages.get_mut(self.count) {
            Some(before) if bytes_equal(before, message) => {}
            Some(before) => {
                // Decoded first, so that `messages` and `pairs` stay consistent after an error.
                self.pairs[self.count] = label_pair(place, message)?;
                *before = message;
            }
            None => {
                self.pairs.push(label_pair(place, message)?);
                self.messages.push(message);
            }
        }
        self.count += 1;
        Ok(())
    }
}

#[inline]
pub(super) fn label_pair<'r>(
    place: &BodyPosition<'r>,
    label: &'r [u8],
) -> Result<(&'r [u8], &'r [u8]), WireError> {
    // All senders write this form: both strings, each shorter than 128 bytes.
    if let [0x0a, name_len @ 0..0x80, rest @ ..] = label
        && let Some((name, [0x12, value_len @ 0..0x80, value @ ..])) =
            rest.split_at_checked(usize::from(*name_len))
        && value.len() == usize::from(*value_len)
    {
        return Ok((name, value));
    }
    let mut pair = (&[][..], &[][..]);
    place.walk(label, |number, value| {
        match (number, value) {
            (1, Value::Bytes(name)) => pair.0 = name,
            (2, Value::Bytes(value)) => pair.1 = value,
            _ => {}
        }
        Ok(())
    })?;
    Ok(pair)
}

/// A series of a 2.0 request in its usual form: packed references, one sample, perhaps metadata.
pub(super) struct UsualSeries<'r> {
    pub packed: &'r [u8],
    /// Message from which the sample was decoded.
    pub message: &'r [u8],
    pub sample: Sample,
    pub metadata: Option<&'r [u8]>,
}

/// Returns the parts of a series, if it has the usual form.
#[inline]
pub(super) fn usual_series(series: &[u8]) -> Option<UsualSeries<'_>> {
    let [0x0a, len @ 0..0x80, rest @ ..] = series else { return None };
    let (packed, rest) = rest.split_at_checked(usize::from(*len))?;
    let (end, rest) = rest.split_at_checked(ONLY_SAMPLE_BYTES)?;
    let (message, sample) = only_sample(end)?;
    let metadata = match rest {
        [] => None,
        [0x2a, len @ 0..0x80, metadata @ ..] if metadata.len() == usize::from(*len) => {
            Some(metadata)
        }
        _ => return None,
    };
    Some(UsualSeries { packed, message, sample, metadata })
}

/// Length of a usual sample with its tag and length.
const ONLY_SAMPLE_BYTES: usize = 18;

/// Returns the sample that is the rest of a series, and its message.
#[inline]
pub(super) fn only_sample(rest: &[u8]) -> Option<(&[u8], Sample)> {
    match <&[u8; ONLY_SAMPLE_BYTES]>::try_from(rest) {
        Ok([0x12, 0x10, message @ ..]) => Some((message, usual_sample(message)?)),
        _ => None,
    }
}

/// Decodes a sample with a value and a time of six bytes, the form of almost all samples.
#[inline]
fn usual_sample(message: &[u8; 16]) -> Option<Sample> {
    let [0x09, value @ .., 0x10, _, _, _, _, _, _] = message else { return None };
    let end = message.last_chunk::<8>()?;
    let timestamp_ms = uvarint_of_six(u64::from_le_bytes(*end) >> 16)? as i64;
    Some(Sample { timestamp_ms, value: f64::from_le_bytes(*value) })
}

/// Decodes a sample: value 1, timestamp 2, in both versions.
#[inline]
pub(super) fn float_sample<'r>(
    place: &BodyPosition<'r>,
    message: &'r [u8],
) -> Result<Sample, WireError> {
    // All senders write this form; protobuf leaves out a field that is zero.
    if let Ok(message) = message.try_into()
        && let Some(sample) = usual_sample(message)
    {
        return Ok(sample);
    }
    if let [0x09, rest @ ..] = message
        && let Some((value, [0x10, time @ ..])) = rest.split_first_chunk::<8>()
        && let Some((timestamp_ms, [])) = split_uvarint(time)
    {
        let value = f64::from_le_bytes(*value);
        return Ok(Sample { timestamp_ms: timestamp_ms as i64, value });
    }
    let mut sample = Sample { timestamp_ms: 0, value: 0.0 };
    place.walk(message, |number, value| {
        match (number, value) {
            (1, Value::Fixed64(bits)) => sample.value = f64::from_bits(bits),
            (2, Value::Varint(time)) => sample.timestamp_ms = time as i64,
            _ => {}
        }
        Ok(())
    })?;
    Ok(sample)
}

#[inline]
pub(super) fn packed_refs(
    place: &BodyPosition<'_>,
    packed: &[u8],
    refs: &mut Vec<u32>,
) -> Result<(), WireError> {
    let mut rest = packed;
    loop {
        // Few requests have more symbols than two bytes can count.
        rest = match rest {
            [] => return Ok(()),
            [first @ 0..0x80, after @ ..] => {
                refs.push(u32::from(*first));
                after
            }
            [first, second @ 0..0x80, after @ ..] => {
                refs.push(u32::from(*first & 0x7f) | u32::from(*second) << 7);
                after
            }
            _ => {
                let Some((symbol_ref, after)) = split_uvarint(rest) else {
                    return Err(place.error(rest, "a label reference is cut short or too long"));
                };
                refs.push(narrow_ref(symbol_ref));
                after
            }
        };
    }
}

/// Narrows a reference to 32 bits. A larger reference becomes `u32::MAX`, which is out of range of
/// every table.
pub(super) fn narrow_ref(symbol_ref: u64) -> u32 {
    u32::try_from(symbol_ref).unwrap_or(u32::MAX)
}
