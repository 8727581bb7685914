//! Cache of requests that are sent again with new times and values only.
//!
//! A 2.0 sender that scrapes the same targets sends the same symbols and the same references to
//! them in each request. The result of their lookup is kept as a *template*: the bytes of the
//! symbols, and for each series its encoded references and its slot. Series of a request with the
//! same bytes are found without decoding or hashing their labels.
//!
//! Neighbouring series share most references, and have neighbouring slots. So a template stores
//! each series as its difference to the series before:
//!
//! ```text
//! ┌───────┬────────┬────────┬───────┬─────────────────┬─────────────────────────┐
//! │ flags │ before │ length │ after │ references      │ length, metadata        │
//! └───────┴────────┴────────┴───────┴─────────────────┴─────────────────────────┘
//!   a byte each: the flags below;     the `length`      only if flags have neither
//!   how many bytes at the beginning   bytes in          SAME_METADATA nor
//!   and end equal the series before   between           NO_METADATA
//! ```
//!
//! Invariants: a template is used only while all symbols, references and metadata are equal. A slot
//! still holds the series that it held when the template was made, because dropping any series
//! drops all templates. Their bytes are bounded, and a request gets a template when seen twice.

use crate::codec::{bytes_equal, hash_bytes};
use crate::head::{Head, HeadOptions, Slot};
use crate::wire::EncodedSeries;
use rustc_hash::FxHashMap;

/// Bytes that all templates may need together, however few series the head has.
const BYTES_MIN: usize = 160 << 10;
/// Bytes that all templates may need together for each series of the head, if that is more.
const BYTES_PER_SERIES: usize = 12;
/// Divisor: templates may need at most 1/64 of a bounded memory.
const MEMORY_PART: u64 = 64;
/// Fewest series of a request that gets a template.
const SERIES_MIN: usize = 32;
/// Idle time after which a template makes room for others, in milliseconds.
const IDLE_MS: u64 = 10 * 60 * 1000;
/// Number of requests that are remembered as seen once.
const SEEN: usize = 1024;
/// Bytes of each template besides its content.
const TEMPLATE_BYTES: usize = 128;

/// The template cache of a head.
#[derive(Default)]
pub struct RequestTemplates {
    templates: FxHashMap<u64, Template>,
    bytes: usize,
    /// Number of series that the head had dropped when the last request began.
    removed: u64,
    /// Hashes of requests seen, each at the index `hash % SEEN`; empty before the first request.
    seen: Vec<u64>,
}

/// One template. The request that is compared with a template owns it until the request ends.
struct Template {
    symbols: Box<[u8]>,
    /// The series, in the layout above.
    series: Box<[u8]>,
    /// Slots of the series without [`NEXT_SLOT`].
    slots: Box<[Slot]>,
    used_ms: i64,
}

/// The slot directly follows the slot of the series before.
const NEXT_SLOT: u8 = 1;
/// The series is the first of the request with this metadata of its metric.
const SAYS_METADATA: u8 = 2;
/// The metadata equals that of the series before, or both series have none.
const SAME_METADATA: u8 = 4;
/// The series has no metadata.
const NO_METADATA: u8 = 8;

/// Use of templates by the running request.
pub enum TemplateState<'r> {
    /// No template: the request has no symbols, is new, or differs from its template.
    Off,
    /// The request has these symbols; its first series decides which state follows.
    Begins(&'r [u8]),
    /// The request is compared with a template.
    Matching(Matching<'r>),
    /// The request may become a template.
    Recording(Recording<'r>),
}

pub struct Matching<'r> {
    key: u64,
    template: Template,
    /// Offset of the next series in the template.
    next_at: usize,
    /// Index of the next slot in the template.
    next_slot: usize,
    before: Before<'r>,
}

pub struct Recording<'r> {
    key: u64,
    symbols: &'r [u8],
    series: Vec<u8>,
    slots: Vec<Slot>,
    count: usize,
    bytes_max: usize,
    before: Before<'r>,
    /// Offset of the last series' flags.
    flags_at: usize,
}

/// The series before the current one; empty for the first.
#[derive(Default)]
struct Before<'r> {
    refs: &'r [u8],
    metadata: Option<&'r [u8]>,
    slot: Option<Slot>,
}

impl RequestTemplates {
    /// Decides from the first series of a request whether a template is used or recorded.
    pub fn begin<'r>(
        &mut self,
        head: &Head,
        symbols: &'r [u8],
        first: EncodedSeries<'r>,
    ) -> TemplateState<'r> {
        let HeadOptions { hash_seed, memory, .. } = head.options();
        let removed = head.counters.series_removed;
        // Another series may have the slot of a dropped series.
        if std::mem::replace(&mut self.removed, removed) != removed || memory.caches_go() {
            self.templates = FxHashMap::default();
            self.bytes = 0;
        }
        // Requests of other series may use the same symbols, so the key includes the first series.
        let key = hash_bytes(hash_bytes(*hash_seed, symbols), first.refs);
        // Removed from the cache, and put back only by a request that equals it to the end.
        if let Some(template) = self.templates.remove(&key) {
            self.bytes -= template.bytes();
            if bytes_equal(&template.symbols, symbols) {
                return TemplateState::Matching(Matching::new(key, template));
            }
        }
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN];
        }
        // A collision of two requests only delays their recording.
        let seen = &mut self.seen[key as usize % SEEN];
        if std::mem::replace(seen, key) != key || memory.caches_go() {
            return TemplateState::Off;
        }
        let bytes_max = bytes_max(head);
        TemplateState::Recording(Recording {
            key,
            symbols,
            series: Vec::new(),
            slots: Vec::new(),
            count: 0,
            bytes_max,
            before: Before::default(),
            flags_at: 0,
        })
    }

    /// Puts the template of the running request back into the cache.
    pub fn keep(&mut self, matching: Matching<'_>, now_ms: i64) {
        let template = Template { used_ms: now_ms, ..matching.template };
        self.bytes += template.bytes();
        self.templates.insert(matching.key, template);
    }

    /// Keeps a recorded request as a template, if there is room.
    pub fn add(&mut self, recording: Recording<'_>, now_ms: i64) {
        if recording.count < SERIES_MIN || recording.bytes() > recording.bytes_max {
            return;
        }
        if self.bytes + recording.bytes() > recording.bytes_max {
            let is_used = |template: &Template| template.used_ms.abs_diff(now_ms) < IDLE_MS;
            self.templates.retain(|_, template| is_used(template));
            self.bytes = self.templates.values().map(Template::bytes).sum();
            if self.bytes + recording.bytes() > recording.bytes_max {
                return;
            }
        }
        let Recording { key, symbols, series, slots, .. } = recording;
        let (symbols, series, slots) = (symbols.into(), series.into(), slots.into());
        self.keep(Matching::new(key, Template { symbols, series, slots, used_ms: now_ms }), now_ms);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.templates.len()
    }
}

fn bytes_max(head: &Head) -> usize {
    let memory = head.options().memory;
    let bytes_max = BYTES_MIN.max(head.series_count() * BYTES_PER_SERIES);
    match usize::try_from(memory.bytes_max / MEMORY_PART) {
        Ok(part) if memory.bytes_max > 0 => bytes_max.min(part),
        _ => bytes_max,
    }
}

impl Template {
    fn bytes(&self) -> usize {
        let slots = size_of_val(&*self.slots);
        TEMPLATE_BYTES + self.symbols.len() + self.series.len() + slots
    }
}

impl<'r> Matching<'r> {
    fn new(key: u64, template: Template) -> Matching<'r> {
        Matching { key, template, next_at: 0, next_slot: 0, before: Before::default() }
    }

    /// Compares the next series with the template. Returns its slot, and whether it has metadata
    /// that no earlier series of the request has. Returns `None` if the series differs; then the
    /// rest of the request must not be compared with the template.
    #[inline]
    pub fn next(&mut self, given: EncodedSeries<'r>) -> Option<(Slot, bool)> {
        let [flags, begin, middle, end, rest @ ..] = self.template.series.get(self.next_at..)?
        else {
            return None;
        };
        let (middle, mut rest) = rest.split_at_checked(usize::from(*middle))?;
        let (given_begin, given_rest) = given.refs.split_at_checked(usize::from(*begin))?;
        let (given_middle, given_end) = given_rest.split_at_checked(middle.len())?;
        let before = &self.before;
        // The series before was equal to its entry, so its bytes are those of the template.
        let begin = before.refs.get(..given_begin.len())?;
        let end_at = before.refs.len().checked_sub(usize::from(*end))?;
        let are_refs_same = bytes_equal(given_middle, middle)
            && bytes_equal(given_begin, begin)
            && bytes_equal(given_end, before.refs.get(end_at..)?);
        let metadata = match flags & (SAME_METADATA | NO_METADATA) {
            0 => {
                let (len, after) = rest.split_first()?;
                let (metadata, after) = after.split_at_checked(usize::from(*len))?;
                rest = after;
                Some(metadata)
            }
            NO_METADATA => None,
            _ => before.metadata,
        };
        let is_metadata_same = match (given.metadata, metadata) {
            (None, None) => true,
            (Some(given), Some(held)) => bytes_equal(given, held),
            _ => false,
        };
        if !are_refs_same || !is_metadata_same {
            return None;
        }
        let slot = if flags & NEXT_SLOT != 0 {
            before.slot?.next()?
        } else {
            self.next_slot += 1;
            *self.template.slots.get(self.next_slot - 1)?
        };
        self.next_at = self.template.series.len() - rest.len();
        self.before = Before { refs: given.refs, metadata: given.metadata, slot: Some(slot) };
        Some((slot, flags & SAYS_METADATA != 0))
    }
}

impl<'r> Recording<'r> {
    /// Notes the next series; returns whether the request can become a template.
    pub fn push(&mut self, series: EncodedSeries<'r>, slot: Slot) -> bool {
        let EncodedSeries { refs, metadata } = series;
        let before =
            std::mem::replace(&mut self.before, Before { refs, metadata, slot: Some(slot) });
        let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
        let begin = refs.iter().zip(before.refs).take_while(same).count();
        // The common end begins after the common beginning, so that no byte is counted twice.
        let (new, old) = (&refs[begin..], &before.refs[begin..]);
        let end = new.iter().rev().zip(old.iter().rev()).take_while(same).count();
        let middle = &new[..new.len() - end];
        let lengths = [begin, middle.len(), end, metadata.map_or(0, <[u8]>::len)];
        // A template has one byte for each length; few series have a longer part.
        let [Ok(begin), Ok(middle_bytes), Ok(end), Ok(metadata_bytes)] = lengths.map(u8::try_from)
        else {
            return false;
        };
        let mut flags = 0;
        if before.slot.and_then(Slot::next) == Some(slot) {
            flags |= NEXT_SLOT;
        } else {
            self.slots.push(slot);
        }
        flags |= match metadata {
            _ if metadata == before.metadata => SAME_METADATA,
            None => NO_METADATA,
            Some(_) => 0,
        };
        self.flags_at = self.series.len();
        self.series.extend_from_slice(&[flags, begin, middle_bytes, end]);
        self.series.extend_from_slice(middle);
        if flags & (SAME_METADATA | NO_METADATA) == 0 {
            self.series.push(metadata_bytes);
            self.series.extend_from_slice(metadata.unwrap_or_default());
        }
        self.count += 1;
        self.bytes() <= self.bytes_max
    }

    /// Notes that the last series has metadata that no earlier series has.
    pub fn says_metadata(&mut self) {
        if let Some(flags) = self.series.get_mut(self.flags_at) {
            *flags |= SAYS_METADATA;
        }
    }

    fn bytes(&self) -> usize {
        TEMPLATE_BYTES + self.symbols.len() + self.series.len() + size_of_val(&*self.slots)
    }
}
