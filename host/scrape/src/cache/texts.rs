//! Stores the series texts of a target in one buffer. A target has thousands of texts, and a scrape
//! compares them in the order in which they were added.
//!
//! ```text
//! buffer  up{a="1"} ▒ up{a="2"} ▒ removed ▒ …      places: offset in units, length
//! ```
//!
//! Each text begins at a multiple of [`UNIT_BYTES`], so that an offset of 32 bits reaches 32 GiB.
//! Removed texts stay until they are more than half of the buffer.

use super::reserve_some;

const UNIT_BYTES: usize = 8;

/// Number of removed bytes up to which a buffer is never compacted.
const REMOVED_FREE: usize = 4096;

/// Place of a text in the buffer. The default is an empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextPlace {
    unit: u32,
    bytes: u32,
}

#[derive(Debug, Default)]
pub(super) struct Texts {
    buffer: Vec<u8>,
    removed: usize,
}

impl TextPlace {
    pub fn is_empty(self) -> bool {
        self.bytes == 0
    }

    fn start(self) -> usize {
        self.unit as usize * UNIT_BYTES
    }
}

impl Texts {
    /// Adds a text. A text that does not fit into 32 GiB is added as an empty text.
    pub fn add(&mut self, text: &[u8]) -> TextPlace {
        let start = self.buffer.len().next_multiple_of(UNIT_BYTES);
        let unit = u32::try_from(start / UNIT_BYTES);
        let (Ok(unit), Ok(bytes)) = (unit, u32::try_from(text.len())) else {
            return TextPlace::default();
        };
        let more = start - self.buffer.len() + text.len();
        reserve_some(&mut self.buffer, more);
        self.buffer.resize(start, 0);
        self.buffer.extend_from_slice(text);
        TextPlace { unit, bytes }
    }

    /// Returns a text. A removed text can be read until [`Texts::keep`] moves the texts.
    #[inline]
    pub fn get(&self, place: TextPlace) -> &[u8] {
        let start = place.start();
        self.buffer.get(start..start + place.bytes as usize).unwrap_or_default()
    }

    /// Marks a text as no longer needed.
    pub fn remove(&mut self, place: TextPlace) {
        // Includes the padding, which is freed with the text.
        self.removed += (place.bytes as usize).next_multiple_of(UNIT_BYTES);
    }

    /// Returns whether [`Texts::keep`] would free more than it keeps.
    pub fn are_mostly_removed(&self) -> bool {
        self.removed > REMOVED_FREE && self.removed > self.buffer.len() / 2
    }

    /// Keeps only the texts at these places, and updates the places.
    pub fn keep<'a>(&mut self, places: impl Iterator<Item = &'a mut TextPlace>) {
        let kept_bytes = self.buffer.len().saturating_sub(self.removed);
        // Not in place: the offsets are in no order, so texts could overwrite each other.
        let mut kept = Texts { buffer: Vec::with_capacity(kept_bytes), removed: 0 };
        for place in places {
            *place = kept.add(self.get(*place));
        }
        *self = kept;
    }

    pub fn bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_before_and_after_others_were_removed() {
        let mut texts = Texts::default();
        let words: Vec<String> = (0..2000).map(|number| "x".repeat(number % 40 + 1)).collect();
        let mut places: Vec<TextPlace> = words.iter().map(|w| texts.add(w.as_bytes())).collect();
        let is_kept = |number: usize| number.is_multiple_of(3);
        for (number, (place, word)) in places.iter().zip(&words).enumerate() {
            assert_eq!(texts.get(*place), word.as_bytes());
            if !is_kept(number) {
                texts.remove(*place);
            }
        }
        assert!(texts.are_mostly_removed());
        let before = texts.bytes();
        let kept = places.iter_mut().enumerate().filter(|(number, _)| is_kept(*number));
        texts.keep(kept.map(|(_, place)| place));
        assert!(texts.bytes() < before / 2 && !texts.are_mostly_removed());
        for (number, (place, word)) in places.iter().zip(&words).enumerate() {
            if is_kept(number) {
                assert_eq!(texts.get(*place), word.as_bytes());
            }
        }
        assert!(texts.get(TextPlace::default()).is_empty());
    }
}
