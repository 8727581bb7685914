//! At most one annotation for each step.

use crate::annotations::{Annotations, Note};
use crate::syntax::Span;

/// Annotations by step; only the last annotation of a step is kept.
#[derive(Debug, Default)]
pub struct StepAnnotations(Vec<Option<Note<'static>>>);

impl StepAnnotations {
    pub fn set(&mut self, step: usize, steps: usize, note: Note<'static>) {
        // Most operators note nothing, so the list is made on first use.
        if self.0.is_empty() {
            self.0.resize(steps, None);
        }
        self.0[step] = Some(note);
    }

    pub fn add_to(&mut self, annotations: &mut Annotations, span: Span) {
        for note in std::mem::take(&mut self.0).into_iter().flatten() {
            annotations.note(note, "", span);
        }
    }
}
