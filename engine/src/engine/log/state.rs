//! The state of the log as bytes; the layout is in `engine/docs/format/head.md`.

use super::Log;
use super::deletion::Deletions;
use crate::head::{Bytes, SavedHeadError};

/// The state of the log that a replay would compute.
pub struct LogState {
    unapplied: bool,
    out_of_order_is_stale: bool,
    segments: Vec<(u32, i64)>,
    out_of_order_segments: Vec<(u32, i64)>,
    earlier_refs: Vec<(u64, u64)>,
}

impl LogState {
    /// Decodes the bytes that [`Log::put_state`] appended.
    pub fn take(bytes: &mut Bytes<'_>) -> Result<LogState, SavedHeadError> {
        Ok(LogState {
            unapplied: bytes.flag()?,
            out_of_order_is_stale: bytes.flag()?,
            segments: take_segments(bytes)?,
            out_of_order_segments: take_segments(bytes)?,
            earlier_refs: take_refs(bytes)?,
        })
    }
}

impl Log {
    /// Appends the state that a replay would compute. An uncommitted checkpoint is abandoned.
    pub fn put_state(&mut self, out: &mut Vec<u8>) {
        self.truncation = None;
        let Deletions { unapplied, out_of_order_is_stale, .. } = self.deletions;
        out.extend([u8::from(unapplied), u8::from(out_of_order_is_stale)]);
        put_segments(out, self.segments.iter());
        // Generations are not saved, because a restarted head counts them from 0.
        let out_of_order = self.out_of_order_segments.iter();
        put_segments(out, out_of_order.map(|(segment, (newest_ms, _))| (segment, newest_ms)));
        let pairs = &self.earlier_refs.pairs;
        out.extend_from_slice(&(pairs.len() as u32).to_le_bytes());
        for (series_ref, earlier_ref) in pairs {
            out.extend_from_slice(&series_ref.to_le_bytes());
            out.extend_from_slice(&earlier_ref.to_le_bytes());
        }
    }

    /// Sets the state in place of a replay.
    pub fn restore(&mut self, state: LogState) {
        let LogState {
            unapplied,
            out_of_order_is_stale,
            segments,
            out_of_order_segments,
            earlier_refs,
        } = state;
        self.deletions = Deletions { unapplied, out_of_order_is_stale, ..Deletions::default() };
        self.segments = segments.into_iter().collect();
        // As after a replay, the first segment may be a checkpoint.
        self.checkpoint = self.segments.keys().next().copied();
        let first_generation = |(segment, newest_ms)| (segment, (newest_ms, 0));
        self.out_of_order_segments =
            out_of_order_segments.into_iter().map(first_generation).collect();
        self.keep_earlier_refs(earlier_refs);
        self.progress.done = true;
    }
}

fn put_segments<'a>(
    out: &mut Vec<u8>,
    segments: impl ExactSizeIterator<Item = (&'a u32, &'a i64)>,
) {
    out.extend_from_slice(&(segments.len() as u32).to_le_bytes());
    for (segment, newest_ms) in segments {
        out.extend_from_slice(&segment.to_le_bytes());
        out.extend_from_slice(&newest_ms.to_le_bytes());
    }
}

fn take_segments(bytes: &mut Bytes<'_>) -> Result<Vec<(u32, i64)>, SavedHeadError> {
    // The count may be damaged, so it does not size the allocation.
    let mut segments = Vec::new();
    for _ in 0..bytes.u32()? {
        segments.push((bytes.u32()?, bytes.i64()?));
    }
    Ok(segments)
}

fn take_refs(bytes: &mut Bytes<'_>) -> Result<Vec<(u64, u64)>, SavedHeadError> {
    let mut pairs = Vec::new();
    for _ in 0..bytes.u32()? {
        pairs.push((bytes.u64()?, bytes.u64()?));
    }
    Ok(pairs)
}
