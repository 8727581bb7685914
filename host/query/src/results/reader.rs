//! Parses the answer of a range query as the engine writes it. Each part has complete series.
//!
//! ```text
//! "resultType":"matrix","result":[{"metric":{…},"values":[[1.500,"2"],…],"histograms":[[2,{…}],…]},…]
//! ```
//!
//! An answer in any other format is not cached.

use super::answer::{Answer, Series};
use super::labels::{order, text_length};
use super::points::Points;
use super::steps::Steps;
use std::cmp::Ordering;
use tidepool_runtime::PoolShare;

/// Beginning of an answer, up to the first series.
pub const BEGIN: &[u8] = b"\"resultType\":\"matrix\",\"result\":[";

/// Parser of an answer that arrives in parts.
pub struct Reader {
    steps: Steps,
    bytes: usize,
    bytes_max: usize,
    share: PoolShare,
    series: Vec<Series>,
    is_begun: bool,
    is_whole: bool,
}

impl Reader {
    /// Creates a parser for these steps. It reserves at most `bytes_max` bytes in `share`.
    pub fn new(steps: Steps, bytes_max: usize, share: PoolShare) -> Reader {
        let (series, bytes) = (Vec::new(), 0);
        Reader { steps, bytes, bytes_max, share, series, is_begun: false, is_whole: false }
    }

    /// Parses the next part. Returns `None` if the answer is too large or must not be cached.
    pub fn read(&mut self, part: &[u8]) -> Option<()> {
        let mut rest = Rest(part);
        if !std::mem::replace(&mut self.is_begun, true) {
            rest.expect(BEGIN)?;
        }
        while !rest.0.is_empty() {
            if rest.take(b"]") {
                self.is_whole = true;
                return rest.0.is_empty().then_some(());
            }
            if !self.series.is_empty() {
                rest.expect(b",")?;
            }
            let series = self.series(&mut rest)?;
            self.bytes += series.bytes();
            if self.bytes > self.bytes_max || !self.share.grow_to(self.bytes) {
                return None;
            }
            self.series.push(series);
        }
        Some(())
    }

    /// Returns the answer, if its end was parsed.
    pub fn finish(self) -> Option<Answer> {
        let Reader { steps, series, share, is_whole, .. } = self;
        is_whole.then(|| Answer::new(steps, series, share))
    }

    fn series(&self, rest: &mut Rest<'_>) -> Option<Series> {
        rest.expect(b"{\"metric\":")?;
        let metric = rest.value()?;
        // Joining relies on label order, in which not every expression returns its series.
        if let Some(last) = self.series.last()
            && order(&last.metric, metric) != Ordering::Less
        {
            return None;
        }
        let mut series = Series { metric: metric.into(), ..Series::default() };
        if rest.take(b",\"values\":[") {
            self.points(rest, &mut series.floats)?;
        }
        if rest.take(b",\"histograms\":[") {
            self.points(rest, &mut series.histograms)?;
        }
        rest.expect(b"}")?;
        Some(series)
    }

    fn points(&self, rest: &mut Rest<'_>, points: &mut Points) -> Option<()> {
        let steps = self.steps;
        loop {
            rest.expect(b"[")?;
            let time_ms = rest.time_ms()?;
            rest.expect(b",")?;
            let text = rest.value()?;
            rest.expect(b"]")?;
            // The quotes around numbers are removed; the writer adds them again.
            let text =
                text.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(text);
            // A duplicate point, or one between steps, would be changed when it is written again.
            let is_within = time_ms >= steps.first_ms && time_ms <= steps.last_ms;
            if !is_within
                || (time_ms - steps.first_ms) % steps.step_ms != 0
                || !points.push(time_ms, text, steps.step_ms)
            {
                return None;
            }
            if rest.take(b"]") {
                points.shrink();
                return Some(());
            }
            rest.expect(b",")?;
        }
    }
}

/// The part of the text that is not parsed yet.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn take(&mut self, text: &[u8]) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    pub(super) fn expect(&mut self, text: &[u8]) -> Option<()> {
        self.take(text).then_some(())
    }

    fn split(&mut self, length: usize) -> Option<&'a [u8]> {
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    /// Parses a string with its quotes, or an object, without decoding it.
    pub(super) fn value(&mut self) -> Option<&'a [u8]> {
        if self.0.first() == Some(&b'"') {
            return self.split(text_length(&self.0[1..])? + 2);
        }
        if self.0.first() != Some(&b'{') {
            return None;
        }
        let (mut at, mut depth) = (0, 0_usize);
        loop {
            match self.0.get(at)? {
                b'"' => at += text_length(&self.0[at + 1..])? + 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return self.split(at);
            }
        }
    }

    /// Parses a time in seconds with three decimals or none; returns milliseconds.
    pub(super) fn time_ms(&mut self) -> Option<i64> {
        let is_negative = self.take(b"-");
        let mut number = self.digits()?;
        number = match self.take(b".") {
            true => {
                let before = self.0.len();
                // The engine writes three decimals, so any other number is another format.
                let decimals = self.digits()?;
                (before - self.0.len() == 3).then_some(())?;
                number.checked_mul(1000)?.checked_add(decimals)?
            }
            false => number.checked_mul(1000)?,
        };
        Some(if is_negative { -number } else { number })
    }

    fn digits(&mut self) -> Option<i64> {
        let length = self.0.iter().position(|byte| !byte.is_ascii_digit())?;
        // More digits could overflow 64 bits, and cannot be a time.
        if length == 0 || length > 18 {
            return None;
        }
        let digits = self.split(length)?.iter();
        Some(digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }
}
