//! Streamed answers: the engine plans which chunks an answer has, and the host copies these chunks
//! from block files into frames. The host also verifies checksums, because it can use processor
//! instructions that WebAssembly lacks.
//!
//! Series with an unusual chunk are read by the engine: a damaged chunk, one with start timestamps,
//! or one in a file that cannot be read. The engine also has the texts of these errors.

use super::chunk_files::ChunkFiles;
use super::{Cut, PART_BYTES, Parts, Read, each_part};
use crate::StoreError;
use tidepool_remote_write::{
    Crc32c, Fields, FrameOptions, FrameWriter, Value, put_uvarint, split_uvarint, uvarint_bytes,
};
use tidepool_runtime::{CursorHandle, FrameFormat, Instance};

/// Approximate size of a plan that one call returns: some thousands of chunks.
const PLAN_BYTES: u32 = 64 * 1024;

/// Minimum size of a part. The first part may be smaller, so that the client gets data early.
const LATER_PART_BYTES: usize = 512 * 1024;

/// Bytes by which most parts exceed the minimum size at most.
const OVERSHOOT_BYTES: usize = 32 * 1024;

/// Default maximum size of a frame, which is upstream's.
const DEFAULT_FRAME_BYTES_MAX: usize = 1024 * 1024;

/// A chunk of a plan.
enum Planned<'a> {
    /// The whole encoded message of a chunk.
    Given(&'a [u8]),
    /// A chunk in a block file.
    Stored {
        /// The encoded fields of the chunk's first and last time.
        times: &'a [u8],
        file: usize,
        offset: u64,
    },
}

/// Reason for which a series was not written to frames.
enum Unput {
    /// The engine must read the series' chunks.
    LeftToEngine,
    /// The bytes are not a series of a plan.
    Malformed,
}

impl Read {
    /// Sends the answers of all queries part by part.
    pub(super) fn stream(&self, instance: &mut Instance, parts: &Parts<'_>) -> Result<(), Cut> {
        for query_index in 0..self.queries.len() {
            let selection = self.selection(query_index);
            let frames = FrameOptions {
                query_index: selection.query_index,
                bytes_max: match selection.frame_bytes_max {
                    0 => DEFAULT_FRAME_BYTES_MAX,
                    bytes => bytes as usize,
                },
                crc32c: Some(crc32c::crc32c as Crc32c),
            };
            let cursor = instance.select(&selection)?;
            match selection.format {
                FrameFormat::StreamedChunks => stream_cursor(instance, cursor, frames, parts)?,
                _ => each_part(instance, cursor, |part| parts.send(part))?,
            }
            instance.close_cursor(cursor)?;
        }
        Ok(())
    }
}

fn stream_cursor(
    instance: &mut Instance,
    cursor: CursorHandle,
    frames: FrameOptions,
    parts: &Parts<'_>,
) -> Result<(), Cut> {
    let mut files = ChunkFiles::default();
    let mut out = Vec::new();
    let mut part_bytes = PART_BYTES as usize;
    loop {
        let plan = instance.next_plan(cursor, PLAN_BYTES)?;
        if plan.is_empty() {
            break;
        }
        // Not every plan fills a part, and only sending notices that the receiver is gone.
        parts.check()?;
        let mut rest = plan.as_slice();
        while !rest.is_empty() {
            let (series, after) = split_series(rest).ok_or_else(malformed)?;
            let whole = rest.get(..rest.len() - after.len()).unwrap_or_default();
            put_series(instance, cursor, &mut files, (series, whole), frames, &mut out)?;
            rest = after;
            if out.len() >= part_bytes {
                part_bytes = LATER_PART_BYTES;
                // Allocated at full size, because growing step by step would copy the part.
                let next = Vec::with_capacity(part_bytes + OVERSHOOT_BYTES);
                parts.send(std::mem::replace(&mut out, next))?;
            }
        }
    }
    if out.is_empty() { Ok(()) } else { parts.send(out) }
}

/// Appends the frames of a series. `series` has no length prefix, `whole` has one.
fn put_series(
    instance: &mut Instance,
    cursor: CursorHandle,
    files: &mut ChunkFiles,
    (series, whole): (&[u8], &[u8]),
    frames: FrameOptions,
    out: &mut Vec<u8>,
) -> Result<(), Cut> {
    let start = out.len();
    let name = |name: &str| instance.chunk_file(name);
    match put_frames(series, frames, files, name, out) {
        Ok(()) => return Ok(()),
        Err(Unput::Malformed) => return Err(malformed().into()),
        // Removes frames that were begun: the engine makes all frames of the series.
        Err(Unput::LeftToEngine) => out.truncate(start),
    }
    let read = instance.read_planned(cursor, whole)?;
    let (series, _) = split_series(&read).ok_or_else(malformed)?;
    // The engine returns the chunks themselves, so no file is needed.
    let put = put_frames(series, frames, &mut ChunkFiles::default(), |_| None, out);
    put.map_err(|_| malformed().into())
}

fn malformed() -> StoreError {
    StoreError::Runtime("the answer was not made: the engine's plan does not decode".to_owned())
}

/// Splits the first series off a plan.
fn split_series(plan: &[u8]) -> Option<(&[u8], &[u8])> {
    let (bytes, rest) = split_uvarint(plan)?;
    rest.split_at_checked(usize::try_from(bytes).ok()?)
}

/// Appends the frames of a series; after an error, some may remain. `open` returns files by name.
fn put_frames(
    series: &[u8],
    frames: FrameOptions,
    files: &mut ChunkFiles,
    open: impl Fn(&str) -> Option<tidepool_disk::BlockFile>,
    out: &mut Vec<u8>,
) -> Result<(), Unput> {
    let mut fields = Fields::new(series);
    let mut labels: &[u8] = &[];
    while let Some(field) = fields.next() {
        match field {
            Ok((1, Value::Bytes(_))) => {
                let end = series.len() - fields.rest().len();
                labels = series.get(..end).unwrap_or_default();
            }
            Ok((3, Value::Bytes(name))) => {
                files.add(std::str::from_utf8(name).ok().and_then(&open));
            }
            // Labels and files precede the first chunk, so all labels are known here.
            Ok((2, Value::Bytes(chunk))) => {
                let mut writer = FrameWriter::new(out, frames, labels);
                put_chunk(&mut writer, chunk, files)?;
                for field in fields {
                    match field {
                        Ok((2, Value::Bytes(chunk))) => put_chunk(&mut writer, chunk, files)?,
                        _ => return Err(Unput::Malformed),
                    }
                }
                writer.finish();
                return Ok(());
            }
            _ => return Err(Unput::Malformed),
        }
    }
    Ok(())
}

#[inline]
fn put_chunk(
    writer: &mut FrameWriter<'_>,
    chunk: &[u8],
    files: &mut ChunkFiles,
) -> Result<(), Unput> {
    match split_chunk(chunk).ok_or(Unput::Malformed)? {
        Planned::Given(chunk) => writer.chunk(chunk.len()).extend_from_slice(chunk),
        Planned::Stored { times, file, offset } => {
            let (encoding, data) = files.chunk(file, offset).ok_or(Unput::LeftToEngine)?;
            let len = data.len() as u64;
            let out = writer.chunk(times.len() + 3 + uvarint_bytes(len) + data.len());
            out.extend_from_slice(times);
            // Tags of the fields `type` (3) and `data` (4) of upstream's message `Chunk`.
            out.extend_from_slice(&[0x18, encoding, 0x22]);
            put_uvarint(out, len);
            out.extend_from_slice(data);
        }
    }
    Ok(())
}

#[inline]
fn split_chunk(chunk: &[u8]) -> Option<Planned<'_>> {
    let mut times_end = 0;
    for tag in [0x08, 0x10] {
        // Protobuf omits fields with the value zero.
        if chunk.get(times_end) == Some(&tag) {
            let time = chunk.get(times_end + 1..)?;
            times_end += 2 + time.iter().position(|byte| *byte < 0x80)?;
        }
    }
    let (times, place) = chunk.split_at_checked(times_end)?;
    // Fields 5 and 6 exist only in plans: number of the file, and offset.
    let Some((0x28, place)) = place.split_first() else { return Some(Planned::Given(chunk)) };
    let (file, place) = split_uvarint(place)?;
    let (0x30, place) = place.split_first()? else { return None };
    let (offset, []) = split_uvarint(place)? else { return None };
    Some(Planned::Stored { times, file: usize::try_from(file).ok()?, offset })
}

#[cfg(test)]
mod tests;
