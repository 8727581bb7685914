//! PromQL over this store.
//!
//! The crate `tidepool-promql` evaluates expressions. This module, which needs the feature
//! `promql`, opens their selections in a [`StoreSource`], decodes the chunks in [`series`], and
//! returns an [`Answer`] in pieces.

mod answer;
mod histogram;
mod series;
mod source;

pub use answer::{Answer, Kind, Problem};
pub use source::StoreSource;
