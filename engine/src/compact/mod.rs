//! Making blocks: which, and how.
//!
//! For now one kind of work is due: the head spans more than one and a half blocks, so its oldest
//! block is cut. [`Cut`] does that in slices, so that an instance that also appends is not held up.

mod cut;

pub use cut::{Cut, CutProgress};
