//! Cached answers of range queries: series in label order, with the texts of their points.

use super::labels::order;
use super::notes::Notes;
use super::points::Points;
use super::reader::BEGIN;
use super::steps::Steps;
use std::cmp::Ordering;
use tidepool_model::number::push_seconds;
use tidepool_runtime::PoolShare;

/// Bytes of a point in JSON for brackets, comma and quotes, without its time and value.
const POINT_BYTES: usize = 6;

/// A series of an answer, with texts as written by the engine.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Label set as a JSON object.
    pub metric: Box<[u8]>,
    /// Values of floats, without quotes.
    pub floats: Points,
    /// Native histograms as JSON objects.
    pub histograms: Points,
}

#[derive(Debug)]
pub struct Answer {
    pub steps: Steps,
    series: Vec<Series>,
    notes: Notes,
    bytes: usize,
    /// Reservation of the answer's bytes in the memory limit for reads.
    share: PoolShare,
}

impl Series {
    pub fn bytes(&self) -> usize {
        size_of::<Series>() + self.metric.len() + self.floats.bytes() + self.histograms.bytes()
    }

    fn has_any(&self, steps: Steps) -> bool {
        self.floats.has_any(steps) || self.histograms.has_any(steps)
    }

    /// Appends newer points of the same series from another answer.
    fn add(&mut self, other: &Series, steps: Steps) {
        let mut follow = true;
        // Floats and histograms of a series may alternate, so each kind has separate runs of steps.
        for (to, from) in
            [(&mut self.floats, &other.floats), (&mut self.histograms, &other.histograms)]
        {
            from.each(steps, |time_ms, text| follow &= to.push(time_ms, text, steps.step_ms));
        }
        debug_assert!(follow, "steps of pieces do not overlap");
    }
}

impl Answer {
    /// Creates an answer from series in label order, whose bytes are already reserved in `share`.
    pub fn new(steps: Steps, mut series: Vec<Series>, share: PoolShare) -> Answer {
        series.shrink_to_fit();
        let bytes = series.iter().map(Series::bytes).sum();
        Answer { steps, series, notes: Notes::none(steps), bytes, share }
    }

    /// Adds annotations. Returns `None` if their bytes cannot be reserved.
    pub fn with_notes(mut self, notes: Notes) -> Option<Answer> {
        self.bytes += notes.bytes();
        self.notes = notes;
        self.share.grow_to(self.bytes).then_some(self)
    }

    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes reserved in the memory limit for reads.
    pub fn shared_bytes(&self) -> usize {
        self.share.bytes()
    }

    /// Joins consecutive pieces, each limited to the given steps. Returns `None` if the result is
    /// larger than `bytes_max` or than the memory limit allows, or if its annotations are unknown.
    pub fn join(
        pieces: &[(&Answer, Steps)],
        bytes_max: usize,
        mut share: PoolShare,
    ) -> Option<Answer> {
        // The cheapest reason to fail is checked first, before any series is copied.
        let notes = joined_notes(pieces)?;
        let (first, last) = (pieces.first()?.1, pieces.last()?.1);
        let steps = Steps { last_ms: last.last_ms, ..first };
        let mut rests: Vec<(&[Series], Steps)> =
            pieces.iter().map(|(piece, steps)| (piece.series.as_slice(), *steps)).collect();
        let (mut joined, mut bytes) = (Vec::new(), 0);
        while let Some(metric) = least(&rests) {
            let mut series = Series { metric: metric.into(), ..Series::default() };
            for (rest, steps) in &mut rests {
                if let Some((next, behind)) = rest.split_first()
                    && *next.metric == *metric
                {
                    series.add(next, *steps);
                    *rest = behind;
                }
            }
            if !series.has_any(steps) {
                continue;
            }
            // Counted after shrinking, because the capacity is what stays in memory.
            series.floats.shrink();
            series.histograms.shrink();
            bytes += series.bytes();
            if bytes > bytes_max || !share.grow_to(bytes) {
                return None;
            }
            joined.push(series);
        }
        Answer::new(steps, joined, share).with_notes(notes)
    }

    /// Returns a writer of the given steps in the engine's format.
    pub fn write(&self, steps: Steps) -> Writer<'_> {
        // The time of a step is formatted once for all series.
        let mut times = Vec::with_capacity(steps.count() as usize + 1);
        let mut texts = Vec::new();
        let mut time_ms = steps.first_ms;
        while time_ms <= steps.last_ms {
            times.push(texts.len());
            push_seconds(time_ms, &mut texts);
            time_ms += steps.step_ms;
        }
        times.push(texts.len());
        let series = self.series.iter();
        Writer { series, steps, times, texts, is_begun: false, has_series: false, is_ended: false }
    }
}

/// Returns the annotations that all pieces have, if the steps of one piece alone have all of them.
/// Takes the newest such piece, as most of its steps will be requested again.
fn joined_notes(pieces: &[(&Answer, Steps)]) -> Option<Notes> {
    let (piece, _) = pieces.iter().rfind(|(piece, steps)| piece.notes.are_of(*steps))?;
    let is_same = |(other, _): &(&Answer, Steps)| piece.notes.are_those(&other.notes);
    pieces.iter().all(is_same).then(|| piece.notes.clone())
}

/// Returns the label set that is first in order.
fn least<'a>(rests: &[(&'a [Series], Steps)]) -> Option<&'a [u8]> {
    let firsts = rests.iter().filter_map(|(rest, _)| Some(&*rest.first()?.metric));
    firsts.reduce(|one, other| match order(one, other) {
        Ordering::Greater => other,
        _ => one,
    })
}

/// Writes an answer part by part.
pub struct Writer<'a> {
    series: std::slice::Iter<'a, Series>,
    steps: Steps,
    /// Offset of each step's time in `texts`, followed by the end of the last time.
    times: Vec<usize>,
    texts: Vec<u8>,
    is_begun: bool,
    has_series: bool,
    is_ended: bool,
}

impl Writer<'_> {
    /// Returns complete series of at least `bytes_min` bytes; fewer only at the end, then none.
    pub fn next_part(&mut self, bytes_min: usize) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_ended {
            return out;
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            out.extend_from_slice(BEGIN);
        }
        while out.len() < bytes_min {
            let Some(series) = self.series.next() else {
                self.is_ended = true;
                out.push(b']');
                break;
            };
            // As in upstream, series without points at the requested steps are omitted.
            if series.has_any(self.steps) {
                self.put_series(series, &mut out);
            }
        }
        out
    }

    fn put_series(&mut self, series: &Series, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_series, true) {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"metric\":");
        out.extend_from_slice(&series.metric);
        self.put_points(&series.floats, (b",\"values\":[", b"\""), out);
        self.put_points(&series.histograms, (b",\"histograms\":[", b""), out);
        out.push(b'}');
    }

    fn put_points(&self, points: &Points, (name, quote): (&[u8], &[u8]), out: &mut Vec<u8>) {
        if !points.has_any(self.steps) {
            return;
        }
        out.extend_from_slice(name);
        points.each(self.steps, |time_ms, text| {
            let step = self.steps.index(time_ms);
            let time = &self.texts[self.times[step]..self.times[step + 1]];
            out.reserve(time.len() + text.len() + POINT_BYTES);
            out.push(b'[');
            out.extend_from_slice(time);
            out.push(b',');
            out.extend_from_slice(quote);
            out.extend_from_slice(text);
            out.extend_from_slice(quote);
            out.extend_from_slice(b"],");
        });
        // Replaces the comma after the last point.
        if let Some(last) = out.last_mut() {
            *last = b']';
        }
    }
}
