//! Items of the text of a reader.

use super::parser::TextParser;
use crate::error::{LabelError, ParseError, ReadError};
use crate::item::Item;
use crate::scanner::TextFormat;
use std::io::BufRead;

/// Reads items from a text. Memory: what the reader returns at once, and one line.
pub struct TextReader<R> {
    input: R,
    parser: TextParser,
}

impl<R: BufRead> TextReader<R> {
    /// Begins at the front.
    pub fn new(input: R, format: TextFormat) -> TextReader<R> {
        TextReader { input, parser: TextParser::new(format) }
    }

    /// Bytes parsed so far.
    pub fn bytes(&self) -> u64 {
        self.parser.bytes()
    }

    /// Number of the line that was read last, from 1.
    pub fn line_number(&self) -> u64 {
        self.parser.line_number()
    }

    /// The next item; `None` after the last.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        while !self.parser.advance()? {
            if self.parser.is_complete() {
                return Ok(None);
            }
            let piece = self.input.fill_buf()?;
            // A slice returns all it has at once.
            let bytes = piece.len().min(PIECE_BYTES_MAX);
            match piece.get(..bytes) {
                Some(piece) if bytes > 0 => self.parser.feed(piece),
                _ => self.parser.end(),
            }
            self.input.consume(bytes);
        }
        Ok(Some(self.parser.item()?))
    }

    /// The error for the line that was read last, as a whole.
    pub fn refused(&self, what: &'static str) -> ParseError {
        self.parser.refused(what)
    }

    /// The error for the line that was read last, whose labels are wrong.
    pub fn refused_labels(&self, error: LabelError) -> ParseError {
        self.parser.refused_labels(error)
    }
}

/// Most that is copied at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;
