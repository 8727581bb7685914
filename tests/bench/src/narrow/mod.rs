//! Cost of requests for few of many series: instant queries, short ranges, remote reads and lookups
//! of labels.
//!
//! tidepool and Prometheus have the same hundred thousand series, first in their heads alone, then
//! in a day of two-hour blocks and a head ([`room`]). [`asks`] makes the requests, each about
//! another instance; [`client`] sends them over one kept-alive connection, one after the other,
//! then at the slow rate of a real node, at which processors sleep and caches cool in between. Some
//! answers of each kind are compared. [`table`] prints, and tells which aims are reached.
//!
//! CPU seconds are the server's own (user and system), including its background work; wall time is
//! from the first byte of a request to the last of its answer.

pub mod asks;
pub mod client;
pub mod room;
pub mod table;

use super::contender::Contender;
use super::queries::REFERENCE;
use super::trial::settle;
use super::{BenchError, Context};
use asks::{Ask, Kind};
use client::Client;
use room::Room;
use std::time::{Duration, Instant};
use tidepool_tests::series::Random;

/// Number of requests of each kind whose answers are compared before the measurement.
const COMPARED: usize = 20;
/// Pause between two requests at the slow rate.
const SLOW_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub series: usize,
    /// Number of hours in blocks.
    pub hours: u32,
    /// Number of requests of each kind, one after the other.
    pub requests: usize,
    /// Number of requests of each kind at the slow rate.
    pub slow_requests: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataLocation {
    /// The series are in the head alone.
    Head,
    /// In a head and blocks.
    Blocks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each request follows the answer to the one before.
    Fast,
    /// Twenty requests are sent each second.
    Slow,
}

/// Cost of one request in one server.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Mean CPU time of one request.
    pub cpu: Duration,
    pub median: Duration,
    pub p99: Duration,
}

/// Measurements of a kind of request.
pub struct Row {
    pub place: DataLocation,
    pub kind: Kind,
    pub pace: Pace,
    pub costs: Vec<(Contender, Cost)>,
    /// Difference between tidepool's and Prometheus' answers, if there is one.
    pub difference: Option<String>,
}

impl DataLocation {
    pub const ALL: [DataLocation; 2] = [DataLocation::Head, DataLocation::Blocks];
}

impl Row {
    /// Returns the cost in one server.
    pub fn cost(&self, contender: Contender) -> Option<Cost> {
        let found = self.costs.iter().find(|(who, _)| *who == contender);
        found.map(|(_, cost)| *cost)
    }
}

/// Measures all kinds of requests in all places.
pub fn run(context: &Context, options: Options) -> Result<Vec<Row>, BenchError> {
    let servers: Vec<Contender> =
        context.servers.iter().copied().filter(|server| server.is_like_prometheus()).collect();
    let mut rows = Vec::new();
    for place in DataLocation::ALL {
        let hours = if place == DataLocation::Head { 0 } else { options.hours };
        let room = Room::open(context, &servers, options.series, hours)?;
        eprintln!("{place:?}: {} series, {} samples", room.series, room.samples);
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let mut order: Vec<usize> = (0..room.servers.len()).collect();
            let turn = number + context.seed as usize;
            order.rotate_left(turn % room.servers.len().max(1));
            let of_kind = Asked { context, room: &room, kind, order: &order };
            let difference = of_kind.compare()?;
            for (pace, requests) in
                [(Pace::Fast, options.requests), (Pace::Slow, options.slow_requests)]
            {
                if requests == 0 {
                    continue;
                }
                let costs = of_kind.measure(pace, requests)?;
                for (contender, cost) in &costs {
                    eprintln!("{kind:?}, {pace:?}, {contender}: {}", table::figures(cost));
                }
                rows.push(Row { place, kind, pace, costs, difference: difference.clone() });
            }
        }
        room.close()?;
    }
    Ok(rows)
}

struct Asked<'a> {
    context: &'a Context,
    room: &'a Room,
    kind: Kind,
    /// Indexes of the servers in the order in which they are asked.
    order: &'a [usize],
}

impl Asked<'_> {
    /// Returns the same requests for each server; another `purpose` gives other requests.
    fn asks(&self, purpose: u64, count: usize) -> Vec<Ask> {
        let stream = purpose << 8 | self.kind as u64;
        let mut random = Random::new(self.context.seed ^ 0x6e61_7272_6f77, stream);
        (0..count).map(|_| Ask::some(self.kind, self.room.data, &mut random)).collect()
    }

    /// Sends both servers the same requests; returns the first difference.
    fn compare(&self) -> Result<Option<String>, BenchError> {
        let asks = self.asks(0, COMPARED);
        let mut answers: Vec<(Contender, Vec<Vec<u8>>)> = Vec::new();
        for (contender, server) in &self.room.servers {
            let mut client = Client::connect(server.address())?;
            let bodies = asks.iter().map(|ask| answer(&mut client, ask));
            answers.push((*contender, bodies.collect::<Result<_, _>>()?));
        }
        let of = |who| answers.iter().find(|(contender, _)| *contender == who);
        let (Some((_, ours)), Some((_, theirs))) = (of(Contender::Tidepool), of(REFERENCE)) else {
            return Ok(None);
        };
        for (ask, (ours, theirs)) in asks.iter().zip(ours.iter().zip(theirs)) {
            match ask.difference(ours, theirs) {
                Ok(None) => {}
                Ok(Some(difference)) | Err(difference) => return Ok(Some(difference)),
            }
        }
        Ok(None)
    }

    /// Returns the average cost of a request in each server.
    fn measure(&self, pace: Pace, requests: usize) -> Result<Vec<(Contender, Cost)>, BenchError> {
        let asks = self.asks(1 + pace as u64, requests);
        let mut costs = Vec::new();
        for &number in self.order {
            let (contender, server) = &self.room.servers[number];
            let mut client = Client::connect(server.address())?;
            // Warms up the connection, which is new, and the server's caches.
            asks.iter().take(COMPARED).try_for_each(|ask| answer(&mut client, ask).map(drop))?;
            let before = settle(server, self.context.idle_window)?;
            let mut took = Vec::with_capacity(asks.len());
            for ask in &asks {
                let begun = Instant::now();
                answer(&mut client, ask)?;
                took.push(begun.elapsed());
                if pace == Pace::Slow {
                    std::thread::sleep(SLOW_PAUSE.saturating_sub(begun.elapsed()));
                }
            }
            let after = server.usage()?;
            took.sort_unstable();
            let at = |part: f64| took[(took.len() - 1).min((took.len() as f64 * part) as usize)];
            let cpu = (after.cpu - before.cpu) / requests as u32;
            costs.push((*contender, Cost { cpu, median: at(0.5), p99: at(0.99) }));
        }
        Ok(costs)
    }
}

/// Returns the body of a successful answer.
fn answer(client: &mut Client, ask: &Ask) -> Result<Vec<u8>, BenchError> {
    let answer = client.ask(&ask.request)?;
    match answer.status {
        200 => Ok(answer.body),
        status => {
            let log = format!("{status}: {}", String::from_utf8_lossy(&answer.body));
            Err(BenchError::Command { program: "a request".to_owned(), log })
        }
    }
}
