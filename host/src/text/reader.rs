//! Lines of a text, one after the other.

use super::{Event, LineError, TextFormat, parse_line};
use std::io::{self, BufRead, Read as _};

/// Longest line that is read.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Why a text cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input failed.
    #[error("could not be read: {0}")]
    Input(#[from] io::Error),
    /// A line is wrong.
    #[error("line {number}: {source}: {}", shown(line))]
    Line {
        /// Which line, from 1.
        number: u64,
        /// The line.
        line: String,
        /// What is wrong with it.
        source: LineError,
    },
    /// A line is too long.
    #[error("line {number}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Which line, from 1.
        number: u64,
    },
    /// An OpenMetrics text that is cut off.
    #[error("it ends after line {lines} without `# EOF`: it is not complete, or not OpenMetrics")]
    NoEnd {
        /// How many lines there are.
        lines: u64,
    },
    /// Something follows the end of an OpenMetrics text.
    #[error("line {number}: nothing may follow `# EOF`")]
    AfterEnd {
        /// Which line, from 1.
        number: u64,
    },
}

/// Reads events from a text. Memory: one line.
pub struct TextReader<R> {
    input: R,
    format: TextFormat,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
    has_ended: bool,
}

impl<R: BufRead> TextReader<R> {
    /// Begins at the front.
    pub fn new(input: R, format: TextFormat) -> TextReader<R> {
        TextReader { input, format, line: Vec::new(), number: 0, bytes: 0, has_ended: false }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of the line that was read last, from 1.
    pub fn line_number(&self) -> u64 {
        self.number
    }

    /// What the next line says; `None` after the last.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        self.line.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line)?;
        self.bytes += read as u64;
        if read == 0 {
            let is_whole = self.format == TextFormat::Prometheus || self.has_ended;
            return if is_whole { Ok(None) } else { Err(ReadError::NoEnd { lines: self.number }) };
        }
        self.number += 1;
        let number = self.number;
        if self.has_ended {
            return Err(ReadError::AfterEnd { number });
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read > LINE_BYTES_MAX {
            return Err(ReadError::TooLong { number });
        }
        let wrong = |source| {
            let line = String::from_utf8_lossy(&self.line).into_owned();
            ReadError::Line { number, line, source }
        };
        let text = std::str::from_utf8(&self.line)
            .map_err(|error| wrong(LineError { what: "not UTF-8", offset: error.valid_up_to() }))?;
        let event = parse_line(text, self.format).map_err(wrong)?;
        self.has_ended = event == Event::End;
        Ok(Some(event))
    }

    /// The error for the line that was read last.
    pub fn wrong(&self, what: &'static str) -> ReadError {
        self.wrong_at(LineError { what, offset: 0 })
    }

    /// The same, with the place in the line.
    pub fn wrong_at(&self, source: LineError) -> ReadError {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        ReadError::Line { number: self.number, line, source }
    }
}

/// As much of a line as a message has room for.
fn shown(line: &str) -> String {
    const CHARS_MAX: usize = 200;
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{:?} …", line.get(..end).unwrap_or_default()),
        None => format!("{line:?}"),
    }
}
