//! Joins: the "one" side is held in memory by key; each "flowing" series is joined on arrival.
//!
//! Source: prometheus/prometheus, `promql/engine.go` (`VectorBinop`).

use super::labels::ResultLabels;
use crate::binop;
use crate::error::EvalError;
use crate::eval::budget::Usage;
use crate::eval::column::{Bits, Column};
use crate::eval::context::Context;
use crate::eval::key::KeyIndex;
use crate::eval::pipeline::{Operator, Out};
use crate::eval::series::Series;
use crate::eval::series_union::SeriesUnion;
use crate::eval::step_annotations::StepAnnotations;
use crate::model::{KeyLabels, Labels, Value, hash_labels};
use crate::plan::{Grid, Join, Lockstep, Port, match_key};
use crate::syntax::{BinaryOp, Cardinality, Span};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tidepool_model::sort;

/// Approximate bytes of an entry of [`Group::given`], without the bits of its steps.
const GIVEN_BYTES: usize = 64;

/// A binary operator between two vectors.
pub struct Joiner {
    pub(super) plan: Join,
    pub(super) grid: Grid,
    pub(super) span: Span,
    by: KeyLabels,
    pub(super) labels: ResultLabels,
    index: KeyIndex,
    pub(super) groups: Vec<Group>,
    /// Steps at which two series of the held side have the same key, with the error text. Only the
    /// first pair of each step is kept, so there are at most as many entries as steps.
    duplicates: Vec<(Bits, String)>,
    duplicate_steps: Bits,
    pub(super) unite: SeriesUnion,
    annotations: StepAnnotations,
    lockstep: Lockstep,
    held: Usage,
}

#[derive(Default)]
pub(super) struct Group {
    pub(super) held: Vec<(Labels, Column)>,
    /// Steps at which a flowing series was joined.
    pub(super) matched: Bits,
    /// For many-to-one joins whose result labels may be equal: steps with results, by label hash.
    given: HashMap<u64, Bits>,
    /// Labels of the result, if results replace the held values at the steps in `matched`.
    pub(super) result: Option<Labels>,
    /// If `result` is set: steps at which the held series had histograms before they were replaced.
    pub(super) histograms: Bits,
}

impl Joiner {
    pub fn new(plan: Join, grid: Grid, is_delayed: bool, lockstep: Lockstep, span: Span) -> Joiner {
        let by = match_key(&plan.matching);
        Joiner {
            labels: ResultLabels::new(&plan, by.clone(), is_delayed),
            by,
            plan,
            grid,
            span,
            index: KeyIndex::default(),
            groups: Vec::new(),
            duplicates: Vec::new(),
            duplicate_steps: Bits::new(grid.steps),
            unite: SeriesUnion::default(),
            annotations: StepAnnotations::default(),
            lockstep,
            held: Usage::default(),
        }
    }

    fn is_one_to_one(&self) -> bool {
        self.plan.matching.cardinality == Cardinality::OneToOne
    }

    fn take(&mut self, held: Usage, context: &mut Context) -> Result<(), EvalError> {
        self.held.bytes += held.bytes;
        self.held.samples += held.samples;
        context.budget.take(held, self.span)
    }

    /// Returns whether the sides arrive in lockstep, where a key has only one flowing series.
    fn is_lockstep(&self, context: &Context) -> bool {
        self.lockstep != Lockstep::None && context.is_lockstep
    }

    /// Drops all held series, because the series that follow have other keys.
    fn forget(&mut self, context: &mut Context) {
        self.index.clear();
        for group in self.groups.drain(..) {
            group.held.into_iter().for_each(|(_, column)| context.recycle(column));
        }
        context.budget.give(std::mem::take(&mut self.held));
    }

    fn group(&mut self, labels: &Labels, context: &mut Context) -> Result<usize, EvalError> {
        let (number, is_new) = self.index.insert(&self.by, labels);
        if is_new {
            let matched = Bits::new(self.grid.steps);
            let bytes = self.index.labels(number).bytes() + matched.bytes() + size_of::<Group>();
            self.take(Usage { bytes, samples: 0 }, context)?;
            self.groups.push(Group { matched, ..Group::default() });
        }
        Ok(number)
    }

    fn buffer(&mut self, series: Series, context: &mut Context) -> Result<(), EvalError> {
        let number = self.group(&series.labels, context)?;
        self.take(series.held(), context)?;
        if !self.groups[number].held.is_empty() {
            self.find_duplicates(number, &series, context)?;
        }
        self.groups[number].held.push((series.labels, series.column));
        Ok(())
    }

    /// Records new steps at which both `series` and a held series of the same key have values.
    fn find_duplicates(
        &mut self,
        number: usize,
        series: &Series,
        context: &mut Context,
    ) -> Result<(), EvalError> {
        let mut left = Bits::new(self.grid.steps);
        series.column.mark(&mut left);
        // One pair for each step suffices for the error, and bounds the memory.
        left.subtract(&self.duplicate_steps);
        for place in 0..self.groups[number].held.len() {
            if left.is_empty() {
                break;
            }
            let (labels, column) = &self.groups[number].held[place];
            let mut steps = Bits::new(self.grid.steps);
            column.mark(&mut steps);
            steps.intersect(&left);
            if steps.is_empty() {
                continue;
            }
            let text = self.duplicate(number, labels, &series.labels);
            self.take(Usage { bytes: steps.bytes() + text.len(), samples: 0 }, context)?;
            left.subtract(&steps);
            self.duplicate_steps.union(&steps);
            self.duplicates.push((steps, text));
        }
        Ok(())
    }

    fn duplicate(&self, number: usize, one: &Labels, other: &Labels) -> String {
        let side = match self.plan.matching.cardinality {
            Cardinality::OneToMany => "left",
            _ => "right",
        };
        // Sorted, so that the error text does not depend on the order of series.
        let mut texts = [one.to_string(), other.to_string()];
        sort::sort(&mut texts);
        format!(
            "found duplicate series for the match group {} on the {side} hand-side of the \
             operation: [{}, {}];many-to-many matching not allowed: matching labels must be unique \
             on one side",
            self.index.labels(number),
            texts[0],
            texts[1]
        )
    }

    /// Fails if the held side has duplicates at a step where the flowing `column` has a value.
    fn check(&self, column: &Column) -> Result<(), EvalError> {
        for (steps, text) in &self.duplicates {
            if steps.iter().any(|step| column.has(step)) {
                return Err(EvalError::execution(text.as_str()));
            }
        }
        Ok(())
    }

    fn flow(&mut self, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        // Upstream fails at a step with duplicates even if no flowing series has their key.
        self.check(&series.column)?;
        let fill = self.plan.matching.fill_rhs;
        // With a fill value, a flowing series has a result even without a held series.
        let number = match fill {
            Some(_) => Some(self.group(&series.labels, out.context)?),
            None => self.index.find(&self.by, &series.labels),
        };
        let Some(number) = number else {
            out.context.recycle(series.column);
            return Ok(());
        };
        // Moved out, because `join` borrows all of `self`; the group is put back below.
        let mut group = std::mem::take(&mut self.groups[number]);
        // In lockstep no other flowing series has the key, so results are emitted at once.
        if !self.is_lockstep(out.context) && self.may_replace() && group.held.len() == 1 {
            let result = self.replace(&mut group, &series);
            self.groups[number] = group;
            out.context.recycle(series.column);
            return result;
        }
        let distinct = match self.labels.is_distinct(&series.labels) {
            // Results of `fill_left` follow at the end and may have the same labels.
            _ if self.plan.matching.fill_lhs.is_some() => Distinct::No,
            true if group.held.len() + usize::from(fill.is_some()) == 1 => Distinct::Known,
            // A second flowing series of the key at the only step is an error, found by `mark`.
            _ if self.is_one_to_one() && self.grid.steps == 1 => Distinct::Checked,
            _ => Distinct::No,
        };
        let mut result = Ok(());
        let held = std::mem::take(&mut group.held);
        for (labels, column) in &held {
            if result.is_err() {
                break;
            }
            let labels = self.labels.of(&series.labels, labels);
            let values = Pair { flowing: &series.column, held: column };
            result = self.join(labels, values, &mut group, distinct, out);
        }
        if let Some(value) = fill
            && result.is_ok()
        {
            let mut missing = Column::constant(self.grid.steps, value);
            for step in 0..self.grid.steps {
                if held.iter().any(|(_, column)| column.has(step)) {
                    missing.clear_step(step);
                }
            }
            let labels = self.labels.of(&series.labels, self.index.labels(number));
            let values = Pair { flowing: &series.column, held: &missing };
            result = self.join(labels, values, &mut group, distinct, out);
        }
        group.held = held;
        self.groups[number] = group;
        out.context.recycle(series.column);
        result
    }

    /// Records the annotation of an element and returns the value to keep: `Some(None)` if a
    /// comparison filters the element, `None` if the operator does not apply.
    pub(super) fn result(&mut self, element: binop::Element, step: usize) -> Option<Option<Value>> {
        if let Some(note) = element.note {
            self.annotations.set(step, self.grid.steps, note);
        }
        let value = element.value?;
        Some(match self.plan.returns_bool {
            true => Some(Value::Float(f64::from(u8::from(element.is_kept)))),
            false => element.is_kept.then_some(value),
        })
    }

    fn join(
        &mut self,
        labels: Labels,
        values: Pair<'_>,
        group: &mut Group,
        distinct: Distinct,
        out: &mut Out<'_>,
    ) -> Result<(), EvalError> {
        let mut column = out.context.column(self.grid.steps);
        let is_plain = distinct == Distinct::Known;
        if is_plain && values.has_only_floats() && is_arithmetic(self.plan.op) {
            self.floats(values, &mut column);
        } else {
            let hash = hash_labels(labels.iter());
            for step in 0..self.grid.steps {
                let Some(element) = self.element(values, step) else { continue };
                let Some(value) = self.result(element, step) else { continue };
                if !is_plain {
                    self.mark(group, hash, step, out.context)?;
                }
                column.put(step, value);
            }
        }
        // With delayed removal, `Cleanup` drops the name of a `bool` result.
        let series = Series { labels, drop_name: self.plan.returns_bool, column };
        self.unite.push(series, distinct != Distinct::No, self.span, out)
    }

    fn floats(&self, values: Pair<'_>, column: &mut Column) {
        // With `group_right` the held side is the left operand.
        let is_swapped = self.plan.matching.cardinality == Cardinality::OneToMany;
        let mut both = values.flowing.present().clone();
        both.intersect(values.held.present());
        let (left, right) = match is_swapped {
            true => (values.held.floats(), values.flowing.floats()),
            false => (values.flowing.floats(), values.held.floats()),
        };
        // Values of absent steps are computed as well and masked by `both`.
        let pairs = left.iter().zip(right);
        for (value, (left, right)) in column.floats_mut().iter_mut().zip(pairs) {
            *value = binop::arithmetic(self.plan.op, *left, *right);
        }
        *column.present_mut() = both;
    }

    pub(super) fn element(&self, values: Pair<'_>, step: usize) -> Option<binop::Element> {
        let (flowing, held) = (values.flowing.value(step)?, values.held.value(step)?);
        Some(match self.plan.matching.cardinality {
            Cardinality::OneToMany => binop::values(self.plan.op, &held, &flowing),
            _ => binop::values(self.plan.op, &flowing, &held),
        })
    }

    /// Records a match; fails if another flowing series has the same labels or key at this step.
    fn mark(
        &mut self,
        group: &mut Group,
        hash: u64,
        step: usize,
        context: &mut Context,
    ) -> Result<(), EvalError> {
        // One-to-one: a second match of the key is an error, whatever the labels.
        if self.is_one_to_one() {
            if group.matched.get(step) {
                return Err(several_matches());
            }
        } else {
            let given = match group.given.entry(hash) {
                Entry::Occupied(given) => given.into_mut(),
                Entry::Vacant(place) => {
                    let steps = Bits::new(self.grid.steps);
                    let bytes = steps.bytes() + GIVEN_BYTES;
                    self.take(Usage { bytes, samples: 0 }, context)?;
                    place.insert(steps)
                }
            };
            if given.get(step) {
                return Err(EvalError::execution(
                    "multiple matches for labels: grouping labels must ensure unique matches",
                ));
            }
            given.set(step);
        }
        group.matched.set(step);
        Ok(())
    }

    /// Joins the unmatched values of held series with `value`, the fill value of the flowing side.
    fn fill(&mut self, value: f64, out: &mut Out<'_>) -> Result<(), EvalError> {
        let missing = Column::constant(self.grid.steps, value);
        for number in 0..self.groups.len() {
            let mut group = std::mem::take(&mut self.groups[number]);
            let matched = group.matched.clone();
            for (held_labels, mut held) in std::mem::take(&mut group.held) {
                matched.iter().for_each(|step| held.clear_step(step));
                let labels = self.labels.of(self.index.labels(number), &held_labels);
                let values = Pair { flowing: &missing, held: &held };
                self.join(labels, values, &mut group, Distinct::No, out)?;
            }
        }
        Ok(())
    }
}

/// Whether results of different flowing series may have equal labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Distinct {
    /// No result of another flowing series can have the same labels.
    Known,
    /// Equal labels are an error, which `mark` detects.
    Checked,
    /// Labels may be equal, so results have to be merged.
    No,
}

#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) flowing: &'a Column,
    pub(super) held: &'a Column,
}

impl Pair<'_> {
    fn has_only_floats(&self) -> bool {
        !self.flowing.has_histograms() && !self.held.has_histograms()
    }
}

pub(super) fn several_matches() -> EvalError {
    EvalError::execution(
        "multiple matches for labels: many-to-one matching must be explicit \
         (group_left/group_right)",
    )
}

/// Returns whether an operator returns a number for any two numbers.
pub(super) fn is_arithmetic(op: BinaryOp) -> bool {
    use BinaryOp::{Add, Atan2, Div, Mod, Mul, Pow, Sub};
    matches!(op, Add | Sub | Mul | Div | Mod | Pow | Atan2)
}

impl Operator for Joiner {
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        match port {
            0 => self.buffer(series, out.context),
            _ if !self.is_lockstep(out.context) => self.flow(series, out),
            _ => {
                self.flow(series, out)?;
                // Both series of the key have arrived, so the held series is not needed any more.
                if self.lockstep == Lockstep::Joins {
                    self.forget(out.context);
                }
                self.unite.end(out)
            }
        }
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        let matching = &self.plan.matching;
        let fill = matching.fill_lhs;
        if port == 0 {
            // Fill values make the other side present at all steps, so any duplicate is an error.
            let has_fill = fill.is_some() || matching.fill_rhs.is_some();
            return match self.duplicates.first() {
                Some((_, text)) if has_fill => Err(EvalError::execution(text.as_str())),
                Some(_) => {
                    // Whether duplicates matter depends on series that have not arrived yet.
                    out.context.may_fail = true;
                    Ok(())
                }
                None => Ok(()),
            };
        }
        if let Some(value) = fill {
            self.fill(value, out)?;
        }
        out.context.budget.give(std::mem::take(&mut self.held));
        self.replaced(out)?;
        self.annotations.add_to(&mut out.context.annotations, self.span);
        self.unite.end(out)
    }
}
