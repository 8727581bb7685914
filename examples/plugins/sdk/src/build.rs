//! Builder for the columns of a batch.

use crate::types::{Batch, Histograms, Samples};
use std::collections::HashMap;

/// Builds a batch: first a series, then its samples.
pub struct BatchBuilder {
    batch: Batch,
    symbols: HashMap<String, u32>,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        BatchBuilder::new()
    }
}

impl BatchBuilder {
    pub fn new() -> BatchBuilder {
        let samples = Samples { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() };
        let histograms = Histograms { series: Vec::new(), messages: Vec::new(), ends: Vec::new() };
        let batch = Batch {
            symbols: String::new(),
            symbol_ends: Vec::new(),
            label_refs: Vec::new(),
            series_ends: Vec::new(),
            samples,
            histograms,
        };
        BatchBuilder { batch, symbols: HashMap::new() }
    }

    /// Adds a series and returns its number. The order of labels does not matter.
    pub fn series<'a>(&mut self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> u32 {
        for (name, value) in labels {
            let pair = [self.symbol(name), self.symbol(value)];
            self.batch.label_refs.extend(pair);
        }
        let place = self.batch.series_ends.len() as u32;
        self.batch.series_ends.push(self.batch.label_refs.len() as u32);
        place
    }

    pub fn sample(&mut self, series: u32, timestamp_ms: i64, value: f64) {
        let samples = &mut self.batch.samples;
        samples.series.push(series);
        samples.timestamps_ms.push(timestamp_ms);
        samples.values.push(value);
    }

    /// Adds a native histogram of a series: an encoded `io.prometheus.write.v2.Histogram`, which
    /// contains its time.
    pub fn histogram(&mut self, series: u32, message: &[u8]) {
        let histograms = &mut self.batch.histograms;
        histograms.series.push(series);
        histograms.messages.extend_from_slice(message);
        histograms.ends.push(histograms.messages.len() as u32);
    }

    /// Returns the number of samples added so far.
    pub fn samples(&self) -> usize {
        self.batch.samples.series.len()
    }

    pub fn finish(self) -> Batch {
        self.batch
    }

    fn symbol(&mut self, text: &str) -> u32 {
        if let Some(symbol) = self.symbols.get(text) {
            return *symbol;
        }
        let symbol = self.batch.symbol_ends.len() as u32;
        self.batch.symbols.push_str(text);
        self.batch.symbol_ends.push(self.batch.symbols.len() as u32);
        self.symbols.insert(text.to_owned(), symbol);
        symbol
    }
}
