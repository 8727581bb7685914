//! Reads records of the logs: their rows go into queues, or are noted in a gap.

use super::place::Mark;
use super::row::{Row, RowExemplar, RowPosition, Source};
use super::series::shard_of;
use super::{Fed, Forwarder, Shard};
use crate::model::Value;
use crate::storage::LogKind;
use crate::wal::{Record, RecordError, SeriesRecords, decode};

/// Number of segments before the first segment to deliver that are read for their column records,
/// because later records may depend on these: earlier versions continued a chain of records in the
/// next segment, and a host repeats records after a failed sync, perhaps in a segment of their own.
const CHAINED_SEGMENTS: u32 = 2;

impl Forwarder {
    /// Reads the series of records, and the column records on which later segments depend.
    pub fn note_series<'r>(&mut self, segment: u32, records: impl Iterator<Item = &'r [u8]>) {
        for record in records {
            match decode(record) {
                Ok(Record::Series(series)) => {
                    for series in series.flatten() {
                        // `note` fails for invalid labels, to which no row refers.
                        let _ = self.series.note(segment, series.series_ref, &series.labels);
                    }
                }
                Ok(Record::Metadata(rows)) => self.take_metadata(rows.flatten()),
                // The rows of this record are delivered, but later records may depend on it.
                Ok(Record::Columns(record)) if self.may_chain_from(segment) => {
                    let _ = self.columns.read(&record, segment);
                }
                _ => {}
            }
        }
    }

    /// Returns whether the first records that will be read may depend on this segment.
    fn may_chain_from(&self, segment: u32) -> bool {
        let first = self.shards.iter().map(|shard| shard.resume[0].segment).min().unwrap_or(0);
        let before = first.saturating_sub(CHAINED_SEGMENTS)..first;
        self.tails[0] == RowPosition::default() && before.contains(&segment)
    }

    /// Drops series without a series record in this segment or a later one.
    pub fn drop_series(&mut self, before_segment: u32) {
        self.series.drop_before(before_segment);
        self.builder.symbols_changed();
    }

    /// Reads records of a log until a queue holds `capacity` rows; `first_record` is the number of
    /// the first given record in its segment.
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
            // A record is always read whole. While detached, rows go into a gap and need no queue.
            fed.is_full = !self.is_detached && self.is_full(capacity);
            if fed.is_full {
                break;
            }
            let mut reader = RecordReader {
                forwarder: self,
                which,
                place: RowPosition { segment, record: record_number, row: 0 },
                fed: &mut fed,
            };
            reader.read(record);
            let rows = reader.place.row;
            if rows > 0 {
                let place = RowPosition { segment, record: record_number, row: 0 };
                let first_number = self.numbers[which];
                self.log_marks[which].push_back(Mark { first_number, place });
                self.numbers[which] += u64::from(rows);
            }
            let after = RowPosition { segment, record: record_number.saturating_add(1), row: 0 };
            self.tails[which] = self.tails[which].max(after);
            fed.records += 1;
        }
        fed
    }
}

struct RecordReader<'f> {
    forwarder: &'f mut Forwarder,
    which: usize,
    /// Position of the next row in the log.
    place: RowPosition,
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
                    // The record that this one depends on is damaged or was dropped.
                    Err(_) => self.lose(record.rows()),
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
            // The number of rows after the fault is unknown; it counts as one.
            self.lose(1);
        }
    }

    /// Counts rows that cannot be sent, unless all shards have delivered them.
    fn lose(&mut self, rows: u64) {
        let (place, which) = (self.place, self.which);
        let is_delivered = |shard: &Shard| shard.resume.get(which).is_some_and(|at| place < *at);
        if !self.forwarder.shards.iter().all(is_delivered) {
            self.fed.unknown += rows;
        }
    }

    fn read_series(&mut self, series: SeriesRecords<'_>) -> Result<(), RecordError> {
        for series in series {
            let series = series?;
            let segment = self.place.segment;
            // No row refers to a series without a valid label set, which was never stored.
            let _ = self.forwarder.series.note(segment, series.series_ref, &series.labels);
        }
        Ok(())
    }

    #[inline]
    fn row(&mut self, series_ref: u64, time_ms: i64, value: f64, histogram: Option<Value>) {
        let place = self.place;
        // Rows that are not sent have numbers too, so saved positions survive a change of settings.
        self.place.row += 1;
        let number = self.forwarder.numbers[self.which] + u64::from(place.row);
        let Forwarder { series, shards, settings, gaps, extras, is_detached, has_queued, .. } =
            &mut *self.forwarder;
        let at = series.by_ref(series_ref);
        let is_delivered =
            |shard: &Shard| shard.resume.get(self.which).is_some_and(|at| place < *at);
        let Some((at, series)) = at.and_then(|at| Some((at, series.get_mut(at)?))) else {
            // Its shard is unknown too, so the row counts unless every shard has delivered it.
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
        // The store returns this row with its gap, so sending it here would duplicate it.
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
        // A gap must not grow over queued in-order rows, which it would send again.
        *has_queued |= source == Source::InOrder;
        self.fed.rows += 1;
    }

    /// Adds an exemplar to the newest row of its series, which precedes it in the log.
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
        // The ordinal of a series without queued rows may be that of another series' row.
        let Some(row) = row.filter(|row| row.series == at) else {
            self.fed.exemplars_dropped += 1;
            return;
        };
        if let Some(extra) = extras.of(row) {
            extra.exemplars.push(exemplar);
        }
    }
}

/// Passes the rows of a record to `take`, up to the first that does not decode.
fn each<R>(
    rows: impl Iterator<Item = Result<R, RecordError>>,
    mut take: impl FnMut(R),
) -> Result<(), RecordError> {
    for row in rows {
        take(row?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RemoteWriteVersion::V1;
    use crate::forward::{Settings, ShardPosition};
    use crate::model::Sample;
    use crate::storage::LogKind::InOrder;
    use crate::wal::{ColumnWriter, put_series, series_record};

    const ROWS: u64 = 40;

    /// Returns a record of the series, and so many column records of one chain.
    fn chain(records: i64) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut series = series_record();
        for series_ref in 1..=ROWS {
            let number = format!("{series_ref:02}");
            let labels = [("__name__", "m"), ("i", number.as_str())];
            put_series(&mut series, series_ref, labels.len(), labels.into_iter());
        }
        let mut writer = ColumnWriter::new(9);
        let mut record = |time: i64| {
            let sample = |at: u64| Sample { timestamp_ms: time * 1000, value: (at as f64).sqrt() };
            let rows: Vec<_> = (1..=ROWS).map(|at| (at, sample(at + time as u64))).collect();
            writer.record(&rows).expect("few series")
        };
        (series, (1..=records).map(&mut record).collect())
    }

    /// Returns a forwarder that continues in segment 1 behind so many records.
    fn resumed(records: u32) -> Forwarder {
        let mut forwarder = Forwarder::new(Settings::default(), 1).expect("settings");
        let in_order = RowPosition { segment: 1, record: records, row: 0 };
        let position = ShardPosition { in_order, ..ShardPosition::default() };
        forwarder.resume(&[position], &[]).expect("a position");
        forwarder
    }

    /// Regression: the first record of a segment that continues a chain was never sent.
    #[test]
    fn a_segment_that_begins_with_a_chained_record_is_read_behind_the_one_before() {
        let (series, records) = chain(5);
        let mut forwarder = resumed(0);
        let before = [&series, &records[0], &records[1], &records[2]];
        forwarder.note_series(0, before.into_iter().map(Vec::as_slice));
        let fed = forwarder.feed(InOrder, 1, 0, records[3..].iter().map(Vec::as_slice), 1000);
        assert_eq!((fed.rows, fed.unknown), (2 * ROWS, 0));
        let batch = forwarder.take(0, V1, 1000, i64::MIN).expect("a request");
        assert_eq!((batch.samples, batch.newest_ms), (2 * ROWS, 5000));
    }

    /// Without the segment before, each lost row is counted, but none that was delivered.
    #[test]
    fn rows_that_cannot_be_read_are_counted_once_and_only_if_they_were_not_sent() {
        let (series, records) = chain(5);
        let mut forwarder = resumed(1);
        forwarder.note_series(0, std::iter::once(series.as_slice()));
        let damaged = vec![records[4][0]];
        let read = [&records[3], &records[4], &damaged];
        let fed = forwarder.feed(InOrder, 1, 0, read.into_iter().map(Vec::as_slice), 1000);
        assert_eq!((fed.rows, fed.unknown), (0, ROWS + 1));
    }
}
