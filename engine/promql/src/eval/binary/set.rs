//! The set operators `and`, `unless` and `or`.

use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::column::Bits;
use crate::eval::context::Context;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::eval::series_union::{SeriesUnion, merge};
use crate::model::{KeyLabels, Labels};
use crate::plan::{Lockstep, Port};
use crate::syntax::Span;

/// For each key, the steps at which its series have values.
struct Presence {
    by: KeyLabels,
    index: KeyIndex,
    steps: Vec<Bits>,
    held: Usage,
}

impl Presence {
    fn new(by: KeyLabels) -> Presence {
        Presence { by, index: KeyIndex::default(), steps: Vec::new(), held: Usage::default() }
    }

    fn mark(
        &mut self,
        series: &Series,
        span: Span,
        context: &mut Context,
    ) -> Result<(), EvalError> {
        let (number, is_new) = self.index.insert(&self.by, &series.labels);
        if is_new {
            let steps = Bits::new(series.column.len());
            let bytes = self.index.labels(number).bytes() + steps.bytes();
            self.held.bytes += bytes;
            context.budget.take(Usage { bytes, samples: 0 }, span)?;
            self.steps.push(steps);
        }
        series.column.mark(&mut self.steps[number]);
        Ok(())
    }

    fn clear(&mut self, context: &mut Context) {
        self.index.clear();
        self.steps.clear();
        context.budget.give(std::mem::take(&mut self.held));
    }

    fn of(&self, labels: &Labels) -> Option<&Bits> {
        self.index.find(&self.by, labels).map(|number| &self.steps[number])
    }
}

/// `and`, `unless`: the right side is held as one bit for each key and step.
pub struct And {
    right: Presence,
    is_unless: bool,
    lockstep: Lockstep,
    span: Span,
}

impl And {
    pub fn new(by: KeyLabels, is_unless: bool, lockstep: Lockstep, span: Span) -> And {
        And { right: Presence::new(by), is_unless, lockstep, span }
    }
}

impl Operator for And {
    fn push(&mut self, port: Port, mut series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port == 0 {
            self.right.mark(&series, self.span, out.context)?;
            out.context.recycle(series.column);
            return Ok(());
        }
        match self.right.of(&series.labels) {
            None if self.is_unless => {}
            None => return Ok(()),
            Some(steps) => {
                for step in 0..series.column.len() {
                    if steps.get(step) == self.is_unless {
                        series.column.clear_step(step);
                    }
                }
            }
        }
        // The next series has another key, so one entry suffices.
        if self.lockstep == Lockstep::Joins && out.context.is_lockstep {
            self.right.clear(out.context);
        }
        out.emit(series)
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port == 1 {
            out.context.budget.give(std::mem::take(&mut self.right.held));
        }
        Ok(())
    }
}

/// `or` of two or more terms. Series of later terms are held; a series of the first term is emitted
/// at once, unless a later term has a series with the same labels.
pub struct Or {
    /// Steps at which keys have values in the terms that were read or emitted so far.
    left: Presence,
    /// Series of the terms after the first, the last term first, with their numbers in `index`.
    terms: Vec<Vec<(usize, Series)>>,
    index: KeyIndex,
    results: Vec<Option<Series>>,
    unite: SeriesUnion,
    held: Usage,
    span: Span,
}

impl Or {
    pub fn new(by: KeyLabels, terms: usize, span: Span) -> Or {
        Or {
            left: Presence::new(by),
            terms: (1..terms).map(|_| Vec::new()).collect(),
            index: KeyIndex::default(),
            results: Vec::new(),
            unite: SeriesUnion::default(),
            held: Usage::default(),
            span,
        }
    }

    fn take(&mut self, held: Usage, context: &mut Context) -> Result<(), EvalError> {
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        context.budget.take(held, self.span)
    }

    /// Emits each later term at steps where the terms before have no series of the same key.
    fn rest(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        let mut order = Vec::new();
        // `terms` holds the last term first, so `pop` yields the terms in their order.
        while let Some(mut term) = self.terms.pop() {
            for (_, series) in &mut term {
                if let Some(steps) = self.left.of(&series.labels) {
                    steps.iter().for_each(|step| series.column.clear_step(step));
                }
            }
            // `left` hides series of later terms only, so the last term need not be marked.
            if !self.terms.is_empty() {
                for (_, series) in &term {
                    self.left.mark(series, self.span, out.context)?;
                }
            }
            for (number, series) in term {
                // Series of two terms with equal labels form one series, in the order of the first.
                order.push(number);
                match &mut self.results[number] {
                    Some(result) => merge(&mut result.column, &series.column)?,
                    place => *place = Some(series),
                }
            }
        }
        for number in order {
            if let Some(series) = self.results[number].take() {
                out.emit(series)?;
            }
        }
        Ok(())
    }
}

impl Operator for Or {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port < self.terms.len() {
            let index_bytes = self.index.bytes();
            let (number, is_new) = self.index.insert_all(&series.labels);
            if is_new {
                self.results.push(None);
            }
            let mut held = series.held();
            held.bytes += self.index.bytes() - index_bytes + size_of::<Option<Series>>();
            self.take(held, out.context)?;
            self.terms[port].push((number, series));
            return Ok(());
        }
        self.left.mark(&series, self.span, out.context)?;
        match self.index.find_all(&series.labels) {
            None => self.unite.push(series, true, self.span, out),
            // The later term may have values at other steps, so this series waits for that term.
            Some(number) => {
                self.take(series.held(), out.context)?;
                match &mut self.results[number] {
                    Some(result) => merge(&mut result.column, &series.column)?,
                    place => *place = Some(series),
                }
                Ok(())
            }
        }
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        if port < self.terms.len() {
            return Ok(());
        }
        self.rest(out)?;
        self.unite.end(out)?;
        out.context.budget.give(std::mem::take(&mut self.held));
        out.context.budget.give(std::mem::take(&mut self.left.held));
        Ok(())
    }
}
