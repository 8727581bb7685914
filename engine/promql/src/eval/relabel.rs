//! The functions `label_replace` and `label_join`.

use super::scalars::Scalars;
use super::series::Series;
use super::transform::Change;
use crate::error::EvalError;
use crate::limits::Limit;
use crate::model::NAME;
use crate::plan::LabelReplace;
use crate::syntax::Span;

/// Maximum length of a label value in bytes: nested calls could double it with each level.
const VALUE_BYTES_MAX: usize = 1 << 20;

fn check_length(bytes: usize, span: Span) -> Result<(), EvalError> {
    match bytes > VALUE_BYTES_MAX {
        true => Err(EvalError::limit(Limit::LabelBytes, VALUE_BYTES_MAX as u64, span)),
        false => Ok(()),
    }
}

pub struct Replace {
    plan: Box<LabelReplace>,
    had_target: bool,
}

impl Replace {
    pub fn new(plan: Box<LabelReplace>) -> Replace {
        Replace { plan, had_target: false }
    }
}

impl Change for Replace {
    fn check(&self, series: &Series, span: Span) -> Result<(), EvalError> {
        // An upper bound: each `$` may insert the whole source value.
        let groups = self.plan.replacement.matches('$').count();
        let value = series.labels.get(&self.plan.source).len();
        check_length(groups.saturating_mul(value).saturating_add(self.plan.replacement.len()), span)
    }

    fn change(&mut self, series: &mut Series, _: &mut Scalars, _: bool) {
        let LabelReplace { target, replacement, source, pattern } = &*self.plan;
        // `is_distinct` needs the old value, which is overwritten below.
        self.had_target = !series.labels.get(target).is_empty();
        if let Some(value) = pattern.replaced(series.labels.get(source), replacement) {
            series.labels.set(target, &value);
            // A name that is set explicitly stays, also with delayed removal.
            series.drop_name &= target != NAME;
        }
    }

    /// Distinct series stay distinct if the target label is new.
    fn is_distinct(&self, _: bool) -> bool {
        !self.had_target
    }
}

pub struct LabelJoiner {
    target: String,
    separator: String,
    sources: Vec<String>,
    had_target: bool,
}

impl LabelJoiner {
    pub fn new(target: String, separator: String, sources: Vec<String>) -> LabelJoiner {
        LabelJoiner { target, separator, sources, had_target: false }
    }
}

impl Change for LabelJoiner {
    fn check(&self, series: &Series, span: Span) -> Result<(), EvalError> {
        let values = self.sources.iter().map(|name| series.labels.get(name).len());
        let separators = self.separator.len().saturating_mul(self.sources.len());
        check_length(values.sum::<usize>().saturating_add(separators), span)
    }

    fn change(&mut self, series: &mut Series, _: &mut Scalars, _: bool) {
        self.had_target = !series.labels.get(&self.target).is_empty();
        let values: Vec<&str> = self.sources.iter().map(|name| series.labels.get(name)).collect();
        let value = values.join(&self.separator);
        series.labels.set(&self.target, &value);
        series.drop_name &= self.target != NAME;
    }

    fn is_distinct(&self, _: bool) -> bool {
        !self.had_target
    }
}
