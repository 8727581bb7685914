//! An answer of a range query: series in the order of their labels, and the texts of their points.

use super::labels::order;
use super::notes::Notes;
use super::points::Points;
use super::reader::BEGIN;
use super::steps::Steps;
use std::cmp::Ordering;
use tidepool_model::number::push_seconds;
use tidepool_runtime::PoolShare;

/// Bytes that the beginning and end of a point take in JSON besides its time and its value.
const POINT_BYTES: usize = 6;

/// A series of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Its labels, as JSON.
    pub metric: Box<[u8]>,
    /// Floats, without quotes.
    pub floats: Points,
    /// Native histograms, as JSON.
    pub histograms: Points,
}

/// An answer at some steps.
#[derive(Debug)]
pub struct Answer {
    /// The steps.
    pub steps: Steps,
    series: Vec<Series>,
    notes: Notes,
    bytes: usize,
    /// Its bytes among those that all reads share.
    share: PoolShare,
}

impl Series {
    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Series>() + self.metric.len() + self.floats.bytes() + self.histograms.bytes()
    }

    fn has_any(&self, steps: Steps) -> bool {
        self.floats.has_any(steps) || self.histograms.has_any(steps)
    }

    /// Adds points of another answer's series with the same labels, which are newer.
    fn add(&mut self, other: &Series, steps: Steps) {
        let mut follow = true;
        for (to, from) in
            [(&mut self.floats, &other.floats), (&mut self.histograms, &other.histograms)]
        {
            from.each(steps, |time_ms, text| follow &= to.push(time_ms, text, steps.step_ms));
        }
        debug_assert!(follow, "steps of pieces do not overlap");
    }
}

impl Answer {
    /// Of series in the order of their labels, whose bytes are taken.
    pub fn new(steps: Steps, mut series: Vec<Series>, share: PoolShare) -> Answer {
        series.shrink_to_fit();
        let bytes = series.iter().map(Series::bytes).sum();
        Answer { steps, series, notes: Notes::none(steps), bytes, share }
    }

    /// The same with warnings and infos; none if their bytes cannot be taken.
    pub fn with_notes(mut self, notes: Notes) -> Option<Answer> {
        self.bytes += notes.bytes();
        self.notes = notes;
        self.share.grow_to(self.bytes).then_some(self)
    }

    /// Its warnings and infos.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that it takes of those that all reads share.
    pub fn shared_bytes(&self) -> usize {
        self.share.bytes()
    }

    /// One answer of pieces that follow one another, of each those steps that are given with it.
    /// None if it takes more than so many bytes, or than those that are shared have left, and if it
    /// is not known which warnings and infos it has.
    pub fn join(
        pieces: &[(&Answer, Steps)],
        bytes_max: usize,
        mut share: PoolShare,
    ) -> Option<Answer> {
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

    /// Writes it as the engine does, at some of its steps.
    pub fn write(&self, steps: Steps) -> Writer<'_> {
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

/// The warnings and infos that all pieces have, if the steps of one of them have all: the newest,
/// of which most is asked for the next time.
fn joined_notes(pieces: &[(&Answer, Steps)]) -> Option<Notes> {
    let (piece, _) = pieces.iter().rfind(|(piece, steps)| piece.notes.are_of(*steps))?;
    let is_same = |(other, _): &(&Answer, Steps)| piece.notes.are_those(&other.notes);
    pieces.iter().all(is_same).then(|| piece.notes.clone())
}

/// The labels that come first of all.
fn least<'a>(rests: &[(&'a [Series], Steps)]) -> Option<&'a [u8]> {
    let firsts = rests.iter().filter_map(|(rest, _)| Some(&*rest.first()?.metric));
    firsts.reduce(|one, other| match order(one, other) {
        Ordering::Greater => other,
        _ => one,
    })
}

/// An answer that is being written.
pub struct Writer<'a> {
    series: std::slice::Iter<'a, Series>,
    steps: Steps,
    /// Where the text of each step's time begins, and where the last one ends.
    times: Vec<usize>,
    texts: Vec<u8>,
    is_begun: bool,
    has_series: bool,
    is_ended: bool,
}

impl Writer<'_> {
    /// The next bytes: whole series, at least so many bytes if there are as many; none at the end.
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
        // Instead of the last comma.
        if let Some(last) = out.last_mut() {
            *last = b']';
        }
    }
}
