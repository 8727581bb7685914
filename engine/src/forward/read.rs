//! Reading records of the logs: their rows go into queues, or are noted in a gap.

use super::place::Mark;
use super::row::{Place, Row, RowExemplar, Source};
use super::series::shard_of;
use super::{Fed, Forwarder, Shard};
use crate::model::Value;
use crate::storage::LogKind;
use crate::wal::{Record, RecordError, SeriesRecords, decode};

impl Forwarder {
    /// Takes the series of records, and nothing else of them.
    pub fn note_series<'r>(&mut self, segment: u32, records: impl Iterator<Item = &'r [u8]>) {
        for record in records {
            match decode(record) {
                Ok(Record::Series(series)) => {
                    for series in series.flatten() {
                        // What does not make a label set was never stored.
                        let _ = self.series.note(segment, series.series_ref, &series.labels);
                    }
                }
                Ok(Record::Metadata(rows)) => self.take_metadata(rows.flatten()),
                _ => {}
            }
        }
    }

    /// Drops series without a series record in this segment or a later one.
    pub fn drop_series(&mut self, before_segment: u32) {
        self.series.drop_before(before_segment);
        self.builder.symbols_changed();
    }

    /// Takes records of a log, the first of which is its segment's record of this number, until a
    /// queue holds `capacity` rows.
    pub fn feed<'r>(
        &mut self,
        log: LogKind,
        segment: u32,
        first_record: u32,
        records: impl Iterator<Item = &'r [u8]>,
        capacity: usize,
    ) -> Fed {
        let mut fed = Fed { newest_ms: i64::MIN, ..Fed::default() };
        let which = if log == LogKind::InOrder { 0 } else { 1 };
        for (record_number, record) in (first_record..).zip(records) {
            fed.is_full = !self.is_detached && self.is_full(capacity);
            if fed.is_full {
                break;
            }
            let mut reader = RecordReader {
                forwarder: self,
                which,
                place: Place { segment, record: record_number, row: 0 },
                fed: &mut fed,
            };
            reader.read(record);
            let rows = reader.place.row;
            if rows > 0 {
                let place = Place { segment, record: record_number, row: 0 };
                let first_number = self.numbers[which];
                self.log_marks[which].push_back(Mark { first_number, place });
                self.numbers[which] += u64::from(rows);
            }
            let after = Place { segment, record: record_number.saturating_add(1), row: 0 };
            self.tails[which] = self.tails[which].max(after);
            fed.records += 1;
        }
        fed
    }
}

/// Reads one record.
struct RecordReader<'f> {
    forwarder: &'f mut Forwarder,
    which: usize,
    /// Of the next row.
    place: Place,
    fed: &'f mut Fed,
}

impl RecordReader<'_> {
    fn read(&mut self, record: &[u8]) {
        let read = match decode(record) {
            Ok(Record::Series(series)) => self.read_series(series),
            Ok(Record::Samples(rows)) => rows.each(|series_ref, sample| {
                self.row(series_ref, sample.timestamp_ms, sample.value, None);
            }),
            Ok(Record::Columns(record)) => {
                let mut columns = std::mem::take(&mut self.forwarder.columns);
                match columns.read(&record, self.place.segment) {
                    Ok(rows) => {
                        for (series_ref, sample) in rows {
                            self.row(*series_ref, sample.timestamp_ms, sample.value, None);
                        }
                    }
                    // What the record before it held is lost to replay, too.
                    Err(_) => self.fed.unknown += 1,
                }
                self.forwarder.columns = columns;
                Ok(())
            }
            Ok(Record::SamplesV2(rows)) => each(rows, |(series_ref, sample)| {
                self.row(series_ref, sample.timestamp_ms, sample.value, None);
            }),
            Ok(Record::Histograms(rows)) => each(rows, |row| {
                self.row(row.series_ref, row.timestamp_ms, 0.0, Some(row.histogram.into()));
            }),
            Ok(Record::FloatHistograms(rows)) => each(rows, |row| {
                self.row(row.series_ref, row.timestamp_ms, 0.0, Some(row.histogram.into()));
            }),
            Ok(Record::Exemplars(rows)) => each(rows, |row| {
                let labels = row.labels.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
                let (value, timestamp_ms) = (row.value, row.timestamp_ms);
                self.exemplar(row.series_ref, RowExemplar { labels, value, timestamp_ms });
            }),
            Ok(Record::Metadata(rows)) => {
                self.forwarder.take_metadata(rows.flatten());
                Ok(())
            }
            Ok(
                Record::Tombstones(_)
                | Record::MmapMarkers(_)
                | Record::DeletionsApplied(_)
                | Record::Retired(_)
                | Record::Unknown(_),
            ) => Ok(()),
            Err(error) => Err(error),
        };
        if read.is_err() {
            self.fed.unknown += 1;
        }
    }

    fn read_series(&mut self, series: SeriesRecords<'_>) -> Result<(), RecordError> {
        for series in series {
            let series = series?;
            let segment = self.place.segment;
            // What does not make a label set was never stored.
            let _ = self.forwarder.series.note(segment, series.series_ref, &series.labels);
        }
        Ok(())
    }

    #[inline]
    fn row(&mut self, series_ref: u64, time_ms: i64, value: f64, histogram: Option<Value>) {
        let place = self.place;
        self.place.row += 1;
        let number = self.forwarder.numbers[self.which] + u64::from(place.row);
        let Forwarder { series, shards, settings, gaps, extras, is_detached, has_queued, .. } =
            &mut *self.forwarder;
        let at = series.by_ref(series_ref);
        let is_delivered =
            |shard: &Shard| shard.resume.get(self.which).is_some_and(|at| place < *at);
        let Some((at, series)) = at.and_then(|at| Some((at, series.get_mut(at)?))) else {
            // Before what all shards have delivered, nothing is lost with it.
            self.fed.unknown += u64::from(!shards.iter().all(is_delivered));
            return;
        };
        let shard_at = shard_of(series.hash, shards.len());
        let Some(shard) = shards.get_mut(shard_at) else { return };
        if is_delivered(shard) {
            return;
        }
        if histogram.is_some() && !settings.histograms {
            return;
        }
        if series.labels.is_empty() {
            self.fed.dropped += 1;
            return;
        }
        let source = if self.which == 0 { Source::InOrder } else { Source::OutOfOrder };
        if source == Source::OutOfOrder
            && gaps.iter().any(|gap| gap.gives(series.hash, time_ms, place))
        {
            return;
        }
        self.fed.newest_ms = self.fed.newest_ms.max(time_ms);
        if *is_detached {
            let Some(gap) = gaps.back_mut() else { return };
            match source {
                Source::OutOfOrder if !gap.add_out_of_order(series.hash, time_ms) => {
                    self.fed.no_room += 1;
                    return;
                }
                Source::OutOfOrder => {}
                _ => gap.add_in_order(series.hash, time_ms),
            }
            self.fed.rows += 1;
            self.fed.in_gap += 1;
            return;
        }
        let mut row = Row::new(source, number, time_ms, at);
        row.value = value;
        if histogram.is_some()
            && let Some(extra) = extras.of(&mut row)
        {
            extra.histogram = histogram;
        }
        series.queued += 1;
        series.newest_ordinal = shard.next_ordinal();
        shard.push(row);
        *has_queued |= source == Source::InOrder;
        self.fed.rows += 1;
    }

    /// Sends an exemplar along with the newest row of its series, which stands right before it.
    fn exemplar(&mut self, series_ref: u64, exemplar: RowExemplar) {
        let Forwarder { series, shards, settings, extras, is_detached, .. } = &mut *self.forwarder;
        if !settings.exemplars || *is_detached {
            return;
        }
        let at = series.by_ref(series_ref);
        let Some((at, series)) = at.and_then(|at| Some((at, series.get(at)?))) else { return };
        let shard_at = shard_of(series.hash, shards.len());
        let shard = shards.get_mut(shard_at);
        let row = shard.and_then(|shard| shard.find(series.newest_ordinal));
        let Some(row) = row.filter(|row| row.series == at) else {
            self.fed.exemplars_dropped += 1;
            return;
        };
        if let Some(extra) = extras.of(row) {
            extra.exemplars.push(exemplar);
        }
    }
}

/// Hands over the rows of a record up to where it does not decode.
fn each<R>(
    rows: impl Iterator<Item = Result<R, RecordError>>,
    mut take: impl FnMut(R),
) -> Result<(), RecordError> {
    for row in rows {
        take(row?);
    }
    Ok(())
}
