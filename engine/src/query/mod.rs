//! PromQL over this store.
//!
//! `tidepool-promql` evaluates; this room opens its selections in a [`StoreSource`], decodes their
//! chunks in [`series`], and returns an [`Answer`] in pieces. It is left out without the feature
//! `promql`.

mod answer;
mod histogram;
mod series;
mod source;

pub use answer::{Answer, Kind, Problem};
pub use source::StoreSource;
