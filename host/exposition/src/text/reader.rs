//! Reads the items of a text from an input stream.

use super::parser::TextParser;
use crate::error::{LabelError, ParseError, ReadError};
use crate::item::Item;
use crate::scanner::TextFormat;
use std::io::BufRead;

/// Reads items from a text. Keeps one piece of input and one line in memory.
pub struct TextReader<R> {
    input: R,
    parser: TextParser,
}

impl<R: BufRead> TextReader<R> {
    pub fn new(input: R, format: TextFormat) -> TextReader<R> {
        TextReader { input, parser: TextParser::new(format) }
    }

    pub fn bytes(&self) -> u64 {
        self.parser.bytes()
    }

    pub fn line_number(&self) -> u64 {
        self.parser.line_number()
    }

    /// Returns the next item; `None` after the last item.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        while !self.parser.advance()? {
            if self.parser.is_complete() {
                return Ok(None);
            }
            let piece = self.input.fill_buf()?;
            // A slice returns all its bytes at once, and the parser would copy all of them.
            let bytes = piece.len().min(PIECE_BYTES_MAX);
            match piece.get(..bytes) {
                Some(piece) if bytes > 0 => self.parser.feed(piece),
                _ => self.parser.end(),
            }
            self.input.consume(bytes);
        }
        Ok(Some(self.parser.item()?))
    }

    pub fn refused(&self, what: &'static str) -> ParseError {
        self.parser.refused(what)
    }

    pub fn refused_labels(&self, error: LabelError) -> ParseError {
        self.parser.refused_labels(error)
    }
}

/// Maximum number of bytes that are copied at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;
