//! Aggregations over series.
//!
//! Source: prometheus/prometheus, `promql/engine.go` (`aggregation`, `aggregationK`).

mod accumulate;
mod count_values;
mod floats;
mod heap;
mod histograms;
mod limit;
mod param;
mod quantile;
mod rank;

pub use accumulate::Accumulate;
pub use count_values::CountValues;
pub use limit::LimitOf;
pub use quantile::Quantile;
pub use rank::Rank;

use super::pipeline::Operator;
use crate::plan::{AggregatePlan, Grid};
use crate::syntax::{AggregateOp, Span};

pub fn operator(plan: AggregatePlan, grid: Grid, span: Span) -> Box<dyn Operator> {
    match plan.op {
        AggregateOp::Quantile => Box::new(Quantile::new(plan, grid, span)),
        AggregateOp::Topk | AggregateOp::Bottomk => Box::new(Rank::new(plan, grid, span)),
        AggregateOp::Limitk | AggregateOp::LimitRatio => Box::new(LimitOf::new(plan, grid, span)),
        _ => Box::new(Accumulate::new(plan, grid, span)),
    }
}
