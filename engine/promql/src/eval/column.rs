//! Values of one series at all steps.

use super::budget::Usage;
use crate::model::{Histogram, Value};
use std::rc::Rc;

/// A float, a histogram or no value for each step.
#[derive(Clone, Debug, Default)]
pub struct Column {
    floats: Vec<f64>,
    present: Bits,
    histograms: Vec<Option<Rc<Histogram>>>,
}

impl Column {
    /// Bytes of a step without histogram: a float, and a bit rounded up.
    pub const BYTES_PER_STEP: usize = size_of::<f64>() + 1;

    pub fn new(steps: usize) -> Column {
        Column { floats: vec![0.0; steps], present: Bits::new(steps), histograms: Vec::new() }
    }

    pub fn constant(steps: usize, value: f64) -> Column {
        Column { floats: vec![value; steps], present: Bits::ones(steps), histograms: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.floats.len()
    }

    pub fn is_empty(&self) -> bool {
        self.present.is_empty() && self.histograms.iter().all(Option::is_none)
    }

    #[inline]
    pub fn float(&self, step: usize) -> Option<f64> {
        self.present.get(step).then(|| self.floats[step])
    }

    #[inline]
    pub fn histogram(&self, step: usize) -> Option<&Rc<Histogram>> {
        self.histograms.get(step)?.as_ref()
    }

    #[inline]
    pub fn value(&self, step: usize) -> Option<Value> {
        match self.float(step) {
            Some(value) => Some(Value::Float(value)),
            None => self.histogram(step).map(|h| Value::Histogram(h.clone())),
        }
    }

    #[inline]
    pub fn has(&self, step: usize) -> bool {
        self.present.get(step) || self.histogram(step).is_some()
    }

    pub fn has_histograms(&self) -> bool {
        self.histograms.iter().any(Option::is_some)
    }

    /// Sets the float at a step, which must not have a histogram.
    #[inline]
    pub fn set_float(&mut self, step: usize, value: f64) {
        self.floats[step] = value;
        self.present.set(step);
    }

    /// Sets the histogram at a step, which must not have a float.
    pub fn set_histogram(&mut self, step: usize, value: Rc<Histogram>) {
        // Most columns have floats only, so the list is made with the first histogram.
        if self.histograms.is_empty() {
            self.histograms.resize(self.floats.len(), None);
        }
        self.histograms[step] = Some(value);
    }

    /// Replaces the value at a step; `None` removes it.
    pub fn put(&mut self, step: usize, value: Option<Value>) {
        self.clear_step(step);
        match value {
            Some(Value::Float(value)) => self.set_float(step, value),
            Some(Value::Histogram(value)) => self.set_histogram(step, value),
            None => {}
        }
    }

    pub fn clear_step(&mut self, step: usize) {
        self.present.unset(step);
        if let Some(histogram) = self.histograms.get_mut(step) {
            *histogram = None;
        }
    }

    /// Removes the values at all steps that are not in `steps`.
    pub fn keep(&mut self, steps: &Bits) {
        self.present.intersect(steps);
        for (step, histogram) in self.histograms.iter_mut().enumerate() {
            if !steps.get(step) {
                *histogram = None;
            }
        }
    }

    pub fn drop_histograms(&mut self) {
        self.histograms = Vec::new();
    }

    pub fn drop_floats(&mut self) {
        let steps = self.floats.len();
        self.present.reset(steps);
    }

    pub fn reset(&mut self, steps: usize) {
        self.floats.clear();
        self.floats.resize(steps, 0.0);
        self.present.reset(steps);
        // Few series have histograms, so a recycled column does not keep the list.
        self.histograms = Vec::new();
    }

    /// All floats; entries of steps without a float have no meaning.
    #[inline]
    pub fn floats(&self) -> &[f64] {
        &self.floats
    }

    #[inline]
    pub fn floats_mut(&mut self) -> &mut [f64] {
        &mut self.floats
    }

    /// Steps that have floats; steps that have histograms are not included.
    #[inline]
    pub fn present(&self) -> &Bits {
        &self.present
    }

    #[inline]
    pub fn present_mut(&mut self) -> &mut Bits {
        &mut self.present
    }

    /// All floats, and the words of `present`, for in-place changes.
    pub fn parts_mut(&mut self) -> (&mut [f64], &mut [u64]) {
        (&mut self.floats, &mut self.present.words)
    }

    pub fn is_full(&self) -> bool {
        self.present.is_full()
    }

    /// Sets the bits of steps that have a value.
    pub fn mark(&self, steps: &mut Bits) {
        steps.union(&self.present);
        for (step, histogram) in self.histograms.iter().enumerate() {
            if histogram.is_some() {
                steps.set(step);
            }
        }
    }

    /// Number of samples; a histogram counts as several samples, see [`histogram_held`].
    pub fn samples(&self) -> u64 {
        let histograms = self.histograms.iter().flatten();
        self.present.count() as u64 + histograms.map(|h| histogram_held(h).samples).sum::<u64>()
    }

    /// Approximate memory in bytes; a histogram of several steps counts at each of them.
    pub fn bytes(&self) -> usize {
        let histograms: usize =
            self.histograms.iter().flatten().map(|h| histogram_held(h).bytes).sum();
        size_of::<Column>()
            + self.floats.capacity() * 8
            + self.present.words.capacity() * 8
            + self.histograms.capacity() * 8
            + histograms
    }
}

/// Bytes of a histogram without its buckets, as upstream counts them.
const HISTOGRAM_BYTES: usize = 168;

/// Returns the memory of a histogram, and the number of float samples that need as much.
pub fn histogram_held(histogram: &Histogram) -> Usage {
    let spans = histogram.positive_spans.len() + histogram.negative_spans.len();
    let numbers = histogram.positive_buckets.len()
        + histogram.negative_buckets.len()
        + histogram.custom_values.len();
    let bytes = HISTOGRAM_BYTES + (spans + numbers) * 8;
    // Upstream adds 8 bytes for the timestamp and divides by the 16 bytes of a float sample.
    Usage { bytes, samples: (bytes as u64 + 8) / 16 }
}

/// A bit for each step. Operations on two sets require sets of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub fn new(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)], len }
    }

    pub fn ones(len: usize) -> Bits {
        let mut bits = Bits { words: vec![u64::MAX; len.div_ceil(64)], len };
        // `count` and `is_full` rely on zero bits beyond the end.
        if !len.is_multiple_of(64)
            && let Some(last) = bits.words.last_mut()
        {
            *last = (1 << (len % 64)) - 1;
        }
        bits
    }

    #[inline]
    pub fn get(&self, at: usize) -> bool {
        self.words[at / 64] & (1 << (at % 64)) != 0
    }

    #[inline]
    pub fn set(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    #[inline]
    pub fn unset(&mut self, at: usize) {
        self.words[at / 64] &= !(1 << (at % 64));
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub fn is_full(&self) -> bool {
        self.count() == self.len
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn reset(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
    }

    pub fn union(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    pub fn intersect(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    pub fn subtract(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Positions of set bits, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    // Clears the lowest bit, so the iterator takes one turn for each set bit.
                    rest &= rest - 1;
                    i * 64 + bit
                })
            })
        })
    }

    pub fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_know_their_end() {
        for len in [0, 1, 63, 64, 65, 130] {
            let mut bits = Bits::ones(len);
            assert_eq!(bits.count(), len);
            assert!(bits.is_full());
            assert_eq!(bits.iter().collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
            if len > 0 {
                bits.unset(len - 1);
                assert!(!bits.get(len - 1) && !bits.is_full());
                assert_eq!(bits.count(), len - 1);
            }
        }
    }

    #[test]
    fn a_step_has_a_float_or_a_histogram() {
        let mut column = Column::new(3);
        assert!(column.is_empty());
        column.set_float(0, 2.0);
        column.set_histogram(2, Rc::new(Histogram::default()));
        assert!(column.has(0) && !column.has(1) && column.has(2));
        column.put(2, Some(Value::Float(4.0)));
        assert_eq!((column.float(2), column.histogram(2)), (Some(4.0), None));
        column.put(2, None);
        assert!(!column.has(2));
    }
}
