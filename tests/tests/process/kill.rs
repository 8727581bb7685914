//! Repeated `kill -9`: senders at work, blocks of ten seconds that are cut and merged all the time,
//! and a server that is killed at any moment. Acknowledged samples are there after each start; in
//! the end every sample is there once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tidepool_tests::checksum::{Checksum, assert_same};
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::sender::read_all;
use tidepool_tests::series::{
    Labels, ORDINARY_NAN_BITS, Random, Row, STALE_MARKER_BITS, Sample, Series,
};
use tidepool_tests::soak;
use tidepool_tests::tidepool::{Store, WalSync};
use tidepool_tests::wait::{self, chain};

/// Number of kills of one server's data: in each run of the tests, and in a soak.
const KILLS: (usize, usize) = (40, 500);

const SENDERS: usize = 3;

/// Number of series of a sender; one new series each hundred requests, in place of the oldest.
const SERIES: usize = 15;

/// Sample time between two requests of a sender.
const STEP_MS: i64 = 100;

/// Real time between two requests. Sample time still passes much faster, so that blocks are cut all
/// the time; but merges, which come after cuts, need time, too.
const PAUSE: Duration = Duration::from_millis(2);

/// Number of requests between two with out-of-order samples.
const OUT_OF_ORDER_EVERY: usize = 7;

/// Distance of out-of-order samples behind the newest.
const OUT_OF_ORDER_MS: i64 = 4_000;

/// Shortest and longest time between a start and a kill.
const LIFE_MS: (u64, u64) = (20, 400);

/// Number of a sender's requests that fill blocks to be merged, however few a busy machine accepted
/// between the kills: a minute and a half of sample time.
const REQUESTS_MIN: usize = 900;

/// Number of a sender's requests that a read after a start covers.
const LOOK_BACK: usize = 300;

/// A sender whose requests are the same each time they are made.
struct Sender {
    number: usize,
    start_ms: i64,
    /// Number of requests answered with success.
    acknowledged: AtomicUsize,
}

impl Sender {
    fn labels(&self, series: usize) -> Labels {
        let (sender, series) = (format!("sender-{}", self.number), format!("{series:04}"));
        let name = format!("metric_{}", self.number % 2);
        Labels::from_pairs([("__name__", name), ("sender", sender), ("series", series)])
    }

    /// Returns the time of a request's samples.
    fn time_ms(&self, request: usize) -> i64 {
        self.start_ms + request as i64 * STEP_MS + self.number as i64
    }

    fn request(&self, request: usize) -> Vec<Series> {
        let mut random = Random::new(request as u64, self.number as u64);
        let first = request / 100;
        let time_ms = self.time_ms(request);
        let mut rows = Vec::new();
        for series in first..first + SERIES {
            let mut samples = vec![Sample { timestamp_ms: time_ms, value: value(&mut random) }];
            if request.is_multiple_of(OUT_OF_ORDER_EVERY) && series % 3 == 0 {
                // Between the samples that came in order.
                let timestamp_ms = time_ms - OUT_OF_ORDER_MS + STEP_MS / 2;
                samples.push(Sample { timestamp_ms, value: value(&mut random) });
            }
            rows.push(Series { labels: self.labels(series), samples });
        }
        rows
    }

    /// Returns the samples of all requests in a range.
    fn requests(&self, range: std::ops::Range<usize>) -> Vec<Series> {
        range.flat_map(|request| self.request(request)).collect()
    }

    fn count(&self) -> usize {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Sends until the server has ended; a request without an answer is sent again first.
    fn send_until_it_fails(&self, writer: &Writer) {
        loop {
            let request = self.request(self.count());
            let rows: Vec<Row<'_>> = request.iter().map(Series::row).collect();
            let version = Version::ALL[self.number % 2];
            let Ok(response) = writer.send(version, &rows) else { return };
            assert_eq!(response.status, 204, "{}", response.text());
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
            thread::sleep(PAUSE);
        }
    }
}

fn value(random: &mut Random) -> f64 {
    match random.below(20) {
        0 => f64::from_bits(ORDINARY_NAN_BITS),
        1 => f64::from_bits(STALE_MARKER_BITS),
        2 => -0.0,
        3 => f64::from_bits(random.next_u64()),
        _ => random.below(1000) as f64,
    }
}

/// Checks the last requests: all acknowledged samples are there, and none that was not sent.
fn check_newest(store: &Store, senders: &[Sender], what: &str) {
    let look_back = |sender: &Sender| sender.count().saturating_sub(LOOK_BACK);
    let start_ms = senders.iter().map(|sender| sender.time_ms(look_back(sender))).max();
    let query = [everything(start_ms.unwrap_or(i64::MIN), i64::MAX)];
    let got = store.reader().streamed(&query).unwrap_or_else(|e| panic!("{what}: {}", chain(&e)));
    let start_ms = query[0].start_timestamp_ms;
    let since = |series: Series| series.between(start_ms, i64::MAX);
    // Each sender has at most one request without an answer, which is stored or not, except for its
    // out-of-order part.
    let of = |sender: &Sender, from: usize, to: usize| -> Vec<Series> {
        sender.requests(from..to).into_iter().map(since).collect()
    };
    let acknowledged: Vec<Series> =
        senders.iter().flat_map(|s| of(s, look_back(s), s.count())).collect();
    let in_flight: Vec<Series> =
        senders.iter().flat_map(|s| of(s, s.count(), s.count() + 1)).collect();
    let mut more = Vec::new();
    for series in &in_flight {
        for sample in &series.samples {
            let is_it =
                |found: &&Series| found.labels == series.labels && found.samples.contains(sample);
            let is_known = acknowledged.iter().any(|known| is_it(&known));
            if !is_known && got[0].iter().any(|found| is_it(&found)) {
                more.push(Series { labels: series.labels.clone(), samples: vec![*sample] });
            }
        }
    }
    assert_same(what, acknowledged.iter().chain(&more), &got[0]);
}

fn kill_again_and_again(policy: WalSync, records: &str) {
    let kills = soak::count(KILLS.0, KILLS.1);
    let mut store = Store::start_with(|config| {
        let config = config.wal_sync(policy).flag(&format!("--wal-records={records}"));
        config.merged_block_duration("10s").flag("--wal-segment-size=64KiB")
    })
    .expect("tidepool starts");
    let start_ms = now_ms() - 48 * 3_600_000;
    let senders: Vec<Sender> = (0..SENDERS)
        .map(|number| Sender { number, start_ms, acknowledged: AtomicUsize::new(0) })
        .collect();
    let mut random = Random::new(kills as u64, policy as u64);
    for kill in 0..kills {
        let life = Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1 - LIFE_MS.0));
        thread::scope(|scope| {
            for sender in &senders {
                let writer = store.writer();
                scope.spawn(move || sender.send_until_it_fails(&writer));
            }
            thread::sleep(life);
            store.server.signal(rustix::process::Signal::KILL).expect("it can be killed");
        });
        store =
            store.restart(Server::kill).unwrap_or_else(|e| panic!("start {kill}: {}", chain(&e)));
        check_newest(&store, &senders, &format!("{policy:?}, after kill {kill}"));
    }

    // Unanswered requests are sent again, as senders do, and others until there are enough.
    let writer = store.writer();
    let send = |sender: &Sender| {
        let request = sender.request(sender.count());
        let rows: Vec<Row<'_>> = request.iter().map(Series::row).collect();
        let response = writer.send(Version::V1, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        sender.acknowledged.fetch_add(1, Ordering::SeqCst);
    };
    senders.iter().for_each(send);
    for _ in 0..REQUESTS_MIN {
        senders.iter().filter(|sender| sender.count() < REQUESTS_MIN).for_each(send);
    }
    let merged_and_others = || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        let is_merged = blocks.iter().any(|block| block.end_ms - block.min_ms > 15_000);
        (blocks.len() > 2 && is_merged).then_some(blocks)
    };
    let blocks = wait::until("a merged block", Duration::from_secs(60), merged_and_others)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    for what in ["at the end", "after a clean restart"] {
        let got = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
        let mut sent = Checksum::default();
        for series in senders.iter().flat_map(|sender| sender.requests(0..sender.count())) {
            sent.add_row(series.row());
        }
        if Checksum::of(&got) != sent {
            let all = senders.iter().flat_map(|sender| sender.requests(0..sender.count()));
            assert_same(&format!("{policy:?}, {what}"), &all.collect::<Vec<_>>(), &got);
        }
        println!(
            "{policy:?}: {kills} kills, {} samples, {} blocks, {what}",
            sent.count,
            blocks.len()
        );
        store = store.restart(Server::terminate).expect("tidepool starts again");
    }
}

#[test]
fn many_kills_cost_nothing_acknowledged_with_sync_always() {
    kill_again_and_again(WalSync::Always, "prometheus");
}

#[test]
fn many_kills_cost_nothing_acknowledged_with_sync_interval() {
    kill_again_and_again(WalSync::Interval, "prometheus");
}

#[test]
fn many_kills_cost_nothing_acknowledged_with_a_log_of_columns() {
    kill_again_and_again(WalSync::Interval, "columns");
}
