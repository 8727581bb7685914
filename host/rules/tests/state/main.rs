//! Groups and alerts: upstream's cases, its results for random scripts, and what clocks do.

mod alerting;
mod backtest;
mod clock;
mod engine;
mod evaluation;
mod peer;
mod reload;
mod restore;
