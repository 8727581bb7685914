//! Log records of a batch. Each kind of row has one record, or several if the kind changes within
//! a series: replay skips rows older than the newest value of their series, so the records must
//! keep the order of the rows of each series.

use crate::head::{Batch, Exemplar, Head, Metadata, SeriesExemplars, Slot};
use crate::model::{NativeHistogram, Sample, Value};
use crate::wal::columns::ROWS_MAX;
use crate::wal::{
    ColumnWriter, ExemplarRecord, MetadataRecord, WalCount, exemplars_record, histograms_record,
    metadata_record, put_exemplar, put_histogram, put_metadata, put_samples, put_series,
    samples_record, series_record,
};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Records, with the time of their newest row.
pub struct Rows {
    pub records: Vec<Vec<u8>>,
    pub newest_ms: i64,
}

impl Rows {
    /// Returns records of the in-order or the out-of-order rows of a batch. If `columns` is given,
    /// floats become column records.
    pub fn of(
        head: &Head,
        batch: &Batch,
        is_out_of_order: bool,
        columns: Option<&mut ColumnWriter>,
    ) -> Rows {
        // Floats alone make a single record, which keeps the order of each series.
        if !head.has_histograms(batch) {
            let mut rows = Rows::none();
            rows.add_floats(head.rows(batch, is_out_of_order), columns);
            return rows;
        }
        Rows::of_values(head.value_rows(batch, is_out_of_order), columns)
    }

    /// Returns records of (series number, time, value) rows, which are in order within a series.
    pub fn of_values(
        values: impl Iterator<Item = (u64, i64, Value)>,
        mut columns: Option<&mut ColumnWriter>,
    ) -> Rows {
        let mut rows = Rows::none();
        let mut group: Vec<(u64, i64, Value)> = Vec::new();
        let mut kinds: FxHashMap<u64, RowKind> = FxHashMap::default();
        for (series_ref, timestamp_ms, value) in values {
            let kind = RowKind::of(&value);
            // Rows of the new kind must be in later records than the rows so far.
            if *kinds.entry(series_ref).or_insert(kind) != kind {
                rows.add_group(&group, columns.as_deref_mut());
                group.clear();
                kinds.clear();
                kinds.insert(series_ref, kind);
            }
            group.push((series_ref, timestamp_ms, value));
        }
        rows.add_group(&group, columns);
        rows
    }

    /// Adds rows, which are all of one kind within a series.
    fn add_group(&mut self, group: &[(u64, i64, Value)], columns: Option<&mut ColumnWriter>) {
        let floats = group.iter().filter_map(|(series_ref, timestamp_ms, value)| {
            let Value::Float(value) = *value else { return None };
            Some((*series_ref, Sample { timestamp_ms: *timestamp_ms, value }))
        });
        self.add_floats(floats, columns);
        // As in Prometheus, histograms with custom buckets have records of their own.
        for is_custom in [false, true] {
            self.add_histograms(group, is_custom, whole);
            self.add_histograms(group, is_custom, fractional);
        }
    }

    /// Adds the exemplars of a batch; their order does not matter.
    pub fn add_exemplars(&mut self, head: &Head, batch: &Batch) {
        let mut record = None;
        for (series_ref, exemplar) in head.exemplar_rows(batch) {
            let timestamp_ms = exemplar.timestamp_ms;
            self.take_time(timestamp_ms);
            let first = (series_ref, timestamp_ms);
            let (record, first) =
                record.get_or_insert_with(|| (exemplars_record(first.0, first.1), first));
            let labels = exemplar.labels.iter().collect();
            let value = exemplar.value;
            let exemplar = ExemplarRecord { series_ref, timestamp_ms, value, labels };
            put_exemplar(record, *first, &exemplar);
        }
        self.records.extend(record.map(|(record, _)| record));
    }

    fn add_floats(
        &mut self,
        rows: impl Iterator<Item = (u64, Sample)>,
        columns: Option<&mut ColumnWriter>,
    ) {
        let Some(columns) = columns else { return self.add_samples(rows) };
        let rows: Vec<(u64, Sample)> = rows.collect();
        for rows in rows.chunks(ROWS_MAX) {
            match columns.record(rows) {
                Some(record) => {
                    rows.iter().for_each(|(_, sample)| self.take_time(sample.timestamp_ms));
                    self.records.push(record);
                }
                None => self.add_samples(rows.iter().copied()),
            }
        }
    }

    fn add_samples(&mut self, rows: impl Iterator<Item = (u64, Sample)>) {
        let mut rows = rows.peekable();
        let Some((series_ref, sample)) = rows.peek() else { return };
        let first = (*series_ref, sample.timestamp_ms);
        let mut record = samples_record(first.0, first.1, rows.size_hint().1.unwrap_or(0));
        for (series_ref, sample) in rows {
            self.take_time(sample.timestamp_ms);
            put_samples(&mut record, first, series_ref, sample);
        }
        self.records.push(record);
    }

    fn none() -> Rows {
        Rows { records: Vec::new(), newest_ms: i64::MIN }
    }

    fn add_histograms<C: WalCount>(
        &mut self,
        rows: &[(u64, i64, Value)],
        is_custom: bool,
        of_kind: impl Fn(&Value) -> Option<&Rc<NativeHistogram<C>>>,
    ) {
        let rows = rows.iter().filter_map(|(series_ref, timestamp_ms, value)| {
            let histogram = of_kind(value)?;
            let fits = histogram.layout.has_custom_buckets() == is_custom;
            fits.then_some((*series_ref, *timestamp_ms, histogram))
        });
        let mut record = None;
        for (series_ref, timestamp_ms, histogram) in rows {
            self.take_time(timestamp_ms);
            let first = (series_ref, timestamp_ms);
            let (record, first) = record.get_or_insert_with(|| {
                (histograms_record::<C>(is_custom, first.0, first.1), first)
            });
            put_histogram(record, *first, series_ref, timestamp_ms, histogram);
        }
        self.records.extend(record.map(|(record, _)| record));
    }

    #[inline]
    fn take_time(&mut self, timestamp_ms: i64) {
        self.newest_ms = self.newest_ms.max(timestamp_ms);
    }
}

/// Kinds of rows; each kind has its own type of record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowKind {
    Float,
    Histogram { is_custom: bool },
    FloatHistogram { is_custom: bool },
}

impl RowKind {
    fn of(value: &Value) -> RowKind {
        match value {
            Value::Float(_) => RowKind::Float,
            Value::Histogram(histogram) => {
                RowKind::Histogram { is_custom: histogram.layout.has_custom_buckets() }
            }
            Value::FloatHistogram(histogram) => {
                RowKind::FloatHistogram { is_custom: histogram.layout.has_custom_buckets() }
            }
        }
    }
}

fn whole(value: &Value) -> Option<&Rc<NativeHistogram<u64>>> {
    if let Value::Histogram(histogram) = value { Some(histogram) } else { None }
}

fn fractional(value: &Value) -> Option<&Rc<NativeHistogram<f64>>> {
    if let Value::FloatHistogram(histogram) = value { Some(histogram) } else { None }
}

/// Returns a record of the labels of series.
pub fn series_of(head: &Head, slots: &[Slot]) -> Vec<u8> {
    numbered_series(head, slots.iter().map(|slot| (head.series_ref(*slot), *slot)))
}

/// Returns a record of the labels of series under the given numbers.
pub fn numbered_series(head: &Head, series: impl Iterator<Item = (u64, Slot)>) -> Vec<u8> {
    let mut record = series_record();
    for (series_ref, slot) in series {
        let (count, labels) = head.labels(slot);
        put_series(&mut record, series_ref, count, labels);
    }
    record
}

/// Returns records of exemplars, and of the labels of their series, which may be new or dropped
/// since the log last had them. A dropped series gets a number that was never used.
pub fn exemplars_of(head: &mut Head, page: &[SeriesExemplars]) -> Vec<Vec<u8>> {
    let mut series = series_record();
    let mut exemplars = None;
    for SeriesExemplars { labels, exemplars: of_series } in page {
        let series_ref = head.ref_by_labels(labels);
        put_series(&mut series, series_ref, labels.iter().count(), labels.iter());
        for exemplar in of_series {
            let Exemplar { value, timestamp_ms, .. } = *exemplar;
            let first = (series_ref, timestamp_ms);
            let (record, first) =
                exemplars.get_or_insert_with(|| (exemplars_record(first.0, first.1), first));
            let labels = exemplar.labels.iter().collect();
            put_exemplar(
                record,
                *first,
                &ExemplarRecord { series_ref, timestamp_ms, value, labels },
            );
        }
    }
    exemplars.map_or_else(Vec::new, |(exemplars, _)| vec![series, exemplars])
}

/// Number of metadata entries in one record.
const METADATA_PER_RECORD: usize = 500;

/// Returns records of metadata; each entry names a series.
pub fn metadata_of(head: &Head, metadata: &[(Slot, &str, &Metadata)]) -> Vec<Vec<u8>> {
    let record = |metadata: &[(Slot, &str, &Metadata)]| {
        let mut record = metadata_record();
        for (slot, family, Metadata { metric_type, help, unit }) in metadata {
            let (series_ref, kind) = (head.series_ref(*slot), *metric_type as u8);
            put_metadata(&mut record, &MetadataRecord { series_ref, kind, unit, help, family });
        }
        record
    };
    metadata.chunks(METADATA_PER_RECORD).map(record).collect()
}
