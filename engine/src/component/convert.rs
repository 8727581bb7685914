//! Conversions between the engine's types and the types of the WIT interfaces.

use super::bindings::exports::tidepool::tsdb::store;
use super::bindings::tidepool::tsdb::types as wit;
use crate::block::BlockError;
use crate::chunk::{Chunk, Encoding};
use crate::compact::BadBlock;
use crate::engine::{
    CommittedBlock, Deleted, DeletedFor, RemoteWriteVersion, Room, UpkeepProgress,
};
use crate::error::{Error, HeadLost, RemoteError};
use crate::head::{Exemplar, RefusalReason, SavedHeadError, SeriesExemplars, WriteOutcome};
use crate::index::IndexError;
use crate::model::{Labels, MatchOp, MatcherSpec, Sample, TimeRange};
use crate::select::{FrameFormat, Lookup};
use crate::storage::StorageError;
use crate::wire::ChunkedSeries;

impl From<wit::StorageError> for StorageError {
    fn from(error: wit::StorageError) -> StorageError {
        match error {
            wit::StorageError::NotFound(what) => StorageError::NotFound { what },
            wit::StorageError::NoSpace(what) => StorageError::NoSpace { what },
            wit::StorageError::ReadOnly(what) => StorageError::ReadOnly { what },
            wit::StorageError::Io(reason) => StorageError::Io { reason },
        }
    }
}

impl From<StorageError> for wit::StorageError {
    fn from(error: StorageError) -> wit::StorageError {
        match error {
            StorageError::NotFound { what } => wit::StorageError::NotFound(what),
            StorageError::NoSpace { what } => wit::StorageError::NoSpace(what),
            StorageError::ReadOnly { what } => wit::StorageError::ReadOnly(what),
            StorageError::Io { reason } => wit::StorageError::Io(reason),
        }
    }
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Error {
        // Errors of the import `head-source` convert back unchanged, but `Malformed` to `Corrupt`.
        let remote = match error {
            wit::Error::NotOpen => return Error::NotOpen,
            wit::Error::Invalid(why) => return Error::Invalid(why),
            wit::Error::ShortOfMemory(max) => return Error::ShortOfMemory { max },
            wit::Error::Busy => return Error::Busy,
            wit::Error::SeriesDropped => return Error::SeriesDropped,
            wit::Error::Storage(error) => return Error::Storage(error.into()),
            wit::Error::WrongRole(call) => RemoteError::WrongRole(call),
            wit::Error::LimitExceeded(wit::Limit { what, max }) => RemoteError::Limit { what, max },
            wit::Error::Malformed(damage) | wit::Error::Corrupt(damage) => {
                let wit::Damage { where_: place, offset, reason } = damage;
                RemoteError::Damaged { place, offset, reason }
            }
            wit::Error::HeadLost(lost) => RemoteError::Lost(lost.into()),
        };
        Error::Remote(remote)
    }
}

impl From<RemoteError> for wit::Error {
    fn from(error: RemoteError) -> wit::Error {
        match error {
            RemoteError::WrongRole(call) => wit::Error::WrongRole(call),
            RemoteError::Limit { what, max } => wit::Error::LimitExceeded(wit::Limit { what, max }),
            RemoteError::Damaged { place: where_, offset, reason } => {
                wit::Error::Corrupt(wit::Damage { where_, offset, reason })
            }
            RemoteError::Lost(lost) => wit::Error::HeadLost(lost.into()),
        }
    }
}

impl From<wit::HeadLost> for HeadLost {
    fn from(lost: wit::HeadLost) -> HeadLost {
        match lost {
            wit::HeadLost::Restarted => HeadLost::Restarted,
            wit::HeadLost::NotReady => HeadLost::NotReady,
            wit::HeadLost::Stopped => HeadLost::Stopped,
            wit::HeadLost::Crashed(why) => HeadLost::Crashed(why),
            wit::HeadLost::Deadline => HeadLost::Deadline,
            wit::HeadLost::OutOfMemory => HeadLost::OutOfMemory,
        }
    }
}

impl From<HeadLost> for wit::HeadLost {
    fn from(lost: HeadLost) -> wit::HeadLost {
        match lost {
            HeadLost::Restarted => wit::HeadLost::Restarted,
            HeadLost::NotReady => wit::HeadLost::NotReady,
            HeadLost::Stopped => wit::HeadLost::Stopped,
            HeadLost::Crashed(why) => wit::HeadLost::Crashed(why),
            HeadLost::Deadline => wit::HeadLost::Deadline,
            HeadLost::OutOfMemory => wit::HeadLost::OutOfMemory,
        }
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> wit::Error {
        let text = error.to_string();
        match error {
            Error::NotOpen => wit::Error::NotOpen,
            Error::WrongRole { call } => wit::Error::WrongRole(call.into()),
            Error::Invalid(_) | Error::Matcher(_) => wit::Error::Invalid(text),
            Error::Malformed(error) => wit::Error::Malformed(wit::Damage {
                where_: error.message.into(),
                offset: error.offset as u64,
                reason: error.reason.into(),
            }),
            Error::Block(
                BlockError::Storage(error) | BlockError::Index(IndexError::Storage(error)),
            ) => wit::Error::Storage(error.into()),
            Error::Block(
                BlockError::Damaged(damage) | BlockError::Index(IndexError::Damaged(damage)),
            ) => wit::Error::Corrupt(wit::Damage {
                where_: format!("{}/{}", damage.block, damage.file),
                offset: damage.offset,
                reason: damage.what.into(),
            }),
            Error::Block(BlockError::Chunk { block, file, offset, source }) => {
                let (where_, reason) = (format!("{block}/{file}"), source.to_string());
                wit::Error::Corrupt(wit::Damage { where_, offset, reason })
            }
            // These errors have no offset; their text names the file.
            Error::Block(_) => {
                wit::Error::Corrupt(wit::Damage { where_: "block".into(), offset: 0, reason: text })
            }
            Error::Chunk { series, source } => wit::Error::Corrupt(wit::Damage {
                where_: series,
                offset: 0,
                reason: source.to_string(),
            }),
            // A snapshot of another time or version is intact, so it is not reported as corrupt.
            Error::SavedHead(SavedHeadError::Outdated { .. } | SavedHeadError::Version { .. }) => {
                wit::Error::Invalid(text)
            }
            Error::SavedHead(_) => {
                let where_ = "saved head".into();
                wit::Error::Corrupt(wit::Damage { where_, offset: 0, reason: text })
            }
            Error::LimitExceeded { what, max } => {
                wit::Error::LimitExceeded(wit::Limit { what: what.into(), max })
            }
            Error::ShortOfMemory { max } => wit::Error::ShortOfMemory(max),
            Error::Busy => wit::Error::Busy,
            Error::SeriesDropped => wit::Error::SeriesDropped,
            Error::NotPlanned { .. } => wit::Error::Invalid(text),
            Error::Storage(error) => wit::Error::Storage(error.into()),
            Error::Remote(error) => error.into(),
        }
    }
}

pub(super) fn to_rows(
    columns: store::Columns,
) -> Result<impl Iterator<Item = (u64, Sample)>, wit::Error> {
    let store::Columns { series, timestamps_ms, values } = columns;
    // `zip` would silently drop the last rows of the longer columns.
    if series.len() != timestamps_ms.len() || series.len() != values.len() {
        return Err(wit::Error::Invalid(format!(
            "the columns differ in length: {} series, {} timestamps, {} values",
            series.len(),
            timestamps_ms.len(),
            values.len()
        )));
    }
    let samples = timestamps_ms
        .into_iter()
        .zip(values)
        .map(|(timestamp_ms, value)| Sample { timestamp_ms, value });
    Ok(series.into_iter().zip(samples))
}

pub(super) fn to_labels(labels: &[wit::Label]) -> Result<Labels, wit::Error> {
    let pairs = labels.iter().map(|label| (label.name.as_str(), label.value.as_str()));
    Labels::from_pairs(pairs).map_err(|error| wit::Error::Invalid(error.to_string()))
}

impl From<store::FrameFormat> for FrameFormat {
    fn from(format: store::FrameFormat) -> FrameFormat {
        match format {
            store::FrameFormat::StreamedChunks => FrameFormat::StreamedChunks,
            store::FrameFormat::Samples => FrameFormat::Samples,
            store::FrameFormat::ChunkedSeries => FrameFormat::ChunkedSeries,
            store::FrameFormat::UnsealedStreamedChunks => FrameFormat::UnsealedStreamedChunks,
        }
    }
}

impl From<wit::TimeRange> for TimeRange {
    fn from(range: wit::TimeRange) -> TimeRange {
        TimeRange { start_ms: range.start_ms, end_ms: range.end_ms }
    }
}

impl From<TimeRange> for wit::TimeRange {
    fn from(range: TimeRange) -> wit::TimeRange {
        wit::TimeRange { start_ms: range.start_ms, end_ms: range.end_ms }
    }
}

impl From<wit::Matcher> for MatcherSpec {
    fn from(matcher: wit::Matcher) -> MatcherSpec {
        let op = match matcher.op {
            wit::MatchOp::Equal => MatchOp::Equal,
            wit::MatchOp::NotEqual => MatchOp::NotEqual,
            wit::MatchOp::Regex => MatchOp::Regex,
            wit::MatchOp::NotRegex => MatchOp::NotRegex,
        };
        MatcherSpec { name: matcher.name, op, value: matcher.value }
    }
}

impl From<&MatcherSpec> for wit::Matcher {
    fn from(matcher: &MatcherSpec) -> wit::Matcher {
        let MatcherSpec { name, op, value } = matcher.clone();
        wit::Matcher { name, op: op.into(), value }
    }
}

impl From<MatchOp> for wit::MatchOp {
    fn from(op: MatchOp) -> wit::MatchOp {
        match op {
            MatchOp::Equal => wit::MatchOp::Equal,
            MatchOp::NotEqual => wit::MatchOp::NotEqual,
            MatchOp::Regex => wit::MatchOp::Regex,
            MatchOp::NotRegex => wit::MatchOp::NotRegex,
        }
    }
}

pub fn ranked(ranking: Vec<(String, u64)>) -> Vec<wit::Ranked> {
    ranking.into_iter().map(|(name, number)| wit::Ranked { name, number }).collect()
}

impl From<store::RemoteWriteVersion> for RemoteWriteVersion {
    fn from(version: store::RemoteWriteVersion) -> RemoteWriteVersion {
        match version {
            store::RemoteWriteVersion::V1 => RemoteWriteVersion::V1,
            store::RemoteWriteVersion::V2 => RemoteWriteVersion::V2,
        }
    }
}

fn labels_of(labels: &Labels) -> Vec<wit::Label> {
    let label = |(name, value): (&str, &str)| wit::Label { name: name.into(), value: value.into() };
    labels.iter().map(label).collect()
}

impl From<wit::Lookup> for Lookup {
    fn from(lookup: wit::Lookup) -> Lookup {
        let set = |set: Vec<wit::Matcher>| set.into_iter().map(Into::into).collect();
        Lookup {
            matcher_sets: lookup.matcher_sets.into_iter().map(set).collect(),
            range: lookup.range.into(),
            limit: lookup.limit,
        }
    }
}

impl From<&Lookup> for wit::Lookup {
    fn from(lookup: &Lookup) -> wit::Lookup {
        // Asks the head for one string more than the limit, so that the caller, which adds strings
        // of blocks, sees whether the limit leaves out any; 0 means no limit.
        let set = |set: &Vec<MatcherSpec>| set.iter().map(Into::into).collect();
        wit::Lookup {
            matcher_sets: lookup.matcher_sets.iter().map(set).collect(),
            range: lookup.range.into(),
            limit: if lookup.limit == 0 { 0 } else { lookup.limit.saturating_add(1) },
        }
    }
}

impl From<ChunkedSeries> for wit::SeriesChunks {
    fn from(series: ChunkedSeries) -> wit::SeriesChunks {
        let labels = labels_of(&series.labels);
        wit::SeriesChunks { labels, chunks: series.chunks.into_iter().map(Into::into).collect() }
    }
}

impl From<SeriesExemplars> for store::SeriesExemplars {
    fn from(series: SeriesExemplars) -> store::SeriesExemplars {
        let exemplar = |exemplar: Exemplar| store::Exemplar {
            labels: labels_of(&exemplar.labels),
            value: exemplar.value,
            timestamp_ms: exemplar.timestamp_ms,
        };
        let exemplars = series.exemplars.into_iter().map(exemplar).collect();
        store::SeriesExemplars { labels: labels_of(&series.labels), exemplars }
    }
}

impl From<Chunk> for wit::Chunk {
    fn from(chunk: Chunk) -> wit::Chunk {
        let encoding = match chunk.encoding {
            // Cursors convert chunks with start timestamps to plain chunks before they return them.
            Encoding::Xor | Encoding::Xor2 => wit::ChunkEncoding::Xor,
            Encoding::Histogram | Encoding::HistogramSt => wit::ChunkEncoding::Histogram,
            Encoding::FloatHistogram | Encoding::FloatHistogramSt => {
                wit::ChunkEncoding::FloatHistogram
            }
        };
        wit::Chunk {
            encoding,
            min_time_ms: chunk.min_time_ms,
            max_time_ms: chunk.max_time_ms,
            data: chunk.data.to_vec(),
        }
    }
}

impl From<RefusalReason> for store::RefusalReason {
    fn from(reason: RefusalReason) -> store::RefusalReason {
        match reason {
            RefusalReason::DuplicateSample => store::RefusalReason::DuplicateSample,
            RefusalReason::OutOfOrder => store::RefusalReason::OutOfOrder,
            RefusalReason::TooOld => store::RefusalReason::TooOld,
            RefusalReason::TooFarInFuture => store::RefusalReason::TooFarInFuture,
            RefusalReason::InvalidLabels => store::RefusalReason::InvalidLabels,
            RefusalReason::InvalidSymbolRef => store::RefusalReason::InvalidSymbolRef,
            RefusalReason::NoSamples => store::RefusalReason::NoSamples,
            RefusalReason::SeriesLimit => store::RefusalReason::SeriesLimit,
            RefusalReason::MemoryLimit => store::RefusalReason::MemoryLimit,
            RefusalReason::InvalidHistogram => store::RefusalReason::InvalidHistogram,
            RefusalReason::InvalidExemplar => store::RefusalReason::InvalidExemplar,
            RefusalReason::ExemplarsOff => store::RefusalReason::ExemplarsOff,
        }
    }
}

impl From<WriteOutcome> for store::WriteOutcome {
    fn from(outcome: WriteOutcome) -> store::WriteOutcome {
        let refusals = outcome.refusals.into_iter().map(|refusal| store::Refusal {
            reason: refusal.reason.into(),
            detail: refusal.detail,
            timestamp_ms: refusal.timestamp_ms,
        });
        store::WriteOutcome {
            samples_written: outcome.samples_written,
            histograms_written: outcome.histograms_written,
            exemplars_written: outcome.exemplars_written,
            refused: outcome.refused,
            refusals: refusals.collect(),
        }
    }
}

impl From<BadBlock> for wit::Damage {
    fn from(bad: BadBlock) -> wit::Damage {
        wit::Damage {
            where_: match bad.file {
                Some(file) => format!("{}/{file}", bad.block),
                None => bad.block,
            },
            offset: bad.offset.unwrap_or(0),
            reason: bad.reason,
        }
    }
}

impl From<UpkeepProgress> for store::CompactProgress {
    fn from(progress: UpkeepProgress) -> store::CompactProgress {
        let deleted = |(id, reason): (String, DeletedFor)| store::DeletedBlock {
            id,
            reason: match reason {
                DeletedFor::Merged => store::DeletionReason::Merged,
                DeletedFor::Age => store::DeletionReason::Age,
                DeletedFor::Size => store::DeletionReason::Size,
            },
        };
        store::CompactProgress {
            done: progress.done,
            block: progress.committed.map(|CommittedBlock { ulid, level, samples }| {
                store::NewBlock { id: ulid, level, samples }
            }),
            deleted: progress.deleted.into_iter().map(deleted).collect(),
            bad: progress.bad.into_iter().map(Into::into).collect(),
            unmerged: progress.unmerged.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<store::Room> for Room {
    fn from(room: store::Room) -> Room {
        let store::Room { free_bytes, other_bytes, memory_bytes } = room;
        Room { free_bytes, other_bytes, memory_bytes }
    }
}

impl From<Deleted> for store::Deletion {
    fn from(deleted: Deleted) -> store::Deletion {
        let Deleted { head_series, blocks, bad } = deleted;
        store::Deletion { head_series, blocks, bad: bad.into_iter().map(Into::into).collect() }
    }
}
