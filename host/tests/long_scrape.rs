//! A long scrape is stored in parts: a write runs between two parts, and no read sees only some of
//! them. A single job of the head would hold up all writes.

#[path = "../runtime/tests/image/mod.rs"]
mod image;

use prost::Message as _;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;
use tidepool_host::config::ConfigSource;
use tidepool_runtime::{Columns, Label, RemoteWriteVersion};
use tidepool_store::{BodyRoom, ScrapeRows, Store};
use tidepool_tests::clock;
use tidepool_tests::proto::write_v2::{Request, Sample, TimeSeries};
use tidepool_tests::wait;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const ROWS: usize = 20 * 65_536;
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct ScrapeProgress {
    /// Parts of the scrape that were begun.
    parts: AtomicUsize,
    is_sent: AtomicBool,
    is_written: AtomicBool,
    is_read: AtomicBool,
}

#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    wait::until(what, TIMEOUT, || is_so().then_some(())).expect("in time");
}

/// Polls a job once, which queues it in the head, then sets `is_sent` and awaits the job.
async fn send<F: Future>(job: F, is_sent: &AtomicBool) -> F::Output {
    let mut job = pin!(job);
    let first = poll_fn(|context| Poll::Ready(job.as_mut().poll(context))).await;
    is_sent.store(true, SeqCst);
    match first {
        Poll::Ready(output) => output,
        Poll::Pending => job.await,
    }
}

fn body(timestamp_ms: i64) -> Vec<u8> {
    let symbols = ["", "__name__", "written"].map(String::from).to_vec();
    let sample = Sample { value: 1.0, timestamp: timestamp_ms, start_timestamp: 0 };
    let series =
        TimeSeries { labels_refs: vec![1, 2], samples: vec![sample], ..TimeSeries::default() };
    Request { symbols, timeseries: vec![series] }.encode_to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_come_between_the_parts_of_a_long_scrape() -> TestResult {
    let dir = tempfile::tempdir()?;
    let data_dir = format!("--data-dir={}", dir.path().display());
    let arguments = ["tidepool", "serve", &data_dir, "--no-host-metrics", "--no-own-metrics"];
    let config = ConfigSource::new(arguments.map(Into::into)).serve()?.0;
    image::install();
    let (store, threads) = Store::open(config.store)?;
    let is_ready = || store.is_ready().then_some(());
    tokio::task::block_in_place(|| wait::until("the store", TIMEOUT, is_ready))?;

    let start_ms = clock::now_ms() - ROWS as i64 - 60_000;
    let name = Label { name: "__name__".into(), value: "scraped".into() };
    let numbers = store.series_numbers(std::iter::once(vec![name])).await?;
    let number = *numbers.numbers[0].as_ref().map_err(|error| format!("{error:?}"))?;

    let seen = Arc::new(ScrapeProgress::default());
    let of_rows = Arc::clone(&seen);
    let rows = ScrapeRows {
        bodies: Vec::new(),
        generation: numbers.generation,
        count: ROWS,
        rows: Box::new(move |range| {
            // On the head's thread.
            match of_rows.parts.fetch_add(1, SeqCst) {
                3 => wait_for("both jobs", || of_rows.is_sent.load(SeqCst)),
                6 => wait_for("the write", || of_rows.is_written.load(SeqCst)),
                _ => {}
            }
            assert!(!of_rows.is_read.load(SeqCst), "a read between parts");
            Columns {
                series: vec![number; range.len()],
                timestamps_ms: range.clone().map(|row| start_ms + row as i64).collect(),
                values: range.map(|row| row as f64).collect(),
            }
        }),
        ended: Vec::new(),
        ended_at_ms: start_ms,
    };
    let begun = Arc::clone(&seen);
    let other = store.clone();
    let beside = tokio::spawn(async move {
        tokio::task::block_in_place(|| {
            wait_for("the scrape", || begun.parts.load(SeqCst) > 2);
        });
        let is_asked = AtomicBool::new(false);
        let read = async {
            let figures = send(other.figures(), &is_asked).await;
            begun.is_read.store(true, SeqCst);
            figures
        };
        let write = async {
            let body = body(start_ms);
            let write = other.append(RemoteWriteVersion::V2, body, BodyRoom::none());
            let written = send(write, &begun.is_sent).await;
            begun.is_written.store(true, SeqCst);
            written
        };
        // The read is queued before the write.
        tokio::join!(read, write)
    });
    let (written, refused) = store.append_scrape(rows).await?;
    assert_eq!((written.samples_written, refused.len()), (ROWS as u64, 0));
    let (figures, written) = beside.await?;
    assert_eq!(written?.samples_written, 1);
    figures?;
    assert_eq!(seen.parts.load(SeqCst), 20);
    tokio::task::spawn_blocking(move || store.close(threads)).await??;
    Ok(())
}
