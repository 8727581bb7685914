//! Exports the interface `forward`: destinations of remote write.

use super::Component;
use super::bindings::exports::tidepool::tsdb::forward::{self, Guest, GuestDestination};
use super::bindings::tidepool::tsdb::types as wit;
use super::bindings::tidepool::tsdb::wal::Log;
use super::convert::to_labels;
use crate::forward::{
    Batch, Fed, ForwardError, Forwarder, RowPosition, Settings, ShardPosition, StorePlace,
    WINDOW_MS,
};
use crate::model::Labels;
use crate::relabel::{Action, RuleSpec};
use crate::storage::LogKind;
use std::cell::RefCell;

impl Guest for Component {
    type Destination = Destination;
}

pub struct Destination(RefCell<Result<Forwarder, String>>);

impl Destination {
    fn with<T>(&self, call: impl FnOnce(&mut Forwarder) -> T) -> Result<T, wit::Error> {
        match &mut *self.0.borrow_mut() {
            Ok(forwarder) => Ok(call(forwarder)),
            Err(error) => Err(wit::Error::Invalid(error.clone())),
        }
    }

    fn with_result<T>(
        &self,
        call: impl FnOnce(&mut Forwarder) -> Result<T, ForwardError>,
    ) -> Result<T, wit::Error> {
        self.with(call)?.map_err(Into::into)
    }
}

fn records<'r>(bytes: &'r [u8], lengths: &'r [u32]) -> impl Iterator<Item = &'r [u8]> {
    let mut rest = bytes;
    lengths.iter().map(move |len| {
        // A length beyond the end yields a short record, which then fails to decode.
        let (record, after) = rest.split_at(rest.len().min(*len as usize));
        rest = after;
        record
    })
}

fn made(settings: forward::Settings) -> Result<Forwarder, String> {
    let external_labels = to_labels(&settings.external_labels).map_err(|e| format!("{e:?}"))?;
    let rules = settings.rules.into_iter().map(Into::into).collect();
    let (exemplars, histograms) = (settings.exemplars, settings.histograms);
    let all = Settings { external_labels, rules, exemplars, histograms };
    Forwarder::new(all, settings.shards).map_err(|error| error.to_string())
}

impl GuestDestination for Destination {
    fn new(settings: forward::Settings) -> Destination {
        // A WIT constructor cannot fail, so the first call returns the error.
        Destination(RefCell::new(made(settings)))
    }

    fn resume(
        &self,
        positions: Vec<forward::ShardPosition>,
        gaps: Vec<u8>,
    ) -> Result<(), wit::Error> {
        let wrong = || wit::Error::Invalid("a position has an invalid label set".into());
        let positions: Option<Vec<ShardPosition>> =
            positions.into_iter().map(to_position).collect();
        let positions = positions.ok_or_else(wrong)?;
        self.with_result(|forwarder| forwarder.resume(&positions, &gaps))
    }

    fn note_series(
        &self,
        segment: u32,
        bytes: Vec<u8>,
        lengths: Vec<u32>,
    ) -> Result<(), wit::Error> {
        self.with(|forwarder| forwarder.note_series(segment, records(&bytes, &lengths)))
    }

    fn drop_series(&self, before_segment: u32) -> Result<(), wit::Error> {
        self.with(|forwarder| forwarder.drop_series(before_segment))
    }

    fn feed(
        &self,
        log: Log,
        segment: u32,
        first_record: u32,
        bytes: Vec<u8>,
        lengths: Vec<u32>,
        capacity: u32,
    ) -> Result<forward::Fed, wit::Error> {
        let (log, capacity) = (kind(log), capacity as usize);
        let records = records(&bytes, &lengths);
        let fed = self.with(|f| f.feed(log, segment, first_record, records, capacity))?;
        Ok(fed.into())
    }

    fn end_segment(&self, log: Log, segment: u32) -> Result<(), wit::Error> {
        self.with(|forwarder| forwarder.end_segment(kind(log), segment))
    }

    fn detach(&self) -> Result<u64, wit::Error> {
        self.with(Forwarder::detach)
    }

    fn attach(&self) -> Result<(), wit::Error> {
        self.with(Forwarder::attach)
    }

    fn store_window(&self) -> Result<Option<forward::StoreWindow>, wit::Error> {
        let window = self.with(|forwarder| forwarder.store_window())?;
        // Time ranges of the WIT interface include their end.
        Ok(window.map(|(start_ms, rows)| forward::StoreWindow {
            start_ms,
            end_ms: start_ms.saturating_add(WINDOW_MS - 1),
            rows,
        }))
    }

    fn begin_store_window(&self, out_of_order_end: forward::Place) -> Result<(), wit::Error> {
        self.with(|forwarder| forwarder.begin_store_window(out_of_order_end.into()))
    }

    fn feed_store(&self, frames: Vec<u8>, capacity: u32) -> Result<forward::Fed, wit::Error> {
        let fed = self.with_result(|forwarder| forwarder.feed_store(&frames, capacity as usize))?;
        Ok(fed.into())
    }

    fn end_store_window(&self) -> Result<(), wit::Error> {
        self.with(Forwarder::end_store_window)
    }

    fn gap_rows(&self) -> Result<u64, wit::Error> {
        self.with(|forwarder| forwarder.gap_rows())
    }

    fn has_store_rows(&self) -> Result<bool, wit::Error> {
        self.with(|forwarder| forwarder.has_store_rows())
    }

    fn gaps(&self) -> Result<Vec<u8>, wit::Error> {
        self.with(|forwarder| forwarder.encode_gaps())
    }

    fn take(
        &self,
        shard: u32,
        version: forward::RemoteWriteVersion,
        rows_max: u32,
        not_before_ms: i64,
    ) -> Result<Option<forward::Request>, wit::Error> {
        let rows_max = rows_max as usize;
        let batch = self.with(|f| f.take(shard, version.into(), rows_max, not_before_ms))?;
        Ok(batch.map(Into::into))
    }

    fn done(&self, shard: u32) -> Result<(), wit::Error> {
        self.with(|forwarder| forwarder.done(shard))
    }

    fn pending(&self) -> Result<Vec<u32>, wit::Error> {
        self.with(|forwarder| forwarder.pending().collect())
    }

    fn positions(&self) -> Result<Vec<forward::ShardPosition>, wit::Error> {
        let positions = self.with(Forwarder::positions)?;
        Ok(positions.into_iter().map(Into::into).collect())
    }

    fn reshard(&self, shards: u32) -> Result<bool, wit::Error> {
        self.with_result(|forwarder| match forwarder.can_reshard() {
            true => forwarder.reshard(shards).map(|()| true),
            false => Ok(false),
        })
    }

    fn metadata(
        &self,
        after: String,
        families_max: u32,
    ) -> Result<Option<forward::MetadataRequest>, wit::Error> {
        let request = self.with(|f| f.metadata_request(&after, families_max as usize))?;
        Ok(request.map(|(body, last)| forward::MetadataRequest { body, last }))
    }

    fn series_count(&self) -> Result<u64, wit::Error> {
        self.with(|forwarder| forwarder.series_count() as u64)
    }
}

fn kind(log: Log) -> LogKind {
    match log {
        Log::InOrder => LogKind::InOrder,
        Log::OutOfOrder => LogKind::OutOfOrder,
    }
}

fn to_position(position: forward::ShardPosition) -> Option<ShardPosition> {
    Some(ShardPosition {
        in_order: position.in_order.into(),
        out_of_order: position.out_of_order.into(),
        store: StorePlace {
            window_ms: position.store_window_ms,
            labels: Labels::from_packed(&position.store_labels)?,
            time_ms: position.store_time_ms,
        },
    })
}

impl From<ShardPosition> for forward::ShardPosition {
    fn from(position: ShardPosition) -> forward::ShardPosition {
        let ShardPosition { in_order, out_of_order, store } = position;
        forward::ShardPosition {
            in_order: in_order.into(),
            out_of_order: out_of_order.into(),
            store_window_ms: store.window_ms,
            store_labels: store.labels.packed().to_vec(),
            store_time_ms: store.time_ms,
        }
    }
}

impl From<RowPosition> for forward::Place {
    fn from(place: RowPosition) -> forward::Place {
        forward::Place { segment: place.segment, record: place.record, row: place.row }
    }
}

impl From<forward::Place> for RowPosition {
    fn from(place: forward::Place) -> RowPosition {
        RowPosition { segment: place.segment, record: place.record, row: place.row }
    }
}

impl From<ForwardError> for wit::Error {
    fn from(error: ForwardError) -> wit::Error {
        let text = error.to_string();
        match error {
            ForwardError::Invalid(_) | ForwardError::Rule(_) => wit::Error::Invalid(text),
            ForwardError::Malformed(error) => wit::Error::Malformed(wit::Damage {
                where_: error.message.into(),
                offset: error.offset as u64,
                reason: error.reason.into(),
            }),
            ForwardError::Chunk { series, reason } => {
                wit::Error::Corrupt(wit::Damage { where_: series, offset: 0, reason })
            }
        }
    }
}

impl From<Fed> for forward::Fed {
    fn from(fed: Fed) -> forward::Fed {
        let Fed { records, bytes, rows, in_gap, dropped, unknown, .. } = fed;
        let Fed { exemplars_dropped, no_room, newest_ms, is_full, .. } = fed;
        forward::Fed {
            records,
            bytes,
            rows,
            in_gap,
            dropped,
            unknown,
            exemplars_dropped,
            no_room,
            newest_ms,
            is_full,
        }
    }
}

impl From<Batch> for forward::Request {
    fn from(batch: Batch) -> forward::Request {
        let Batch { body, samples, histograms, exemplars, too_old, newest_ms } = batch;
        forward::Request { body, samples, histograms, exemplars, too_old, newest_ms }
    }
}

impl From<forward::RelabelRule> for RuleSpec {
    fn from(rule: forward::RelabelRule) -> RuleSpec {
        use forward::RelabelAction as Wit;
        let action = match rule.action {
            Wit::Replace => Action::Replace,
            Wit::Keep => Action::Keep,
            Wit::Drop => Action::Drop,
            Wit::KeepEqual => Action::KeepEqual,
            Wit::DropEqual => Action::DropEqual,
            Wit::HashMod => Action::HashMod,
            Wit::LabelMap => Action::LabelMap,
            Wit::LabelDrop => Action::LabelDrop,
            Wit::LabelKeep => Action::LabelKeep,
            Wit::Lowercase => Action::Lowercase,
            Wit::Uppercase => Action::Uppercase,
        };
        RuleSpec {
            source_labels: rule.source_labels,
            separator: rule.separator,
            regex: rule.regex,
            modulus: rule.modulus,
            target_label: rule.target_label,
            replacement: rule.replacement,
            action,
        }
    }
}
