//! A parser for all formats.

use crate::error::ParseError;
use crate::item::Item;
use crate::protobuf::{HistogramOptions, ProtobufParser};
use crate::scanner::TextFormat;
use crate::text::TextParser;

/// Exposition format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus' classic text format: `text/plain`.
    Prometheus,
    /// The text format of OpenMetrics: `application/openmetrics-text`.
    Openmetrics,
    /// Messages `io.prometheus.client.MetricFamily`, each after its length:
    /// `application/vnd.google.protobuf`.
    Protobuf,
}

/// Parser of a body that arrives in pieces.
pub enum Parser {
    Text(TextParser),
    Protobuf(Box<ProtobufParser>),
}

impl Parser {
    /// Creates a parser. The options apply to the protobuf format only; for text formats, use
    /// [`crate::ClassicToNative`].
    pub fn new(format: Format, options: HistogramOptions) -> Parser {
        Parser::with_buffer(format, options, Vec::new())
    }

    /// Creates a parser that reuses the memory of a buffer.
    pub fn with_buffer(format: Format, options: HistogramOptions, buffer: Vec<u8>) -> Parser {
        let text = |format| Parser::Text(TextParser::with_buffer(format, buffer));
        match format {
            Format::Prometheus => text(TextFormat::Prometheus),
            Format::Openmetrics => text(TextFormat::Openmetrics),
            Format::Protobuf => Parser::Protobuf(Box::new(ProtobufParser::new(options))),
        }
    }

    /// Returns the buffer of a text parser for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        match self {
            Parser::Text(parser) => parser.into_buffer(),
            Parser::Protobuf(_) => Vec::new(),
        }
    }

    /// Adds the next piece. Bytes of earlier pieces that were not parsed are kept.
    pub fn feed(&mut self, piece: &[u8]) {
        match self {
            Parser::Text(parser) => parser.feed(piece),
            Parser::Protobuf(parser) => parser.feed(piece),
        }
    }

    /// Calls [`TextParser::take_known`]; returns `None` for other formats.
    #[inline]
    pub fn take_known(&mut self, series: &[u8]) -> Option<f64> {
        match self {
            Parser::Text(parser) => parser.take_known(series),
            Parser::Protobuf(_) => None,
        }
    }

    /// Marks the body as complete, after the last piece.
    pub fn end(&mut self) {
        match self {
            Parser::Text(parser) => parser.end(),
            Parser::Protobuf(parser) => parser.end(),
        }
    }

    /// Returns the number of bytes parsed so far.
    pub fn bytes(&self) -> u64 {
        match self {
            Parser::Text(parser) => parser.bytes(),
            Parser::Protobuf(parser) => parser.bytes(),
        }
    }

    /// Returns the next item. Before [`Self::end`], `None` means that another piece is needed;
    /// afterwards, that there are no more items. After an error, nothing can be read unless
    /// [`ParseError::is_line`] is true.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ParseError> {
        match self {
            Parser::Text(parser) => parser.next(),
            Parser::Protobuf(parser) => parser.next(),
        }
    }
}
