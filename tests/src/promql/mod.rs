//! Random data and random expressions for comparing two engines of PromQL.

mod data;
mod expression;

pub use data::{Data, data};
pub use expression::Expressions;
