//! Owners of one data directory change randomly, and each may end at any moment: tidepool at a call
//! that changes files, Prometheus at any time of a write. Samples come in order, since Prometheus
//! itself loses some beside merged blocks of out-of-order samples.
//!
//! A request without an answer may be stored or not, and is sent again to the next owner, after
//! which the expected state is known again.

use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::disk_faults::DiskFaults;
use tidepool_tests::node::{KILL, Node, Owner, PROMETHEUS_2, PROMETHEUS_3, STOP, TIDEPOOL};
use tidepool_tests::preload;
use tidepool_tests::process::{ProcessError, Server};
use tidepool_tests::series::{Dataset, Random, Row, Shape, Texture};
use tidepool_tests::soak;
use tidepool_tests::upstream_race::again_after_race;

/// Number of owners in a world; each gets some requests.
const TURNS: usize = 6;
const REQUESTS: usize = 80;
/// Timeout for a tidepool that is to be killed at a call to reach that call.
const LAST_CALLS: Duration = Duration::from_secs(2);
/// Timeout for the end of a server that gave no answer.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time from the beginning of a request to the kill of a Prometheus.
const KILL_MICROS_MAX: u64 = 4_000;

#[test]
fn owners_change_by_chance_and_end_at_any_moment() {
    again_after_race(|| {
        let kills: u32 = soak::seeds(1, 20).map(run).sum();
        assert_ne!(kills, 0, "nothing was tested");
    });
}

/// A world: the directory, the data, and the progress.
struct World {
    seed: u64,
    random: Random,
    node: Node,
    faults: DiskFaults,
    /// The number of the next scrape, which was already sent if `is_unanswered`.
    next: usize,
    is_unanswered: bool,
}

/// Runs a world; returns the number of tidepools that were killed at a call.
fn run(seed: u64) -> u32 {
    let mut random = Random::new(seed, 2);
    let (scrapes, interval_ms) = (TURNS * REQUESTS, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    let data =
        Dataset::generate(Shape { seed, series: 20, scrapes, start_ms, interval_ms, texture });
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    // Prometheus cannot read a directory that begins with column records.
    let node = Node::default().blocks(5, 45).prometheus_records();
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let faults = DiskFaults::new(&node.data_dir(), scratch.path(), random.next_u64());
    let faults = faults.expect("a compiler");
    let mut world = World { seed, random, node, faults, next: 0, is_unanswered: false };
    for turn in 0..TURNS {
        let owners = [TIDEPOOL, TIDEPOOL, PROMETHEUS_2, PROMETHEUS_3];
        let owner = world.random.pick(&owners);
        world.turn(turn, owner, &scrapes[..(turn + 1) * REQUESTS]);
    }
    for owner in [TIDEPOOL, PROMETHEUS_3] {
        let server = world.node.start(owner);
        if let Some(rows) = scrapes.get(world.next).filter(|_| world.is_unanswered) {
            world.node.send(&server, rows);
            world.is_unanswered = false;
        }
        world.node.assert_holds(&server, &format!("seed {seed}, {owner:?} at the end"));
        STOP(server).expect("it ends");
    }
    world.faults.kills().expect("a number")
}

impl World {
    /// Starts an owner, checks its content, and sends these scrapes to it until they are done.
    fn turn(&mut self, turn: usize, owner: Owner, scrapes: &[Vec<Row<'_>>]) {
        let when = format!("seed {}, turn {turn}, {owner:?}", self.seed);
        let server = match owner {
            Owner::Tidepool => self.start_tidepool(&when),
            Owner::Prometheus(_) => self.node.start(owner),
        };
        if self.is_unanswered {
            self.node.send(&server, &scrapes[self.next]);
            self.is_unanswered = false;
            self.next += 1;
        }
        self.node.assert_holds(&server, &when);
        let (is_at_a_call, is_torn) = (owner == TIDEPOOL, self.random.one_in(2));
        if is_at_a_call {
            let calls = 1 + self.random.below([100, 1_000][turn % 2]);
            self.faults.kill_after(calls as u32, is_torn).expect("it is set");
        }
        let left = (scrapes.len() - self.next) as u64;
        let last = self.next + self.random.below(left + left / 4 + 1) as usize;
        while self.next < scrapes.len() && !self.is_unanswered {
            let is_last = self.next == last && !is_at_a_call;
            let micros = is_last.then(|| self.random.below(KILL_MICROS_MAX));
            let rows = &scrapes[self.next];
            let node = &mut self.node;
            let is_answered = thread::scope(|scope| {
                let server = &server;
                scope.spawn(move || {
                    if let Some(micros) = micros {
                        thread::sleep(Duration::from_micros(micros));
                        server.signal(Signal::KILL).expect("it is sent");
                    }
                });
                node.offer(server, rows)
            });
            self.is_unanswered = !is_answered;
            self.next += usize::from(is_answered);
            if is_last {
                break;
            }
        }
        self.end(server, owner, &when);
    }

    /// Starts tidepool, which may be killed before it is ready, and then starts again.
    fn start_tidepool(&mut self, when: &str) -> Server {
        loop {
            let kills = self.faults.kills().expect("a number");
            if self.random.one_in(3) {
                let calls = 1 + self.random.below(60);
                self.faults.kill_after(calls as u32, true).expect("it is set");
            }
            let started = self.node.start_tidepool(preload::starter(self.faults.variables()));
            self.faults.clear().expect("it is set");
            match started {
                Ok(server) => return server,
                Err(ProcessError::EndedEarly { .. })
                    if self.faults.kills().expect("a number") > kills => {}
                Err(error) => panic!("{when}: {error}"),
            }
        }
    }

    fn end(&mut self, mut server: Server, owner: Owner, when: &str) {
        let mut ended = None;
        if owner == TIDEPOOL {
            // Blocks are cut and merged in the background.
            let timeout = if self.is_unanswered { END_TIMEOUT } else { LAST_CALLS };
            ended = server.wait_end(timeout).ok();
        }
        let status = ended.unwrap_or_else(|| {
            let how = if self.random.one_in(2) { STOP } else { KILL };
            how(server).unwrap_or_else(|error| panic!("{when}: {error}")).status
        });
        self.faults.clear().expect("it is set");
        assert!(status.success() || status.signal() == Some(9), "{when}: {status}");
    }
}
