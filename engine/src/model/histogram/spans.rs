//! Spans as bucket indices, and back.

use super::Span;

/// Indices of the buckets that spans cover. Hostile spans can cover very many: take no more than
/// there are buckets.
pub fn indices(spans: &[Span]) -> impl Iterator<Item = i64> + '_ {
    let mut next = 0i64;
    spans.iter().flat_map(move |span| {
        let start = next.saturating_add(i64::from(span.offset));
        next = start.saturating_add(i64::from(span.length));
        start..next
    })
}

/// How many buckets spans cover.
pub(super) fn covered(spans: &[Span]) -> u64 {
    spans.iter().fold(0, |sum, span| sum.saturating_add(u64::from(span.length)))
}

/// The same buckets in as few spans as possible. The spans are those of a checked histogram.
pub fn fewest_spans(spans: &[Span]) -> Box<[Span]> {
    let mut builder = SpanBuilder::default();
    match indices(spans).try_for_each(|index| builder.push(index)) {
        Some(()) => builder.finish(),
        None => spans.into(),
    }
}

/// Makes spans of ascending bucket indices: as few as possible, none of them empty.
#[derive(Clone, Debug, Default)]
pub struct SpanBuilder {
    spans: Vec<Span>,
    /// The index after the last bucket.
    next: i64,
}

impl SpanBuilder {
    /// Adds a bucket. `None` if it is too far from the one before for a span to say.
    pub fn push(&mut self, index: i64) -> Option<()> {
        let gap = i32::try_from(index.checked_sub(self.next)?).ok()?;
        match self.spans.last_mut() {
            Some(last) if gap == 0 => last.length = last.length.checked_add(1)?,
            _ => self.spans.push(Span { offset: gap, length: 1 }),
        }
        self.next = index.checked_add(1)?;
        Some(())
    }

    /// The spans.
    pub fn finish(self) -> Box<[Span]> {
        self.spans.into_boxed_slice()
    }
}
