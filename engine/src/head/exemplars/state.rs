//! The ring as bytes; the layout is in `engine/docs/format/head.md`.

use super::{Exemplar, Exemplars, RingSeries};
use crate::head::saved::{Bytes, SavedHeadError};
use crate::model::Labels;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The numbered series that exemplars refer to.
pub(in crate::head) struct RingSaver {
    series: Vec<Rc<RingSeries>>,
    /// Numbers by the address of the series.
    numbers: FxHashMap<*const RingSeries, u32>,
}

impl RingSaver {
    pub fn new(ring: &Exemplars) -> RingSaver {
        let mut saver = RingSaver { series: Vec::new(), numbers: FxHashMap::default() };
        for entry in &ring.entries {
            saver.numbers.entry(Rc::as_ptr(&entry.series)).or_insert_with(|| {
                saver.series.push(Rc::clone(&entry.series));
                saver.series.len() as u32 - 1
            });
        }
        saver
    }

    pub fn series_len(&self) -> usize {
        self.series.len()
    }

    pub fn put_series(&self, number: usize, out: &mut Vec<u8>) {
        let Some(series) = self.series.get(number) else { return };
        out.extend_from_slice(&series.newest_ms.get().to_le_bytes());
        put_labels(out, &series.labels);
    }

    /// Appends an exemplar, by its number from the oldest arrival on.
    pub fn put_exemplar(&self, ring: &Exemplars, number: usize, out: &mut Vec<u8>) {
        let Some(entry) = ring.entries.get(number) else { return };
        let series = self.numbers.get(&Rc::as_ptr(&entry.series));
        out.extend_from_slice(&series.copied().unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&entry.exemplar.timestamp_ms.to_le_bytes());
        out.extend_from_slice(&entry.exemplar.value.to_bits().to_le_bytes());
        put_labels(out, &entry.exemplar.labels);
    }
}

/// The series that exemplars refer to, each with the time of its newest exemplar ever.
#[derive(Default)]
pub(in crate::head) struct RingLoader {
    series: Vec<(Labels, i64)>,
}

impl RingLoader {
    pub fn take_series(&mut self, bytes: &mut Bytes<'_>) -> Result<(), SavedHeadError> {
        let newest_ms = bytes.i64()?;
        self.series.push((take_labels(bytes)?, newest_ms));
        Ok(())
    }

    pub fn take_exemplar(
        &self,
        ring: &mut Exemplars,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), SavedHeadError> {
        let unknown = SavedHeadError::Damaged { what: "an exemplar belongs to no series" };
        let (labels, newest_ms) = self.series.get(bytes.u32()? as usize).ok_or(unknown)?;
        let (timestamp_ms, value) = (bytes.i64()?, f64::from_bits(bytes.u64()?));
        ring.add(labels, Exemplar { labels: take_labels(bytes)?, value, timestamp_ms });
        // The newest exemplar of the series may no longer be in the ring.
        if let Some(series) = ring.series.get(labels) {
            series.newest_ms.set(series.newest_ms.get().max(*newest_ms));
        }
        Ok(())
    }
}

fn put_labels(out: &mut Vec<u8>, labels: &Labels) {
    out.extend_from_slice(&(labels.iter().count() as u32).to_le_bytes());
    for text in labels.iter().flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

fn take_labels(bytes: &mut Bytes<'_>) -> Result<Labels, SavedHeadError> {
    let mut pairs = Vec::new();
    for _ in 0..bytes.u32()? {
        pairs.push((bytes.text()?, bytes.text()?));
    }
    let unsound = SavedHeadError::Damaged { what: "labels of an exemplar are no label set" };
    Labels::from_pairs(pairs).map_err(|_| unsound)
}
