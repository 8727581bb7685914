//! Annotations as bytes, to be merged into another evaluation of the same expression.
//!
//! ```text
//! entries   number u32, then for each: severity u8, text, part, part that added it, detail
//! others    for warnings, then for infos: number u32, and hashes u64 of texts that are not kept
//! text      length u32, and as many bytes
//! part      u8: 0 for none; 1, then offsets of its first byte u32 and of its end u32
//! detail    u8: 0 for nothing; 1, then a count u64; 2, then figures: times i64, numbers f64, u64
//! ```
//!
//! All numbers are little-endian.

use super::{Annotation, Annotations, COUNTED_MAX, Detail, Monotonicity, Severity};
use crate::syntax::Span;

impl Annotations {
    /// Encodes all annotations, as drawn above.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_count(self.entries.len(), &mut out);
        for (entry, noting) in &self.entries {
            out.push(entry.severity as u8);
            put_count(entry.text.len(), &mut out);
            out.extend_from_slice(entry.text.as_bytes());
            put_span(entry.span, &mut out);
            put_span(Some(*noting), &mut out);
            match entry.detail {
                Detail::Nothing => out.push(0),
                Detail::Count(count) => {
                    out.push(1);
                    out.extend_from_slice(&count.to_le_bytes());
                }
                Detail::Monotonicity(of) => {
                    out.push(2);
                    let times = [of.first_ms, of.last_ms].map(i64::to_le_bytes);
                    let numbers = [of.min_bucket, of.max_bucket, of.max_diff].map(f64::to_le_bytes);
                    times.iter().chain(&numbers).for_each(|bytes| out.extend_from_slice(bytes));
                    out.extend_from_slice(&of.samples.to_le_bytes());
                }
            }
        }
        for others in &self.others {
            put_count(others.len(), &mut out);
            others.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
        }
        out
    }

    /// Merges the result of [`Annotations::to_bytes`]; returns `None` and adds nothing if invalid.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let mut rest = Rest(bytes);
        // Nothing is allocated by the count, which may be wrong: the list grows with its entries.
        let mut entries = Vec::new();
        for _ in 0..rest.count()? {
            entries.push(rest.entry()?);
        }
        let mut others = [Vec::new(), Vec::new()];
        for hashes in &mut others {
            for _ in 0..rest.count()? {
                hashes.push(u64::from_le_bytes(rest.array()?));
            }
        }
        if !rest.0.is_empty() {
            return None;
        }
        // From here on nothing fails, so that malformed bytes add nothing.
        for (entry, noting) in entries {
            let before = self.set_noting(noting);
            // `insert` compares the parts that added annotations, so the decoded part is set.
            self.insert(entry);
            self.set_noting(before);
        }
        for (hashes, known) in others.into_iter().zip(&mut self.others) {
            // The merged hashes stay within the bound of a single evaluation.
            let room = COUNTED_MAX.saturating_sub(known.len());
            known.extend(hashes.into_iter().take(room));
        }
        Some(())
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    // Entries and hashes are bounded by `KEPT_MAX` and `COUNTED_MAX`.
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn put_span(span: Option<Span>, out: &mut Vec<u8>) {
    let Some(span) = span else { return out.push(0) };
    out.push(1);
    out.extend_from_slice(&span.start.to_le_bytes());
    out.extend_from_slice(&span.end.to_le_bytes());
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn span(&mut self) -> Option<Option<Span>> {
        Some(match self.byte()? {
            0 => None,
            1 => Some(Span {
                start: u32::from_le_bytes(self.array()?),
                end: u32::from_le_bytes(self.array()?),
            }),
            _ => return None,
        })
    }

    fn entry(&mut self) -> Option<(Annotation, Span)> {
        let severity =
            [Severity::Warning, Severity::Info].get(usize::from(self.byte()?)).copied()?;
        let length = self.count()?;
        let text = String::from_utf8(self.bytes(length)?.to_vec()).ok()?;
        let (span, noting) = (self.span()?, self.span()??);
        let detail = match self.byte()? {
            0 => Detail::Nothing,
            1 => Detail::Count(u64::from_le_bytes(self.array()?)),
            2 => Detail::Monotonicity(Monotonicity {
                first_ms: i64::from_le_bytes(self.array()?),
                last_ms: i64::from_le_bytes(self.array()?),
                min_bucket: f64::from_le_bytes(self.array()?),
                max_bucket: f64::from_le_bytes(self.array()?),
                max_diff: f64::from_le_bytes(self.array()?),
                samples: u64::from_le_bytes(self.array()?),
            }),
            _ => return None,
        };
        Some((Annotation { severity, text, span, detail }, noting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotations::{KEPT_MAX, Note};
    use proptest::prelude::*;

    fn note((kind, number): &(u8, u16), to: &mut Annotations) {
        let span = |start| Span { start, end: start + 1 + u32::from(*number % 3) };
        to.set_noting(span(u32::from(*number % 5)));
        let metric = format!("m{}", number % 7);
        let note = match kind {
            0 => Note::PossibleNonCounter,
            1 => Note::MixedFloatsHistograms,
            2 => Note::StartTimeOverlap,
            _ => Note::ForcedMonotonicity(Monotonicity {
                first_ms: i64::from(*number),
                last_ms: i64::from(*number) + 1,
                min_bucket: f64::from(number % 11),
                max_bucket: f64::from(number % 13),
                max_diff: f64::from(number % 17),
                samples: 1,
            }),
        };
        to.note(note, &metric, span(u32::from(*number)));
    }

    fn texts(of: &Annotations) -> Vec<String> {
        let query = "x".repeat(100);
        let of = |severity| of.messages(severity, &query, 0);
        [of(Severity::Warning), of(Severity::Info)].concat()
    }

    proptest! {
        /// Merging the annotations of two evaluations equals one evaluation of everything.
        #[test]
        fn two_are_as_one(
            notes in prop::collection::vec((0..4u8, any::<u16>()), 0..60),
            cut in any::<prop::sample::Index>(),
        ) {
            let (first, second) = notes.split_at(cut.index(notes.len() + 1));
            let of = |notes: &[(u8, u16)]| {
                let mut all = Annotations::default();
                notes.iter().for_each(|one| note(one, &mut all));
                all
            };
            let mut found = of(first);
            prop_assert!(found.add_bytes(&of(second).to_bytes()).is_some());
            prop_assert_eq!(texts(&found), texts(&of(&notes)));
        }

        #[test]
        fn other_bytes_add_nothing(
            notes in prop::collection::vec((0..4u8, any::<u16>()), 1..9),
            at in any::<prop::sample::Index>(),
            garbage in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut all = Annotations::default();
            notes.iter().for_each(|one| note(one, &mut all));
            let bytes = all.to_bytes();
            let mut none = Annotations::default();
            prop_assert!(none.add_bytes(&bytes[..at.index(bytes.len())]).is_none());
            prop_assert!(none.add_bytes(&[bytes.as_slice(), &[0]].concat()).is_none());
            prop_assert!(none.is_empty());
            let _ = none.add_bytes(&garbage);
        }
    }

    #[test]
    fn those_that_are_only_counted_are_counted_once() {
        let of = |numbers: std::ops::Range<usize>| {
            let mut all = Annotations::default();
            let span = Span { start: 0, end: 1 };
            numbers.for_each(|number| {
                all.note(Note::PossibleNonCounter, &format!("m{number:05}"), span);
            });
            all
        };
        let (mut found, all) = (of(0..KEPT_MAX + 500), of(0..KEPT_MAX + 700));
        assert!(found.add_bytes(&of(0..KEPT_MAX + 700).to_bytes()).is_some());
        assert_eq!(texts(&found), texts(&all));
    }
}
