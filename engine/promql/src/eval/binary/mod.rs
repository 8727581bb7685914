//! Binary operators between two vectors.

mod in_place;
mod join;
mod labels;
mod set;

pub use join::Joiner;
pub use set::{And, Or};
