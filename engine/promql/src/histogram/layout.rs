//! Layout of buckets in spans, and arithmetic on the counts of different layouts.

use crate::kahan;
use crate::model::Span;
use tidepool_model::buckets::coarser_index;

pub(super) fn indexes(spans: &[Span]) -> impl Iterator<Item = i32> + '_ {
    let mut next = 0i32;
    spans.iter().flat_map(move |span| {
        let first = next.wrapping_add(span.offset);
        next = first.wrapping_add(span.length as i32);
        (0..span.length as i32).map(move |i| first.wrapping_add(i))
    })
}

/// Iterates over indexes with counts; spans that are longer than the counts end early.
pub(super) fn indexed<'a>(
    spans: &'a [Span],
    counts: &'a [f64],
) -> impl Iterator<Item = (i32, f64)> + 'a {
    indexes(spans).zip(counts.iter().copied())
}

/// Builds the spans of ascending indexes.
#[derive(Default)]
pub(super) struct Builder {
    spans: Vec<Span>,
    next: i32,
}

impl Builder {
    pub(super) fn push(&mut self, index: i32) {
        match self.spans.last_mut() {
            Some(span) if index == self.next => span.length += 1,
            _ => self.spans.push(Span { offset: index.wrapping_sub(self.next), length: 1 }),
        }
        self.next = index.wrapping_add(1);
    }

    pub(super) fn finish(self) -> Vec<Span> {
        self.spans
    }
}

/// Counts of the positive or negative buckets, with rounding errors if needed.
pub(super) struct Side<'a> {
    pub(super) spans: &'a mut Vec<Span>,
    pub(super) counts: &'a mut Vec<f64>,
    pub(super) lost: Option<&'a mut Vec<f64>>,
}

pub(super) struct Terms<'a> {
    pub(super) spans: &'a [Span],
    pub(super) counts: &'a [f64],
    pub(super) lost: Option<&'a [f64]>,
    /// Number of leading buckets that are not added.
    pub(super) skip: usize,
    /// Factor of the counts, 1 or -1.
    pub(super) sign: f64,
}

impl Side<'_> {
    /// Adds counts; missing buckets are inserted.
    pub(super) fn add(&mut self, terms: &Terms<'_>) {
        // Histograms of one series mostly share a layout, which needs no new spans.
        if *self.spans == terms.spans && self.counts.len() == terms.counts.len() {
            for place in terms.skip..terms.counts.len() {
                self.add_at(place, terms, place);
            }
            return;
        }
        let mut added = indexes(terms.spans).zip(0..terms.counts.len()).skip(terms.skip).peekable();
        // All added buckets are within the zero bucket, so the layout stays.
        if added.peek().is_none() {
            return;
        }
        let mut builder = Builder::default();
        let old_counts = std::mem::take(self.counts);
        let old_lost = self.lost.as_mut().map(|lost| std::mem::take(*lost));
        let old_spans = std::mem::take(self.spans);
        // The counts are rebuilt, since insertions would move the rest each time.
        self.counts.reserve(old_counts.len() + terms.counts.len());
        let keep = |side: &mut Self, place: usize| {
            side.counts.push(old_counts[place]);
            if let (Some(lost), Some(old)) = (&mut side.lost, &old_lost) {
                lost.push(old[place]);
            }
        };
        for (index, place) in indexes(&old_spans).zip(0..old_counts.len()) {
            while let Some((other, term)) = added.next_if(|(other, _)| *other < index) {
                builder.push(other);
                self.push_term(terms, term);
            }
            builder.push(index);
            keep(self, place);
            if let Some((_, term)) = added.next_if(|(other, _)| *other == index) {
                self.add_at(self.counts.len() - 1, terms, term);
            }
        }
        for (other, term) in added {
            builder.push(other);
            self.push_term(terms, term);
        }
        *self.spans = builder.finish();
    }

    fn add_at(&mut self, place: usize, terms: &Terms<'_>, term: usize) {
        let count = &mut self.counts[place];
        let Some(lost) = &mut self.lost else {
            *count += terms.counts[term] * terms.sign;
            return;
        };
        kahan::add(terms.counts[term] * terms.sign, count, &mut lost[place]);
        if let Some(term_lost) = terms.lost {
            kahan::add(term_lost[term] * terms.sign, count, &mut lost[place]);
        }
    }

    fn push_term(&mut self, terms: &Terms<'_>, term: usize) {
        self.counts.push(terms.counts[term] * terms.sign);
        if let Some(lost) = &mut self.lost {
            lost.push(terms.lost.map_or(0.0, |lost| lost[term] * terms.sign));
        }
    }

    /// Merges buckets to a resolution that is lower by `shift` schemas.
    pub(super) fn reduce(&mut self, shift: u32) {
        let mut builder = Builder::default();
        let mut last = None;
        let mut len = 0;
        for (place, index) in indexes(self.spans).take(self.counts.len()).enumerate() {
            // `len` never exceeds `place`, so counts are overwritten only after they were read.
            let index = coarser_index(index, shift) as i32;
            let count = self.counts[place];
            let lost = self.lost.as_ref().map(|lost| lost[place]);
            if last == Some(index) {
                match (&mut self.lost, lost) {
                    (Some(all), Some(lost)) => {
                        kahan::add(count, &mut self.counts[len - 1], &mut all[len - 1]);
                        kahan::add(lost, &mut self.counts[len - 1], &mut all[len - 1]);
                    }
                    _ => self.counts[len - 1] += count,
                }
                continue;
            }
            builder.push(index);
            last = Some(index);
            self.counts[len] = count;
            if let (Some(all), Some(lost)) = (&mut self.lost, lost) {
                all[len] = lost;
            }
            len += 1;
        }
        self.keep(builder, len);
    }

    /// Removes buckets without observations, and splits or joins spans accordingly.
    pub(super) fn compact(&mut self) {
        // Most histograms are compact already; the check is cheaper than new spans.
        let is_tight = self.spans.iter().skip(1).all(|span| span.offset > 0)
            && self.spans.iter().all(|span| span.length > 0);
        if is_tight && self.counts.iter().all(|count| *count != 0.0) {
            return;
        }
        let mut builder = Builder::default();
        let mut len = 0;
        for (place, index) in indexes(self.spans).take(self.counts.len()).enumerate() {
            let count = self.counts[place];
            let lost = self.lost.as_ref().map_or(0.0, |lost| lost[place]);
            if count == 0.0 && lost == 0.0 {
                continue;
            }
            builder.push(index);
            self.counts[len] = count;
            if let Some(all) = &mut self.lost {
                all[len] = lost;
            }
            len += 1;
        }
        self.keep(builder, len);
    }

    fn keep(&mut self, builder: Builder, len: usize) {
        *self.spans = builder.finish();
        self.counts.truncate(len);
        if let Some(lost) = &mut self.lost {
            lost.truncate(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(indexed: &[(i32, f64)]) -> (Vec<Span>, Vec<f64>) {
        let mut builder = Builder::default();
        indexed.iter().for_each(|(index, _)| builder.push(*index));
        (builder.finish(), indexed.iter().map(|(_, count)| *count).collect())
    }

    #[test]
    fn added_buckets_come_in_between() {
        let (mut spans, mut counts) = side(&[(-2, 1.0), (3, 2.0), (4, 3.0)]);
        let (other, terms) = side(&[(-5, 9.0), (-2, 10.0), (0, 20.0), (4, 30.0), (9, 40.0)]);
        let terms = Terms { spans: &other, counts: &terms, lost: None, skip: 1, sign: -1.0 };
        Side { spans: &mut spans, counts: &mut counts, lost: None }.add(&terms);
        let found: Vec<_> = indexed(&spans, &counts).collect();
        assert_eq!(found, [(-2, -9.0), (0, -20.0), (3, 2.0), (4, -27.0), (9, -40.0)]);
    }

    #[test]
    fn a_lower_resolution_merges_neighbours() {
        let (mut spans, mut counts) = side(&[(-1, 1.0), (0, 2.0), (1, 3.0), (2, 4.0), (7, 5.0)]);
        let mut lost = vec![0.0; 5];
        Side { spans: &mut spans, counts: &mut counts, lost: Some(&mut lost) }.reduce(1);
        assert_eq!(indexed(&spans, &counts).collect::<Vec<_>>(), [(0, 3.0), (1, 7.0), (4, 5.0)]);
        assert_eq!(lost, [0.0; 3]);
    }

    #[test]
    fn empty_buckets_go() {
        let (mut spans, mut counts) = side(&[(0, 0.0), (1, 2.0), (2, 0.0), (3, 1.0), (9, 0.0)]);
        Side { spans: &mut spans, counts: &mut counts, lost: None }.compact();
        assert_eq!(indexed(&spans, &counts).collect::<Vec<_>>(), [(1, 2.0), (3, 1.0)]);
        assert_eq!(spans, [Span { offset: 1, length: 1 }, Span { offset: 1, length: 1 }]);
    }
}
