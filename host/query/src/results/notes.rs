//! Annotations (warnings and infos) of a cached answer.
//!
//! The annotations of a range are the union of the annotations of its steps. If new steps have the
//! same annotations as an earlier answer, the joined answer has these, whichever earlier steps are
//! dropped. If they differ, it is unknown which steps caused the earlier annotations.

use super::Steps;
use tidepool_runtime::Annotation;

/// Maximum number of annotations of each kind. Of further annotations, an answer has the number.
pub const NOTES_MAX: u32 = 10;

/// Annotations, and a range of steps that together caused all of them.
#[derive(Clone, Debug)]
pub struct Notes {
    all: Vec<Annotation>,
    of: Steps,
}

impl Notes {
    pub fn none(of: Steps) -> Notes {
        Notes { all: Vec::new(), of }
    }

    /// Creates the annotations of an answer. Returns `None` if there are more than [`NOTES_MAX`] of
    /// a kind: then the last text has the number of omitted annotations.
    pub fn new(all: Vec<Annotation>, of: Steps) -> Option<Notes> {
        let count = |is_warning| all.iter().filter(|note| note.is_warning == is_warning).count();
        let are_all = [true, false].into_iter().all(|kind| count(kind) <= NOTES_MAX as usize);
        are_all.then_some(Notes { all, of })
    }

    /// Returns the annotations in the order of the answer.
    pub fn all(&self) -> &[Annotation] {
        &self.all
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether the given steps of the answer alone cause all annotations.
    pub fn are_of(&self, steps: Steps) -> bool {
        self.all.is_empty() || steps.intersect(self.of) == Some(self.of)
    }

    /// Returns whether both have annotations of the same kinds and texts.
    pub fn are_those(&self, other: &Notes) -> bool {
        let is_same = |(one, other): (&Annotation, &Annotation)| {
            one.is_warning == other.is_warning && one.text == other.text
        };
        self.all.len() == other.all.len() && self.all.iter().zip(&other.all).all(is_same)
    }

    pub fn bytes(&self) -> usize {
        let texts: usize = self.all.iter().map(|note| note.text.capacity()).sum();
        texts + self.all.capacity() * size_of::<Annotation>()
    }
}
