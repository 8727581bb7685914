//! Reloads while targets are scraped over HTTP.

use crate::store::MemoryStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidepool_client::HttpClientConfig;
use tidepool_scrape::clock::SystemClock;
use tidepool_scrape::discovery::List;
use tidepool_scrape::failure_log::FailureLog;
use tidepool_scrape::job::{Job, Limits};
use tidepool_scrape::labels::Labels;
use tidepool_scrape::manager::Manager;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::pool::Context;
use tidepool_scrape::target::{Health, TargetGroup};
use tidepool_settings::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\na 1\n";

/// Timeout that no test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A target that counts its scrapes.
async fn target() -> std::io::Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, asked) = (listener.local_addr()?.to_string(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while let Ok(1..) = stream.read(&mut request).await {
                    asked.fetch_add(1, Relaxed);
                    if stream.write_all(ANSWER).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok((address, asked))
}

fn manager(metrics: &Arc<Metrics>) -> (Manager<MemoryStore>, watch::Sender<bool>) {
    let (stop, shutdown) = watch::channel(false);
    let context = Context {
        runtime: tokio::runtime::Handle::current(),
        store: Arc::<MemoryStore>::default(),
        clock: Arc::new(SystemClock),
        metrics: Arc::clone(metrics),
        user_agent: "agent".into(),
        body_bytes_max: 1 << 20,
        memory: tidepool_scrape::memory::MemoryBound::unbounded(),
        failure_log: FailureLog::new(1 << 20),
        hash_seed: 7,
        shutdown,
    };
    (Manager::new(Arc::new(context), BTreeMap::new()), stop)
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("{what}"));
}

fn job() -> Job {
    let interval = Duration::from_millis(50);
    Job { interval, timeout: interval, ..Job::new("j") }
}

async fn sync(manager: &Manager<MemoryStore>, address: &str) {
    let labels = Labels::one("__address__", address);
    let group = TargetGroup { source: "test".into(), targets: vec![labels], ..Default::default() };
    let list = Arc::new(List::unbounded(vec![group]));
    manager.update(BTreeMap::from([("j".to_owned(), vec![list])]));
    manager.sync().await;
}

/// Follows the upstream test TestScrapePoolScrapeAfterReload.
#[tokio::test]
async fn targets_that_fail_are_scraped_after_a_reload() -> std::io::Result<()> {
    let (address, asked) = target().await?;
    let metrics = Arc::<Metrics>::default();
    let (manager, _stop) = manager(&metrics);
    let limits = Limits { body_bytes: 1, ..Limits::default() };
    manager.apply(vec![Job { limits, ..job() }], 0).await.expect("a good job");
    sync(&manager, &address).await;
    let health = || manager.targets(Some("j"))["j"].active[0].state().health;
    until("a body over its limit", || health() == Health::Down).await;
    let before = asked.load(Relaxed);
    let bodies = Limits { body_bytes: 2, ..Limits::default() };
    manager.apply(vec![Job { limits: bodies, ..job() }], 0).await.expect("a good job");
    until("scrapes after the reload", || asked.load(Relaxed) > before + 2).await;
    assert_eq!(health(), Health::Down);
    manager.apply(vec![job()], 0).await.expect("a good job");
    until("a body within its limit", || health() == Health::Up).await;
    Ok(())
}

/// Follows the upstream test TestManagerApplyConfig.
#[tokio::test]
async fn a_reload_that_fails_changes_nothing() -> std::io::Result<()> {
    let (address, asked) = target().await?;
    let metrics = Arc::<Metrics>::default();
    let (manager, _stop) = manager(&metrics);
    manager.apply(vec![job()], 0).await.expect("a good job");
    sync(&manager, &address).await;
    until("a scrape", || asked.load(Relaxed) > 0).await;
    let reloads = || (metrics.pool_reloads.get(), metrics.pool_reloads_failed.get());
    manager.apply(vec![job()], 0).await.expect("the same job");
    assert_eq!(reloads(), (0, 0));

    let mut client = HttpClientConfig::default();
    client.tls.ca = Some(Secret::File("/not/existing/ca".into()));
    let wrong = Job { client, ..job() };
    let error = manager.apply(vec![wrong], 0).await.expect_err("there is no such file");
    assert!(error.to_string().contains("/not/existing/ca"), "{error}");
    assert_eq!(reloads(), (1, 1));
    let before = asked.load(Relaxed);
    until("scrapes as before", || asked.load(Relaxed) > before + 1).await;
    assert_eq!(manager.job("j").as_deref(), Some(&job()), "with the old settings");

    let other = Job { metrics_path: "/other".into(), ..job() };
    manager.apply(vec![other.clone()], 0).await.expect("a good job");
    assert_eq!(reloads(), (2, 1));
    manager.apply(vec![other], 0).await.expect("the same job");
    assert_eq!(reloads(), (2, 1));
    Ok(())
}
