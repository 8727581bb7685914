//! Random data and random expressions to compare two engines of PromQL.

mod data;
mod expression;

pub use data::{Data, data};
pub use expression::Expressions;
