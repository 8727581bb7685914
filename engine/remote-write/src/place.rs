//! Where in a body a message lies.

use super::WireError;
use super::fields::{Fields, Malformed, Value};

/// Remembers which message of which body is read, so that errors can say where.
#[derive(Clone, Copy, Debug)]
pub struct Place<'r> {
    message: &'static str,
    body: &'r [u8],
}

impl<'r> Place<'r> {
    /// Nothing of the body is read yet.
    pub(super) fn new(message: &'static str, body: &'r [u8]) -> Place<'r> {
        Place { message, body }
    }

    /// An error at the beginning of `rest`, which is part of the body.
    pub fn error(&self, rest: &[u8], reason: &'static str) -> WireError {
        WireError { message: self.message, offset: self.offset(rest), reason }
    }

    #[cold]
    fn malformed(&self, message: &[u8], Malformed { what, left }: Malformed) -> WireError {
        let before = message.len().saturating_sub(left);
        self.error(message.get(before..).unwrap_or_default(), what)
    }

    /// Where a part of the body begins.
    pub(super) fn offset(&self, part: &[u8]) -> usize {
        let offset = (part.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        offset.min(self.body.len())
    }

    /// Walks over the fields of a message inside the body.
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
