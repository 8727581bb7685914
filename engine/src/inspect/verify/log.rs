//! Checks the records of a log: whether they decode, and whether their samples belong to a series.
//!
//! A sample whose series has no record is lost at the next start, unless a block already holds the
//! sample, or it was deleted. Both are usual after a cut: the series is dropped, and its samples
//! stay until their segment is truncated. A tombstone follows the samples that it deletes, so lost
//! samples are known only at the end of the log.

use super::Severity;
use crate::model::{Labels, Sample};
use crate::storage::LogKind;
use crate::wal::{
    ColumnError, ColumnReader, HistogramRecords, Record, RecordError, TombstoneRecord, WalCount,
    decode,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Number of samples without a series whose times are kept; further samples count as lost.
const REMEMBERED_MAX: usize = if cfg!(test) { 2 } else { 1 << 20 };

/// A fault of a record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFinding {
    /// Whether the record is wrong or merely unusual.
    pub severity: Severity,
    /// Index of the record among those given, from 0.
    pub record: u32,
    /// Description of the fault, for people.
    pub what: String,
}

/// Counts of the records that were checked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Number of series with a record.
    pub series: u64,
    /// Number of records of both logs.
    pub records: u64,
    /// Number of samples in the records of both logs.
    pub samples: u64,
    /// Number of samples of the in-order log that are in no block, have no series record, and were
    /// not deleted.
    pub lost_samples: u64,
}

/// The check of one data directory's logs. Memory: 8 bytes a series, some 50 with column records,
/// and at most 16 MiB for samples without a series.
pub struct LogCheck {
    blocks_end_ms: i64,
    known: FxHashSet<u64>,
    records: u64,
    samples: u64,
    /// Times of samples without a series record, by series reference.
    without_series: FxHashMap<u64, Vec<i64>>,
    remembered: usize,
    /// Samples beyond [`REMEMBERED_MAX`], which count as lost.
    lost_samples: u64,
    columns: ColumnReader,
    /// Whether the last column record could not be read.
    is_unchained: bool,
}

type Row = (u64, i64);

impl LogCheck {
    /// Begins a check; samples before `blocks_end_ms` are in blocks.
    pub fn new(blocks_end_ms: i64) -> LogCheck {
        LogCheck {
            blocks_end_ms,
            known: FxHashSet::default(),
            records: 0,
            samples: 0,
            without_series: FxHashMap::default(),
            remembered: 0,
            lost_samples: 0,
            columns: ColumnReader::default(),
            is_unchained: false,
        }
    }

    /// Returns the counts of the records checked so far.
    pub fn counts(&self) -> LogCounts {
        LogCounts {
            series: self.known.len() as u64,
            records: self.records,
            samples: self.samples,
            lost_samples: self.lost_samples + self.remembered as u64,
        }
    }

    /// Checks records in the order of their log.
    pub fn check(&mut self, log: LogKind, records: &[Vec<u8>]) -> Vec<RecordFinding> {
        let mut findings = Vec::new();
        for (number, record) in records.iter().enumerate() {
            self.records += 1;
            if let Err(what) = self.check_record(log, record) {
                let (severity, record) = (Severity::Error, number as u32);
                findings.push(RecordFinding { severity, record, what });
            }
        }
        findings
    }

    fn check_record(&mut self, log: LogKind, record: &[u8]) -> Result<(), String> {
        let undecodable = |error: RecordError| error.to_string();
        let mut rows: Vec<Row> = Vec::new();
        match decode(record).map_err(undecodable)? {
            Record::Series(series) => {
                for series in series {
                    let series = series.map_err(undecodable)?;
                    Labels::from_pairs(series.labels.iter().copied())
                        .map_err(|error| format!("labels of a series: {error}"))?;
                    self.known.insert(series.series_ref);
                }
            }
            Record::Samples(samples) => {
                for row in samples {
                    let (series_ref, Sample { timestamp_ms, .. }) = row.map_err(undecodable)?;
                    rows.push((series_ref, timestamp_ms));
                }
            }
            Record::SamplesV2(samples) => {
                for row in samples {
                    let (series_ref, Sample { timestamp_ms, .. }) = row.map_err(undecodable)?;
                    rows.push((series_ref, timestamp_ms));
                }
            }
            Record::Histograms(histograms) => histogram_rows(histograms, &mut rows)?,
            Record::FloatHistograms(histograms) => histogram_rows(histograms, &mut rows)?,
            Record::Tombstones(tombstones) => {
                for tombstone in tombstones {
                    self.delete(tombstone.map_err(undecodable)?);
                }
            }
            Record::Exemplars(mut exemplars) => {
                exemplars.try_for_each(|row| row.map(drop)).map_err(undecodable)?;
            }
            Record::MmapMarkers(mut markers) => {
                markers.try_for_each(|row| row.map(drop)).map_err(undecodable)?;
            }
            Record::Metadata(mut metadata) => {
                metadata.try_for_each(|row| row.map(drop)).map_err(undecodable)?;
            }
            Record::Columns(columns) => {
                match self.columns.read(&columns, 0) {
                    Ok(samples) => {
                        rows.extend(samples.iter().map(|(at, sample)| (*at, sample.timestamp_ms)));
                        self.is_unchained = false;
                    }
                    Err(ColumnError::CutOff) => {}
                    // Reported once for all records that depend on the missing record.
                    Err(ColumnError::Unchained) if self.is_unchained => {}
                    Err(error) => {
                        self.is_unchained = true;
                        return Err(error.to_string());
                    }
                }
            }
            Record::DeletionsApplied(_) | Record::Retired(_) => {}
            Record::Unknown(kind) => return Err(format!("unknown record type {kind}")),
        }
        self.samples += rows.len() as u64;
        // The out-of-order log keeps rows long after their cut, so its rows do not count as lost.
        if log == LogKind::InOrder {
            self.remember_lost(&rows);
        }
        Ok(())
    }

    fn remember_lost(&mut self, rows: &[Row]) {
        for (series_ref, timestamp_ms) in rows {
            // The sample is in a block, or the next start knows its series.
            if *timestamp_ms < self.blocks_end_ms || self.known.contains(series_ref) {
                continue;
            }
            if self.remembered == REMEMBERED_MAX {
                self.lost_samples += 1;
                continue;
            }
            self.remembered += 1;
            self.without_series.entry(*series_ref).or_default().push(*timestamp_ms);
        }
    }

    fn delete(&mut self, TombstoneRecord { series_ref, range }: TombstoneRecord) {
        let Some(times_ms) = self.without_series.get_mut(&series_ref) else { return };
        let before = times_ms.len();
        times_ms.retain(|time_ms| !range.contains(*time_ms));
        self.remembered -= before - times_ms.len();
    }
}

fn histogram_rows<C: WalCount>(
    histograms: HistogramRecords<'_, C>,
    rows: &mut Vec<Row>,
) -> Result<(), String> {
    for row in histograms {
        let row = row.map_err(|error| error.to_string())?;
        rows.push((row.series_ref, row.timestamp_ms));
    }
    Ok(())
}
