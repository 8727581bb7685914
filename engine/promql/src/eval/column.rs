//! One series' values at all steps.

use super::budget::Held;
use crate::model::{Histogram, Value};
use std::rc::Rc;

/// A value, or none, for each step. Most columns have floats only; histograms take room once there
/// are any. No step has both.
#[derive(Clone, Debug, Default)]
pub struct Column {
    floats: Vec<f64>,
    present: Bits,
    histograms: Vec<Option<Rc<Histogram>>>,
}

impl Column {
    /// What a step of floats takes: a number, and a bit.
    pub const BYTES_PER_STEP: usize = size_of::<f64>() + 1;

    /// No value at any of these steps.
    pub fn new(steps: usize) -> Column {
        Column { floats: vec![0.0; steps], present: Bits::new(steps), histograms: Vec::new() }
    }

    /// One float at all steps.
    pub fn constant(steps: usize, value: f64) -> Column {
        Column { floats: vec![value; steps], present: Bits::ones(steps), histograms: Vec::new() }
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.floats.len()
    }

    /// Whether there is no value at any step.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty() && self.histograms.iter().all(Option::is_none)
    }

    /// The float at a step.
    #[inline]
    pub fn float(&self, step: usize) -> Option<f64> {
        self.present.get(step).then(|| self.floats[step])
    }

    /// The histogram at a step.
    #[inline]
    pub fn histogram(&self, step: usize) -> Option<&Rc<Histogram>> {
        self.histograms.get(step)?.as_ref()
    }

    /// The value at a step.
    #[inline]
    pub fn value(&self, step: usize) -> Option<Value> {
        match self.float(step) {
            Some(value) => Some(Value::Float(value)),
            None => self.histogram(step).map(|h| Value::Histogram(h.clone())),
        }
    }

    /// Whether there is a value at a step.
    #[inline]
    pub fn has(&self, step: usize) -> bool {
        self.present.get(step) || self.histogram(step).is_some()
    }

    /// Whether there are histograms.
    pub fn has_histograms(&self) -> bool {
        self.histograms.iter().any(Option::is_some)
    }

    /// Sets the float at a step, which has no histogram.
    #[inline]
    pub fn set_float(&mut self, step: usize, value: f64) {
        self.floats[step] = value;
        self.present.set(step);
    }

    /// Sets the histogram at a step, which has no float.
    pub fn set_histogram(&mut self, step: usize, value: Rc<Histogram>) {
        if self.histograms.is_empty() {
            self.histograms.resize(self.floats.len(), None);
        }
        self.histograms[step] = Some(value);
    }

    /// Sets or takes out the value at a step.
    pub fn put(&mut self, step: usize, value: Option<Value>) {
        self.clear_step(step);
        match value {
            Some(Value::Float(value)) => self.set_float(step, value),
            Some(Value::Histogram(value)) => self.set_histogram(step, value),
            None => {}
        }
    }

    /// Takes out the value at a step.
    pub fn clear_step(&mut self, step: usize) {
        self.present.unset(step);
        if let Some(histogram) = self.histograms.get_mut(step) {
            *histogram = None;
        }
    }

    /// Takes out the values of all other steps.
    pub fn keep(&mut self, steps: &Bits) {
        self.present.intersect(steps);
        for (step, histogram) in self.histograms.iter_mut().enumerate() {
            if !steps.get(step) {
                *histogram = None;
            }
        }
    }

    /// Takes out all histograms.
    pub fn drop_histograms(&mut self) {
        self.histograms = Vec::new();
    }

    /// Takes out all floats.
    pub fn drop_floats(&mut self) {
        let steps = self.floats.len();
        self.present.reset(steps);
    }

    /// Takes out all values, and sets the number of steps.
    pub fn reset(&mut self, steps: usize) {
        self.floats.clear();
        self.floats.resize(steps, 0.0);
        self.present.reset(steps);
        self.histograms = Vec::new();
    }

    /// All floats, also those of steps without one, which mean nothing.
    #[inline]
    pub fn floats(&self) -> &[f64] {
        &self.floats
    }

    /// All floats, to be changed in place.
    #[inline]
    pub fn floats_mut(&mut self) -> &mut [f64] {
        &mut self.floats
    }

    /// Steps with floats.
    #[inline]
    pub fn present(&self) -> &Bits {
        &self.present
    }

    /// Steps with floats, to be changed in place.
    #[inline]
    pub fn present_mut(&mut self) -> &mut Bits {
        &mut self.present
    }

    /// All floats, and a bit for each step that has one, to be changed in place.
    pub fn parts_mut(&mut self) -> (&mut [f64], &mut [u64]) {
        (&mut self.floats, &mut self.present.words)
    }

    /// Whether there is a float at every step.
    pub fn is_full(&self) -> bool {
        self.present.is_full()
    }

    /// Adds the steps that have a value.
    pub fn mark(&self, steps: &mut Bits) {
        steps.union(&self.present);
        for (step, histogram) in self.histograms.iter().enumerate() {
            if histogram.is_some() {
                steps.set(step);
            }
        }
    }

    /// How many values there are; a histogram counts as upstream counts it.
    pub fn samples(&self) -> u64 {
        let histograms = self.histograms.iter().flatten();
        self.present.count() as u64 + histograms.map(|h| histogram_held(h).samples).sum::<u64>()
    }

    /// Bytes of memory, roughly; a histogram that is shared is counted each time.
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

/// What a histogram takes; it counts as so many samples as its bytes would hold.
pub fn histogram_held(histogram: &Histogram) -> Held {
    let spans = histogram.positive_spans.len() + histogram.negative_spans.len();
    let numbers = histogram.positive_buckets.len()
        + histogram.negative_buckets.len()
        + histogram.custom_values.len();
    let bytes = HISTOGRAM_BYTES + (spans + numbers) * 8;
    Held { bytes, samples: (bytes as u64 + 8) / 16 }
}

/// A bit for each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// No bit is set.
    pub fn new(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)], len }
    }

    /// All bits are set.
    pub fn ones(len: usize) -> Bits {
        let mut bits = Bits { words: vec![u64::MAX; len.div_ceil(64)], len };
        if !len.is_multiple_of(64)
            && let Some(last) = bits.words.last_mut()
        {
            *last = (1 << (len % 64)) - 1;
        }
        bits
    }

    /// Whether a bit is set.
    #[inline]
    pub fn get(&self, at: usize) -> bool {
        self.words[at / 64] & (1 << (at % 64)) != 0
    }

    /// Sets a bit.
    #[inline]
    pub fn set(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Clears a bit.
    #[inline]
    pub fn unset(&mut self, at: usize) {
        self.words[at / 64] &= !(1 << (at % 64));
    }

    /// Whether no bit is set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether all bits are set.
    pub fn is_full(&self) -> bool {
        self.count() == self.len
    }

    /// How many bits are set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How many bits there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Clears all bits, and sets how many there are.
    pub fn reset(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
    }

    /// Sets the bits that another one of this length has.
    pub fn union(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Clears the bits that another one of this length lacks.
    pub fn intersect(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Clears the bits that another one of this length has.
    pub fn subtract(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Places of set bits, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    i * 64 + bit
                })
            })
        })
    }

    /// Bytes of memory.
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
