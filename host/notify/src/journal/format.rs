//! The bytes of a segment: records, and what is in them. `host/docs/alert-journal.md` explains them
//! with an example, which a test decodes.
//!
//! ```text
//! segment   magic "tidejrn1" │ begin │ open, as many as begin says │ event …
//! record    marker 4 B │ length u32 │ CRC-32C u32, of length and payload │ payload
//! payload   kind u8 │ content
//!   1 begin   first u64 │ opens u32
//!   2 open    entry of an alert that fired before the segment and did not end before it
//!   3 event   entry
//! entry     number u64 │ change u8 │ cause u8 │ flags u8 │ time i64 │ fired at i64 │ value f64
//!           │ file text │ group text │ labels pairs │ annotations pairs
//! change    1 firing, 2 resolved        cause   0 evaluation, 1 rule removed, 2 unseen
//! flags     1: the rule is unnamed      pairs   count varint │ (name text │ value text) …
//! text      length varint │ UTF-8
//! ```
//!
//! Numbers are little-endian, a varint is LEB128, and times are milliseconds since the epoch. None
//! of the bytes of the marker occurs in UTF-8, so that no text of a rule looks like a record.
//! Bytes behind the last field of an entry are skipped, and so are records of other kinds: a newer
//! program may have more.

use crate::event::{Cause, Change, Entry, Event, Origin};
use std::sync::Arc;
use tidepool_rules::file::Labels;
use tidepool_rules::labels::LabelSet;

pub(super) const MAGIC: &[u8; 8] = b"tidejrn1";
pub(super) const MARKER: [u8; 4] = [0xf5, 0xff, 0xc0, 0xc1];
/// Length of a record without its payload.
pub(super) const FRAME_BYTES: usize = 12;
pub(super) const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Length of the shortest record with an entry.
pub(super) const ENTRY_RECORD_BYTES_MIN: u64 = FRAME_BYTES as u64 + 1 + ENTRY_BYTES_MIN as u64;

/// Larger numbers are not from this program. There is room to count on behind it.
pub(super) const NUMBER_MAX: u64 = 1 << 62;

const KIND_BEGIN: u8 = 1;
const KIND_OPEN: u8 = 2;
const KIND_EVENT: u8 = 3;

const UNNAMED: u8 = 1;

/// Fields of fixed length, and four empty texts or pairs.
const ENTRY_BYTES_MIN: usize = 8 + 3 + 24 + 4;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    Begin {
        first: u64,
        opens: u32,
    },
    Open(Entry),
    Event(Entry),
    /// Of a newer program.
    Unknown,
}

pub(super) fn encode_begin(out: &mut Vec<u8>, first: u64, opens: u32) {
    let mut payload = vec![KIND_BEGIN];
    payload.extend_from_slice(&first.to_le_bytes());
    payload.extend_from_slice(&opens.to_le_bytes());
    frame(out, &payload);
}

/// Appends an alert that is open when a segment begins. False if it is too long for a record.
#[must_use]
pub(super) fn encode_open(out: &mut Vec<u8>, entry: &Entry) -> bool {
    encode_entry(out, KIND_OPEN, entry)
}

/// Appends an event. False if it is too long for a record.
#[must_use]
pub(super) fn encode_event(out: &mut Vec<u8>, entry: &Entry) -> bool {
    encode_entry(out, KIND_EVENT, entry)
}

/// Upper bound of the payload of an event, which is also about what it takes in memory.
pub(super) fn payload_bytes_bound(event: &Event) -> usize {
    let annotations = event.annotations.iter().map(|(name, value)| name.len() + value.len() + 10);
    let origin = event.origin.file.len() + event.origin.group.len();
    // A set of labels as text has at least as many bytes for lengths as a record.
    128 + origin + event.labels.bytes() + annotations.sum::<usize>()
}

/// Splits off the payload of the intact record at the beginning of `bytes`.
pub(super) fn unframe(bytes: &[u8]) -> Option<&[u8]> {
    let (frame, rest) = bytes.split_first_chunk::<FRAME_BYTES>()?;
    let [m0, m1, m2, m3, l0, l1, l2, l3, c0, c1, c2, c3] = *frame;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if [m0, m1, m2, m3] != MARKER || length > PAYLOAD_BYTES_MAX {
        return None;
    }
    let payload = rest.get(..length)?;
    (checksum(payload) == u32::from_le_bytes([c0, c1, c2, c3])).then_some(payload)
}

/// `None` if the payload is none that a program of this or a newer version writes.
pub(super) fn decode(payload: &[u8]) -> Option<Record> {
    let mut fields = Fields(payload);
    match fields.u8()? {
        KIND_BEGIN => {
            let (first, opens) = (fields.number()?, fields.u32()?);
            Some(Record::Begin { first, opens })
        }
        KIND_OPEN => {
            let entry = fields.entry()?;
            (entry.event.change == Change::Firing).then_some(Record::Open(entry))
        }
        KIND_EVENT => fields.entry().map(Record::Event),
        _ => Some(Record::Unknown),
    }
}

fn encode_entry(out: &mut Vec<u8>, kind: u8, Entry { number, event }: &Entry) -> bool {
    let mut payload = Vec::with_capacity(payload_bytes_bound(event));
    payload.push(kind);
    payload.extend_from_slice(&number.to_le_bytes());
    payload.push(match event.change {
        Change::Firing => 1,
        Change::Resolved => 2,
    });
    payload.push(match event.cause {
        Cause::Evaluation => 0,
        Cause::RuleRemoved => 1,
        Cause::Unseen => 2,
    });
    payload.push(if event.is_unnamed { UNNAMED } else { 0 });
    payload.extend_from_slice(&event.time_ms.to_le_bytes());
    payload.extend_from_slice(&event.fired_at_ms.to_le_bytes());
    payload.extend_from_slice(&event.value.to_le_bytes());
    push_text(&mut payload, &event.origin.file);
    push_text(&mut payload, &event.origin.group);
    push_varint(&mut payload, event.labels.iter().count());
    for (name, value) in event.labels.iter() {
        push_text(&mut payload, name);
        push_text(&mut payload, value);
    }
    push_varint(&mut payload, event.annotations.len());
    for (name, value) in &*event.annotations {
        push_text(&mut payload, name);
        push_text(&mut payload, value);
    }
    if payload.len() > PAYLOAD_BYTES_MAX {
        return false;
    }
    frame(out, &payload);
    true
}

fn frame(out: &mut Vec<u8>, payload: &[u8]) {
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&checksum(payload).to_le_bytes());
    out.extend_from_slice(payload);
}

fn checksum(payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&(payload.len() as u32).to_le_bytes()), payload)
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_varint(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn push_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is left of a payload. Each method takes a field off its beginning, or returns `None`.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn entry(&mut self) -> Option<Entry> {
        let number = self.number()?;
        let change = match self.u8()? {
            1 => Change::Firing,
            2 => Change::Resolved,
            _ => return None,
        };
        let cause = match self.u8()? {
            0 => Cause::Evaluation,
            1 => Cause::RuleRemoved,
            2 => Cause::Unseen,
            _ => return None,
        };
        let is_unnamed = self.u8()? & UNNAMED != 0;
        let time_ms = i64::from_le_bytes(self.array()?);
        let fired_at_ms = i64::from_le_bytes(self.array()?);
        let value = f64::from_le_bytes(self.array()?);
        let origin = Origin { file: self.text()?.into(), group: self.text()?.into() };
        let labels = LabelSet::new(self.pairs()?);
        let annotations = self.pairs()?.into_iter();
        let annotations: Labels =
            annotations.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let event = Event {
            change,
            time_ms,
            origin,
            labels,
            annotations: Arc::new(annotations),
            value,
            fired_at_ms,
            cause,
            is_unnamed,
        };
        Some(Entry { number, event })
    }

    fn pairs(&mut self) -> Option<Vec<(&'a str, &'a str)>> {
        let count = self.varint()?;
        // Each pair has two lengths. So a false count reserves no memory.
        if count > self.0.len() / 2 {
            return None;
        }
        (0..count).map(|_| Some((self.text()?, self.text()?))).collect()
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.varint()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// A number of at most 28 bits, which is more than any length or count in a payload.
    fn varint(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.u8()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The number of an event.
    fn number(&mut self) -> Option<u64> {
        let number = u64::from_le_bytes(self.array()?);
        (1..=NUMBER_MAX).contains(&number).then_some(number)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    fn u8(&mut self) -> Option<u8> {
        let [byte] = self.array()?;
        Some(byte)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
