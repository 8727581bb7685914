//! Finds fields of protobuf messages without copying.

use tidepool_remote_write::{Fields, Value};

/// Returns the length of the complete fields at the beginning; the last field may be truncated.
pub fn whole_fields(bytes: &[u8]) -> usize {
    let mut fields = Fields::new(bytes);
    let mut whole = 0;
    while let Some(Ok(_)) = fields.next() {
        whole = bytes.len() - fields.rest().len();
    }
    whole
}

/// Returns the length of the first fields that have at least `bytes_min` bytes together. If they
/// are shorter or a field is invalid, returns the length of all bytes.
pub fn first_fields(bytes: &[u8], bytes_min: usize) -> usize {
    let mut fields = Fields::new(bytes);
    while let Some(Ok(_)) = fields.next() {
        let taken = bytes.len() - fields.rest().len();
        if taken >= bytes_min {
            return taken;
        }
    }
    bytes.len()
}

/// Returns the messages of a repeated field. An invalid field ends the iteration, because callers
/// have validated the message before.
pub fn messages(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    Fields::new(message).map_while(Result::ok).filter_map(move |field| match field {
        (found, Value::Bytes(bytes)) if found == number => Some(bytes),
        _ => None,
    })
}

/// Returns the last message or text of a field, which protobuf uses for a singular field.
pub fn last(message: &[u8], number: u32) -> Option<&[u8]> {
    messages(message, number).last()
}

/// Returns the last number of a field; 0 if the field is absent.
pub fn last_number(message: &[u8], number: u32) -> u64 {
    let found = Fields::new(message).map_while(Result::ok).filter_map(|field| match field {
        (found, Value::Varint(value) | Value::Fixed64(value)) if found == number => Some(value),
        _ => None,
    });
    found.last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_field_counts_and_what_is_cut_short_is_no_field() {
        let message = b"\x08\x96\x01\x12\x02ab\x19\x07\0\0\0\0\0\0\0\x12\x01c\x2d\0\0\0\0";
        assert_eq!(last(message, 2), Some(&b"c"[..]));
        let numbers = [1, 2, 3].map(|number| last_number(message, number));
        assert_eq!(numbers, [150, 0, 7]);
        for cut in 0..3 {
            assert_eq!(whole_fields(&message[..message.len() - cut]), [24, 19, 19][cut]);
        }
    }
}
