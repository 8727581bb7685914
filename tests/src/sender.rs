//! Senders that record acknowledged requests, and checks of a store against them.
//!
//! The functions here are assertions: they panic if the store under test fails.

use crate::checksum::assert_same;
use crate::clock::now_ms;
use crate::data_dir::{self, Block};
use crate::http::Response;
use crate::proto::prometheus::Query;
use crate::remote_read::everything;
use crate::remote_write::{Version, Writer};
use crate::series::{Dataset, Row, Series, Shape, Texture};
use crate::tidepool::Store;
use crate::wait::{self, chain};
use rustix::process::Signal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Timeout for the cut of many blocks, also by a server that looks only once a minute.
const BLOCKS_TIMEOUT: Duration = Duration::from_secs(150);

const ROWS_PER_REQUEST: usize = 2_000;

/// Makes rough data of the last minutes, one scrape a second.
pub fn recent_data(seed: u64, series: usize, scrapes: usize) -> Dataset {
    let interval_ms = 1_000;
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series, scrapes, start_ms, interval_ms, texture })
}

/// Makes rough data of three hours that end now.
pub fn hours_of_data(seed: u64) -> Dataset {
    hours_of_data_until(seed, now_ms())
}

/// Makes rough data of three hours that end at a time.
pub fn hours_of_data_until(seed: u64, end_ms: i64) -> Dataset {
    let (scrapes, interval_ms) = (720, 15_000);
    let start_ms = end_ms - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series: 90, scrapes, start_ms, interval_ms, texture })
}

/// Makes a query for everything.
pub fn read_all() -> Query {
    everything(i64::MIN, i64::MAX)
}

/// Sends a data set, request by request; all of it must be acknowledged.
#[track_caller]
pub fn send_all(store: &Store, version: Version, data: &Dataset) {
    Sender::new(data, version).send_all(store);
}

/// Asserts that the store has this data and nothing else, by both kinds of answer.
#[track_caller]
pub fn assert_holds(store: &Store, data: &Dataset) {
    assert_answers(store, &read_all(), &data.series);
}

/// Asserts the same by a query for each window of time. One answer with all of the data would take
/// longer than a client waits on a busy machine.
#[track_caller]
pub fn assert_holds_by_windows(store: &Store, data: &Dataset, window_ms: i64) {
    let (first_ms, last_ms) = data.time_range_ms().expect("there are samples");
    assert_answers(store, &everything(i64::MIN, first_ms - 1), &[]);
    assert_answers(store, &everything(last_ms + 1, i64::MAX), &[]);
    for start_ms in (first_ms..=last_ms).step_by(window_ms as usize) {
        let end_ms = (start_ms + window_ms - 1).min(last_ms);
        let within = data.series.iter().map(|series| series.between(start_ms, end_ms));
        let sent: Vec<Series> = within.filter(|series| !series.samples.is_empty()).collect();
        assert_answers(store, &everything(start_ms, end_ms), &sent);
    }
}

/// Asserts that both kinds of answer have these series.
#[track_caller]
fn assert_answers(store: &Store, query: &Query, sent: &[Series]) {
    let reader = store.reader();
    let queries = std::slice::from_ref(query);
    let streamed = reader.streamed(queries).unwrap_or_else(|e| panic!("{}", chain(&e)));
    assert_same("streamed", sent, &streamed[0]);
    let samples = reader.samples(queries).unwrap_or_else(|e| panic!("{}", chain(&e)));
    assert_same("samples", sent, &samples[0]);
}

/// Returns the longest time after the end of the blocks for which no cut is due. The head begins
/// with the first sample after that end, which comes some scrapes later.
pub fn uncut_ms_max(block_ms: i64) -> i64 {
    block_ms * 3 / 2 + 60_000
}

/// Waits until the head spans at most one and a half block ranges, and returns the blocks.
#[track_caller]
pub fn wait_for_blocks(store: &Store, data: &Dataset, block_ms: i64) -> Vec<Block> {
    let (_, last_ms) = data.time_range_ms().expect("there are samples");
    let cut = || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        let end_ms = blocks.last()?.end_ms;
        (last_ms - end_ms <= uncut_ms_max(block_ms)).then_some(blocks)
    };
    wait::until("the blocks", BLOCKS_TIMEOUT, cut)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()))
}

/// Starts all senders at once, and kills the server as soon as each has this number of acknowledged
/// requests: from outside, so that it dies at any point of its work.
#[track_caller]
pub fn kill_while_sending(store: &Store, senders: &[Sender<'_>], acknowledged: usize) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = senders
            .iter()
            .map(|sender| scope.spawn(|| sender.send_until_it_fails(store)))
            .collect();
        // No pause, because the senders need only milliseconds for the rest.
        while senders.iter().any(|sender| sender.acknowledged() < acknowledged)
            && threads.iter().all(|thread| !thread.is_finished())
        {
            std::thread::yield_now();
        }
        store.server.signal(Signal::KILL).expect("it can be killed");
        for thread in threads {
            thread.join().expect("the sender ends");
        }
    });
}

/// Sends one data set in order over its own connection, and records its progress.
pub struct Sender<'a> {
    requests: Vec<Vec<Row<'a>>>,
    version: Version,
    acknowledged: AtomicUsize,
}

impl<'a> Sender<'a> {
    pub fn new(data: &'a Dataset, version: Version) -> Sender<'a> {
        let requests = data.requests(ROWS_PER_REQUEST);
        Sender { requests, version, acknowledged: AtomicUsize::new(0) }
    }

    /// Returns the number of requests.
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of acknowledged requests.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Sends the next request, which counts only if it is acknowledged; `None` if there is none.
    #[track_caller]
    pub fn send_next(&self, writer: &Writer) -> Option<Response> {
        let rows = self.requests.get(self.acknowledged())?;
        let response = writer.send(self.version, rows).unwrap_or_else(|e| panic!("{}", chain(&e)));
        if response.status == 204 {
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        Some(response)
    }

    #[track_caller]
    pub fn send_all(&self, store: &Store) {
        if let Err(error) = self.send(store) {
            panic!("{error}");
        }
    }

    /// Sends until the server has ended; the answer to the last request is lost.
    fn send_until_it_fails(&self, store: &Store) {
        // A sender that runs out of data before the kill proves nothing.
        self.send(store).expect_err("the server was killed before all was sent");
    }

    fn send(&self, store: &Store) -> Result<(), String> {
        let writer = store.writer();
        while let Some(rows) = self.requests.get(self.acknowledged()) {
            let response = writer.send(self.version, rows).map_err(|e| chain(&e))?;
            // A refusal fails the test, whatever the caller expects.
            assert_eq!(response.status, 204, "{}", response.text());
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Returns the number of samples in the first requests.
    pub fn samples_of_first(&self, requests: usize) -> u64 {
        let requests = self.requests.iter().take(requests);
        requests.flatten().map(|row| row.samples.len() as u64).sum()
    }

    /// Returns the content of the acknowledged requests.
    pub fn acknowledged_series(&self) -> Vec<Series> {
        self.series_of_first(self.acknowledged())
    }

    /// Returns the content of the first requests.
    pub fn series_of_first(&self, requests: usize) -> Vec<Series> {
        to_series(&self.requests[..requests])
    }

    /// Returns the content of the request that was not answered.
    pub fn unanswered_series(&self) -> Vec<Series> {
        to_series(&self.requests[self.acknowledged()..][..1])
    }
}

fn to_series(requests: &[Vec<Row<'_>>]) -> Vec<Series> {
    let series =
        |row: &Row<'_>| Series { labels: row.labels.clone(), samples: row.samples.to_vec() };
    requests.iter().flatten().map(series).collect()
}

/// Waits, with [`hours_of_data`], until most blocks of five minutes are merged, and there is one of
/// the third level or above.
#[track_caller]
pub fn wait_for_merged(store: &Store, block_ms: i64) {
    let merged = || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        let is_long = |block: &Block| block.end_ms - block.min_ms >= 9 * block_ms;
        // Without merges, three hours in blocks of five minutes are 36 blocks.
        (blocks.iter().any(is_long) && blocks.len() < 12).then_some(())
    };
    wait::until("merged blocks", BLOCKS_TIMEOUT, merged)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
}
