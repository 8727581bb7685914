//! Frames of a streamed remote read, and the rule by which a series is split into frames. Engine
//! and host both write frames: whichever of the two has the bytes of the chunks. The host may add
//! checksums later, because it has CPU instructions for CRC-32C.
//!
//! ```text
//! ┌────────────────┬──────────────────────────────┬─────────┐
//! │ length uvarint │ CRC-32C of the payload, BE   │ payload │  × frames
//! └────────────────┴──────────────────────────────┴─────────┘
//! ```
//!
//! The payload is a `prometheus.ChunkedReadResponse`: `chunked_series` 1, which occurs once, and
//! `query_index` 2. A series whose chunks exceed the frame's bound continues in further frames,
//! which repeat its labels.
//!
//! Source: Prometheus' remote read API document, section "Streamed chunks".

use crate::varint::{put_uvarint, split_uvarint, uvarint_bytes};

pub type Crc32c = fn(&[u8]) -> u32;

#[derive(Clone, Copy, Debug)]
pub struct FrameOptions {
    /// Index of the query in its request.
    pub query_index: u32,
    /// Size at which a frame is closed, in bytes.
    pub bytes_max: usize,
    /// Function for the checksums; without a function, checksums are zero.
    pub crc32c: Option<Crc32c>,
}

/// Bytes before the labels in a frame of 128 to 16,383 bytes, as most are: two lengths of two
/// bytes, the checksum and a tag.
const USUAL_HEAD_BYTES: usize = 9;

/// Writes one series as one or more frames. The last frame is complete only after
/// [`FrameWriter::finish`].
pub struct FrameWriter<'a> {
    out: &'a mut Vec<u8>,
    options: FrameOptions,
    labels: &'a [u8],
    /// Offset at which the current frame begins.
    frame_at: usize,
    /// Bytes of labels and chunks in the frame, to which the bound applies.
    counted_bytes: usize,
    /// Number of chunks in the frame.
    chunks: usize,
}

impl<'a> FrameWriter<'a> {
    /// Begins a series, whose labels are encoded as fields of a `prometheus.ChunkedSeries`. Frames
    /// are appended to `out`.
    pub fn new(out: &'a mut Vec<u8>, options: FrameOptions, labels: &'a [u8]) -> FrameWriter<'a> {
        let frame_at = out.len();
        FrameWriter { out, options, labels, frame_at, counted_bytes: 0, chunks: 0 }
    }

    /// Begins a chunk, as a `prometheus.Chunk` of `message_bytes`, which the caller appends to the
    /// returned buffer.
    #[inline]
    pub fn chunk(&mut self, message_bytes: usize) -> &mut Vec<u8> {
        // A frame is closed only when another chunk follows, so that no frame is empty.
        if self.chunks > 0 && self.counted_bytes >= self.options.bytes_max {
            self.end_frame();
        }
        if self.chunks == 0 {
            self.frame_at = self.out.len();
            self.counted_bytes = self.labels.len();
            // Lengths are known only at the end; the usual number of bytes is reserved for them.
            self.out.extend_from_slice(&[0; USUAL_HEAD_BYTES]);
            self.out.extend_from_slice(self.labels);
        }
        self.chunks += 1;
        self.counted_bytes += message_bytes;
        self.out.push(0x12);
        put_uvarint(self.out, message_bytes as u64);
        self.out
    }

    /// Ends the last frame. A series without chunks has no frame.
    pub fn finish(mut self) {
        if self.chunks > 0 {
            self.end_frame();
        }
    }

    fn end_frame(&mut self) {
        let FrameWriter { out, options, frame_at, .. } = self;
        let series_bytes = out.len() - *frame_at - USUAL_HEAD_BYTES;
        if options.query_index != 0 {
            out.push(0x10);
            put_uvarint(out, u64::from(options.query_index));
        }
        let content_bytes = out.len() - *frame_at - USUAL_HEAD_BYTES;
        let payload_bytes = 1 + uvarint_bytes(series_bytes as u64) + content_bytes;
        let mut head = Vec::with_capacity(2 * USUAL_HEAD_BYTES);
        put_uvarint(&mut head, payload_bytes as u64);
        let checksum_at = head.len();
        head.extend_from_slice(&[0; 4]);
        head.push(0x0a);
        put_uvarint(&mut head, series_bytes as u64);
        // Only a head of unusual length moves the frame's bytes.
        match out.get_mut(*frame_at..*frame_at + USUAL_HEAD_BYTES) {
            Some(place) if head.len() == USUAL_HEAD_BYTES => place.copy_from_slice(&head),
            _ => drop(out.splice(*frame_at..*frame_at + USUAL_HEAD_BYTES, head)),
        }
        let checksum_at = *frame_at + checksum_at;
        if let Some(crc32c) = options.crc32c
            && let Some((checksum, payload)) =
                out.get_mut(checksum_at..).and_then(<[u8]>::split_first_chunk_mut::<4>)
        {
            *checksum = crc32c(payload).to_be_bytes();
        }
        self.chunks = 0;
    }
}

/// Adds the checksum, a CRC-32C, to each of several complete frames. The error is the offset of
/// bytes that are not a frame.
pub fn seal_frames(frames: &mut [u8], crc32c: impl Fn(&[u8]) -> u32) -> Result<(), usize> {
    let bytes = frames.len();
    let mut rest = frames;
    while !rest.is_empty() {
        let offset = bytes - rest.len();
        let (payload_bytes, after) = split_uvarint(rest).ok_or(offset)?;
        let head_bytes = rest.len() - after.len();
        let payload_bytes = usize::try_from(payload_bytes).map_err(|_| offset)?;
        let (_, after) = rest.split_at_mut_checked(head_bytes).ok_or(offset)?;
        let (checksum, after) = after.split_first_chunk_mut::<4>().ok_or(offset)?;
        let (payload, after) = after.split_at_mut_checked(payload_bytes).ok_or(offset)?;
        *checksum = crc32c(payload).to_be_bytes();
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a frame with all lengths known beforehand.
    fn frame(labels: &[u8], chunks: &[Vec<u8>], query_index: u32) -> Vec<u8> {
        let mut series = labels.to_vec();
        for chunk in chunks {
            series.push(0x12);
            put_uvarint(&mut series, chunk.len() as u64);
            series.extend_from_slice(chunk);
        }
        let mut payload = vec![0x0a];
        put_uvarint(&mut payload, series.len() as u64);
        payload.extend(series);
        if query_index > 0 {
            payload.push(0x10);
            put_uvarint(&mut payload, u64::from(query_index));
        }
        let mut frame = Vec::new();
        put_uvarint(&mut frame, payload.len() as u64);
        frame.extend(crc32c::crc32c(&payload).to_be_bytes());
        frame.extend(payload);
        frame
    }

    #[test]
    fn frames_of_all_sizes_are_those_of_the_layout() {
        let labels = *b"\x0a\x04\x0a\x00\x12\x00";
        for bytes in [0, 1, 90, 110, 120, 130, 16_300, 16_370, 16_384, 3_000_000] {
            for query_index in [0, 1, 300] {
                let chunks = [vec![7; bytes], vec![8; 3]];
                let crc32c = Some(crc32c::crc32c as Crc32c);
                let options = FrameOptions { query_index, bytes_max: bytes + 6, crc32c };
                let mut out = b"before".to_vec();
                let mut writer = FrameWriter::new(&mut out, options, &labels);
                chunks.iter().for_each(|chunk| writer.chunk(chunk.len()).extend(chunk));
                writer.finish();
                let mut expected = b"before".to_vec();
                for chunk in &chunks {
                    expected.extend(frame(&labels, std::slice::from_ref(chunk), query_index));
                }
                assert_eq!(out, expected, "{bytes}, {query_index}");
                // One byte more, and both are in one frame; a frame without a checksum can get it.
                let options = FrameOptions { bytes_max: bytes + 7, crc32c: None, ..options };
                out.clear();
                let mut writer = FrameWriter::new(&mut out, options, &labels);
                chunks.iter().for_each(|chunk| writer.chunk(chunk.len()).extend(chunk));
                writer.finish();
                assert_eq!(seal_frames(&mut out, crc32c::crc32c), Ok(()));
                assert_eq!(out, frame(&labels, &chunks, query_index), "{bytes}, {query_index}");
            }
        }
        let options = FrameOptions { query_index: 0, bytes_max: 1, crc32c: None };
        let mut out = Vec::new();
        FrameWriter::new(&mut out, options, &labels).finish();
        assert_eq!(out, b"", "nothing but labels");
    }

    #[test]
    fn each_frame_gets_its_checksum() {
        let long = [7u8; 200];
        let mut frames = vec![3, 0, 0, 0, 0, 1, 2, 3, 200, 1, 0, 0, 0, 0];
        frames.extend_from_slice(&long);
        let mut expected = frames.clone();
        expected[1..5].copy_from_slice(&crc32c::crc32c(&[1, 2, 3]).to_be_bytes());
        expected[10..14].copy_from_slice(&crc32c::crc32c(&long).to_be_bytes());
        assert_eq!(seal_frames(&mut frames, crc32c::crc32c), Ok(()));
        assert_eq!(frames, expected);
        assert_eq!(seal_frames(&mut [], crc32c::crc32c), Ok(()));
    }

    #[test]
    fn what_is_cut_short_is_no_frame() {
        let whole = [1, 0, 0, 0, 0, 9, 3, 0, 0, 0, 0, 1, 2, 3];
        for end in 7..whole.len() {
            let mut cut = whole;
            assert_eq!(seal_frames(&mut cut[..end], crc32c::crc32c), Err(6), "{end}");
        }
        assert_eq!(seal_frames(&mut [0x80; 12], crc32c::crc32c), Err(0));
    }
}
