//! Passes the items of a parser to an appender.

use super::{Appender, Exemplar};
use crate::error::{ScrapeError, parse_error};
use crate::series_text::Parts;
use tidepool_exposition as exposition;
use tidepool_exposition::{ClassicToNative, Converted, Format, HistogramOptions, Item, Parser};
use tidepool_turns::{Idle, STEP_BYTES};

/// Buffers of finished readers, for reuse by readers of any target. A new buffer would have to grow
/// in steps, even for a short body.
static IDLE_BUFFERS: Idle<Vec<u8>> = Idle::new(IDLE_BUFFERS_MAX);

/// Scrapes rarely coincide, so more than two bodies are seldom read at once.
const IDLE_BUFFERS_MAX: usize = 2;

/// Largest buffer that is kept: twice the largest piece of the decompressor. Longer lines are rare.
const IDLE_BUFFER_BYTES_MAX: usize = 32 * 1024;

/// Reads a body piece by piece into an appender.
pub struct BodyReader {
    parser: Parser,
    /// Converts classic histograms to native ones, if the job asks for it. The protobuf parser does
    /// so itself.
    converter: Option<ClassicToNative>,
    /// Whether the whole body was fed.
    has_end: bool,
}

impl BodyReader {
    /// Creates a reader for one body.
    pub fn new(format: Format, histograms: Histograms) -> BodyReader {
        let Histograms { native, always_classic, convert_classic } = histograms;
        let options = HistogramOptions {
            ignores_native: !native,
            keeps_classic: always_classic,
            converts_classic: convert_classic,
        };
        let is_text = format != Format::Protobuf;
        let buffer = if is_text { IDLE_BUFFERS.take() } else { None };
        BodyReader {
            parser: Parser::with_buffer(format, options, buffer.unwrap_or_default()),
            converter: (is_text && convert_classic).then(|| ClassicToNative::new(always_classic)),
            has_end: false,
        }
    }

    /// Parses the next piece of the body.
    pub fn feed(&mut self, piece: &[u8], appender: &mut Appender) -> Result<(), ScrapeError> {
        self.put(piece);
        while self.step(appender)? {}
        Ok(())
    }

    /// Parses the end of the body.
    pub fn end(&mut self, appender: &mut Appender) -> Result<(), ScrapeError> {
        self.put_end();
        while self.step(appender)? {}
        Ok(())
    }

    /// Adds a piece of the body, which [`BodyReader::step`] parses.
    pub fn put(&mut self, piece: &[u8]) {
        self.parser.feed(piece);
    }

    /// Marks the end of the body, which [`BodyReader::step`] then handles.
    pub fn put_end(&mut self) {
        self.parser.end();
        self.has_end = true;
    }

    /// Gives the parser's buffer to the next reader, even if the body was not read to its end.
    pub fn reuse(self) {
        let buffer = self.parser.into_buffer();
        if (1..=IDLE_BUFFER_BYTES_MAX).contains(&buffer.capacity()) {
            IDLE_BUFFERS.give(buffer);
        }
    }

    /// Parses items for a short time; returns whether another step may find more.
    pub fn step(&mut self, appender: &mut Appender) -> Result<bool, ScrapeError> {
        // Bounded, so that a large body does not block the thread that all targets share.
        let mut left = STEP_BYTES;
        while left > 0 {
            self.take_known(appender);
            let Some(item) = self.parser.next().map_err(parse_error)? else {
                self.finish(appender)?;
                return Ok(false);
            };
            left = left.saturating_sub(weight(&item));
            if let Some(converter) = &mut self.converter {
                let step = converter.step(&item).map_err(parse_error)?;
                // The histogram that this item completes does not include the item.
                if let Some(converted) = step.converted {
                    take_converted(converted, appender)?;
                }
                if step.is_taken {
                    continue;
                }
            }
            take(item, appender)?;
        }
        Ok(true)
    }

    /// Adds the histogram that the end of the body completes.
    fn finish(&mut self, appender: &mut Appender) -> Result<(), ScrapeError> {
        // Until the end of the body, the next piece may continue the histogram.
        let converter = self.converter.as_mut().filter(|_| self.has_end);
        match converter.and_then(ClassicToNative::finish) {
            Some(converted) => take_converted(converted, appender),
            None => Ok(()),
        }
    }

    /// Stages the samples of series as long as the body has the order of the previous scrape.
    #[inline]
    fn take_known(&mut self, appender: &mut Appender) {
        // The fast path makes no items, and a converter needs each one.
        if self.converter.is_some() {
            return;
        }
        while let Some((slot, text)) = appender.expected()
            && let Some(value) = self.parser.take_known(text)
        {
            appender.expected_sample(slot, value);
        }
    }
}

/// Settings for the histograms of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histograms {
    /// Whether native histograms are read.
    pub native: bool,
    /// Whether classic histograms are read beside native ones.
    pub always_classic: bool,
    /// Whether classic histograms are converted to native ones.
    pub convert_classic: bool,
}

/// Returns the work that an item causes, in bytes of text. A short protobuf message may produce a
/// long series.
fn weight(item: &Item<'_>) -> usize {
    const ITEM_BYTES: usize = 32;
    let (series, exemplars) = match item {
        Item::Sample(sample) => (&sample.series, usize::from(sample.exemplar.is_some())),
        Item::Histogram(sample) => (&sample.series, 1 + sample.exemplars.len()),
        _ => return ITEM_BYTES,
    };
    series.text().len() + ITEM_BYTES * (1 + exemplars)
}

#[inline]
fn take(item: Item<'_>, appender: &mut Appender) -> Result<(), ScrapeError> {
    match item {
        Item::Sample(sample) => {
            appender.sample(&sample.series, sample.timestamp_ms, sample.value)?;
            if let Some(exemplar) = sample.exemplar {
                take_exemplar(&exemplar, appender);
            }
        }
        Item::Histogram(sample) => {
            appender.histogram(&sample.series, sample.timestamp_ms, sample.histogram)?;
            sample.exemplars.iter().for_each(|exemplar| take_exemplar(exemplar, appender));
        }
        Item::Type { family, kind } => appender.family_kind(&family, kind),
        Item::Help { family, help } => appender.family_help(&family, &help),
        Item::Unit { family, unit } => appender.family_unit(&family, &unit),
        Item::Comment | Item::End => {}
    }
    Ok(())
}

fn take_exemplar(exemplar: &exposition::Exemplar<'_>, appender: &mut Appender) {
    let (value, timestamp_ms) = (exemplar.value, exemplar.timestamp_ms);
    appender.exemplar(Exemplar { labels: exemplar.labels(), value, timestamp_ms });
}

fn take_converted(converted: Converted, appender: &mut Appender) -> Result<(), ScrapeError> {
    let mut text = Vec::new();
    let labels = converted.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let series = Parts::write(&mut text, "", labels);
    appender.histogram(&series, converted.timestamp_ms, converted.histogram)?;
    for exemplar in converted.exemplars {
        let exposition::OwnedExemplar { labels, value, timestamp_ms } = exemplar;
        appender.exemplar(Exemplar { labels, value, timestamp_ms });
    }
    Ok(())
}
