//! Nothing: only the features of this crate's dependencies count.
