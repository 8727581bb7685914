//! Decoding of a remote-write body into columns.

use super::{Batch, Interest};
use std::collections::HashMap;
use tidepool_remote_write::{SeriesData, WireError, WriteSink, decode_write_v1, decode_write_v2};
use tidepool_runtime::RemoteWriteVersion;

/// A body as columns, with its number of rows.
pub struct View {
    /// The columns. A series with invalid references has no labels, so that the store refuses it.
    pub batch: Batch,
    /// Number of float samples in the body, even if they are not in the columns.
    pub samples: u64,
    /// Number of native histograms in the body.
    pub histograms: u64,
    pub exemplars: u64,
    /// Memory of the columns in bytes.
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("the body does not decode: {0}")]
    Malformed(#[from] WireError),
    /// The columns would exceed the limit of this many bytes.
    #[error("the request takes more than {0} bytes in columns; send smaller requests")]
    TooLarge(usize),
}

/// Builder of columns; the sink of the decoder.
struct Builder<'r> {
    /// References of the names and values seen so far in a 1.0 body.
    known: HashMap<&'r [u8], u32>,
    /// The first error. After it, nothing more is added.
    failed: Option<ViewError>,
    symbols: Vec<u8>,
    symbol_ends: Vec<u32>,
    view: View,
    interest: Interest,
    bytes_left: usize,
    bytes_max: usize,
}

impl View {
    /// Decodes a body into columns of at most `bytes_max`. Columns outside `interest` stay empty.
    pub fn of(
        version: RemoteWriteVersion,
        body: &[u8],
        interest: Interest,
        bytes_max: usize,
    ) -> Result<View, ViewError> {
        let batch = Batch::empty();
        let mut builder = Builder {
            known: HashMap::new(),
            failed: None,
            symbols: Vec::new(),
            symbol_ends: Vec::new(),
            view: View { batch, samples: 0, histograms: 0, exemplars: 0, bytes: 0 },
            interest,
            bytes_left: bytes_max,
            bytes_max,
        };
        match version {
            RemoteWriteVersion::V1 => decode_write_v1(body, &mut builder)?,
            RemoteWriteVersion::V2 => {
                decode_write_v2(body, &mut builder)?;
                // Only a 2.0 body has its own references, which may be invalid.
                let count = builder.symbol_ends.len() as u32;
                builder.drop_broken(|reference| reference < count);
            }
        }
        // The decoder cannot be stopped early, so an error is returned only now.
        match builder.failed.take() {
            Some(error) => Err(error),
            None => Ok(builder.finish()),
        }
    }
}

impl<'r> WriteSink<'r> for Builder<'r> {
    type Histogram = &'r [u8];

    fn symbols(&mut self, symbols: &[&'r [u8]], _: &'r [u8]) {
        self.taking(|this| symbols.iter().try_for_each(|symbol| this.symbol(symbol).map(drop)));
    }

    fn series_by_pairs(&mut self, labels: &[(&'r [u8], &'r [u8])], data: SeriesData<'_, &'r [u8]>) {
        self.taking(|this| {
            // A 1.0 body repeats texts in every series. Here each text is stored once.
            for text in labels.iter().flat_map(|(name, value)| [name, value]) {
                let number = match this.known.get(text) {
                    Some(number) => *number,
                    None => {
                        let number = this.symbol(text)?;
                        this.known.insert(text, number);
                        number
                    }
                };
                this.label_refs(&[number])?;
            }
            this.data(data)
        });
    }

    fn series_by_refs(&mut self, labels: &[u32], data: SeriesData<'_, &'r [u8]>) {
        self.taking(|this| {
            this.label_refs(labels)?;
            this.data(data)
        });
    }
}

impl<'r> Builder<'r> {
    /// Runs `take`, unless an earlier addition has failed.
    fn taking(&mut self, take: impl FnOnce(&mut Self) -> Result<(), ViewError>) {
        if self.failed.is_none() {
            self.failed = take(self).err();
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), ViewError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(ViewError::TooLarge(self.bytes_max))?;
        Ok(())
    }

    fn symbol(&mut self, text: &[u8]) -> Result<u32, ViewError> {
        self.take(text.len() + size_of::<u32>())?;
        let number = self.symbol_ends.len() as u32;
        self.symbols.extend_from_slice(text);
        self.symbol_ends.push(self.symbols.len() as u32);
        Ok(number)
    }

    fn label_refs(&mut self, refs: &[u32]) -> Result<(), ViewError> {
        self.take(size_of_val(refs))?;
        self.view.batch.label_refs.extend_from_slice(refs);
        Ok(())
    }

    /// Adds the rows of a series, and completes the series.
    fn data(&mut self, data: SeriesData<'_, &'r [u8]>) -> Result<(), ViewError> {
        let SeriesData { samples, histograms, exemplars } = data;
        // Counted even if no plugin wants the column, because the response needs the numbers.
        self.view.samples += samples.len() as u64;
        self.view.histograms += histograms.len() as u64;
        self.view.exemplars += exemplars.len() as u64;
        let series = self.view.batch.series_ends.len() as u32;
        if self.interest.contains(Interest::SAMPLES) {
            // Charged before the copy, so that no memory is used for a series that is too large.
            self.take(samples.len() * (size_of::<u32>() + 2 * size_of::<u64>()))?;
            let columns = &mut self.view.batch.samples;
            for sample in samples {
                columns.series.push(series);
                columns.timestamps_ms.push(sample.timestamp_ms);
                columns.values.push(sample.value);
            }
        }
        if self.interest.contains(Interest::HISTOGRAMS) {
            for (_, message) in histograms {
                self.take(message.len() + 2 * size_of::<u32>())?;
                let columns = &mut self.view.batch.histograms;
                columns.series.push(series);
                columns.messages.extend_from_slice(message);
                columns.ends.push(columns.messages.len() as u32);
            }
        }
        self.take(size_of::<u32>())?;
        let end = self.view.batch.label_refs.len() as u32;
        self.view.batch.series_ends.push(end);
        Ok(())
    }

    /// Removes the labels of a series if a reference is invalid or a name has no value.
    fn drop_broken(&mut self, is_sound: impl Fn(u32) -> bool) {
        let batch = &mut self.view.batch;
        let all_sound = batch.label_refs.iter().all(|reference| is_sound(*reference))
            && batch.series_ends.iter().all(|end| end % 2 == 0);
        // Almost all bodies are sound, and then nothing is copied.
        if all_sound {
            return;
        }
        let refs = std::mem::take(&mut batch.label_refs);
        let mut start = 0;
        for end in &mut batch.series_ends {
            let of_series = refs.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            if of_series.len() % 2 == 0 && of_series.iter().all(|reference| is_sound(*reference)) {
                batch.label_refs.extend_from_slice(of_series);
            }
            // The series remains without labels, so that series numbers still match the body.
            *end = batch.label_refs.len() as u32;
        }
    }

    fn finish(mut self) -> View {
        self.view.bytes = self.bytes_max - self.bytes_left;
        self.view.batch.symbols = self.text();
        self.view.batch.symbol_ends = std::mem::take(&mut self.symbol_ends);
        self.view
    }

    /// Returns the symbols. One that is not UTF-8 becomes empty, and its series lose all labels.
    fn text(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.symbols);
        match String::from_utf8(bytes) {
            // One check of all bytes is fast. A symbol's end may still split a character.
            Ok(text) if self.symbol_ends.iter().all(|end| text.is_char_boundary(*end as usize)) => {
                return text;
            }
            Ok(text) => bytes = text.into_bytes(),
            Err(error) => bytes = error.into_bytes(),
        }
        let mut text = String::with_capacity(bytes.len());
        let mut is_text = Vec::with_capacity(self.symbol_ends.len());
        let mut start = 0;
        for end in &mut self.symbol_ends {
            let symbol = bytes.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            let symbol = std::str::from_utf8(symbol);
            is_text.push(symbol.is_ok());
            text.push_str(symbol.unwrap_or_default());
            *end = text.len() as u32;
        }
        self.drop_broken(|reference| is_text.get(reference as usize) == Some(&true));
        text
    }
}
