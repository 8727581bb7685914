//! A parser of any of the formats.

use crate::error::ParseError;
use crate::item::Item;
use crate::protobuf::{HistogramOptions, ProtobufParser};
use crate::scanner::TextFormat;
use crate::text::TextParser;

/// Which format a body has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus' text format: `text/plain`.
    Prometheus,
    /// OpenMetrics' text format: `application/openmetrics-text`.
    Openmetrics,
    /// Families of `io.prometheus.client`, each behind its length:
    /// `application/vnd.google.protobuf`.
    Protobuf,
}

/// Reads a body that comes in pieces.
pub enum Parser {
    /// Of text.
    Text(TextParser),
    /// Of messages.
    Protobuf(Box<ProtobufParser>),
}

impl Parser {
    /// Begins at the front of a body. The options are for the protobuf format; for text there is
    /// [`crate::ClassicToNative`].
    pub fn new(format: Format, options: HistogramOptions) -> Parser {
        Parser::with_buffer(format, options, Vec::new())
    }

    /// The same, with the memory of another one's buffer.
    pub fn with_buffer(format: Format, options: HistogramOptions, buffer: Vec<u8>) -> Parser {
        let text = |format| Parser::Text(TextParser::with_buffer(format, buffer));
        match format {
            Format::Prometheus => text(TextFormat::Prometheus),
            Format::Openmetrics => text(TextFormat::Openmetrics),
            Format::Protobuf => Parser::Protobuf(Box::new(ProtobufParser::new(options))),
        }
    }

    /// The memory of the buffer of a text, to be used again.
    pub fn into_buffer(self) -> Vec<u8> {
        match self {
            Parser::Text(parser) => parser.into_buffer(),
            Parser::Protobuf(_) => Vec::new(),
        }
    }

    /// Takes the next piece. All items of the one before are to be taken first: what is not parsed
    /// is kept.
    pub fn feed(&mut self, piece: &[u8]) {
        match self {
            Parser::Text(parser) => parser.feed(piece),
            Parser::Protobuf(parser) => parser.feed(piece),
        }
    }

    /// As [`TextParser::take_known`]; nothing in other formats.
    #[inline]
    pub fn take_known(&mut self, series: &[u8]) -> Option<f64> {
        match self {
            Parser::Text(parser) => parser.take_known(series),
            Parser::Protobuf(_) => None,
        }
    }

    /// Says that no more pieces come.
    pub fn end(&mut self) {
        match self {
            Parser::Text(parser) => parser.end(),
            Parser::Protobuf(parser) => parser.end(),
        }
    }

    /// Bytes parsed so far.
    pub fn bytes(&self) -> u64 {
        match self {
            Parser::Text(parser) => parser.bytes(),
            Parser::Protobuf(parser) => parser.bytes(),
        }
    }

    /// The next item. `None`: there is none before the next piece, or before [`Self::end`]; after
    /// that, there is none at all. After an error that is not [`ParseError::is_line`] there is no
    /// next item.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ParseError> {
        match self {
            Parser::Text(parser) => parser.next(),
            Parser::Protobuf(parser) => parser.next(),
        }
    }
}
