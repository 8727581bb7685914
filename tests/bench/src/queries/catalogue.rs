//! The queries: thirteen over a day of some series, and five over an hour of ten times as many.
//!
//! Metrics are those of [`data`](super::data), each a fifth of the series.

use std::fmt;

/// Interval between two steps of a range query.
pub const STEP_MS: i64 = 60_000;

/// Data set that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Fewer series over more time.
    Long,
    /// Ten times as many series over an hour.
    Wide,
}

#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Name by which the command line chooses the query.
    pub name: &'static str,
    pub promql: &'static str,
    pub set: Set,
    /// Length of the range up to the newest sample in hours, with steps of a minute; `None` for an
    /// instant query at the newest sample.
    pub hours: Option<u32>,
}

/// All queries in the order of the table.
pub const QUERIES: [Query; 18] = [
    long("rate-8h", Some(8), "sum by (job) (rate(x[5m]))"),
    long("rate-24h", Some(24), "sum by (job) (rate(x[5m]))"),
    long("by-instance", Some(24), "sum by (instance) (rate({__name__=~\"x|y\"}[5m]))"),
    long("long-rate", Some(24), "sum by (job) (rate(x[1h]))"),
    long("buckets", Some(24), "histogram_quantile(0.99, sum by (le, job) (rate(b[5m])))"),
    long("topk", Some(8), "topk(5, rate(x[5m]))"),
    long("over-time", Some(8), "quantile_over_time(0.95, g[30m])"),
    long("one-to-one", Some(8), "g / h"),
    long("group-left", Some(8), "g / on (instance) group_left sum by (instance) (h)"),
    long("subquery", Some(8), "max_over_time(sum by (cluster) (rate(x[1m]))[1h:1m])"),
    long("count", Some(8), "count({__name__=~\".+\"})"),
    long("plain", Some(8), "g"),
    long("increase", None, "sum by (job) (increase(x[24h]))"),
    wide("wide-count", None, "count by (job) ({__name__=~\".+\"})"),
    wide("wide-rate", Some(1), "sum by (job) (rate(x[5m]))"),
    wide("wide-topk", Some(1), "topk(10, rate(x[5m]))"),
    wide("wide-quantile", Some(1), "quantile by (job) (0.9, x)"),
    wide("wide-join", Some(1), "x and on (instance) y"),
];

const fn long(name: &'static str, hours: Option<u32>, promql: &'static str) -> Query {
    Query { name, promql, set: Set::Long, hours }
}

const fn wide(name: &'static str, hours: Option<u32>, promql: &'static str) -> Query {
    Query { name, promql, set: Set::Wide, hours }
}

/// Largest memory in bytes that a query should add to the memory before.
const MEMORY_BYTES_MAX: u64 = 16_000_000;
/// The same bound for a join, which holds one of its sides.
const JOIN_BYTES_MAX: u64 = 48_000_000;

impl Query {
    /// Returns the largest memory in bytes that this query should add to the memory before.
    pub fn memory_bytes_max(&self) -> u64 {
        match self.name {
            "one-to-one" | "group-left" | "wide-join" => JOIN_BYTES_MAX,
            _ => MEMORY_BYTES_MAX,
        }
    }
}

/// Returns the query of a name, for the command line.
pub fn named(name: &str) -> Result<Query, String> {
    let found = QUERIES.into_iter().find(|query| query.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = QUERIES.iter().map(|query| query.name).collect();
        format!("no such query; there are {}", names.join(", "))
    })
}

impl Set {
    pub const ALL: [Set; 2] = [Set::Long, Set::Wide];

    /// Returns the number of series, given that of the first data set.
    pub fn series(self, series: usize) -> usize {
        match self {
            Set::Long => series,
            Set::Wide => 10 * series,
        }
    }

    /// Returns the number of hours, given that of the first data set.
    pub fn hours(self, hours: u32) -> u32 {
        match self {
            Set::Long => hours,
            Set::Wide => 1,
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Set::Long => "long",
            Set::Wide => "wide",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_found_by_their_names() {
        for query in QUERIES {
            assert_eq!(named(query.name).map(|found| found.promql), Ok(query.promql));
        }
        assert!(named("none").is_err_and(|error| error.contains("wide-join")));
    }
}
