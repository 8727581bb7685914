//! A remote-write body in columns.

use super::{Batch, Interest};
use crate::prom::fields::{Field, Fields, Malformed};
use crate::wasm::RemoteWriteVersion;
use std::collections::HashMap;

/// A body in columns, with what it holds.
pub struct View {
    /// The columns. A series whose references mean nothing has no labels: the store refuses it.
    pub batch: Batch,
    /// Its float samples, whether they are in the columns or not.
    pub samples: u64,
    /// Its native histograms.
    pub histograms: u64,
    /// Its exemplars.
    pub exemplars: u64,
    /// What the columns take.
    pub bytes: usize,
}

/// Why there are no columns of a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// It does not decode.
    #[error("the body does not decode: {0}")]
    Malformed(#[from] Malformed),
    /// The columns would take too much.
    #[error("the request takes more than {0} bytes in columns; send smaller ones")]
    TooLarge(usize),
}

/// Builds columns.
struct Builder {
    symbols: Vec<u8>,
    symbol_ends: Vec<u32>,
    view: View,
    interest: Interest,
    bytes_left: usize,
    bytes_max: usize,
}

impl View {
    /// Decodes a body. Columns that nobody asks for stay empty; all together take `bytes_max`.
    pub fn of(
        version: RemoteWriteVersion,
        body: &[u8],
        interest: Interest,
        bytes_max: usize,
    ) -> Result<View, ViewError> {
        let batch = Batch::empty();
        let mut builder = Builder {
            symbols: Vec::new(),
            symbol_ends: Vec::new(),
            view: View { batch, samples: 0, histograms: 0, exemplars: 0, bytes: 0 },
            interest,
            bytes_left: bytes_max,
            bytes_max,
        };
        match version {
            RemoteWriteVersion::V1 => builder.read_v1(body)?,
            RemoteWriteVersion::V2 => builder.read_v2(body)?,
        }
        Ok(builder.finish())
    }
}

impl Builder {
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

    fn read_v2(&mut self, body: &[u8]) -> Result<(), ViewError> {
        for field in Fields::new(body) {
            match field? {
                (4, Field::Bytes(symbol)) => drop(self.symbol(symbol)?),
                (5, Field::Bytes(series)) => self.series_v2(series)?,
                _ => {}
            }
        }
        let count = self.symbol_ends.len() as u32;
        self.drop_broken(|reference| reference < count);
        Ok(())
    }

    fn series_v2(&mut self, message: &[u8]) -> Result<(), ViewError> {
        for field in Fields::new(message) {
            match field? {
                (1, Field::Bytes(packed)) => self.packed_refs(packed)?,
                (1, Field::Varint(reference)) => self.label_ref(reference)?,
                (2, Field::Bytes(sample)) => self.sample(sample)?,
                (3, Field::Bytes(histogram)) => self.histogram(histogram)?,
                (4, Field::Bytes(_)) => self.view.exemplars += 1,
                _ => {}
            }
        }
        self.end_series()
    }

    fn packed_refs(&mut self, packed: &[u8]) -> Result<(), ViewError> {
        self.take(packed.len() * size_of::<u32>())?;
        let refs = &mut self.view.batch.label_refs;
        let mut rest = packed;
        loop {
            // Few requests have more symbols than two bytes can count.
            rest = match rest {
                [] => return Ok(()),
                [first @ 0..0x80, after @ ..] => {
                    refs.push(u32::from(*first));
                    after
                }
                [first, second @ 0..0x80, after @ ..] => {
                    refs.push(u32::from(*first & 0x7f) | u32::from(*second) << 7);
                    after
                }
                _ => {
                    let mut number = Fields::new(rest);
                    refs.push(u32::try_from(number.varint()?).unwrap_or(u32::MAX));
                    number.rest()
                }
            };
        }
    }

    fn label_ref(&mut self, reference: u64) -> Result<(), ViewError> {
        self.take(size_of::<u32>())?;
        self.view.batch.label_refs.push(u32::try_from(reference).unwrap_or(u32::MAX));
        Ok(())
    }

    fn end_series(&mut self) -> Result<(), ViewError> {
        self.take(size_of::<u32>())?;
        let end = self.view.batch.label_refs.len() as u32;
        self.view.batch.series_ends.push(end);
        Ok(())
    }

    /// Empties series of which a reference means nothing, or a name has no value.
    fn drop_broken(&mut self, is_sound: impl Fn(u32) -> bool) {
        let batch = &mut self.view.batch;
        let all_sound = batch.label_refs.iter().all(|reference| is_sound(*reference))
            && batch.series_ends.iter().all(|end| end % 2 == 0);
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
            *end = batch.label_refs.len() as u32;
        }
    }

    fn read_v1<'a>(&mut self, body: &'a [u8]) -> Result<(), ViewError> {
        let mut known: HashMap<&'a [u8], u32> = HashMap::new();
        for field in Fields::new(body) {
            let (1, Field::Bytes(series)) = field? else { continue };
            for field in Fields::new(series) {
                match field? {
                    (1, Field::Bytes(label)) => {
                        for text in label_v1(label)? {
                            let number = match known.get(text) {
                                Some(number) => *number,
                                None => {
                                    let number = self.symbol(text)?;
                                    known.insert(text, number);
                                    number
                                }
                            };
                            self.label_ref(number.into())?;
                        }
                    }
                    (2, Field::Bytes(sample)) => self.sample(sample)?,
                    (3, Field::Bytes(_)) => self.view.exemplars += 1,
                    (4, Field::Bytes(histogram)) => self.histogram(histogram)?,
                    _ => {}
                }
            }
            self.end_series()?;
        }
        Ok(())
    }

    /// A sample: value 1, timestamp 2, in both versions.
    fn sample(&mut self, message: &[u8]) -> Result<(), ViewError> {
        self.view.samples += 1;
        if !self.interest.contains(Interest::SAMPLES) {
            return Ok(());
        }
        let (mut value, mut timestamp_ms) = (0.0, 0);
        for field in Fields::new(message) {
            match field? {
                (1, Field::Fixed64(bits)) => value = f64::from_bits(bits),
                (2, Field::Varint(time)) => timestamp_ms = time as i64,
                _ => {}
            }
        }
        self.take(size_of::<u32>() + 2 * size_of::<u64>())?;
        let Batch { samples, series_ends, .. } = &mut self.view.batch;
        samples.series.push(series_ends.len() as u32);
        samples.timestamps_ms.push(timestamp_ms);
        samples.values.push(value);
        Ok(())
    }

    fn histogram(&mut self, message: &[u8]) -> Result<(), ViewError> {
        self.view.histograms += 1;
        if !self.interest.contains(Interest::HISTOGRAMS) {
            return Ok(());
        }
        self.take(message.len() + 2 * size_of::<u32>())?;
        let Batch { histograms, series_ends, .. } = &mut self.view.batch;
        histograms.series.push(series_ends.len() as u32);
        histograms.messages.extend_from_slice(message);
        histograms.ends.push(histograms.messages.len() as u32);
        Ok(())
    }

    fn finish(mut self) -> View {
        self.view.bytes = self.bytes_max - self.bytes_left;
        self.view.batch.symbols = self.text();
        self.view.batch.symbol_ends = std::mem::take(&mut self.symbol_ends);
        self.view
    }

    /// The symbols. One that is not UTF-8 becomes empty, and series that refer to it get no labels.
    fn text(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.symbols);
        match String::from_utf8(bytes) {
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

/// Name and value of a label of a 1.0 request.
fn label_v1(label: &[u8]) -> Result<[&[u8]; 2], Malformed> {
    let mut pair = [&[][..]; 2];
    for field in Fields::new(label) {
        match field? {
            (1, Field::Bytes(name)) => pair[0] = name,
            (2, Field::Bytes(value)) => pair[1] = value,
            _ => {}
        }
    }
    Ok(pair)
}
