//! The head's instance runs out of memory repeatedly under load: it is rebuilt from the log,
//! senders are asked to retry meanwhile, and no acknowledged sample is missing.

#[path = "../runtime/tests/image/mod.rs"]
mod image;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidepool_evaluation::Rules;
use tidepool_host::config::{ConfigSource, ServeConfig};
use tidepool_host::notification;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_plugins::intake::Intake;
use tidepool_query::Queries;
use tidepool_scraping::Scraping;
use tidepool_server::access::Access;
use tidepool_server::http::Live;
use tidepool_server::http::{Server, ServerConfig};
use tidepool_store::{Store, StoreError};
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::wait;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const CRASHES: u64 = 5;
/// Scrapes accepted before each crash; one and a half minutes of them fill a block.
const SCRAPES_BETWEEN: u64 = 100;
const READY_TIMEOUT: Duration = Duration::from_secs(60);

fn config(dir: &std::path::Path) -> TestResult<ServeConfig> {
    let data_dir = format!("--data-dir={}", dir.display());
    let flags = ["--listen=127.0.0.1:0", "--wal-sync=off", "--block-duration=1m"];
    let flags = flags.into_iter().chain(["--no-host-metrics", "--no-own-metrics"]);
    let arguments = ["tidepool", "serve", &data_dir].into_iter().chain(flags);
    Ok(ConfigSource::new(arguments.map(Into::into)).serve()?.0)
}

/// Number of scrapes, by the server's answer.
#[derive(Default)]
struct Answered {
    taken: AtomicU64,
    refused: AtomicU64,
}

/// Sends scrapes with ever later times until `stop` is set, each until it is accepted. Returns the
/// acknowledged series.
fn send(url: &str, stop: &AtomicBool, answered: &Answered) -> TestResult<Vec<Series>> {
    let (scrapes, interval_ms) = (60, 1000);
    let writer = Writer::new(url);
    let mut acknowledged = Vec::new();
    // A day is more than can be sent before the test ends.
    let mut start_ms = clock::now_ms() - 86_400_000;
    while !stop.load(Relaxed) {
        let texture = Texture::Regular;
        let shape = Shape { seed: 5, series: 300, scrapes, start_ms, interval_ms, texture };
        let data = Dataset::generate(shape);
        for rows in data.scrapes() {
            loop {
                let response = writer.send(Version::V2, &rows)?;
                match response.status {
                    204 => break,
                    503 => assert!(response.header("Retry-After").is_some(), "{response:?}"),
                    other => panic!("{other}: {}", response.text()),
                }
                answered.refused.fetch_add(1, Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
            answered.taken.fetch_add(1, Relaxed);
        }
        acknowledged.extend(data.series);
        start_ms += scrapes as i64 * interval_ms;
    }
    Ok(acknowledged)
}

/// Stops the sender when it is dropped, hence also when the test fails.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_crashes_costs_nothing() -> TestResult {
    let dir = tempfile::tempdir()?;
    let config = config(dir.path())?;
    image::install();
    let (store, threads) = Store::open(config.store)?;
    let access = Arc::new(Access::open(&config.access)?);
    let (trigger, shutdown) = Shutdown::manual();
    let labels = &config.http.external_labels;
    let intake = Intake::new(store.clone(), None);
    let queries = Queries::open(&store, config.queries);
    let notifying = notification::start(config.notify, String::new(), &store, dir.path());
    let (notifier, _journal) = notifying.await?;
    let rules = Rules::start(&config.rules, intake.clone(), queries.clone(), notifier.clone());
    let scraping =
        Scraping::start(&config.scrape, intake, labels, dir.path(), shutdown.clone()).await?;
    let listen = config.http.listen.clone();
    let live = Live { http: Arc::new(config.http), access };
    let (_live, current) = tokio::sync::watch::channel(live);
    let (reload, _requests) = ReloadHandle::new();
    let server = ServerConfig {
        store: store.clone(),
        queries,
        plugins: None,
        ship: None,
        forward: Default::default(),
        scraping: scraping.0,
        rules,
        notifier,
        live: current,
        reload,
    };
    let listener = listen.bind().await?;
    let server = Server::new(listener, server)?;
    let url = format!("http://{}", server.address());
    let serving = tokio::spawn(server.run(shutdown));
    let is_ready = || store.is_ready().then_some(());
    tokio::task::block_in_place(|| wait::until("the store", READY_TIMEOUT, is_ready))?;

    let (stop, answered) = (AtomicBool::new(false), Answered::default());
    let runtime = tokio::runtime::Handle::current();
    let acknowledged = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let stopping = StopWhenDropped(&stop);
            let sender = scope.spawn(|| send(&url, &stop, &answered).map_err(|e| e.to_string()));
            let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
                let found = wait::until(what, READY_TIMEOUT, || is_so().then_some(()));
                found.map_err(|e| e.to_string())
            };
            for crash in 1..=CRASHES {
                let enough = answered.taken.load(Relaxed) + SCRAPES_BETWEEN;
                wait_for("scrapes to be taken", &|| answered.taken.load(Relaxed) >= enough)?;
                let ended = runtime.block_on(store.crash_head());
                assert!(matches!(ended, Err(StoreError::ShortOfMemory(_))), "{ended:?}");
                // A crash is counted when the instance has ended; then a new one answers.
                let crashes = || store.counters().head_crashes.load(Relaxed);
                wait_for("the end of the head", &|| crashes() == crash)?;
                wait_for("the head again", &|| runtime.block_on(store.figures()).is_ok())?;
            }
            // Blocks are cut in spite of the crashes.
            wait_for("a block", &|| store.block_figures().0 > 0)?;
            drop(stopping);
            sender.join().map_err(|_| "the sender panicked".to_owned())?
        })
    })?;
    assert_eq!(store.counters().head_crashes.load(Relaxed), CRASHES);
    assert!(answered.refused.load(Relaxed) > 0, "no write was refused");
    let read = tokio::task::block_in_place(|| {
        Reader::new(&url).streamed(&[everything(i64::MIN / 2, i64::MAX / 2)])
    })?;
    assert_same("after crashes", &acknowledged, &read[0]);

    trigger.stop();
    serving.await?;
    tokio::task::spawn_blocking(move || store.close(threads)).await??;
    Ok(())
}
