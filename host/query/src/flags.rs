//! Flags of PromQL queries, and the configuration built from them.

use crate::queries::{QueryConfig, QueryFeatures};
use clap::{Args, ValueEnum};
use std::time::Duration;
use tidepool_lifecycle::processors::processors;
use tidepool_settings::duration::{bytes, duration, duration_or_zero};
use tidepool_settings::flags::{Marks, concurrency, count};

/// Step of subqueries that state none, unless the configuration file has an evaluation interval.
const EVALUATION_INTERVAL: Duration = Duration::from_secs(60);

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Queries")]
pub struct QueryFlags {
    /// Maximum number of samples that a query may hold at a time, 0 for no limit
    ///
    /// Queries that need more get 422. --query-memory-limit bounds their memory in any case.
    #[arg(long, value_name = "COUNT", default_value_t = 50_000_000, value_parser = count)]
    query_max_samples: u64,

    /// Maximum duration of a query, including its wait and its response
    ///
    /// Queries that take longer get 503. A request may ask for less.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    query_timeout: Duration,

    /// Maximum number of concurrent queries
    ///
    /// Further queries wait, at most ten times as many. --read-concurrency does not count them.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = concurrency)]
    query_max_concurrency: usize,

    /// Maximum age of a sample that an instant vector selector takes
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    query_lookback_delta: Duration,

    /// Log queries that take at least this long, 0s for none
    ///
    /// A line has the query, its times, what it has cost and how it ended.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration_or_zero)]
    query_log_min_duration: Duration,

    /// Maximum number of threads of one query [default: number of processors]
    ///
    /// The steps of a large range query are split among them while no other query runs. Each takes
    /// a turn of --query-max-concurrency, and up to --query-memory-limit of memory.
    #[arg(long, value_name = "COUNT", value_parser = concurrency)]
    query_max_threads: Option<usize>,

    /// Samples for which a range query uses one more thread, roughly
    ///
    /// A thread takes some ten milliseconds for the default.
    #[arg(long, value_name = "COUNT", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..))]
    query_thread_samples: u64,

    /// Maximum memory of answers that are kept for repeated range queries, 0 for none
    ///
    /// Of a range that has moved on since, only the new steps are evaluated. The memory is part of
    /// that of reads, and at most an eighth of it.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = bytes)]
    query_cache_size: u64,

    /// Experimental features of PromQL, separated by commas; repeatable
    ///
    /// Features of Prometheus that are always enabled here are accepted and do nothing.
    #[arg(long, value_enum, value_name = "FEATURE", value_delimiter = ',')]
    enable_feature: Vec<Feature>,
}

/// A feature by Prometheus' name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Feature {
    /// Experimental functions and aggregations
    PromqlExperimentalFunctions,
    /// The modifiers anchored and smoothed of range selectors
    PromqlExtendedRangeSelectors,
    /// The modifiers fill, fill_left and fill_right of binary operators
    PromqlBinopFillModifiers,
    /// Drop metric names at the end of the evaluation
    PromqlDelayedNameRemoval,
    /// Recognise counters by the label __type__ instead of by their names
    TypeAndUnitLabels,
    /// Use start timestamps of counters, where the store has them
    UseStartTimestamps,
    /// Count samples of each step for stats=all
    PromqlPerStepStats,
    #[value(hide = true)]
    ExemplarStorage,
    #[value(hide = true)]
    NativeHistograms,
    #[value(hide = true)]
    OooNativeHistograms,
    #[value(hide = true)]
    OtlpWriteReceiver,
    #[value(hide = true)]
    PromqlAtModifier,
    #[value(hide = true)]
    PromqlDurationExpr,
    #[value(hide = true)]
    PromqlNegativeOffset,
    #[value(hide = true)]
    RemoteWriteReceiver,
}

impl QueryFlags {
    /// Flags that can be reloaded, and flags that Prometheus has under another name.
    pub const MARKS: Marks = Marks {
        reloadable: &[
            "enable-feature",
            "query-lookback-delta",
            "query-log-min-duration",
            "query-max-samples",
            "query-timeout",
        ],
        prometheus: &[
            ("query.lookback-delta", "query-lookback-delta"),
            ("query.max-concurrency", "query-max-concurrency"),
            ("query.max-samples", "query-max-samples"),
            ("query.timeout", "query-timeout"),
        ],
        ..Marks::NONE
    };

    /// Builds the configuration of queries from the flags.
    pub fn config(&self) -> QueryConfig {
        let has = |feature| self.enable_feature.contains(&feature);
        QueryConfig {
            running_max: self.query_max_concurrency,
            timeout: self.query_timeout,
            samples_max: self.query_max_samples,
            lookback: self.query_lookback_delta,
            subquery_step: EVALUATION_INTERVAL,
            logged_from: self.query_log_min_duration,
            threads_max: self.query_max_threads.unwrap_or_else(processors),
            thread_samples: self.query_thread_samples,
            cache_bytes_max: self.query_cache_size,
            features: QueryFeatures {
                experimental_functions: has(Feature::PromqlExperimentalFunctions),
                extended_range_selectors: has(Feature::PromqlExtendedRangeSelectors),
                binop_fill_modifiers: has(Feature::PromqlBinopFillModifiers),
                delayed_name_removal: has(Feature::PromqlDelayedNameRemoval),
                type_and_unit_labels: has(Feature::TypeAndUnitLabels),
                start_timestamps: has(Feature::UseStartTimestamps),
                per_step_stats: has(Feature::PromqlPerStepStats),
            },
        }
    }
}
