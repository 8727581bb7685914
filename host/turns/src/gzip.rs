//! gzip as a stream: compressed pieces in, uncompressed pieces out, in 16 kB at a time.
//!
//! Source: RFC 1952. Members may follow one another.
//!
//! flate2's `write::MultiGzDecoder` makes a new decoder for each member and does not tell where a
//! member ends, so a body of a million empty members could not be refused.

use crate::Idle;
use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Size of the pieces that come out.
pub const PIECE_BYTES: usize = 16 * 1024;

/// Longest head of a member, which may hold a name and a remark.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes behind the data of a member: checksum and size.
const TAIL_BYTES: usize = 8;

/// What is wrong with compressed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GunzipError {
    /// It begins like something else.
    #[error("it does not begin as gzip does")]
    Head,
    /// The data cannot be uncompressed.
    #[error("the compressed data is damaged")]
    Data,
    /// Checksum or size differ.
    #[error("its checksum does not match")]
    Checksum,
    /// It ends too early.
    #[error("it is cut off")]
    CutOff,
    /// It has more members with hardly any data than any sender makes.
    #[error("it has more than {MEMBERS_SMALL_MAX} members of fewer than {SMALL_BYTES} bytes")]
    Small,
}

/// Most members with hardly any data in a body. Each costs a hundred times what its bytes let
/// expect.
const MEMBERS_SMALL_MAX: u32 = 1000;

/// What a member has at least that is not counted: a line or two of a text.
const SMALL_BYTES: u64 = 64;

/// Uncompressors that wait to be used again, by any target: they take some 60 kB each, which a new
/// one would have to get and clear.
static IDLE: Idle<Gunzip> = Idle::new(IDLE_MAX);

/// More bodies are read at the same time only where scrapes fall together.
const IDLE_MAX: usize = 2;

/// Uncompresses one body.
#[derive(Debug)]
pub struct Gunzip {
    state: State,
    /// Bytes of a head or a tail that is not complete.
    held: Vec<u8>,
    inflate: Decompress,
    crc: Crc,
    out: Vec<u8>,
    /// Members with hardly any data so far.
    members_small: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the head of a member; whether it is the first.
    Head { is_first: bool },
    /// In the data of a member.
    Data,
    /// Behind it.
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
    /// One that waits to be used again, or a new one.
    pub fn idle() -> Gunzip {
        IDLE.take().unwrap_or_default()
    }

    /// Lets another body use it, wherever in its own it is.
    pub fn reuse(mut self) {
        self.next_member();
        self.members_small = 0;
        self.state = State::Head { is_first: true };
        if self.held.capacity() <= PIECE_BYTES {
            IDLE.give(self);
        }
    }

    /// Takes some of a compressed piece, and returns what it says: at most 16 kB, and nothing at
    /// the end of a member. `None` once the piece is taken and needs the next one: each call is a
    /// short step, whatever the piece says.
    pub fn next(&mut self, piece: &mut &[u8]) -> Result<Option<&[u8]>, GunzipError> {
        loop {
            match self.state {
                State::Head { .. } | State::Tail if piece.is_empty() => return Ok(None),
                State::Head { .. } => *piece = self.head(piece)?,
                State::Tail => {
                    *piece = self.tail(piece)?;
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

    /// Takes a compressed piece as a whole, and hands out what it says. Stops at the first error of
    /// either side.
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

    /// Whether the body may end here.
    pub fn finish(&self) -> Result<(), GunzipError> {
        match self.state {
            State::Head { is_first: false } if self.held.is_empty() => Ok(()),
            _ => Err(GunzipError::CutOff),
        }
    }

    /// Begins the next member.
    fn next_member(&mut self) {
        self.state = State::Head { is_first: false };
        self.held.clear();
        self.inflate.reset(false);
        self.crc.reset();
    }

    fn head<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], GunzipError> {
        // Copied only where it is cut: a piece can have a million heads.
        if self.held.is_empty()
            && let Some(bytes) = head_bytes(&piece[..HEAD_BYTES_MAX.min(piece.len())])?
        {
            self.state = State::Data;
            return Ok(&piece[bytes..]);
        }
        let held = self.held.len();
        let room = HEAD_BYTES_MAX.saturating_sub(held).min(piece.len());
        self.held.extend_from_slice(&piece[..room]);
        match head_bytes(&self.held)? {
            Some(bytes) => {
                self.held.clear();
                self.state = State::Data;
                Ok(&piece[bytes - held..])
            }
            None if self.held.len() >= HEAD_BYTES_MAX => Err(GunzipError::Head),
            None => Ok(&[]),
        }
    }

    /// Uncompresses once into `out`, and returns how many bytes. Without any it needs more, or the
    /// data has ended.
    fn data(&mut self, piece: &mut &[u8]) -> Result<usize, GunzipError> {
        self.out.resize(PIECE_BYTES, 0);
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(piece, &mut self.out, FlushDecompress::None)
            .map_err(|_| GunzipError::Data)?;
        let read = (self.inflate.total_in() - read) as usize;
        let written = (self.inflate.total_out() - written) as usize;
        *piece = piece.get(read..).unwrap_or_default();
        self.crc.update(self.out.get(..written).unwrap_or_default());
        match status {
            Status::StreamEnd => self.state = State::Tail,
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

/// Length of the head that begins here; none if more is needed.
fn head_bytes(bytes: &[u8]) -> Result<Option<usize>, GunzipError> {
    const FIXED_BYTES: usize = 10;
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const REMARK: u8 = 16;
    let magic = [0x1f, 0x8b, 8];
    if bytes.iter().zip(magic).any(|(byte, expected)| *byte != expected) {
        return Err(GunzipError::Head);
    }
    let Some(&flags) = bytes.get(3) else { return Ok(None) };
    if flags & 0xe0 != 0 {
        return Err(GunzipError::Head);
    }
    let mut end = FIXED_BYTES;
    if flags & EXTRA != 0 {
        let Some([low, high]) = bytes.get(end..end + 2) else { return Ok(None) };
        end += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
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

    /// The story of a body of a million members without data: each has an uncompressor begin anew,
    /// and none says anything, so nothing counted them and nothing else ran.
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

    /// The story of 500 kB that were uncompressed to 500 MB before anything else ran.
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
