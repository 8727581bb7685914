//! A decoded request on its way into the head.

use crate::error::{Error, Result};
use crate::head::{Batch, Head, LookupError, RefusalReason, RequestSymbols, Slot};
use crate::model::{LABEL_NAME, Sample};
use crate::wire::{SeriesData, WriteSink};
use rustc_hash::FxHashSet;

/// Takes a request's series into a batch.
pub struct Ingest<'h, 'r> {
    head: &'h mut Head,
    batch: &'h mut Batch,
    symbols: RequestSymbols<'r>,
    /// Metadata of this request that was taken already, as symbol references: a family's series
    /// all carry the same.
    metadata_taken: FxHashSet<[u32; 4]>,
    damaged: Option<Error>,
}

impl<'h, 'r> Ingest<'h, 'r> {
    pub fn new(head: &'h mut Head, batch: &'h mut Batch) -> Ingest<'h, 'r> {
        Ingest {
            head,
            batch,
            symbols: RequestSymbols::default(),
            metadata_taken: FxHashSet::default(),
            damaged: None,
        }
    }

    /// Tells of damage in the head's own memory, which no row can be blamed for.
    pub fn finish(self) -> Result<()> {
        self.damaged.map_or(Ok(()), Err)
    }

    /// Checks one row of a series.
    pub fn check(head: &mut Head, batch: &mut Batch, slot: Slot, sample: Sample) -> Result<()> {
        head.check(batch, slot, sample).map_err(|source| {
            let series = head.packed_labels(slot).to_string();
            Error::Chunk { series, source }
        })
    }

    fn rows(
        &mut self,
        found: std::result::Result<Slot, LookupError>,
        data: SeriesData<'_>,
        name: &str,
    ) {
        let unsupported = (data.histograms.len() + data.exemplars.len()) as u64;
        let rows = (data.samples.len() as u64 + unsupported).max(1);
        let slot = match found {
            Ok(slot) => slot,
            Err(error) => {
                let reason = match &error {
                    LookupError::Labels(_) => RefusalReason::InvalidLabels,
                    LookupError::SymbolRef { .. } | LookupError::OddRefs { .. } => {
                        RefusalReason::InvalidSymbolRef
                    }
                    LookupError::SeriesLimit { .. } => RefusalReason::SeriesLimit,
                };
                self.batch.refuse(reason, 0, rows, || format!("series {name:?}: {error}"));
                return;
            }
        };
        for sample in data.samples {
            if let Err(error) = Self::check(self.head, self.batch, slot, *sample) {
                self.damaged = Some(error);
            }
        }
        let head = &self.head;
        if unsupported > 0 {
            self.batch.refuse(RefusalReason::Unsupported, 0, unsupported, || {
                let labels = head.packed_labels(slot);
                format!("{labels}: native histograms and exemplars are not stored by this version")
            });
        } else if data.samples.is_empty() {
            self.batch.refuse(RefusalReason::NoSamples, 0, 1, || {
                let labels = head.packed_labels(slot);
                format!("{labels}: the series has neither samples nor histograms")
            });
        }
    }
}

impl<'r> WriteSink<'r> for Ingest<'_, 'r> {
    fn symbols(&mut self, symbols: &[&'r [u8]]) {
        self.symbols = RequestSymbols::new(self.head, symbols);
    }

    fn series_by_pairs(&mut self, labels: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        let found = self.head.series_by_pairs(self.batch, labels);
        let name = if found.is_ok() { String::new() } else { name_of(labels.iter().copied()) };
        self.rows(found, data, &name);
    }

    fn series_by_refs(&mut self, labels: &[u32], data: SeriesData<'_>) {
        let found = self.head.series_by_refs(self.batch, &mut self.symbols, labels);
        let name = if found.is_ok() {
            String::new()
        } else {
            let text = |symbol_ref| self.symbols.text(symbol_ref).unwrap_or_default();
            let (pairs, _) = labels.as_chunks::<2>();
            name_of(pairs.iter().map(|[name, value]| (text(*name), text(*value))))
        };
        self.rows(found, data, &name);
    }

    fn family_metadata(&mut self, family: &'r [u8], kind: u32, help: &'r [u8], unit: &'r [u8]) {
        self.head.metadata.set(family, kind, help, unit);
    }

    fn series_metadata(&mut self, labels: &[u32], kind: u32, help_ref: u32, unit_ref: u32) {
        let text = |symbol_ref| self.symbols.text(symbol_ref).unwrap_or_default();
        let (pairs, _) = labels.as_chunks::<2>();
        let name = pairs.iter().find(|[name, _]| text(*name) == LABEL_NAME.as_bytes());
        if let Some([_, value]) = name
            && self.metadata_taken.insert([*value, kind, help_ref, unit_ref])
        {
            self.head.metadata.set(text(*value), kind, text(help_ref), text(unit_ref));
        }
    }
}

/// The metric name among labels, for a message about labels that are no label set.
fn name_of<'a>(mut labels: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> String {
    let name = labels.find(|(name, _)| *name == LABEL_NAME.as_bytes());
    name.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
}
