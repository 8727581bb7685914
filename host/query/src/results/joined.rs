//! Joins answers to consecutive ranges of steps as they arrive, without parsing values.

use super::labels::order;
use super::reader::{BEGIN, Rest};
use std::cmp::Ordering;
use std::ops::Range;
use tidepool_store::StoreError;

/// Returns the next part of an answer, which has complete series; empty after the last part.
pub type Source<'a> = Box<dyn FnMut() -> Result<Vec<u8>, StoreError> + 'a>;

/// Joins answers to consecutive ranges of steps. Each answer has its series in label order.
pub struct Joined<'a> {
    pieces: Vec<Piece<'a>>,
    is_begun: bool,
    has_series: bool,
    is_ended: bool,
}

struct Piece<'a> {
    source: Source<'a>,
    part: Vec<u8>,
    /// Offset in `part` after the next series.
    at: usize,
    next: Option<SeriesRanges>,
    is_begun: bool,
}

/// Offsets of a series in a part: its labels, and its points without the enclosing brackets.
struct SeriesRanges {
    metric: Range<usize>,
    floats: Range<usize>,
    histograms: Range<usize>,
}

impl<'a> Joined<'a> {
    /// Expects the answers in order of time, each as its first part and a source of the rest.
    pub fn new(pieces: impl IntoIterator<Item = (Vec<u8>, Source<'a>)>) -> Joined<'a> {
        let piece = |(part, source)| Piece { source, part, at: 0, next: None, is_begun: false };
        let pieces = pieces.into_iter().map(piece).collect();
        Joined { pieces, is_begun: false, has_series: false, is_ended: false }
    }

    /// Returns complete series of at least `bytes_min` bytes; fewer only at the end, then none.
    pub fn next_part(&mut self, bytes_min: usize) -> Result<Vec<u8>, StoreError> {
        let mut out = Vec::new();
        if self.is_ended {
            return Ok(out);
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            out.extend_from_slice(BEGIN);
            self.pieces.iter_mut().try_for_each(Piece::advance)?;
        }
        while out.len() < bytes_min {
            if !self.put_series(&mut out)? {
                self.is_ended = true;
                out.push(b']');
                break;
            }
        }
        Ok(out)
    }

    /// Writes the first series in label order; returns false if there is none.
    fn put_series(&mut self, out: &mut Vec<u8>) -> Result<bool, StoreError> {
        let mut holders: Vec<usize> = Vec::with_capacity(self.pieces.len());
        let mut first: Option<&[u8]> = None;
        for (number, piece) in self.pieces.iter().enumerate() {
            let Some(metric) = piece.metric() else { continue };
            match first.map_or(Ordering::Less, |first| order(metric, first)) {
                Ordering::Greater => {}
                Ordering::Equal => holders.push(number),
                Ordering::Less => {
                    holders.clear();
                    holders.push(number);
                    first = Some(metric);
                }
            }
        }
        let Some(metric) = first else { return Ok(false) };
        if std::mem::replace(&mut self.has_series, true) {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"metric\":");
        out.extend_from_slice(metric);
        self.put_points(&holders, b",\"values\":[", |place| &place.floats, out);
        self.put_points(&holders, b",\"histograms\":[", |place| &place.histograms, out);
        out.push(b'}');
        for number in holders {
            self.pieces[number].advance()?;
        }
        Ok(true)
    }

    fn put_points(
        &self,
        holders: &[usize],
        name: &[u8],
        points: fn(&SeriesRanges) -> &Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let mut has_any = false;
        for number in holders {
            let piece = &self.pieces[*number];
            let Some(points) = piece.next.as_ref().map(points).filter(|points| !points.is_empty())
            else {
                continue;
            };
            out.extend_from_slice(if has_any { b"," } else { name });
            out.extend_from_slice(&piece.part[points.clone()]);
            has_any = true;
        }
        if has_any {
            out.push(b']');
        }
    }
}

impl Piece<'_> {
    fn metric(&self) -> Option<&[u8]> {
        self.next.as_ref().map(|place| &self.part[place.metric.clone()])
    }

    /// Moves to the next series.
    fn advance(&mut self) -> Result<(), StoreError> {
        // Copied, because the source replaces the part that contains the labels.
        let before = self.metric().map(<[u8]>::to_vec);
        self.next = None;
        if self.at == self.part.len() {
            self.part = (self.source)()?;
            self.at = 0;
        }
        let failed = || StoreError::Runtime("the parts of an answer do not fit together".into());
        self.next = self.read(before.is_some()).ok_or_else(failed)?;
        // Checked, because an unsorted series would appear twice in the answer.
        let is_in_order = match (before, self.metric()) {
            (Some(before), Some(next)) => order(&before, next) == Ordering::Less,
            _ => true,
        };
        if is_in_order { Ok(()) } else { Err(failed()) }
    }

    /// Finds the next series of the part; `Some(None)` at the end of the answer.
    fn read(&mut self, has_series: bool) -> Option<Option<SeriesRanges>> {
        let part = self.part.as_slice();
        let mut rest = Rest(&part[self.at..]);
        let at = |rest: &Rest<'_>| part.len() - rest.0.len();
        if !std::mem::replace(&mut self.is_begun, true) {
            rest.expect(BEGIN)?;
        }
        if rest.take(b"]") {
            self.at = part.len();
            return rest.0.is_empty().then_some(None);
        }
        if has_series {
            rest.expect(b",")?;
        }
        rest.expect(b"{\"metric\":")?;
        let begin = at(&rest);
        rest.value()?;
        let metric = begin..at(&rest);
        let mut floats = 0..0;
        if rest.take(b",\"values\":[") {
            let begin = at(&rest);
            // Times and values contain no brackets, so the first `]]` is the end of the list.
            let length = memchr::memmem::find(rest.0, b"]]")? + 1;
            floats = begin..begin + length;
            rest.0 = &rest.0[length + 1..];
        }
        let mut histograms = 0..0;
        if rest.take(b",\"histograms\":[") {
            let begin = at(&rest);
            // Buckets contain brackets as well, so the end is found only by parsing.
            while !rest.take(b"]") {
                if at(&rest) > begin {
                    rest.expect(b",")?;
                }
                rest.expect(b"[")?;
                rest.time_ms()?;
                rest.expect(b",")?;
                rest.value()?;
                rest.expect(b"]")?;
            }
            histograms = begin..at(&rest) - 1;
        }
        rest.expect(b"}")?;
        self.at = at(&rest);
        Some(Some(SeriesRanges { metric, floats, histograms }))
    }
}
