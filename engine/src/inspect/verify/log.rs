//! Records of a log: whether each decodes, and whether its samples belong to a series.
//!
//! A sample of a series that no record introduces is lost at the next start, unless a block holds
//! it already. That is usual after a cut: the series is dropped, and its samples stay until
//! their segment goes.

use super::Severity;
use crate::model::{Labels, Sample};
use crate::storage::LogKind;
use crate::wal::columns::ColumnError;
use crate::wal::{ColumnReader, HistogramRecords, Record, RecordError, WalCount, decode};
use rustc_hash::FxHashSet;

/// Something that was found in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFinding {
    /// How bad it is.
    pub severity: Severity,
    /// Which of the records given, from 0.
    pub record: u32,
    /// What is wrong.
    pub what: String,
}

/// The check of one data directory's logs. Memory: 8 bytes a series, and some 50 if samples go by
/// columns.
pub struct LogCheck {
    blocks_end_ms: i64,
    known: FxHashSet<u64>,
    records: u64,
    samples: u64,
    columns: ColumnReader,
    /// Whether records by columns miss what they build on.
    is_unchained: bool,
}

/// A row's series and time.
type Row = (u64, i64);

impl LogCheck {
    /// Begins. Samples before `blocks_end_ms` are in blocks.
    pub fn new(blocks_end_ms: i64) -> LogCheck {
        LogCheck {
            blocks_end_ms,
            known: FxHashSet::default(),
            records: 0,
            samples: 0,
            columns: ColumnReader::default(),
            is_unchained: false,
        }
    }

    /// Series, records and samples so far.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.known.len() as u64, self.records, self.samples)
    }

    /// Checks records in the order of their log.
    pub fn check(&mut self, log: LogKind, records: &[Vec<u8>]) -> Vec<RecordFinding> {
        let mut findings = Vec::new();
        for (number, record) in records.iter().enumerate() {
            self.records += 1;
            let mut add = |severity, what| {
                findings.push(RecordFinding { severity, record: number as u32, what });
            };
            match self.check_record(log, record) {
                Ok(0) => {}
                Ok(lost) => add(Severity::Error, format!("{lost} samples without a series record")),
                Err(what) => add(Severity::Error, what),
            }
        }
        findings
    }

    /// Returns how many samples are lost.
    fn check_record(&mut self, log: LogKind, record: &[u8]) -> Result<u64, String> {
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
                tombstones.into_iter().try_for_each(|row| row.map(drop)).map_err(undecodable)?;
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
                    // Once for all that build on the same.
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
        let is_lost = |(series_ref, timestamp_ms): &Row| {
            *timestamp_ms >= self.blocks_end_ms && !self.known.contains(series_ref)
        };
        let lost = match log {
            LogKind::InOrder => rows.iter().filter(|row| is_lost(row)).count() as u64,
            // What is cut already stays in the out-of-order log for long.
            LogKind::OutOfOrder => 0,
        };
        Ok(lost)
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
