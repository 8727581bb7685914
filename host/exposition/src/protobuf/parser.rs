//! Parses messages that arrive in pieces, and returns their items.
//!
//! The message of a family is buffered, and its metrics are decoded one by one. So memory holds one
//! encoded family, one metric and one piece.

use super::HistogramOptions;
use super::client::Metric;
use super::family::{Family, fields, varint};
use super::series::{self, Part};
use crate::error::{FamilyError, ParseError, beginning};
use crate::item::{Exemplar, HistogramSample, Item, Sample};
use crate::limits::{FAMILY_BYTES_MAX, METRIC_BYTES_MAX, METRIC_FIELDS_MAX};
use crate::metric::MetricType;
use crate::scanner::TextFormat;
use crate::series::{Series, SeriesText};
use prost::Message as _;
use std::borrow::Cow;

/// Maximum length of the varint before a message, in bytes.
const LENGTH_BYTES_MAX: usize = 5;

/// Parser of messages that arrive in pieces.
pub struct ProtobufParser {
    options: HistogramOptions,
    buffer: Vec<u8>,
    /// Offset of the first unparsed byte.
    start: usize,
    /// Number of bytes removed from the front of the buffer.
    dropped: u64,
    is_complete: bool,
    /// Number of messages read so far.
    families: u64,
    current: Option<Current>,
    text: SeriesText,
}

/// The family that is being read.
struct Current {
    family: Family,
    /// Range of the family's message in the buffer.
    message: std::ops::Range<usize>,
    /// Number of metrics decoded so far.
    metrics: usize,
    metric: Metric,
    state: State,
}

/// Position within the items of a family.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Help,
    Unit,
    Type,
    Part(Part),
    /// Before the first part of the next metric.
    NextMetric,
}

impl ProtobufParser {
    /// Creates a parser at the first message.
    pub fn new(options: HistogramOptions) -> ProtobufParser {
        ProtobufParser {
            options,
            buffer: Vec::new(),
            start: 0,
            dropped: 0,
            is_complete: false,
            families: 0,
            current: None,
            text: SeriesText::default(),
        }
    }

    /// Adds the next piece. Bytes of earlier pieces that were not parsed are kept.
    pub fn feed(&mut self, piece: &[u8]) {
        // The message of the current family is kept, because its metrics are not all decoded.
        let parsed = self.current.as_ref().map_or(self.start, |current| current.message.start);
        self.buffer.drain(..parsed);
        self.dropped += parsed as u64;
        self.start -= parsed;
        if let Some(current) = &mut self.current {
            current.message = 0..current.message.len();
        }
        self.buffer.extend_from_slice(piece);
    }

    /// Marks the body as complete, after the last piece.
    pub fn end(&mut self) {
        self.is_complete = true;
    }

    pub fn bytes(&self) -> u64 {
        self.dropped + self.start as u64
    }

    /// Returns the next item. Before [`Self::end`], `None` means that another piece is needed;
    /// afterwards, that there are no more items. After an error, nothing can be read.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ParseError> {
        let Some((mut current, state)) = self.advance()? else { return Ok(None) };
        current.state = match state {
            State::Help if !current.family.unit.is_empty() => State::Unit,
            State::Help | State::Unit => State::Type,
            State::Type => State::Part(self.first_part(&current)),
            State::NextMetric => State::NextMetric,
            State::Part(part) => {
                let Current { family, metric, .. } = &current;
                match series::behind(part, family.kind, metric, self.options) {
                    Some(next) => State::Part(next),
                    None => State::NextMetric,
                }
            }
        };
        // Copied first, because the item borrows from `self`.
        let (families, text) = (self.families, &mut self.text);
        let current = self.current.insert(current);
        let name = Cow::Borrowed(current.family.name.as_str());
        let item = match state {
            State::Help => Ok(Item::Help { family: name, help: (&current.family.help).into() }),
            State::Unit => Ok(Item::Unit { family: name, unit: (&current.family.unit).into() }),
            State::Part(part) => part_of(&current.family, &current.metric, part, text),
            State::Type | State::NextMetric => {
                Ok(Item::Type { family: name, kind: current.family.kind })
            }
        };
        item.map(Some).map_err(|what| current.error(families, what))
    }

    /// Moves to the next item. Removes its family from `current`; the caller puts it back.
    fn advance(&mut self) -> Result<Option<(Current, State)>, ParseError> {
        loop {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => match self.next_family()? {
                    Some(current) => current,
                    None => return Ok(None),
                },
            };
            if current.state != State::NextMetric {
                let state = current.state;
                return Ok(Some((current, state)));
            }
            if self.next_metric(&mut current)? {
                let part = self.first_part(&current);
                return Ok(Some((current, State::Part(part))));
            }
        }
    }

    fn first_part(&self, current: &Current) -> Part {
        series::first(current.family.kind, &current.metric, self.options)
    }

    /// Decodes the next metric of a family; returns whether there is one.
    fn next_metric(&self, current: &mut Current) -> Result<bool, ParseError> {
        let message = self.buffer.get(current.message.clone()).unwrap_or_default();
        let found = current.family.next_metric(message);
        let Some(range) = found.map_err(|what| current.error(self.families, what))? else {
            return Ok(false);
        };
        current.metrics += 1;
        let message = message.get(range).unwrap_or_default();
        // Checked before decoding, which multiplies the size.
        check_size(message).map_err(|what| current.error(self.families, what))?;
        let decoded = Metric::decode(message);
        current.metric = decoded.map_err(|what| current.error(self.families, what.into()))?;
        Ok(true)
    }

    /// Returns the next family with metrics, and decodes its first metric.
    fn next_family(&mut self) -> Result<Option<Current>, ParseError> {
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(None);
            }
            let number = self.families + 1;
            let wrong =
                |what| ParseError::Family { family: number, name: String::new(), metric: 0, what };
            let Some((bytes, used)) = varint(rest).filter(|(_, used)| *used <= LENGTH_BYTES_MAX)
            else {
                // Fewer bytes may be an incomplete length.
                return match rest.len() < LENGTH_BYTES_MAX {
                    true if self.is_complete => {
                        Err(ParseError::FamilyCutOff { family: number, missing: 1 })
                    }
                    true => Ok(None),
                    false => Err(wrong(FamilyError::Length)),
                };
            };
            if bytes > FAMILY_BYTES_MAX as u64 {
                return Err(ParseError::FamilyTooLarge { family: number, bytes });
            }
            let start = self.start + used;
            // `FAMILY_BYTES_MAX` bounds the length, so neither cast nor sum overflows.
            let end = start + bytes as usize;
            let Some(message) = self.buffer.get(start..end) else {
                let missing = (end - self.buffer.len()) as u64;
                return match self.is_complete {
                    true => Err(ParseError::FamilyCutOff { family: number, missing }),
                    false => Ok(None),
                };
            };
            let family = Family::read(message).map_err(wrong)?;
            self.families = number;
            self.start = end;
            let Some(family) = family else { continue };
            let mut current = Current {
                family,
                message: start..end,
                metrics: 0,
                metric: Metric::default(),
                state: State::Help,
            };
            self.next_metric(&mut current)?;
            return Ok(Some(current));
        }
    }
}

fn check_size(metric: &[u8]) -> Result<(), FamilyError> {
    // Field numbers of the messages with buckets and quantiles.
    const SUMMARY: u64 = 4;
    const HISTOGRAM: u64 = 7;
    if metric.len() > METRIC_BYTES_MAX {
        return Err(FamilyError::MetricTooLarge { bytes: metric.len() });
    }
    match fields(metric, &[SUMMARY, HISTOGRAM])? > METRIC_FIELDS_MAX {
        true => Err(FamilyError::TooManyFields),
        false => Ok(()),
    }
}

impl Current {
    fn error(&self, family: u64, what: FamilyError) -> ParseError {
        let name = beginning(&self.family.name);
        ParseError::Family { family, name, metric: self.metrics, what }
    }
}

fn part_of<'a>(
    family: &Family,
    metric: &'a Metric,
    part: Part,
    text: &'a mut SeriesText,
) -> Result<Item<'a>, FamilyError> {
    let kind = family.kind;
    series::write_text(text, &family.name, kind, metric, part)?;
    let format = TextFormat::Openmetrics;
    // `float_text` has formatted the bounds, so the series needs no type to normalise them.
    let series = Series { text: text.end(), format, kind: MetricType::Unknown, place: None };
    // The format does not distinguish an absent timestamp from the epoch.
    let timestamp_ms = Some(metric.timestamp_ms()).filter(|timestamp_ms| *timestamp_ms != 0);
    let created_ms = series::created_ms(kind, metric);
    let mut exemplars = Vec::new();
    for exemplar in series::exemplars(kind, metric, part) {
        exemplars.push(Exemplar {
            text: Cow::Owned(series::exemplar_text(exemplar)?),
            value: exemplar.value(),
            timestamp_ms: exemplar.timestamp.as_ref().map(series::millis),
        });
    }
    if matches!(part, Part::Native | Part::Converted) {
        let histogram = series::histogram_of(kind, metric, part)?;
        let sample = HistogramSample { series, histogram, timestamp_ms, created_ms, exemplars };
        return Ok(Item::Histogram(sample));
    }
    let value = series::value_of(kind, metric, part);
    let exemplar = exemplars.pop();
    Ok(Item::Sample(Sample { series, value, timestamp_ms, created_ms, exemplar }))
}
