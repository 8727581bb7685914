//! Iteration over the fields of a protobuf message.

use crate::varint::split_uvarint;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}, {left} bytes before the end")]
pub struct Malformed {
    pub what: &'static str,
    /// Bytes of the message from the faulty field on.
    pub left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    /// Wire type 2: a string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Iterates over the fields of a message with their numbers; an error ends the iteration.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// Returns the part that is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match split_field(self.rest) {
            Ok((field, rest)) => {
                self.rest = rest;
                Some(Ok(field))
            }
            Err(what) => {
                // The iteration ends here, since nothing after a damaged field can be located.
                let left = std::mem::take(&mut self.rest).len();
                Some(Err(Malformed { what, left }))
            }
        }
    }
}

const CUT_SHORT: &str = "the message ends in the middle of a field";

#[inline]
fn split_field(bytes: &[u8]) -> Result<((u32, Value<'_>), &[u8]), &'static str> {
    // Most fields of a request are strings and messages with numbers up to fifteen.
    match bytes {
        [tag @ 8..0x80, rest @ ..] if tag & 7 == 2 => {
            let (value, rest) = split_bytes(rest)?;
            Ok(((u32::from(tag >> 3), value), rest))
        }
        _ => split_any_field(bytes),
    }
}

#[inline]
fn split_bytes(bytes: &[u8]) -> Result<(Value<'_>, &[u8]), &'static str> {
    let (len, rest) = split_uvarint(bytes).ok_or("a length is cut short or too long")?;
    let len = usize::try_from(len).map_err(|_| CUT_SHORT)?;
    let (value, rest) = rest.split_at_checked(len).ok_or(CUT_SHORT)?;
    Ok((Value::Bytes(value), rest))
}

#[inline(never)]
fn split_any_field(bytes: &[u8]) -> Result<((u32, Value<'_>), &[u8]), &'static str> {
    let (tag, rest) = split_uvarint(bytes).ok_or("a field's tag is cut short or too long")?;
    let number = u32::try_from(tag >> 3).map_err(|_| "a field's number is too large")?;
    // Number 0 is invalid in protobuf, while other unknown numbers are skipped.
    if number == 0 {
        return Err("a field has the number 0");
    }
    let (value, rest) = match tag & 7 {
        0 => {
            let (value, rest) = split_uvarint(rest).ok_or("a varint is cut short or too long")?;
            (Value::Varint(value), rest)
        }
        1 => {
            let (value, rest) = rest.split_first_chunk::<8>().ok_or(CUT_SHORT)?;
            (Value::Fixed64(u64::from_le_bytes(*value)), rest)
        }
        2 => split_bytes(rest)?,
        5 => {
            let (value, rest) = rest.split_first_chunk::<4>().ok_or(CUT_SHORT)?;
            (Value::Fixed32(u32::from_le_bytes(*value)), rest)
        }
        _ => return Err("a field has an unknown wire type"),
    };
    Ok(((number, value), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_what_is_cut_short_is_an_error() {
        let message = b"\x08\x96\x01\x12\x02ab\x19\x07\0\0\0\0\0\0\0\x12\x01c\x2d\x05\0\0\0";
        let fields: Result<Vec<_>, _> = Fields::new(message).collect();
        let wanted = [
            (1, Value::Varint(150)),
            (2, Value::Bytes(b"ab")),
            (3, Value::Fixed64(7)),
            (2, Value::Bytes(b"c")),
            (5, Value::Fixed32(5)),
        ];
        assert_eq!(fields, Ok(wanted.to_vec()));
        for cut in ["\x08", "\x12\x02a", "\x11\0", "\x0b", "\x02\0", "\x08\x7f\x12\x7f"] {
            let mut fields = Fields::new(cut.as_bytes());
            assert!(fields.any(|field| field.is_err()), "{cut:?}");
            assert_eq!(fields.next(), None, "an error ends it");
        }
        assert!(Fields::new(&[0xff; 11]).any(|field| field.is_err()));
    }
}
