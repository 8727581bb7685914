//! PromQL over this store.
//!
//! `tidepool-promql` evaluates; this room gives it series: [`StoreSource`] opens selections,
//! [`series`] decodes their chunks, [`Answer`] returns it in pieces. It is left out without the
//! feature `promql`.

mod answer;
mod histogram;
mod series;
mod source;

pub use answer::{Answer, Kind, Problem};
pub use source::StoreSource;
