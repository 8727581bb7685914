//! Requests of which only times and values are new.
//!
//! A 2.0 sender that scrapes the same targets sends the same symbols and the same references to
//! them, request for request. What they lead to is kept as a *shape*: the bytes of the symbols, and
//! of each series its encoded references and its slot. A request that has the same bytes is known
//! without decoding or hashing any of them.
//!
//! Invariants: nothing is taken for known but by comparing all its bytes; a slot in a shape holds
//! the series that it held when the shape was made, since shapes go when series are forgotten;
//! bytes are bounded, and what is seen but once is not kept.

use crate::codec::{bytes_equal, hash_bytes};
use crate::head::{Head, HeadOptions, Slot};
use crate::memory::MemoryBudget;
use crate::wire::EncodedSeries;
use rustc_hash::FxHashMap;

/// Most bytes that all shapes take together, however much memory there is.
const BYTES_MAX: usize = 8 << 20;
/// Their part of a bounded memory.
const MEMORY_PART: u64 = 64;
/// Fewest series of a request that is worth it.
const SERIES_MIN: usize = 32;
/// A shape that was not seen for so long makes room for others.
const IDLE_MS: u64 = 10 * 60 * 1000;
/// How many requests are remembered as seen once.
const SEEN: usize = 2048;
/// Taken for each shape beside its bytes.
const SHAPE_BYTES: usize = 128;

/// The shapes that are known.
#[derive(Default)]
pub struct Shapes {
    shapes: FxHashMap<u64, Shape>,
    bytes: usize,
    /// How many series the head had forgotten when it was last looked at.
    removed: u64,
    /// Hashes of requests that were seen, each at the place that it names; empty before the first.
    seen: Vec<u64>,
}

/// One shape. While a request is held against it, it is the request's.
struct Shape {
    symbols: Box<[u8]>,
    /// Of each series the references, and the metadata if it has any.
    encoded: Box<[u8]>,
    series: Box<[KnownSeries]>,
    used_ms: i64,
}

#[derive(Clone, Copy)]
struct KnownSeries {
    slot: Slot,
    refs_bytes: u16,
    /// [`NO_METADATA`] if there is none.
    metadata_bytes: u8,
    /// Whether no earlier series of the request said the same of the same metric.
    says_metadata: bool,
}

const NO_METADATA: u8 = u8::MAX;

/// What is done with the running request.
pub enum Shaping<'r> {
    /// Nothing: it has no symbols, was not seen before, or is not what it was.
    Off,
    /// Its symbols are these, and its first series decides.
    Begins(&'r [u8]),
    /// It is held against a shape.
    Held(Held),
    /// It may become one.
    Noted(Noted<'r>),
}

/// A request that is held against a shape.
pub struct Held {
    key: u64,
    shape: Shape,
    next: usize,
    next_at: usize,
}

/// A request that becomes a shape.
pub struct Noted<'r> {
    key: u64,
    symbols: &'r [u8],
    series: Vec<(EncodedSeries<'r>, KnownSeries)>,
    bytes: usize,
    bytes_max: usize,
}

impl Shapes {
    /// Decides by its first series what is done with a request.
    pub fn begin<'r>(
        &mut self,
        head: &Head,
        symbols: &'r [u8],
        first: EncodedSeries<'r>,
    ) -> Shaping<'r> {
        let HeadOptions { hash_seed, memory, .. } = head.options();
        let removed = head.counters.series_removed;
        if std::mem::replace(&mut self.removed, removed) != removed || memory.caches_go() {
            self.shapes = FxHashMap::default();
            self.bytes = 0;
        }
        // Requests whose symbols are the same may name other series.
        let key = hash_bytes(hash_bytes(*hash_seed, symbols), first.refs);
        if let Some(shape) = self.shapes.remove(&key) {
            self.bytes -= shape.bytes();
            if bytes_equal(&shape.symbols, symbols) {
                return Shaping::Held(Held { key, shape, next: 0, next_at: 0 });
            }
        }
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN];
        }
        let seen = &mut self.seen[key as usize % SEEN];
        if std::mem::replace(seen, key) != key || memory.caches_go() {
            return Shaping::Off;
        }
        let bytes = SHAPE_BYTES + symbols.len();
        let bytes_max = bytes_max(memory);
        Shaping::Noted(Noted { key, symbols, series: Vec::new(), bytes, bytes_max })
    }

    /// Keeps what the running request was held against.
    pub fn keep(&mut self, held: Held, now_ms: i64) {
        let shape = Shape { used_ms: now_ms, ..held.shape };
        self.bytes += shape.bytes();
        self.shapes.insert(held.key, shape);
    }

    /// Keeps a request that was noted, if there is room.
    pub fn add(&mut self, noted: Noted<'_>, now_ms: i64) {
        if noted.series.len() < SERIES_MIN || noted.bytes > noted.bytes_max {
            return;
        }
        if self.bytes + noted.bytes > noted.bytes_max {
            let is_used = |shape: &Shape| shape.used_ms.abs_diff(now_ms) < IDLE_MS;
            self.shapes.retain(|_, shape| is_used(shape));
            self.bytes = self.shapes.values().map(Shape::bytes).sum();
            if self.bytes + noted.bytes > noted.bytes_max {
                return;
            }
        }
        self.keep(Held { key: noted.key, shape: noted.shape(), next: 0, next_at: 0 }, now_ms);
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shapes.len()
    }
}

fn bytes_max(memory: &MemoryBudget) -> usize {
    match usize::try_from(memory.bytes_max / MEMORY_PART) {
        Ok(part) if memory.bytes_max > 0 => part.min(BYTES_MAX),
        _ => BYTES_MAX,
    }
}

impl Shape {
    fn bytes(&self) -> usize {
        let series = std::mem::size_of_val(&*self.series);
        SHAPE_BYTES + self.symbols.len() + self.encoded.len() + series
    }
}

impl Held {
    /// The slot of the next series, if it is the one that the shape has next, and whether it has
    /// metadata that no earlier one of the request has. If it is another one, the request must not
    /// be held against the shape any longer.
    #[inline]
    pub fn next(&mut self, series: EncodedSeries<'_>) -> Option<(Slot, bool)> {
        let known = self.shape.series.get(self.next)?;
        let rest = self.shape.encoded.get(self.next_at..)?;
        let (refs, rest) = rest.split_at_checked(known.refs_bytes.into())?;
        if !bytes_equal(refs, series.refs) {
            return None;
        }
        let mut bytes = refs.len();
        match series.metadata {
            None if known.metadata_bytes == NO_METADATA => {}
            Some(metadata) => {
                let held = rest.get(..known.metadata_bytes.into())?;
                if !bytes_equal(held, metadata) {
                    return None;
                }
                bytes += held.len();
            }
            None => return None,
        }
        self.next += 1;
        self.next_at += bytes;
        Some((known.slot, known.says_metadata))
    }
}

impl<'r> Noted<'r> {
    /// Notes the next series; gives whether the request can become a shape.
    pub fn push(&mut self, series: EncodedSeries<'r>, slot: Slot) -> bool {
        let metadata = series.metadata.unwrap_or_default();
        self.bytes += size_of::<KnownSeries>() + series.refs.len() + metadata.len();
        let (Ok(refs_bytes), Ok(metadata_bytes)) =
            (u16::try_from(series.refs.len()), u8::try_from(metadata.len()))
        else {
            return false;
        };
        let fits = metadata_bytes != NO_METADATA && self.bytes <= self.bytes_max;
        let metadata_bytes = series.metadata.map_or(NO_METADATA, |_| metadata_bytes);
        let says_metadata = false;
        self.series.push((series, KnownSeries { slot, refs_bytes, metadata_bytes, says_metadata }));
        fits
    }

    /// Notes that the last series has metadata that no earlier one has.
    pub fn says_metadata(&mut self) {
        if let Some((_, last)) = self.series.last_mut() {
            last.says_metadata = true;
        }
    }

    fn shape(&self) -> Shape {
        let mut encoded = Vec::with_capacity(self.bytes);
        let series = self.series.iter().map(|(series, known)| {
            encoded.extend_from_slice(series.refs);
            encoded.extend_from_slice(series.metadata.unwrap_or_default());
            *known
        });
        let series = series.collect();
        Shape { symbols: self.symbols.into(), encoded: encoded.into(), series, used_ms: 0 }
    }
}
