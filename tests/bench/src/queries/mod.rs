//! Cost of queries in PromQL in tidepool, Prometheus and VictoriaMetrics in one run.
//!
//! [`data`] makes the series and [`stores`] gives them to the servers, once; [`catalogue`] has the
//! queries. Each query is the first request to a freshly started server, with its files in the page
//! cache ([`measure`]). tidepool's answers are compared with Prometheus' ([`answer`]): speed
//! without the right answer is worth nothing. [`verdict`] sums up, and [`table`] prints.
//!
//! CPU seconds are the server's own (user and system) from the request until it is idle. Memory is
//! the peak of the process' anonymous memory, including its memory before the query.

pub mod answer;
pub mod catalogue;
pub mod data;
pub mod measure;
pub mod stores;
pub mod table;
pub mod verdict;

use super::contender::Contender;
use super::{BenchError, Context};
use answer::Answer;
use catalogue::{Query, Set};
use measure::Cost;
use stores::Stores;
use tidepool_tests::peers::Release;

/// Server whose answers count as right.
pub const REFERENCE: Contender = Contender::Prometheus(Release::V3);

/// Sizes and queries of the measurement.
pub struct Options<'a> {
    /// Queries in the order of the table.
    pub queries: &'a [Query],
    /// Number of series of the first data set; the second has ten times as many.
    pub series: usize,
    /// Hours of the first data set; the second has one hour.
    pub hours: u32,
    /// Number of runs of each query in each server, which is freshly started each time.
    pub runs: usize,
}

pub struct Row {
    pub query: Query,
    /// Length of the range in hours; `None` for an instant query.
    pub hours: Option<u32>,
    /// Results by server, in the order of the columns.
    pub found: Vec<QueryOutcome>,
    /// Difference between tidepool's and Prometheus' answers, if there is one.
    pub difference: Option<String>,
}

/// Result of a query in one server.
pub struct QueryOutcome {
    pub contender: Contender,
    /// Combined cost of all runs, or the reason why there is no answer.
    pub cost: Result<Cost, String>,
    /// Number of series in the answer.
    pub series: usize,
}

/// Size of a stored data set.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    pub set: Set,
    pub series: usize,
    pub samples: u64,
    /// Size of the blocks of tidepool and Prometheus in bytes.
    pub block_bytes: u64,
}

/// Loads the data of the queries and runs them.
pub fn run(
    context: &Context,
    options: &Options<'_>,
) -> Result<(Vec<Stored>, Vec<Row>), BenchError> {
    let (mut stored, mut rows) = (Vec::new(), Vec::new());
    for set in Set::ALL {
        let queries: Vec<_> = options.queries.iter().filter(|query| query.set == set).collect();
        if queries.is_empty() {
            continue;
        }
        let hours = set.hours(options.hours);
        let shape = data::shape(context.seed, set.series(options.series), hours);
        let stores = Stores::load(context, shape)?;
        let (samples, block_bytes) = (stores.samples, stores.block_bytes);
        stored.push(Stored { set, series: shape.series, samples, block_bytes });
        eprintln!("{set}: {} series, {samples} samples", shape.series);
        for query in queries {
            let number = rows.len();
            rows.push(ask(context, &stores, *query, hours, number, options.runs)?);
        }
    }
    Ok((stored, rows))
}

/// Runs one query; the order of servers changes from query to query and from run to run.
fn ask(
    context: &Context,
    stores: &Stores,
    query: Query,
    hours: u32,
    number: usize,
    runs: usize,
) -> Result<Row, BenchError> {
    let hours = query.hours.map(|most| most.min(hours));
    let mut found: Vec<QueryOutcome> = Vec::new();
    let mut difference = None;
    for run in 0..runs.max(1) {
        let mut order = context.servers.clone();
        order.rotate_left((number + run) % context.servers.len().max(1));
        let (mut ours, mut theirs) = (None, None);
        for contender in order {
            let asked = stores.ask(context, contender, query.promql, hours)?;
            let (answer, cost) = match asked {
                Ok((cost, body)) => match Answer::read(&body) {
                    Ok(answer) => (Some(answer), Ok(cost)),
                    Err(error) => (None, Err(error)),
                },
                Err(error) => (None, Err(error)),
            };
            eprintln!("{}, {contender}: {}", query.name, table::progress(&cost));
            let series = answer.as_ref().map_or(0, Answer::series);
            keep(&mut found, QueryOutcome { contender, cost, series });
            match contender {
                Contender::Tidepool => ours = answer,
                REFERENCE => theirs = answer,
                _ => {}
            }
        }
        let differs = ours.zip(theirs).and_then(|(ours, theirs)| ours.difference(&theirs));
        difference = difference.or(differs);
    }
    let place =
        |found: &QueryOutcome| context.servers.iter().position(|&who| who == found.contender);
    found.sort_by_key(place);
    Ok(Row { query, hours, found, difference })
}

/// Combines a run with earlier ones; a failure stays.
fn keep(all: &mut Vec<QueryOutcome>, run: QueryOutcome) {
    match all.iter_mut().find(|found| found.contender == run.contender) {
        None => all.push(run),
        Some(found) => match (&mut found.cost, run.cost) {
            (Ok(all), Ok(cost)) => *all = all.joined(cost),
            (Ok(_), Err(error)) => found.cost = Err(error),
            (Err(_), _) => {}
        },
    }
}

impl Row {
    /// Returns the cost in a server, if it answered.
    pub fn cost(&self, contender: Contender) -> Option<Cost> {
        self.of(contender)?.cost.as_ref().ok().copied()
    }

    /// Returns the result of a server.
    pub fn of(&self, contender: Contender) -> Option<&QueryOutcome> {
        self.found.iter().find(|found| found.contender == contender)
    }
}
