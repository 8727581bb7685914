//! Walking over the fields of a protobuf message.

use crate::codec::split_uvarint;

/// A field's number and content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Number in the schema.
    pub number: u32,
    /// Content, by wire type.
    pub value: Value<'a>,
}

/// Content of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: a string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

/// Iterates over a message's fields; an error ends it.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// What is not read yet. Its length from the end of a body tells the offset of an error.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, &'static str>;

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
            Err(reason) => Some(Err(reason)),
        }
    }
}

const CUT_SHORT: &str = "the message ends in the middle of a field";

#[inline]
fn split_field(bytes: &[u8]) -> Result<(Field<'_>, &[u8]), &'static str> {
    // Nearly all fields of a request: strings and messages of the first fifteen numbers.
    match bytes {
        [tag @ 8..0x80, rest @ ..] if tag & 7 == 2 => {
            let (value, rest) = split_bytes(rest)?;
            Ok((Field { number: u32::from(tag >> 3), value }, rest))
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
fn split_any_field(bytes: &[u8]) -> Result<(Field<'_>, &[u8]), &'static str> {
    let (tag, rest) = split_uvarint(bytes).ok_or("a field's tag is cut short or too long")?;
    let number = u32::try_from(tag >> 3).map_err(|_| "a field's number is too large")?;
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
    Ok((Field { number, value }, rest))
}
