//! Parses a text that arrives in pieces, and returns its items.
//!
//! ```text
//! buffer  │ parsed │ complete lines        │ beginning of the next line │
//!         0        start                                                end
//! ```
//!
//! `feed` removes parsed bytes, so a parser holds one piece and at most one line, or twice as much
//! after invalid lines.

use super::line::{SampleParts, is_blank, is_comment, measure, parse_comment, text_of};
use crate::error::{KEPT_CHARS, ParseError, TextPosition, beginning};
use crate::item::{Exemplar, Item, Sample};
use crate::limits::LINE_BYTES_MAX;
use crate::metric::MetricType;
use crate::number::parse_value;
use crate::scanner::{LineError, OPEN_STRING, TextFormat};
use crate::series::Series;
use std::borrow::Cow;
use std::ops::Range;

/// Number of bytes that may be examined in vain in any text: four lines of maximum length.
const IN_VAIN_BYTES_MIN: u64 = 4 * LINE_BYTES_MAX as u64;

/// Parser of a text that arrives in pieces.
pub struct TextParser {
    format: TextFormat,
    buffer: Vec<u8>,
    /// Offset of the first unparsed byte.
    start: usize,
    /// Offset up to which no line break was found after `start`.
    searched: usize,
    /// Number of lines before `start`.
    lines: u64,
    /// Number of bytes removed from the front of the buffer.
    dropped: u64,
    /// Type of the last `TYPE` line. As upstream, it applies to samples of all families.
    kind: MetricType,
    /// Whether the last piece was fed.
    is_complete: bool,
    /// Whether the line `# EOF` was read.
    has_ended: bool,
    /// Number of unparsed bytes needed before an unclosed quote is examined again.
    retry_bytes: usize,
    /// Number of bytes examined in vain after an unclosed quote.
    in_vain: u64,
    current: Current,
}

/// The entry that [`TextParser::advance`] found.
#[derive(Default)]
struct Current {
    entry: Range<usize>,
    line: u64,
    sample: Option<SampleParts>,
}

impl TextParser {
    /// Creates a parser at the front of a text.
    pub fn new(format: TextFormat) -> TextParser {
        TextParser {
            format,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            lines: 0,
            dropped: 0,
            kind: MetricType::Unknown,
            is_complete: false,
            has_ended: false,
            retry_bytes: 0,
            in_vain: 0,
            current: Current::default(),
        }
    }

    /// Creates a parser that reuses the memory of a buffer.
    pub fn with_buffer(format: TextFormat, mut buffer: Vec<u8>) -> TextParser {
        buffer.clear();
        TextParser { buffer, ..TextParser::new(format) }
    }

    /// Returns the buffer for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Adds the next piece. Bytes of earlier pieces that were not parsed are kept.
    pub fn feed(&mut self, piece: &[u8]) {
        // Unparsed bytes move to the front. If there are many, after invalid lines, the move waits
        // until as many bytes were parsed, which keeps the total cost linear.
        if self.start >= self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.dropped += self.start as u64;
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(piece);
    }

    /// Marks the text as complete, so that the rest is the last line.
    pub fn end(&mut self) {
        self.is_complete = true;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the number of bytes parsed so far.
    pub fn bytes(&self) -> u64 {
        self.dropped + self.start as u64
    }

    #[cfg(test)]
    pub(crate) fn in_vain(&self) -> u64 {
        self.in_vain
    }

    /// Returns the number of the line that was read last, from 1.
    pub fn line_number(&self) -> u64 {
        self.lines
    }

    /// Returns the next item. Before [`Self::end`], `None` means that another piece is needed;
    /// afterwards, that there are no more items.
    ///
    /// After [`ParseError::Line`] the next line can be read; after any other error, nothing can.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ParseError> {
        if self.advance()? { self.item().map(Some) } else { Ok(None) }
    }

    /// Takes the next line if it is a sample without a timestamp of the series with the text
    /// `series`, which an earlier item had. Returns the value; `None` means that nothing was taken
    /// and [`Self::next`] has to parse the line.
    ///
    /// The text of the series is only compared: checking it is most of the work for a line.
    pub fn take_known(&mut self, series: &[u8]) -> Option<f64> {
        // An unclosed quote is being examined, so the line may be within its string.
        if self.retry_bytes > 0 {
            return None;
        }
        // `next` finds the same error again, and reports it.
        let entry = self.next_line().ok()??;
        let line = self.buffer.get(entry.clone())?;
        let word = line.strip_prefix(series)?.strip_prefix(b" ")?;
        let value = parse_value(std::str::from_utf8(word).ok()?)?;
        self.consume(entry, 0);
        Some(value)
    }

    /// Moves to the next item; returns whether there is one.
    pub(crate) fn advance(&mut self) -> Result<bool, ParseError> {
        if self.buffer.len() - self.start < self.retry_bytes && !self.is_complete {
            return Ok(false);
        }
        let Some(mut entry) = self.next_line()? else { return Ok(false) };
        let bytes = self.buffer.get(entry.clone()).unwrap_or_default();
        let (mut sample, mut breaks) = (None, 0);
        if !is_comment(bytes, self.format) {
            match measure(bytes, self.format) {
                Ok(parts) => sample = Some(parts),
                Err(error) if self.may_go_on(error) => match self.longer_entry(error) {
                    Longer::Found { end, parts } => {
                        entry.end = end;
                        breaks = count_breaks(self.buffer.get(entry.clone()).unwrap_or_default());
                        sample = Some(parts);
                    }
                    Longer::NotThere => return Ok(false),
                    Longer::Wrong(error) => {
                        // `longer_entry` has examined at most one line of maximum length.
                        let looked_at = self.buffer.len() - entry.start;
                        self.in_vain += looked_at.min(LINE_BYTES_MAX) as u64;
                        return Err(self.refuse(entry, error));
                    }
                },
                Err(error) => return Err(self.refuse(entry, error)),
            }
        }
        let line = self.lines + 1;
        self.consume(entry.clone(), breaks);
        self.current = Current { entry, line, sample };
        Ok(true)
    }

    /// Returns the item that [`Self::advance`] found.
    pub(crate) fn item(&mut self) -> Result<Item<'_>, ParseError> {
        let Current { entry, line, sample } = &mut self.current;
        let bytes = self.buffer.get(entry.clone()).unwrap_or_default();
        let start = TextPosition { line: *line, column: 1 };
        let item = match sample.take() {
            Some(parts) => sample_of(bytes, parts, self.format, self.kind, start),
            None => parse_comment(bytes, self.format),
        };
        match &item {
            Ok(Item::Type { kind, .. }) => self.kind = *kind,
            Ok(Item::End) => self.has_ended = true,
            _ => {}
        }
        item.map_err(|error| line_error(bytes, start, error))
    }

    /// Returns an error for the last line as a whole.
    pub fn refused(&self, what: &'static str) -> ParseError {
        let place = TextPosition { line: self.current.line, column: 1 };
        let bytes = self.buffer.get(self.current.entry.clone()).unwrap_or_default();
        line_error(bytes, place, LineError { what, offset: 0 })
    }

    /// Returns an error for the labels of the last line.
    pub fn refused_labels(&self, error: crate::LabelError) -> ParseError {
        match self.refused(error.what) {
            ParseError::Line { place, what, text } => {
                ParseError::Line { place: error.place.unwrap_or(place), what, text }
            }
            other => other,
        }
    }

    /// Returns the next complete line, without its line break.
    fn next_line(&mut self) -> Result<Option<Range<usize>>, ParseError> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let end = match memchr::memchr(b'\n', unsearched) {
                Some(at) => self.searched + at,
                None => {
                    self.searched = self.buffer.len();
                    // Refused before its end is found, so that memory stays bounded.
                    if self.searched - self.start > LINE_BYTES_MAX {
                        return Err(ParseError::TooLong { line: self.lines + 1 });
                    }
                    if !self.is_complete {
                        return Ok(None);
                    }
                    if self.start == self.buffer.len() {
                        // OpenMetrics ends with a mark, and without it the text is truncated.
                        return match self.format == TextFormat::Prometheus || self.has_ended {
                            true => Ok(None),
                            false => Err(ParseError::NoEnd { lines: self.lines }),
                        };
                    }
                    self.buffer.len()
                }
            };
            if self.has_ended {
                return Err(ParseError::AfterEnd { line: self.lines + 1 });
            }
            let line = self.start..end;
            if line.len() > LINE_BYTES_MAX {
                return Err(ParseError::TooLong { line: self.lines + 1 });
            }
            let bytes = self.buffer.get(line.clone()).unwrap_or_default();
            if self.format == TextFormat::Openmetrics || !is_blank(bytes) {
                // If the entry needs more lines, this line is found again without a search.
                self.searched = end;
                return Ok(Some(line));
            }
            self.consume(line, 0);
        }
    }

    /// Moves to the line after an entry; the entry has `breaks` line breaks inside.
    fn consume(&mut self, entry: Range<usize>, breaks: u64) {
        self.lines += 1 + breaks;
        self.retry_bytes = 0;
        // The last line may have no line break.
        self.start = (entry.end + 1).min(self.buffer.len());
        self.searched = self.start;
    }

    /// Skips an invalid line, and returns its error.
    fn refuse(&mut self, line: Range<usize>, error: LineError) -> ParseError {
        let start = TextPosition { line: self.lines + 1, column: 1 };
        let bytes = self.buffer.get(line.start..).unwrap_or_default();
        let refused = line_error(bytes, start, error);
        self.consume(line, 0);
        refused
    }

    /// Returns whether a line may continue on the next lines. A search in vain may examine the same
    /// bytes again for each of them. So that many invalid lines cost no quadratic time, lines are
    /// taken alone once the bytes searched in vain exceed those of the text.
    fn may_go_on(&self, error: LineError) -> bool {
        self.format == TextFormat::Prometheus
            && error.what == OPEN_STRING
            && self.in_vain <= IN_VAIN_BYTES_MIN + self.bytes()
    }

    /// Measures a sample with a line break in a label value. Each attempt examines all bytes so
    /// far. The next attempt waits for a quarter more bytes, so that many small pieces cost no
    /// quadratic time.
    fn longer_entry(&mut self, open: LineError) -> Longer {
        let all = self.buffer.get(self.start..).unwrap_or_default();
        // An unclosed string must not cost a search in the whole buffer.
        let bounded = all.get(..LINE_BYTES_MAX).unwrap_or(all);
        // The end of the text ends the sample; the end of the bounded part does not.
        match sample_end(bounded, open.offset, self.is_complete && bounded.len() == all.len()) {
            Some(end) => {
                let entry = bounded.get(..end).unwrap_or_default();
                match measure(entry, self.format) {
                    Ok(parts) => Longer::Found { end: self.start + end, parts },
                    Err(error) => Longer::Wrong(error),
                }
            }
            None if self.is_complete || all.len() > LINE_BYTES_MAX => Longer::Wrong(open),
            None => {
                self.retry_bytes = all.len() + all.len() / 4 + 1;
                Longer::NotThere
            }
        }
    }
}

enum Longer {
    /// End of the sample in the buffer, and its parts.
    Found {
        end: usize,
        parts: SampleParts,
    },
    NotThere,
    Wrong(LineError),
}

fn count_breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Returns the end of a sample whose quote at `open` is not closed on its line: the first line
/// break outside of quotes.
fn sample_end(text: &[u8], open: usize, is_complete: bool) -> Option<usize> {
    let mut at = open;
    loop {
        let rest = text.get(at + 1..)?;
        // Offset of `within` in `text`; it starts after the quote that opens the string.
        let mut end = at + 1;
        let mut within = rest;
        loop {
            let stop = memchr::memchr2(b'"', b'\\', within)?;
            let step = if within.get(stop) == Some(&b'"') { stop + 1 } else { stop + 2 };
            end += step;
            let is_closed = within.get(stop) == Some(&b'"');
            within = within.get(step..)?;
            if is_closed {
                break;
            }
        }
        match memchr::memchr2(b'"', b'\n', within) {
            Some(stop) if within.get(stop) == Some(&b'"') => at = end + stop,
            Some(stop) => return Some(end + stop),
            None => return is_complete.then_some(text.len()),
        }
    }
}

fn sample_of(
    bytes: &[u8],
    parts: SampleParts,
    format: TextFormat,
    kind: MetricType,
    start: TextPosition,
) -> Result<Item<'_>, LineError> {
    let text = |range: Range<usize>| {
        let start = range.start;
        text_of(bytes.get(range).unwrap_or_default())
            .map_err(|error| LineError { offset: error.offset + start, ..error })
    };
    let place = TextPosition { column: start.column + parts.series.start, ..start };
    let series = Series { text: text(parts.series)?, format, kind, place: Some(place) };
    let exemplar = match parts.exemplar {
        None => None,
        Some(parts) => Some(Exemplar {
            text: Cow::Borrowed(text(parts.labels)?),
            value: parts.value,
            timestamp_ms: parts.timestamp_ms,
        }),
    };
    let (value, timestamp_ms) = (parts.value, parts.timestamp_ms);
    Ok(Item::Sample(Sample { series, value, timestamp_ms, created_ms: None, exemplar }))
}

/// Returns the error in an entry that begins at `start`, with the line that has the fault.
fn line_error(bytes: &[u8], start: TextPosition, error: LineError) -> ParseError {
    let place = error.place(start, bytes);
    let before = bytes.get(..error.offset).unwrap_or(bytes);
    let line = bytes.get(memchr::memrchr(b'\n', before).map_or(0, |last| last + 1)..);
    let line = line.and_then(|line| line.split(|byte| *byte == b'\n').next()).unwrap_or_default();
    // A character has at most four bytes, so no more than the kept text is converted.
    let text = beginning(&String::from_utf8_lossy(&line[..line.len().min(4 * KEPT_CHARS)]));
    ParseError::Line { place, what: error.what, text }
}
