//! Requests of which only times and values are new.
//!
//! A 2.0 sender that scrapes the same targets sends the same symbols and the same references to
//! them, request for request. What they lead to is kept as a *template*: the bytes of the symbols,
//! and of each series its encoded references and its slot. A request that has the same bytes is
//! known without decoding or hashing any of them.
//!
//! Series that come one after the other share most references, and have neighbouring slots. So a
//! template holds of each series what differs from the one before:
//!
//! ```text
//! ┌───────┬────────┬────────┬───────┬─────────────────┬─────────────────────────┐
//! │ flags │ before │ length │ after │ references      │ length, metadata        │
//! └───────┴────────┴────────┴───────┴─────────────────┴─────────────────────────┘
//!   a byte each: the flags below;     `length` bytes,   with neither SAME_METADATA
//!   bytes at the beginning and the    in between        nor NO_METADATA
//!   end that are those of the series before
//! ```
//!
//! Invariants: nothing is taken for known but by comparing all its bytes; a slot in a template
//! holds the series that it held when the template was made, since templates go when series are
//! dropped; bytes are bounded, and what is seen but once is not kept.

use crate::codec::{bytes_equal, hash_bytes};
use crate::head::{Head, HeadOptions, Slot};
use crate::wire::EncodedSeries;
use rustc_hash::FxHashMap;

/// Bytes that all templates may take together in any case, and for each series of the head.
const BYTES_MIN: usize = 160 << 10;
const BYTES_PER_SERIES: usize = 12;
/// Their part of a bounded memory at most.
const MEMORY_PART: u64 = 64;
/// Fewest series of a request that is worth it.
const SERIES_MIN: usize = 32;
/// A template that was not seen for so long makes room for others.
const IDLE_MS: u64 = 10 * 60 * 1000;
/// How many requests are remembered as seen once.
const SEEN: usize = 1024;
/// Taken for each template beside its bytes.
const TEMPLATE_BYTES: usize = 128;

/// The templates that are known.
#[derive(Default)]
pub struct RequestTemplates {
    templates: FxHashMap<u64, Template>,
    bytes: usize,
    /// How many series the head had dropped when it was last looked at.
    removed: u64,
    /// Hashes of requests that were seen, each at the place that it names; empty before the first.
    seen: Vec<u64>,
}

/// One template. While a request is compared with it, it is the request's.
struct Template {
    symbols: Box<[u8]>,
    /// The series, as described above.
    series: Box<[u8]>,
    /// Of the series without [`NEXT_SLOT`].
    slots: Box<[Slot]>,
    used_ms: i64,
}

/// The slot is the one behind that of the series before.
const NEXT_SLOT: u8 = 1;
/// No earlier series of the request said the same of the same metric.
const SAYS_METADATA: u8 = 2;
/// The metadata is that of the series before, or there is none as there.
const SAME_METADATA: u8 = 4;
/// There is no metadata.
const NO_METADATA: u8 = 8;

/// What is done with the running request.
pub enum TemplateState<'r> {
    /// Nothing: it has no symbols, was not seen before, or is not what it was.
    Off,
    /// Its symbols are these, and its first series decides.
    Begins(&'r [u8]),
    /// It is compared with a template.
    Matching(Matching<'r>),
    /// It may become one.
    Recording(Recording<'r>),
}

/// A request that is compared with a template.
pub struct Matching<'r> {
    key: u64,
    template: Template,
    /// Where the next series is, and the next of the slots.
    next_at: usize,
    next_slot: usize,
    before: Before<'r>,
}

/// A request that becomes a template.
pub struct Recording<'r> {
    key: u64,
    symbols: &'r [u8],
    series: Vec<u8>,
    slots: Vec<Slot>,
    count: usize,
    bytes_max: usize,
    before: Before<'r>,
    /// Where the flags of the last series are.
    flags_at: usize,
}

/// The series before, or nothing.
#[derive(Default)]
struct Before<'r> {
    refs: &'r [u8],
    metadata: Option<&'r [u8]>,
    slot: Option<Slot>,
}

impl RequestTemplates {
    /// Decides by its first series what is done with a request.
    pub fn begin<'r>(
        &mut self,
        head: &Head,
        symbols: &'r [u8],
        first: EncodedSeries<'r>,
    ) -> TemplateState<'r> {
        let HeadOptions { hash_seed, memory, .. } = head.options();
        let removed = head.counters.series_removed;
        if std::mem::replace(&mut self.removed, removed) != removed || memory.caches_go() {
            self.templates = FxHashMap::default();
            self.bytes = 0;
        }
        // Requests whose symbols are the same may name other series.
        let key = hash_bytes(hash_bytes(*hash_seed, symbols), first.refs);
        if let Some(template) = self.templates.remove(&key) {
            self.bytes -= template.bytes();
            if bytes_equal(&template.symbols, symbols) {
                return TemplateState::Matching(Matching::new(key, template));
            }
        }
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN];
        }
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

    /// Keeps what the running request was compared with.
    pub fn keep(&mut self, matching: Matching<'_>, now_ms: i64) {
        let template = Template { used_ms: now_ms, ..matching.template };
        self.bytes += template.bytes();
        self.templates.insert(matching.key, template);
    }

    /// Keeps a request that was recorded, if there is room.
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

    /// How many there are.
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

    /// The slot of the next series, if it is the one that the template has next, and whether it has
    /// metadata that no earlier one of the request has. If it is another one, the request must not
    /// be compared with the template any longer.
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
        let (new, old) = (&refs[begin..], &before.refs[begin..]);
        let end = new.iter().rev().zip(old.iter().rev()).take_while(same).count();
        let middle = &new[..new.len() - end];
        let lengths = [begin, middle.len(), end, metadata.map_or(0, <[u8]>::len)];
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

    /// Notes that the last series has metadata that no earlier one has.
    pub fn says_metadata(&mut self) {
        if let Some(flags) = self.series.get_mut(self.flags_at) {
            *flags |= SAYS_METADATA;
        }
    }

    fn bytes(&self) -> usize {
        TEMPLATE_BYTES + self.symbols.len() + self.series.len() + size_of_val(&*self.slots)
    }
}
