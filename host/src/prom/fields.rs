//! Fields of protobuf messages, one after the other, without copying.

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}, {left} bytes before the end")]
pub struct Malformed {
    /// What is wrong.
    pub what: &'static str,
    /// Bytes of the message from there on.
    pub left: usize,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A whole number.
    Varint(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// Eight bytes, little endian.
    Fixed64(u64),
    /// Four bytes, which nothing here asks for.
    Fixed32,
}

/// Walks over a message.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Begins at the front.
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// What is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn error(&self, what: &'static str) -> Malformed {
        Malformed { what, left: self.rest.len() }
    }

    /// Reads a number that is no field, as packed ones are.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for (place, byte) in self.rest.iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.rest = self.rest.get(place + 1..).unwrap_or_default();
                return Ok(number);
            }
        }
        Err(self.error("a number is cut short or too long"))
    }

    fn split(&mut self, bytes: u64) -> Result<&'a [u8], Malformed> {
        let parts = usize::try_from(bytes).ok().and_then(|bytes| self.rest.split_at_checked(bytes));
        let (part, rest) = parts.ok_or_else(|| self.error("a field is cut short"))?;
        self.rest = rest;
        Ok(part)
    }

    fn field(&mut self) -> Result<(u64, Field<'a>), Malformed> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => {
                let bytes = self.split(8)?.try_into();
                Field::Fixed64(bytes.map(u64::from_le_bytes).unwrap_or_default())
            }
            2 => {
                let bytes = self.varint()?;
                Field::Bytes(self.split(bytes)?)
            }
            5 => self.split(4).map(|_| Field::Fixed32)?,
            _ => return Err(self.error("a field has an unknown wire type")),
        };
        Ok((key >> 3, field))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// How many bytes at the beginning are whole fields; the last field may be cut short.
pub fn whole_fields(bytes: &[u8]) -> usize {
    let mut fields = Fields::new(bytes);
    let mut whole = 0;
    while let Some(Ok(_)) = fields.next() {
        whole = bytes.len() - fields.rest.len();
    }
    whole
}

/// The messages of a repeated field. What does not decode ends the list: whoever asks has walked
/// over the message before.
pub fn messages(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    Fields::new(message).map_while(Result::ok).filter_map(move |field| match field {
        (found, Field::Bytes(bytes)) if found == number => Some(bytes),
        _ => None,
    })
}

/// The last message or text of a field, which is the one that counts.
pub fn last(message: &[u8], number: u64) -> Option<&[u8]> {
    messages(message, number).last()
}

/// The last number of a field; 0 if there is none.
pub fn last_number(message: &[u8], number: u64) -> u64 {
    let found = Fields::new(message).map_while(Result::ok).filter_map(|field| match field {
        (found, Field::Varint(value) | Field::Fixed64(value)) if found == number => Some(value),
        _ => None,
    });
    found.last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_what_is_cut_short_is_an_error() {
        let message = b"\x08\x96\x01\x12\x02ab\x19\x07\0\0\0\0\0\0\0\x12\x01c\x2d\0\0\0\0";
        let fields: Result<Vec<_>, _> = Fields::new(message).collect();
        let wanted = [
            (1, Field::Varint(150)),
            (2, Field::Bytes(b"ab")),
            (3, Field::Fixed64(7)),
            (2, Field::Bytes(b"c")),
            (5, Field::Fixed32),
        ];
        assert_eq!(fields, Ok(wanted.to_vec()));
        assert_eq!(last(message, 2), Some(&b"c"[..]));
        let numbers = [1, 2, 3].map(|number| last_number(message, number));
        assert_eq!(numbers, [150, 0, 7]);
        for cut in ["\x08", "\x12\x02a", "\x11\0", "\x0b", "\x08\x7f\x12\x7f"] {
            assert!(Fields::new(cut.as_bytes()).any(|field| field.is_err()), "{cut:?}");
        }
        for cut in 0..3 {
            assert_eq!(whole_fields(&message[..message.len() - cut]), [24, 19, 19][cut]);
        }
        assert!(Fields::new(&[0xff; 11]).any(|field| field.is_err()));
    }
}
