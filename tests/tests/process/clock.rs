//! Wrong clocks: no sample is deleted because of them, and no good sample is refused permanently.

use std::time::Duration;
use tempfile::TempDir;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock;
use tidepool_tests::fake_clock::FakeClock;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::{Dataset, Row, Sample, Series, Shape, Texture};
use tidepool_tests::tidepool::Config;
use tidepool_tests::wait;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
const BLOCK: &str = "10m";
const BLOCK_MS: i64 = 10 * MINUTE_MS;

/// A node whose clock the test sets, and its acknowledged samples.
struct Node {
    directory: TempDir,
    clock: FakeClock,
    flags: Vec<String>,
    server: Option<Server>,
    acknowledged: Vec<Series>,
}

impl Node {
    fn new(clock_ms: i64, flags: &[&str]) -> Node {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let clock = FakeClock::new(directory.path(), clock_ms).expect("a clock");
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut node = Node { directory, clock, flags, server: None, acknowledged: Vec::new() };
        node.start();
        node
    }

    fn start(&mut self) {
        let starter = self.clock.starter().expect("libfaketime");
        let config = Config::new(self.directory.path()).block_duration(BLOCK).started_by(starter);
        let config = self.flags.iter().fold(config, |config, flag| config.flag(flag));
        self.server = Some(config.start().unwrap_or_else(|e| panic!("{}", wait::chain(&e))));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("a running server")
    }

    /// Kills the server and starts it with another clock.
    fn restart_at(&mut self, clock_ms: i64) {
        self.server.take().expect("a running server").kill().expect("it ends");
        self.clock.set(clock_ms).expect("a clock");
        self.start();
    }

    /// Sends minutes of samples of some series that end at a time, scrape by scrape.
    fn send(&mut self, seed: u64, end_ms: i64, minutes: usize) {
        let start_ms = end_ms - minutes as i64 * MINUTE_MS;
        let data = Dataset::generate(Shape {
            seed,
            series: 50,
            scrapes: minutes,
            start_ms,
            interval_ms: MINUTE_MS,
            texture: Texture::Regular,
        });
        for rows in data.scrapes() {
            let answer = self.answer(&rows);
            assert_eq!(answer, (204, String::new()), "{}", self.server().log());
        }
        self.acknowledged.extend(data.series);
    }

    fn answer(&self, rows: &[Row<'_>]) -> (u16, String) {
        let writer = Writer::new(&self.server().url());
        let response = writer.send(Version::V2, rows).expect("an answer");
        (response.status, response.text())
    }

    /// Returns the answer to one sample of a series of its own.
    fn answer_to_one(&mut self, name: &str, timestamp_ms: i64) -> (u16, String) {
        let series = Series::new(&[("__name__", name)], &[(timestamp_ms, 1.0)]);
        let answer = self.answer(&[series.row()]);
        if answer.0 == 204 {
            self.acknowledged.push(series);
        }
        answer
    }

    fn assert_holds_all(&self, when: &str) {
        let all = everything(i64::MIN / 2, i64::MAX / 2);
        let read = Reader::new(&self.server().url()).streamed(&[all]);
        let read = read.unwrap_or_else(|e| panic!("{when}: {}", wait::chain(&e)));
        assert_same(when, &self.acknowledged, &read[0]);
    }

    fn metric(&self, name: &str) -> f64 {
        self.server().metric(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Waits until this number of blocks was cut since the start.
    fn wait_for_cuts(&self, count: f64) {
        let cut = || (self.metric("tidepool_blocks_cut_total") >= count).then_some(());
        wait::until("blocks to be cut", Duration::from_secs(30), cut)
            .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", self.server().log()));
    }
}

#[test]
fn a_board_that_starts_in_1970_takes_samples_and_keeps_what_it_has() {
    let now_ms = clock::now_ms();
    let mut node = Node::new(now_ms, &["--retention-time=2d"]);
    node.send(1, now_ms - DAY_MS, 60);
    node.wait_for_cuts(3.0);

    node.restart_at(3 * DAY_MS);
    node.assert_holds_all("in 1970, before anything is sent");
    node.send(2, now_ms, 60);
    assert_eq!(node.metric("tidepool_clock_doubted"), 1.0);
    node.wait_for_cuts(3.0);
    node.assert_holds_all("in 1970");
    assert!(node.server().log().contains("senders' timestamps are used"), "it says so");
    // The limit applies to the senders' time.
    let (status, text) = node.answer_to_one("ahead", now_ms + 11 * MINUTE_MS);
    assert!(status == 400 && text.contains("too far in the future"), "{status}: {text}");

    // The clock is corrected, and the node continues normally.
    node.clock.set(now_ms + MINUTE_MS).expect("a clock");
    node.send(3, now_ms + MINUTE_MS, 1);
    assert_eq!(node.metric("tidepool_clock_doubted"), 0.0);
    node.assert_holds_all("with the right time");
    node.restart_at(now_ms + 2 * MINUTE_MS);
    node.assert_holds_all("after another start");
}

#[test]
fn a_clock_that_is_set_back_refuses_nothing_that_is_good() {
    let now_ms = clock::now_ms();
    let mut node = Node::new(now_ms, &[]);
    node.send(4, now_ms, 30);
    // Three hours back; the senders' clocks are right.
    node.clock.set(now_ms - 180 * MINUTE_MS).expect("a clock");
    node.send(5, now_ms + 20 * MINUTE_MS, 20);
    node.restart_at(now_ms - 170 * MINUTE_MS);
    node.send(6, now_ms + 30 * MINUTE_MS, 10);
    node.wait_for_cuts(2.0);
    node.assert_holds_all("with the clock behind");
}

/// The worst case: the node's own sender uses the same clock, which leaps ahead and returns.
#[test]
fn a_clock_that_ran_ahead_leaves_the_door_open_and_deletes_nothing() {
    let now_ms = clock::now_ms();
    let ahead_ms = now_ms + 400 * DAY_MS;
    let mut node = Node::new(now_ms, &["--retention-time=3d"]);
    node.send(7, now_ms, 60);
    node.wait_for_cuts(3.0);
    node.clock.set(ahead_ms).expect("a clock");
    node.send(8, ahead_ms, 60);
    node.wait_for_cuts(8.0);
    node.assert_holds_all("while the clock is ahead");

    // Corrected while the server runs.
    node.clock.set(now_ms + 60 * MINUTE_MS).expect("a clock");
    node.send(7, now_ms + 60 * MINUTE_MS, 60);
    node.assert_holds_all("with the right time");
    node.restart_at(now_ms + 61 * MINUTE_MS);
    node.assert_holds_all("after a start");
    // The same series continue, and blocks of them are cut.
    node.send(8, now_ms + 300 * MINUTE_MS, 200);
    node.clock.set(now_ms + 300 * MINUTE_MS).expect("a clock");
    node.wait_for_cuts(4.0);
    node.assert_holds_all("hours later");
    node.restart_at(now_ms + 301 * MINUTE_MS);
    node.assert_holds_all("hours later, after a start");
}

#[test]
fn samples_of_the_future_are_refused_and_one_moves_nothing() {
    let now_ms = clock::now_ms();
    let mut node = Node::new(now_ms, &["--max-future=5m"]);
    node.send(9, now_ms - MINUTE_MS, 14);
    let (status, text) = node.answer_to_one("ahead", now_ms + 6 * MINUTE_MS);
    assert!(status == 400 && text.contains("more than 300 s ahead"), "{status}: {text}");
    assert_eq!(node.answer_to_one("a_bit_ahead", now_ms + 4 * MINUTE_MS).0, 204);
    // The refused sample neither makes others out-of-order, nor is a block cut for it.
    node.send(10, now_ms, 3);
    assert_eq!(node.answer_to_one("late", now_ms - 2 * BLOCK_MS).0, 204);
    assert_eq!(node.metric("tidepool_blocks_cut_total"), 0.0);
    node.assert_holds_all("with one sample ahead");
}

/// A replaced sample returned to its old value once its block was cut: the clock had been set back,
/// so the block's ULID was older than that of the block with the replaced sample.
#[test]
fn a_replaced_sample_stays_replaced_though_the_clock_is_set_back() {
    let now_ms = clock::now_ms();
    let end_ms = now_ms - 6 * 60 * MINUTE_MS;
    let mut node = Node::new(now_ms, &["--out-of-order-window=30m"]);
    node.send(11, end_ms, 60);
    node.wait_for_cuts(5.0);
    node.restart_at(now_ms - 60 * MINUTE_MS);
    let series = node.acknowledged.first_mut().expect("a series");
    let in_block = |sample: &&mut Sample| sample.timestamp_ms == end_ms - 25 * MINUTE_MS;
    let sample = series.samples.iter_mut().find(in_block).expect("a sample in a block");
    sample.value = -1.0;
    let replacement = Series { samples: vec![*sample], ..series.clone() };
    assert_eq!(node.answer(&[replacement.row()]), (204, String::new()));
    node.assert_holds_all("while the replacement is in the head");
    // The out-of-order block is cut, and merged with the one that it overlaps.
    node.send(12, end_ms + 60 * MINUTE_MS, 60);
    let is_merged = || (node.metric("tidepool_blocks_merged_total") >= 1.0).then_some(());
    wait::until("a merge", Duration::from_secs(60), is_merged)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", node.server().log()));
    node.assert_holds_all("when it is in a block");
}
