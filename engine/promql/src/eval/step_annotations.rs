//! Annotations of single steps.

use crate::annotations::{Annotations, Note};
use crate::syntax::Span;

/// An annotation of each step; of several ones the last one counts.
#[derive(Debug, Default)]
pub struct StepAnnotations(Vec<Option<Note<'static>>>);

impl StepAnnotations {
    /// Notes something of a step, out of so many.
    pub fn set(&mut self, step: usize, steps: usize, note: Note<'static>) {
        if self.0.is_empty() {
            self.0.resize(steps, None);
        }
        self.0[step] = Some(note);
    }

    /// Adds them to those of the query.
    pub fn add_to(&mut self, annotations: &mut Annotations, span: Span) {
        for note in std::mem::take(&mut self.0).into_iter().flatten() {
            annotations.note(note, "", span);
        }
    }
}
