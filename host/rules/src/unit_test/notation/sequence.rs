//! Values of successive steps, of which repeated ones are kept as a run.

use crate::unit_test::histogram::Histogram;

/// Values of steps from the first one on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    runs: Vec<Run>,
    cost: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Run {
    /// Steps without a value.
    Omitted { count: u64 },
    /// A value, and more of them, each the one before plus the step.
    Floats { first: f64, step: Option<f64>, more: u64 },
    /// The sign is that of the step.
    Histograms { first: Box<Histogram>, step: Option<(Box<Histogram>, f64)>, more: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Omitted,
    Float(f64),
    Histogram(Histogram),
}

/// A place in a sequence.
#[derive(Clone, Debug)]
pub struct Cursor<'s> {
    runs: std::slice::Iter<'s, Run>,
    /// The run of the next value, the value, and how many follow it.
    current: Option<(&'s Run, Item, u64)>,
}

impl Run {
    fn count(&self) -> u64 {
        match self {
            Run::Omitted { count } => *count,
            Run::Floats { more, .. } | Run::Histograms { more, .. } => more.saturating_add(1),
        }
    }

    /// What the values cost: 1 each, and a histogram its buckets.
    pub fn cost(&self) -> u64 {
        let buckets = |histogram: &Histogram| {
            let bounds = histogram.custom_values.len();
            (histogram.positive.len() + histogram.negative.len() + bounds) as u64
        };
        let each = match self {
            Run::Histograms { first, step, .. } => {
                1 + buckets(first) + step.as_ref().map_or(0, |(step, _)| buckets(step))
            }
            _ => 1,
        };
        self.count().saturating_mul(each)
    }

    /// The first value with the number of those behind it; `None` of an empty run.
    fn begin(&self) -> Option<(Item, u64)> {
        match self {
            Run::Omitted { count } => Some((Item::Omitted, count.checked_sub(1)?)),
            Run::Floats { first, more, .. } => Some((Item::Float(*first), *more)),
            Run::Histograms { first, more, .. } => {
                Some((Item::Histogram((**first).clone()), *more))
            }
        }
    }

    /// The value behind another one.
    fn next(&self, item: &Item) -> Item {
        match (self, item) {
            (Run::Floats { step: Some(step), .. }, Item::Float(value)) => Item::Float(value + step),
            (Run::Histograms { step: Some((step, sign)), .. }, Item::Histogram(value)) => {
                let mut sum = value.clone();
                // The parser has tried it.
                let _ = sum.combine(step, *sign);
                Item::Histogram(sum)
            }
            (_, item) => item.clone(),
        }
    }
}

impl Sequence {
    pub(super) fn push(&mut self, run: Run) {
        self.cost = self.cost.saturating_add(run.cost());
        self.runs.push(run);
    }

    /// Number of steps.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(Run::count).sum()
    }

    pub fn cost(&self) -> u64 {
        self.cost
    }

    pub fn items(&self) -> Cursor<'_> {
        Cursor { runs: self.runs.iter(), current: None }
    }
}

impl Iterator for Cursor<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.current.is_none() {
            let run = self.runs.next()?;
            self.current = run.begin().map(|(item, more)| (run, item, more));
        }
        let (run, item, more) = self.current.take()?;
        if let Some(more) = more.checked_sub(1) {
            self.current = Some((run, run.next(&item), more));
        }
        Some(item)
    }
}
