//! Warnings and infos of an answer that is kept.
//!
//! Those of a range are those of its steps together. So if the steps that are new have the very
//! ones that an earlier answer had, all that is asked for has them, whichever of the earlier steps
//! are left out. If they have others, nobody knows which steps the earlier ones were of.

use super::Steps;
use tidepool_runtime::Annotation;

/// Most of each kind that are kept. Of more, an answer has only their number.
pub const NOTES_MAX: u32 = 10;

/// Warnings and infos, and steps that have all of them.
#[derive(Clone, Debug)]
pub struct Notes {
    all: Vec<Annotation>,
    of: Steps,
}

impl Notes {
    /// None.
    pub fn none(of: Steps) -> Notes {
        Notes { all: Vec::new(), of }
    }

    /// Those that an answer at these steps has, of each kind at most [`NOTES_MAX`] and a text that
    /// says how many more there are. None if there are more.
    pub fn new(all: Vec<Annotation>, of: Steps) -> Option<Notes> {
        let count = |is_warning| all.iter().filter(|note| note.is_warning == is_warning).count();
        let are_all = [true, false].into_iter().all(|kind| count(kind) <= NOTES_MAX as usize);
        are_all.then_some(Notes { all, of })
    }

    /// As an answer shows them.
    pub fn all(&self) -> &[Annotation] {
        &self.all
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether these steps, which are part of those of the answer, have all of them.
    pub fn are_of(&self, steps: Steps) -> bool {
        self.all.is_empty() || steps.intersect(self.of) == Some(self.of)
    }

    /// Whether there are the same.
    pub fn are_those(&self, other: &Notes) -> bool {
        let is_same = |(one, other): (&Annotation, &Annotation)| {
            one.is_warning == other.is_warning && one.text == other.text
        };
        self.all.len() == other.all.len() && self.all.iter().zip(&other.all).all(is_same)
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        let texts: usize = self.all.iter().map(|note| note.text.capacity()).sum();
        texts + self.all.capacity() * size_of::<Annotation>()
    }
}
