//! Conversion of spans to bucket indices and back.

use super::Span;

/// Returns bucket indices of spans. Take only as many as buckets: hostile spans have billions.
pub fn indices(spans: &[Span]) -> impl Iterator<Item = i64> + '_ {
    let mut next = 0i64;
    spans.iter().flat_map(move |span| {
        // Saturates: offsets of hostile spans may add up to anything.
        let start = next.saturating_add(i64::from(span.offset));
        next = start.saturating_add(i64::from(span.length));
        start..next
    })
}

pub(super) fn covered(spans: &[Span]) -> u64 {
    spans.iter().fold(0, |sum, span| sum.saturating_add(u64::from(span.length)))
}

/// Returns the same buckets in as few spans as possible; the histogram must be checked.
pub fn fewest_spans(spans: &[Span]) -> Box<[Span]> {
    let mut builder = SpanBuilder::default();
    match indices(spans).try_for_each(|index| builder.push(index)) {
        Some(()) => builder.finish(),
        // The spans are valid, only not the fewest, so they may stay.
        None => spans.into(),
    }
}

/// Makes spans of ascending bucket indices: as few as possible, none of them empty.
#[derive(Clone, Debug, Default)]
pub struct SpanBuilder {
    spans: Vec<Span>,
    /// Index after the last bucket.
    next: i64,
}

impl SpanBuilder {
    /// Adds a bucket; `None` if a span cannot express its distance to the bucket before.
    pub fn push(&mut self, index: i64) -> Option<()> {
        let gap = i32::try_from(index.checked_sub(self.next)?).ok()?;
        match self.spans.last_mut() {
            Some(last) if gap == 0 => last.length = last.length.checked_add(1)?,
            _ => self.spans.push(Span { offset: gap, length: 1 }),
        }
        self.next = index.checked_add(1)?;
        Some(())
    }

    /// Returns the spans of all added buckets.
    pub fn finish(self) -> Box<[Span]> {
        self.spans.into_boxed_slice()
    }
}
