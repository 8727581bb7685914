//! Streaming gzip decompression: takes compressed pieces, returns at most 16 KiB at a time.
//!
//! Source: RFC 1952; a body may have several members. flate2's `write::MultiGzDecoder` does not
//! report the ends of members, so a body of a million empty members could not be refused.

use crate::Idle;
use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Largest uncompressed piece that one step returns.
pub const PIECE_BYTES: usize = 16 * 1024;

/// Longest header of a member, which may contain a file name and a comment.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Trailer of a member: CRC-32 and size, four bytes each.
const TAIL_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GunzipError {
    #[error("it does not begin as gzip does")]
    Head,
    #[error("the compressed data is damaged")]
    Data,
    #[error("its checksum does not match")]
    Checksum,
    #[error("it is cut off")]
    CutOff,
    /// More small members than any real sender writes.
    #[error("it has more than {MEMBERS_SMALL_MAX} members of fewer than {SMALL_BYTES} bytes")]
    Small,
}

/// Maximum number of small members in a body: each costs a hundred times as much as its bytes.
const MEMBERS_SMALL_MAX: u32 = 1000;

/// Smallest uncompressed size at which a member is not small: a line or two of text.
const SMALL_BYTES: u64 = 64;

/// Idle decompressors for reuse by bodies of any target. A new decompressor has to allocate and
/// clear some 60 kB.
static IDLE: Idle<Gunzip> = Idle::new(IDLE_MAX);

/// Scrapes rarely coincide, so more than two bodies are seldom decompressed at once.
const IDLE_MAX: usize = 2;

/// Decompressor of one body, which may have several members.
#[derive(Debug)]
pub struct Gunzip {
    state: State,
    /// Bytes of an incomplete header or trailer.
    held: Vec<u8>,
    inflate: Decompress,
    crc: Crc,
    out: Vec<u8>,
    /// Members of fewer than [`SMALL_BYTES`] bytes so far.
    members_small: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Header of a member; a body is incomplete before its first member.
    Head { is_first: bool },
    /// Compressed data of the member.
    Data,
    /// Trailer after the compressed data.
    Tail,
}

impl Default for Gunzip {
    fn default() -> Gunzip {
        Gunzip {
            state: State::Head { is_first: true },
            held: Vec::new(),
            inflate: Decompress::new(false),
            crc: Crc::new(),
            out: Vec::new(),
            members_small: 0,
        }
    }
}

impl Gunzip {
    /// Returns an idle decompressor, or a new one.
    pub fn idle() -> Gunzip {
        IDLE.take().unwrap_or_default()
    }

    /// Keeps the decompressor for the next body, even if its own body was not read to the end.
    pub fn reuse(mut self) {
        // A body needs at least one member, so the state is that before a first member.
        self.next_member();
        self.members_small = 0;
        self.state = State::Head { is_first: true };
        // Not kept if a long file name has grown the buffer: idle decompressors stay small.
        if self.held.capacity() <= PIECE_BYTES {
            IDLE.give(self);
        }
    }

    /// Reads from a compressed piece and returns the next uncompressed bytes: at most
    /// [`PIECE_BYTES`], and an empty slice at the end of a member. Returns `None` when the piece is
    /// used up. Each call is a short step.
    pub fn next(&mut self, piece: &mut &[u8]) -> Result<Option<&[u8]>, GunzipError> {
        loop {
            match self.state {
                State::Head { .. } | State::Tail if piece.is_empty() => return Ok(None),
                State::Head { .. } => *piece = self.head(piece)?,
                State::Tail => {
                    *piece = self.tail(piece)?;
                    // The step ends here, so that a body of empty members cannot block the thread.
                    return Ok(Some(&[]));
                }
                State::Data => {
                    let written = self.data(piece)?;
                    if written > 0 {
                        return Ok(self.out.get(..written));
                    }
                    if self.state == State::Data {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Uncompresses a whole piece and passes the bytes to `take`. Stops at the first error of the
    /// decompressor or of `take`.
    pub fn push<E: From<GunzipError>>(
        &mut self,
        mut piece: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(bytes) = self.next(&mut piece)? {
            if !bytes.is_empty() {
                take(bytes)?;
            }
        }
        Ok(())
    }

    /// Returns an error if the body is incomplete at this point.
    pub fn finish(&self) -> Result<(), GunzipError> {
        match self.state {
            State::Head { is_first: false } if self.held.is_empty() => Ok(()),
            _ => Err(GunzipError::CutOff),
        }
    }

    fn next_member(&mut self) {
        self.state = State::Head { is_first: false };
        self.held.clear();
        self.inflate.reset(false);
        self.crc.reset();
    }

    fn head<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], GunzipError> {
        // Parsed in place unless it is split over pieces: a piece may contain a million headers.
        if self.held.is_empty()
            && let Some(bytes) = head_bytes(&piece[..HEAD_BYTES_MAX.min(piece.len())])?
        {
            self.state = State::Data;
            return Ok(&piece[bytes..]);
        }
        let held = self.held.len();
        // The bound keeps a name without its final zero byte from buffering the whole body.
        let room = HEAD_BYTES_MAX.saturating_sub(held).min(piece.len());
        self.held.extend_from_slice(&piece[..room]);
        match head_bytes(&self.held)? {
            Some(bytes) => {
                self.held.clear();
                self.state = State::Data;
                // Earlier pieces had only a part of the header, so it ends in this piece.
                Ok(&piece[bytes - held..])
            }
            None if self.held.len() >= HEAD_BYTES_MAX => Err(GunzipError::Head),
            None => Ok(&[]),
        }
    }

    /// Decompresses once into `out` and returns the number of bytes. Zero means that more input is
    /// needed, or that the compressed data has ended.
    fn data(&mut self, piece: &mut &[u8]) -> Result<usize, GunzipError> {
        self.out.resize(PIECE_BYTES, 0);
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(piece, &mut self.out, FlushDecompress::None)
            .map_err(|_| GunzipError::Data)?;
        // Both differences are bounded by the length of a slice.
        let read = (self.inflate.total_in() - read) as usize;
        let written = (self.inflate.total_out() - written) as usize;
        *piece = piece.get(read..).unwrap_or_default();
        self.crc.update(self.out.get(..written).unwrap_or_default());
        match status {
            Status::StreamEnd => self.state = State::Tail,
            // Without progress on the remaining input, the caller would loop forever.
            _ if (read, written) == (0, 0) && !piece.is_empty() => return Err(GunzipError::Data),
            _ => {}
        }
        Ok(written)
    }

    fn tail<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], GunzipError> {
        let room = (TAIL_BYTES - self.held.len()).min(piece.len());
        self.held.extend_from_slice(&piece[..room]);
        if let Some(tail) = self.held.first_chunk::<TAIL_BYTES>() {
            let [a, b, c, d, rest @ ..] = *tail;
            // RFC 1952 stores the size modulo 2^32, so the cast truncates on purpose.
            let is_intact = u32::from_le_bytes([a, b, c, d]) == self.crc.sum()
                && u32::from_le_bytes(rest) == self.inflate.total_out() as u32;
            if !is_intact {
                return Err(GunzipError::Checksum);
            }
            if self.inflate.total_out() < SMALL_BYTES {
                self.members_small += 1;
                if self.members_small > MEMBERS_SMALL_MAX {
                    return Err(GunzipError::Small);
                }
            }
            self.next_member();
        }
        Ok(&piece[room..])
    }
}

/// Returns the length of the header at the start of `bytes`, or `None` if it is incomplete.
fn head_bytes(bytes: &[u8]) -> Result<Option<usize>, GunzipError> {
    const FIXED_BYTES: usize = 10;
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const REMARK: u8 = 16;
    let magic = [0x1f, 0x8b, 8];
    // Compares only the bytes that have arrived, which refuses other data early.
    if bytes.iter().zip(magic).any(|(byte, expected)| *byte != expected) {
        return Err(GunzipError::Head);
    }
    let Some(&flags) = bytes.get(3) else { return Ok(None) };
    // RFC 1952, section 2.3.1.2: a reserved bit that is set has to be refused.
    if flags & 0xe0 != 0 {
        return Err(GunzipError::Head);
    }
    let mut end = FIXED_BYTES;
    if flags & EXTRA != 0 {
        let Some([low, high]) = bytes.get(end..end + 2) else { return Ok(None) };
        end += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    // RFC 1952 has the file name before the comment.
    for flag in [NAME, REMARK] {
        if flags & flag != 0 {
            let Some(rest) = bytes.get(end..) else { return Ok(None) };
            let Some(length) = rest.iter().position(|byte| *byte == 0) else { return Ok(None) };
            end += length + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        end += 2;
    }
    Ok((bytes.len() >= end).then_some(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder, write::GzEncoder};
    use std::io::Write as _;

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn uncompressed(body: &[u8], piece_bytes: usize) -> Result<Vec<u8>, GunzipError> {
        let mut gunzip = Gunzip::default();
        let mut out = Vec::new();
        for piece in body.chunks(piece_bytes) {
            gunzip.push(piece, |bytes| {
                out.extend_from_slice(bytes);
                Ok::<(), GunzipError>(())
            })?;
        }
        gunzip.finish().map(|()| out)
    }

    /// A scrape may end anywhere in a body.
    #[test]
    fn one_that_is_used_again_begins_anew() {
        let (text, take) = (text(), |_: &[u8]| Ok::<(), GunzipError>(()));
        let body = compressed(&text);
        for bytes in [0, 5, body.len() / 2, body.len() - 3, body.len()] {
            let mut gunzip = Gunzip::default();
            gunzip.push(&body[..bytes], take).expect("it is a body");
            gunzip.reuse();
            let mut gunzip = Gunzip::idle();
            assert_eq!(gunzip.finish(), Err(GunzipError::CutOff));
            let mut out = Vec::new();
            let taken = gunzip.push(&body, |bytes| {
                out.extend_from_slice(bytes);
                Ok::<(), GunzipError>(())
            });
            assert_eq!((taken, gunzip.finish()), (Ok(()), Ok(())));
            assert_eq!(out, text);
        }
    }

    fn text() -> Vec<u8> {
        (0..20_000u32)
            .flat_map(|number| format!("metric_{number} {number}\n").into_bytes())
            .collect()
    }

    #[test]
    fn pieces_of_any_size_say_the_same() {
        let text = text();
        let named = GzBuilder::new().filename("name").comment("remark").extra(vec![1, 2, 3]);
        let mut encoder = named.write(Vec::new(), Compression::fast());
        encoder.write_all(&text[..1000]).expect("memory takes it");
        let mut body = encoder.finish().expect("memory takes it");
        body.extend(compressed(&text[1000..]));
        for piece_bytes in [1, 7, 4096, usize::MAX] {
            assert_eq!(uncompressed(&body, piece_bytes).as_ref(), Ok(&text), "{piece_bytes}");
        }
        assert_eq!(uncompressed(&compressed(b""), 3), Ok(Vec::new()));
        assert_eq!(
            uncompressed(&compressed(&vec![b'a'; PIECE_BYTES]), 3).map(|o| o.len()),
            Ok(PIECE_BYTES)
        );
    }

    #[test]
    fn damage_is_found() {
        let body = compressed(&text());
        assert_eq!(uncompressed(b"", 1), Err(GunzipError::CutOff));
        assert_eq!(uncompressed(b"metric 1\n", 4), Err(GunzipError::Head));
        for end in [1, 9, 10, 100, body.len() - 9, body.len() - 1] {
            assert_eq!(uncompressed(&body[..end], 64), Err(GunzipError::CutOff), "{end}");
        }
        let mut wrong = body.clone();
        let checksum = wrong.len() - 8;
        wrong[checksum] ^= 1;
        assert_eq!(uncompressed(&wrong, 64), Err(GunzipError::Checksum));
        let mut head = body[..10].to_vec();
        head[3] = 8;
        head.extend([b'a'; HEAD_BYTES_MAX]);
        assert_eq!(uncompressed(&head, 1024), Err(GunzipError::Head));
        let mut behind = body;
        behind.push(0);
        assert_eq!(uncompressed(&behind, 64), Err(GunzipError::Head));
    }

    /// Regression: a body of a million empty members reset the decompressor for each, which nothing
    /// counted, and no other task ran.
    #[test]
    fn members_with_hardly_any_data_are_bounded() {
        let full = compressed(&text());
        for small in [compressed(b""), compressed(b"a")] {
            let few = [full.clone(), small.repeat(10), full.clone()].concat();
            assert!(uncompressed(&few, 100).is_ok());
            let many = [full.clone(), small.repeat(1_000_000)].concat();
            let mut gunzip = Gunzip::default();
            let (mut rest, mut steps) = (&many[..], 0);
            let error = loop {
                match gunzip.next(&mut rest) {
                    Ok(_) => steps += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(error, GunzipError::Small);
            assert!(steps < 3 * MEMBERS_SMALL_MAX, "{steps}");
        }
    }

    /// Regression: 500 kB were uncompressed to 500 MB before any other task ran.
    #[test]
    fn a_step_is_short_whatever_the_piece_says() {
        let body = compressed(&vec![b'a'; 32 << 20]);
        let mut gunzip = Gunzip::default();
        let (mut rest, mut steps, mut bytes) = (&body[..], 0, 0);
        while let Some(out) = gunzip.next(&mut rest).expect("it is a body") {
            assert!(out.len() <= PIECE_BYTES);
            (steps, bytes) = (steps + 1, bytes + out.len());
        }
        assert_eq!((bytes, gunzip.finish()), (32 << 20, Ok(())));
        assert!(steps >= (32 << 20) / PIECE_BYTES, "{steps}");
    }

    #[test]
    fn an_error_of_the_reader_ends_a_bomb_at_once() {
        #[derive(Debug, PartialEq)]
        enum Stop {
            Full,
            Gzip(GunzipError),
        }
        impl From<GunzipError> for Stop {
            fn from(error: GunzipError) -> Stop {
                Stop::Gzip(error)
            }
        }
        let body = compressed(&vec![0; 64 * 1024 * 1024]);
        let mut seen = 0;
        let result = Gunzip::default().push(&body, |bytes| {
            seen += bytes.len();
            if seen > 100_000 { Err(Stop::Full) } else { Ok(()) }
        });
        assert_eq!(result, Err(Stop::Full));
        assert!(seen <= 100_000 + PIECE_BYTES);
    }
}
