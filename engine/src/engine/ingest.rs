//! Adds a decoded request to a batch of the head.

use super::request_templates::{RequestTemplates, TemplateState};
use crate::chunk::ChunkError;
use crate::error::{Error, Result};
use crate::head::{
    Batch, EXEMPLAR_LABELS_CHARS_MAX, Exemplar, Head, LookupError, NextSeriesPredictor,
    REFUSAL_DETAIL_BYTES_MAX, RefusalReason, RequestSymbols, Slot,
};
use crate::model::histogram::Count;
use crate::model::{
    HistogramError, LABEL_NAME, LabelError, Labels, NativeHistogram, Sample, Value, start_of,
};
use crate::wire::{self, Consumed, EncodedSeries, ExemplarLabels, SeriesData, WriteSink};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Collects the series of a request in a batch.
pub struct Ingest<'h, 'r> {
    head: &'h mut Head,
    batch: &'h mut Batch,
    symbols: RequestSymbols<'r>,
    predictor: NextSeriesPredictor<'r>,
    templates: &'h mut RequestTemplates,
    template_state: TemplateState<'r>,
    /// Encoded bytes of the series being decoded.
    encoded: Option<EncodedSeries<'r>>,
    /// Metadata already stored from this request, as symbol references; most series repeat some.
    metadata_taken: FxHashSet<[u32; 4]>,
    damaged: Option<Error>,
}

impl<'h, 'r> Ingest<'h, 'r> {
    pub fn new(
        head: &'h mut Head,
        batch: &'h mut Batch,
        templates: &'h mut RequestTemplates,
    ) -> Ingest<'h, 'r> {
        Ingest {
            head,
            batch,
            symbols: RequestSymbols::default(),
            predictor: NextSeriesPredictor::default(),
            templates,
            template_state: TemplateState::Off,
            encoded: None,
            metadata_taken: FxHashSet::default(),
            damaged: None,
        }
    }

    /// Drops new series of which no row was accepted. Fails if a chunk in the head is damaged.
    pub fn finish(self) -> Result<()> {
        match self.template_state {
            TemplateState::Matching(matching) => self.templates.keep(matching, self.head.now_ms()),
            // A new series is removed again if the batch fails, so no template may have its slot.
            TemplateState::Recording(recording) if self.head.created(self.batch).is_empty() => {
                self.templates.add(recording, self.head.now_ms());
            }
            _ => {}
        }
        self.head.drop_unused(self.batch);
        self.damaged.map_or(Ok(()), Err)
    }

    /// Checks one row of a series.
    #[inline]
    pub fn check(
        head: &mut Head,
        batch: &mut Batch,
        slot: Slot,
        timestamp_ms: i64,
        value: Value,
    ) -> Result<()> {
        let checked = head.check(batch, slot, timestamp_ms, value);
        checked.map_err(|source| chunk_error(head, slot, source))
    }

    /// Does the same as [`Ingest::check`] for a float.
    #[inline]
    pub fn check_float(
        head: &mut Head,
        batch: &mut Batch,
        slot: Slot,
        sample: Sample,
    ) -> Result<()> {
        let checked = head.check_float(batch, slot, sample.timestamp_ms, sample.value);
        checked.map_err(|source| chunk_error(head, slot, source))
    }

    /// Adds the rows of one series, which `find` looks up by its labels. Returns the slot of the
    /// series; `None` if the series is refused.
    #[inline]
    fn series(
        &mut self,
        data: SeriesData<'_>,
        find: impl FnOnce(&mut Self) -> std::result::Result<Slot, LookupError>,
        name: impl Fn(&Self) -> String,
    ) -> Option<Slot> {
        let rows = data.rows();
        // Checked before `find`, which would create the series. Exemplars count as rows, because
        // Prometheus sends them without their samples; they are stored if the series exists.
        if rows == 0 {
            let name = name(self);
            self.batch.refuse(RefusalReason::NoSamples, 0, 1, || {
                format!("series {name:?}: it has neither samples nor histograms")
            });
            return None;
        }
        let slot = match find(self) {
            Ok(slot) => slot,
            Err(error) => {
                let reason = match &error {
                    LookupError::Labels(_) | LookupError::LabelBytes { .. } => {
                        RefusalReason::InvalidLabels
                    }
                    LookupError::SymbolRef { .. } | LookupError::OddRefs { .. } => {
                        RefusalReason::InvalidSymbolRef
                    }
                    LookupError::SeriesLimit { .. } => RefusalReason::SeriesLimit,
                    LookupError::MemoryLimit { .. } => RefusalReason::MemoryLimit,
                };
                // The counters count samples, not exemplars.
                let samples = data.samples.len() + data.histograms.len();
                self.head.counters.count_refused(reason, samples as u64);
                let name = name(self);
                self.batch.refuse(reason, 0, rows, || format!("series {name:?}: {error}"));
                return None;
            }
        };
        self.rows(slot, data);
        Some(slot)
    }

    #[inline]
    fn rows(&mut self, slot: Slot, data: SeriesData<'_>) {
        for sample in data.samples {
            // Damage in one series does not stop other rows; `finish` returns the error.
            if let Err(error) = Self::check_float(self.head, self.batch, slot, *sample) {
                self.damaged = Some(error);
            }
        }
        for (timestamp_ms, histogram) in data.histograms {
            self.histogram(slot, *timestamp_ms, histogram.clone());
        }
        for exemplar in data.exemplars {
            self.exemplar(slot, exemplar);
        }
    }

    fn row(&mut self, slot: Slot, timestamp_ms: i64, value: Value) {
        if let Err(error) = Self::check(self.head, self.batch, slot, timestamp_ms, value) {
            self.damaged = Some(error);
        }
    }

    fn histogram(&mut self, slot: Slot, timestamp_ms: i64, mut histogram: Value) {
        match storable(&mut histogram) {
            Ok(()) => self.row(slot, timestamp_ms, histogram),
            Err(error) => {
                self.head.counters.count_refused(RefusalReason::InvalidHistogram, 1);
                let head = &self.head;
                self.batch.refuse(RefusalReason::InvalidHistogram, timestamp_ms, 1, || {
                    format!("{} at {timestamp_ms} ms: {error}", head.packed_labels(slot))
                });
            }
        }
    }

    fn exemplar(&mut self, slot: Slot, exemplar: &wire::Exemplar<'_>) {
        let wire::Exemplar { value, timestamp_ms, .. } = *exemplar;
        match self.exemplar_labels(&exemplar.labels) {
            Ok(labels) => {
                let exemplar = Exemplar { labels, value, timestamp_ms };
                self.head.check_exemplar(self.batch, slot, exemplar);
            }
            Err((reason, why)) => {
                let head = &self.head;
                self.batch.refuse(reason, timestamp_ms, 1, || {
                    format!("exemplar of {}: {why}", head.packed_labels(slot))
                });
            }
        }
    }

    fn exemplar_labels(
        &self,
        labels: &ExemplarLabels<'_>,
    ) -> std::result::Result<Labels, (RefusalReason, String)> {
        // Checked before the labels are copied: few references may name long symbols.
        let bytes = match labels {
            ExemplarLabels::Pairs(pairs) => {
                pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
            }
            ExemplarLabels::Refs(refs) => self.symbols.text_bytes(refs),
        };
        if bytes > 4 * EXEMPLAR_LABELS_CHARS_MAX {
            let why = format!(
                "its labels have {bytes} bytes, more than {EXEMPLAR_LABELS_CHARS_MAX} characters"
            );
            return Err((RefusalReason::InvalidExemplar, why));
        }
        let pairs: Vec<(&[u8], &[u8])> = match labels {
            ExemplarLabels::Pairs(pairs) => pairs.clone(),
            ExemplarLabels::Refs(refs) => {
                let bad_ref =
                    |error: LookupError| (RefusalReason::InvalidSymbolRef, error.to_string());
                self.symbols.pairs(refs).map_err(bad_ref)?
            }
        };
        let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| LabelError::NotUtf8);
        let labels = pairs
            .into_iter()
            .map(|(name, value)| Ok((utf8(name)?, utf8(value)?)))
            .collect::<std::result::Result<Vec<_>, LabelError>>()
            .and_then(Labels::from_pairs);
        labels.map_err(|error| (RefusalReason::InvalidLabels, error.to_string()))
    }
}

#[cold]
fn chunk_error(head: &Head, slot: Slot, source: ChunkError) -> Error {
    Error::Chunk { series: head.packed_labels(slot).to_string(), source }
}

/// Reduces a histogram to the finest resolution that is stored, and validates it.
fn storable(value: &mut Value) -> std::result::Result<(), HistogramError> {
    match value {
        Value::Float(_) => Ok(()),
        Value::Histogram(histogram) => storable_histogram(histogram),
        Value::FloatHistogram(histogram) => storable_histogram(histogram),
    }
}

fn storable_histogram<C: Count>(
    histogram: &mut Rc<NativeHistogram<C>>,
) -> std::result::Result<(), HistogramError> {
    // `make_mut` copies the histogram, which the request shares, so it is called only if needed.
    if histogram.is_too_fine() {
        Rc::make_mut(histogram).limit_resolution()?;
    }
    histogram.validate()
}

impl<'r> WriteSink<'r> for Ingest<'_, 'r> {
    type Histogram = Value;

    fn memory_bytes_max(&self) -> u64 {
        self.head.memory_bytes_max()
    }

    fn symbols(&mut self, symbols: &[&'r [u8]], encoded: &'r [u8]) {
        self.symbols = RequestSymbols::new(symbols);
        self.template_state = TemplateState::Begins(encoded);
    }

    #[inline]
    fn series_by_bytes(&mut self, series: EncodedSeries<'r>, data: SeriesData<'_>) -> Consumed {
        if let TemplateState::Begins(symbols) = self.template_state {
            self.template_state = self.templates.begin(self.head, symbols, series);
        }
        self.encoded = Some(series);
        let TemplateState::Matching(matching) = &mut self.template_state else {
            return Consumed::Nothing;
        };
        // A series without rows leaves this fast path, because only the slow path refuses it.
        let known = matching.next(series).filter(|_| data.rows() > 0);
        let Some((slot, says_metadata)) = known else {
            // The template is dropped; the next request may record it again.
            self.template_state = TemplateState::Off;
            return Consumed::Nothing;
        };
        self.rows(slot, data);
        if says_metadata { Consumed::Data } else { Consumed::All }
    }

    fn series_by_pairs(&mut self, labels: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        self.series(
            data,
            |this| this.head.next_by_pairs(this.batch, &mut this.predictor, labels),
            |_| name_of(labels.iter().copied()),
        );
    }

    fn series_by_refs(&mut self, labels: &[u32], data: SeriesData<'_>) {
        let encoded = self.encoded.take();
        let slot = self.series(
            data,
            |this| {
                let Ingest { head, batch, predictor, symbols, .. } = this;
                head.next_by_refs(batch, predictor, symbols, labels)
            },
            |this| {
                let text = |symbol_ref| this.symbols.text(symbol_ref).unwrap_or_default();
                let (pairs, _) = labels.as_chunks::<2>();
                name_of(pairs.iter().map(|[name, value]| (text(*name), text(*value))))
            },
        );
        if let TemplateState::Recording(recording) = &mut self.template_state {
            // A template has all series of its request, so one refused series ends the recording.
            let is_recorded = match (encoded, slot) {
                (Some(encoded), Some(slot)) => recording.push(encoded, slot),
                _ => false,
            };
            if !is_recorded {
                self.template_state = TemplateState::Off;
            }
        }
    }

    fn family_metadata(&mut self, family: &'r [u8], kind: u32, help: &'r [u8], unit: &'r [u8]) {
        self.head.metadata.set(family, kind, help, unit);
    }

    fn series_metadata(&mut self, labels: &[u32], kind: u32, help_ref: u32, unit_ref: u32) {
        // Senders without metadata send zeros with every series; symbol 0 is the empty string.
        if [kind, help_ref, unit_ref] == [0; 3] {
            return;
        }
        let text = |symbol_ref| self.symbols.text(symbol_ref).unwrap_or_default();
        let (pairs, _) = labels.as_chunks::<2>();
        let name = pairs.iter().find(|[name, _]| text(*name) == LABEL_NAME.as_bytes());
        if let Some([_, value]) = name
            && self.metadata_taken.insert([*value, kind, help_ref, unit_ref])
        {
            let (help, unit) = (text(help_ref), text(unit_ref));
            self.head.metadata.set_of_series(text(*value), kind, help, unit);
            if let TemplateState::Recording(recording) = &mut self.template_state {
                recording.says_metadata();
            }
        }
    }
}

/// Returns the beginning of the metric name, for messages about invalid labels.
fn name_of<'a>(mut labels: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> String {
    let name = labels.find(|(name, _)| *name == LABEL_NAME.as_bytes());
    let Some((_, value)) = name else { return String::new() };
    // Cut before the conversion, since a name may be as long as the request.
    let shown = &value[..value.len().min(REFUSAL_DETAIL_BYTES_MAX)];
    start_of(&String::from_utf8_lossy(shown)).to_owned()
}
