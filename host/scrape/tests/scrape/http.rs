//! Targets over loopback HTTP, most of which misbehave. The exposer writes its bytes itself, so
//! that it can break off, lie about lengths and never end.

use crate::store::MemoryStore;
use flate2::{Compression, write::GzEncoder};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_client::{Client, HttpClientConfig};
use tidepool_scrape::append::{Appender, Mutator, Options};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::job::{Job, Limits};
use tidepool_scrape::labels::Labels;
use tidepool_scrape::metrics::Metrics;
use tidepool_scrape::protocol::Protocol;
use tidepool_scrape::report::Totals;
use tidepool_scrape::request::HttpSource;
use tidepool_scrape::source::Source as _;
use tidepool_scrape::target::{LabelMap, Target, discovered_labels, names, target_labels};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const BODY: &str = "# TYPE a gauge\na{x=\"1\"} 1\nb 2\n";
const TEXT: &str = "Content-Type: text/plain; version=0.0.4\r\n";

const OPENMETRICS_TYPE: &str = "Content-Type: application/openmetrics-text; version=1.0.0\r\n";
const OPENMETRICS: &str = "# TYPE c_seconds counter\n# UNIT c_seconds seconds\n# HELP c_seconds One\\ntwo.\n\
    c_seconds_total{job=\"x\"} 1000000 # {trace_id=\"t\"} 0.5 1700000000.25\n# TYPE g gauge\ng NaN\n# EOF\n";

const HISTOGRAM: &str = "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 2.5\n\
    h_count 3\n";

/// Samples that contradict each other, are dropped, or are far ahead of the clock.
const REFUSED: &str = "a 1\na 2\nb{x=\"\\\"\"} 1 2000\nb{x=\"\\\"\"} 2 1000\n\
    b{x=\"\\\"\"} 3 2000\nb{x=\"\\\"\"} 1 2000\n\
    b{x=\"\\\"\"} 4 1500\nc 1 99999999999999\ndropped 1\nup{x=\"1\"} 7\n";

/// An exposer on a port of its own, and the heads of the requests that it got.
pub struct Exposer {
    pub address: SocketAddr,
    pub heads: Arc<Mutex<Vec<String>>>,
}

impl Exposer {
    pub async fn start() -> Exposer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let noted = heads.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, noted.clone()));
            }
        });
        Exposer { address, heads }
    }

    pub fn requests(&self) -> Vec<String> {
        self.heads.lock().expect("no test panics while it holds the heads").clone()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Answers requests until the client or the path ends the connection.
async fn serve(mut stream: TcpStream, heads: Arc<Mutex<Vec<String>>>) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).ok()?;
        let path = head.split(' ').nth(1)?.to_owned();
        heads.lock().ok()?.push(head);
        let zipped = format!("{TEXT}Content-Encoding: gzip\r\n");
        let bytes = match path.split('?').next()? {
            "/metrics" => answer("200 OK", TEXT, BODY.as_bytes()),
            "/gzip" => answer("200 OK", &zipped, &gzip(BODY.as_bytes())),
            "/empty" => answer("200 OK", "", b""),
            "/no-type" => answer("200 OK", "", BODY.as_bytes()),
            "/openmetrics" => answer("200 OK", OPENMETRICS_TYPE, OPENMETRICS.as_bytes()),
            "/histogram" => answer("200 OK", TEXT, HISTOGRAM.as_bytes()),
            "/refused" => answer("200 OK", TEXT, REFUSED.as_bytes()),
            "/html" => answer("200 OK", "Content-Type: text/html\r\n", b"<html></html>"),
            "/broken" => answer("503 Service Unavailable", TEXT, BODY.as_bytes()),
            "/redirect" => answer("302 Found", "Location: /metrics\r\n", b""),
            "/circle" => answer("302 Found", "Location: /circle\r\n", b""),
            "/brotli" => {
                answer("200 OK", &format!("{TEXT}Content-Encoding: br\r\n"), BODY.as_bytes())
            }
            "/no-gzip" => answer("200 OK", &zipped, BODY.as_bytes()),
            "/cut-gzip" => {
                let body = gzip(BODY.as_bytes());
                answer("200 OK", &zipped, &body[..body.len() - 4])
            }
            "/bomb" => answer("200 OK", &zipped, &gzip(&b"a 1\n".repeat(4 << 20))),
            "/long" => answer("200 OK", &zipped, &gzip(&b"a 1\n".repeat(8 << 20))),
            "/wrong" => answer("200 OK", TEXT, b"a 1\nb b b\n"),
            "/cut" => {
                let mut whole = answer("200 OK", TEXT, BODY.as_bytes());
                whole.truncate(whole.len() - 4);
                stream.write_all(&whole).await.ok()?;
                return None;
            }
            "/slow" => {
                // Never answers; ends when the client does.
                stream.read_u8().await.ok()?;
                return None;
            }
            "/endless" => {
                let head = format!("HTTP/1.1 200 OK\r\n{TEXT}\r\n");
                stream.write_all(head.as_bytes()).await.ok()?;
                loop {
                    stream.write_all(&b"a 1\n".repeat(1000)).await.ok()?;
                }
            }
            "/nothing" => return None,
            _ => answer("404 Not Found", "", b"no"),
        };
        stream.write_all(&bytes).await.ok()?;
    }
}

fn job() -> Job {
    Job { timeout: Duration::from_secs(5), ..Job::new("j") }
}

fn target(job: &Job, address: &str, labels: &[(&str, &str)]) -> Target {
    let mut found = LabelMap::from([(names::ADDRESS.to_owned(), address.to_owned())]);
    found.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let discovered = discovered_labels(job, &Labels::of(&found), &Labels::default());
    let labels = target_labels(job, discovered.clone(), &mut []).expect("a good target");
    Target::new(job, labels.expect("it is not dropped"), Labels::of(&discovered))
}

fn appender(metrics: &Arc<Metrics>) -> Appender {
    let mutator = Mutator {
        target: Vec::new(),
        honor_labels: false,
        rules: Arc::default(),
        validation: Default::default(),
        limits: Default::default(),
    };
    let options = Options {
        mutator,
        honor_timestamps: true,
        track_timestamps_staleness: false,
        sample_limit: 0,
        bucket_limit: 0,
        schema_max: 8,
        extra_metrics: false,
    };
    Appender::new(options, metrics.clone(), 7)
}

struct Scraped {
    totals: Totals,
    result: Result<(), ScrapeError>,
    metrics: Arc<Metrics>,
    stored: Vec<String>,
}

/// Scrapes a path of an exposer.
async fn scrape_by(client: &HttpClientConfig, job: &Job, address: &str, path: &str) -> Scraped {
    let job = Job { metrics_path: path.into(), client: client.clone(), ..job.clone() };
    let target = target(&job, address, &[]);
    let metrics = Arc::<Metrics>::default();
    let client = Client::open(&job.client).expect("a good configuration");
    let source = HttpSource::new(&job, &target, client, "agent/1", 8 << 20, metrics.clone());
    let mut appender = appender(&metrics);
    appender.begin(1000, 1000);
    let given = source.expect("a good target").scrape(&mut appender).await;
    let (totals, result) = appender.finish(given);
    let store = MemoryStore::default();
    appender.commit(&store, 1000).await.expect("the store takes it");
    let stored = store.take().into_iter().map(|stored| stored.series).collect();
    Scraped { totals, result, metrics, stored }
}

async fn scrape(job: &Job, path: &str) -> Scraped {
    let exposer = Exposer::start().await;
    scrape_by(&HttpClientConfig::default(), job, &exposer.address.to_string(), path).await
}

#[tokio::test]
async fn bodies_are_read_plain_and_compressed() {
    for path in ["/metrics", "/gzip", "/redirect"] {
        let scraped = scrape(&job(), path).await;
        assert_eq!(scraped.result, Ok(()), "{path}");
        assert_eq!(scraped.stored, ["a{x=\"1\"}", "b"], "{path}");
        assert_eq!(scraped.totals.body_bytes, BODY.len() as u64, "{path}");
    }
    let scraped = scrape(&job(), "/empty").await;
    assert_eq!((scraped.result, scraped.totals), (Ok(()), Totals::default()));
}

/// Follows the upstream test TestTargetScraperScrapeOK.
#[tokio::test]
async fn a_request_says_what_it_wants_and_how_long_it_waits() {
    let exposer = Exposer::start().await;
    let address = exposer.address.to_string();
    let params = BTreeMap::from([("module".to_owned(), vec!["a b".to_owned()])]);
    let job = Job { params, timeout: Duration::from_millis(1500), ..job() };
    let client = HttpClientConfig::default();
    scrape_by(&client, &job, &address, "/metrics").await.result.expect("a good answer");
    let plain = Job { compression: false, protocols: vec![Protocol::PrometheusText0_0_4], ..job };
    scrape_by(&client, &plain, &address, "/metrics").await.result.expect("a good answer");
    let requests = exposer.requests();
    let has = |request: usize, line: &str| {
        let lines = requests[request].to_lowercase();
        assert!(lines.contains(&format!("{}\r\n", line.to_lowercase())), "{line}: {lines}");
    };
    has(0, "GET /metrics?module=a+b HTTP/1.1");
    has(0, &format!("host: {address}"));
    has(0, "user-agent: agent/1");
    has(0, "accept-encoding: gzip");
    has(0, "x-prometheus-scrape-timeout-seconds: 1.5");
    has(
        0,
        "accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.7,\
        application/openmetrics-text;version=0.0.1;q=0.6,\
        text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,\
        */*;q=0.3",
    );
    has(1, "accept-encoding: identity");
    has(1, "accept: text/plain;version=0.0.4;q=0.7,*/*;q=0.6");
}

/// Follows the upstream tests TestTargetScrapeScrapeNotFound, TestTargetScrapeScrapeCancel.
#[tokio::test]
async fn an_exposer_that_misbehaves_is_down_and_says_why() {
    let brief = Job { timeout: Duration::from_millis(200), ..job() };
    let cases = [
        ("/absent", "server returned HTTP status 404 Not Found"),
        ("/broken", "server returned HTTP status 503 Service Unavailable"),
        ("/no-type", "fallback_scrape_protocol"),
        ("/html", "fallback_scrape_protocol"),
        ("/brotli", "content encoding \"br\""),
        ("/no-gzip", "not valid gzip"),
        ("/cut-gzip", "not valid gzip: it is cut off"),
        ("/wrong", "line 2"),
        ("/cut", "GET http://"),
        ("/nothing", "GET http://"),
        ("/circle", "redirect"),
    ];
    for (path, expected) in cases {
        let scraped = scrape(&job(), path).await;
        let error = scraped.result.expect_err(path).to_string();
        assert!(error.contains(expected), "{path}: {error}");
        assert_eq!(scraped.stored, [""; 0], "{path}");
    }
    let slow = scrape(&brief, "/slow").await.result;
    assert_eq!(slow, Err(ScrapeError::Timeout(brief.timeout)));
    // No server listens on port 0.
    let refused = scrape_by(&HttpClientConfig::default(), &brief, "127.0.0.1:0", "/metrics").await;
    assert!(matches!(refused.result, Err(ScrapeError::Request(_))), "{:?}", refused.result);
    let stays = HttpClientConfig { follow_redirects: Some(false), ..Default::default() };
    let exposer = Exposer::start().await;
    let found = scrape_by(&stays, &job(), &exposer.address.to_string(), "/redirect").await;
    assert_eq!(found.result, Err(ScrapeError::Status("302 Found".into())));
}

#[tokio::test]
async fn a_fallback_stands_in_for_a_missing_type() {
    let job = Job { fallback: Some(Protocol::PrometheusText0_0_4), ..job() };
    assert_eq!(scrape(&job, "/no-type").await.stored, ["a{x=\"1\"}", "b"]);
    assert!(scrape(&job, "/html").await.result.is_err(), "the page is no text of metrics");
}

/// Follows the upstream test TestTargetScraperBodySizeLimit.
#[tokio::test]
async fn bodies_have_a_limit_uncompressed() {
    let limit = |body_bytes| Job { limits: Limits { body_bytes, ..Limits::default() }, ..job() };
    let exact = BODY.len() as u64;
    for path in ["/metrics", "/gzip"] {
        assert!(scrape(&limit(exact + 1), path).await.result.is_ok());
        let scraped = scrape(&limit(exact), path).await;
        assert_eq!(scraped.result, Err(ScrapeError::BodySize { limit_bytes: exact }));
        assert_eq!(scraped.metrics.exceeded_body_size_limit.get(), 1);
        assert_eq!(scraped.totals, Totals::default());
    }
    // Without a limit of the job, that of all jobs holds.
    for path in ["/bomb", "/endless"] {
        let scraped = scrape(&job(), path).await;
        assert_eq!(scraped.result, Err(ScrapeError::BodySize { limit_bytes: 8 << 20 }), "{path}");
    }
}

#[tokio::test]
async fn urls_that_cannot_be_asked_say_so() {
    let job = job();
    let target = target(&job, "exa mple:1", &[]);
    let client = Client::open(&job.client).expect("a good configuration");
    let source = HttpSource::new(&job, &target, client, "agent", 1, Arc::default());
    let error = source.err().expect("a host has no blank").to_string();
    assert!(error.contains("http://exa mple:1/metrics"), "{error}");
}

/// Regression: half a megabyte on the wire kept the thread of all targets until it was uncompressed
/// and parsed; nothing else was scraped, and the timeout could not end it.
#[tokio::test]
async fn a_long_body_is_read_in_turns() {
    let exposer = Exposer::start().await;
    let limits = Limits { body_bytes: 64 << 20, ..Limits::default() };
    let job =
        Job { metrics_path: "/long".into(), limits, timeout: Duration::from_secs(60), ..job() };
    let metrics = Arc::<Metrics>::default();
    let target = target(&job, &exposer.address.to_string(), &[]);
    let client = Client::open(&HttpClientConfig::default()).expect("a good configuration");
    let mut source = HttpSource::new(&job, &target, client, "agent/1", 1, metrics.clone())
        .expect("a good target");
    let mut appender = appender(&metrics);
    appender.begin(1000, 1000);
    let mut turns = 0;
    let result = {
        let mut scraping = source.scrape(&mut appender);
        std::future::poll_fn(|context| {
            turns += 1;
            scraping.as_mut().poll(context)
        })
        .await
    };
    assert_eq!(result, Ok(()));
    let (totals, _) = appender.finish(result);
    assert_eq!((totals.scraped, totals.series_added), (8 << 20, 1));
    // The network alone takes some ten of them.
    assert!(turns > 50, "{turns}");
}
