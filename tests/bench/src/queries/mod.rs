//! What queries in PromQL cost tidepool, Prometheus and VictoriaMetrics in one run.
//!
//! [`data`] makes the series and [`stores`] gives them to the servers, once; [`catalogue`] has the
//! queries. Each query is the first that a freshly started server is asked, with its files in the
//! page cache ([`measure`]). tidepool's answers are compared with Prometheus' ([`answer`]): speed
//! without the right answer is worth nothing. [`verdict`] sums up, and [`table`] prints.
//!
//! CPU seconds are the server's own (user and system) from the question until it is idle. Memory is
//! the peak of the process' anonymous memory, what it had before included.

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

/// Whose answers are right.
pub const REFERENCE: Contender = Contender::Prometheus(Release::V3);

/// What is measured.
pub struct Options<'a> {
    /// In the order of the table.
    pub queries: &'a [Query],
    /// Series of the first data set; the second has ten times as many.
    pub series: usize,
    /// Hours of the first data set; the second has one.
    pub hours: u32,
    /// How often each server is asked each query, freshly started each time.
    pub runs: usize,
}

/// What is known of one query.
pub struct Row {
    /// Which.
    pub query: Query,
    /// Steps are over so many hours; nothing, if it is asked at one time.
    pub hours: Option<u32>,
    /// By server, in the order of the columns.
    pub found: Vec<Found>,
    /// How tidepool's answer differs from Prometheus', if both answered.
    pub difference: Option<String>,
}

/// What one server made of a query.
pub struct Found {
    /// Who.
    pub contender: Contender,
    /// The least times and the most memory of all runs, or why there is no answer.
    pub cost: Result<Cost, String>,
    /// Series of the answer.
    pub series: usize,
}

/// What was stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Which data set.
    pub set: Set,
    /// Number of series.
    pub series: usize,
    /// Number of samples.
    pub samples: u64,
    /// Bytes of the blocks that tidepool and Prometheus have.
    pub block_bytes: u64,
}

/// Loads what the queries need and asks them.
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

/// Asks one query; who is first changes from query to query and from run to run.
fn ask(
    context: &Context,
    stores: &Stores,
    query: Query,
    hours: u32,
    number: usize,
    runs: usize,
) -> Result<Row, BenchError> {
    let hours = query.hours.map(|most| most.min(hours));
    let mut found: Vec<Found> = Vec::new();
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
            keep(&mut found, Found { contender, cost, series });
            match contender {
                Contender::Tidepool => ours = answer,
                REFERENCE => theirs = answer,
                _ => {}
            }
        }
        let differs = ours.zip(theirs).and_then(|(ours, theirs)| ours.difference(&theirs));
        difference = difference.or(differs);
    }
    let place = |found: &Found| context.servers.iter().position(|&who| who == found.contender);
    found.sort_by_key(place);
    Ok(Row { query, hours, found, difference })
}

/// Adds a run to the runs before; a failure stays.
fn keep(all: &mut Vec<Found>, run: Found) {
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
    /// What a server needed, if it answered.
    pub fn cost(&self, contender: Contender) -> Option<Cost> {
        self.of(contender)?.cost.as_ref().ok().copied()
    }

    /// What is known of a server.
    pub fn of(&self, contender: Contender) -> Option<&Found> {
        self.found.iter().find(|found| found.contender == contender)
    }
}
