//! Positions of messages in a body.

use super::WireError;
use super::fields::{Fields, Malformed, Value};

/// Remembers the body and its type, so that errors can state an offset.
#[derive(Clone, Copy, Debug)]
pub struct BodyPosition<'r> {
    message: &'static str,
    body: &'r [u8],
}

impl<'r> BodyPosition<'r> {
    pub(super) fn new(message: &'static str, body: &'r [u8]) -> BodyPosition<'r> {
        BodyPosition { message, body }
    }

    /// Makes an error at the beginning of `rest`, which is a part of the body.
    pub fn error(&self, rest: &[u8], reason: &'static str) -> WireError {
        WireError { message: self.message, offset: self.offset(rest), reason }
    }

    #[cold]
    fn malformed(&self, message: &[u8], Malformed { what, left }: Malformed) -> WireError {
        let before = message.len().saturating_sub(left);
        self.error(message.get(before..).unwrap_or_default(), what)
    }

    /// Returns the offset of a part of the body.
    pub(super) fn offset(&self, part: &[u8]) -> usize {
        // `part` borrows from the body, so the difference of addresses is the offset.
        let offset = (part.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        offset.min(self.body.len())
    }

    /// Iterates over the fields of a message inside the body.
    pub fn walk(
        &self,
        message: &'r [u8],
        mut visit: impl FnMut(u32, Value<'r>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        for field in Fields::new(message) {
            let (number, value) = field.map_err(|malformed| self.malformed(message, malformed))?;
            visit(number, value)?;
        }
        Ok(())
    }
}
