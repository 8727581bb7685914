//! Prometheus and tidepool scrape the same script of pages: what each has of them must be the same,
//! staleness markers and the series that a scraper adds included.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::remote_read::Reader;
use tidepool_tests::sender::read_all;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const JOB: &str = "script";
const TIMEOUT: Duration = Duration::from_secs(90);

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An answer to a scrape.
#[derive(Clone, Copy)]
struct Page {
    status: &'static str,
    kind: &'static str,
    body: &'static str,
    /// Whether the connection ends before the body does.
    is_cut: bool,
}

const fn page(kind: &'static str, body: &'static str) -> Page {
    Page { status: "200 OK", kind, body, is_cut: false }
}

/// One for each scrape; the last one goes on.
const SCRIPT: [Page; 18] = [
    page(
        TEXT,
        "# TYPE a counter\na 1\nb{x=\"1\"} 2\nb{x=\"2\"} 3\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n",
    ),
    page(TEXT, "a 2\nb{x=\"2\"} 3\n"),
    page(TEXT, "a 0\nb{x=\"1\"} 2.5\nb{x=\"2\"} 3\n"),
    Page { status: "500 Internal Server Error", ..page(TEXT, "a 7\n") },
    page(TEXT, "a 4\nb{x=\"1\"} NaN\nb{x=\"2\"} +Inf\n"),
    Page { is_cut: true, ..page(TEXT, "a 5\nb{x=\"1\"} 1\n") },
    page(TEXT, "a 6\n"),
    page("text/html", "a 7\n"),
    page(TEXT, "a 8\na 9\nb{x=\"1\"} 1\nb{x=\"1\"} 2\n"),
    page(OPENMETRICS, "# TYPE a counter\na_total 1 # {t=\"1\"} 0.5\n# EOF\n"),
    page(OPENMETRICS, "# TYPE a counter\na_total 2\n"),
    page(TEXT, "c{job=\"mine\",instance=\"i\",exported_job=\"e\"} 1\na 11\n"),
    page(TEXT, "a 12\nb{x=\"1\" 3\n"),
    page(TEXT, ""),
    page(TEXT, "le_h_bucket{le=\"10\"} 1\nq{quantile=\"1\"} 2\na 14\n"),
    page(TEXT, "a{x=\"\",y=\"1\"} 1\n{\"a.b\",z=\"1\"} 3\n"),
    page(TEXT, "a 16 \n# comment\n\na{x=\"1\"}  2 \n"),
    page(TEXT, "last 1\n"),
];

/// Serves the script until it is dropped.
struct Exposer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Exposer {
    fn start() -> io::Result<Exposer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let (scrapes, flag) = (AtomicUsize::new(0), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(SeqCst) {
                    break;
                }
                // A scraper that disconnects asks again.
                let _ = stream.and_then(|stream| answer(stream, &scrapes));
            }
        });
        Ok(Exposer { address, ends, thread: Some(thread) })
    }
}

impl Drop for Exposer {
    fn drop(&mut self) {
        self.ends.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, scrapes: &AtomicUsize) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let number = scrapes.fetch_add(1, SeqCst).min(SCRIPT.len() - 1);
    let Page { status, kind, body, is_cut } = SCRIPT[number];
    let length = body.len() + if is_cut { 100 } else { 0 };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// What a scraper has of each series: the bits of its value at each scrape, by the scrape's number.
type Scraped = BTreeMap<String, BTreeMap<usize, u64>>;

/// `None` before there are as many scrapes as the script has pages.
fn scraped(server: &Server, instance: &str) -> Option<Scraped> {
    let read = Reader::new(&server.url()).streamed(&[read_all()]).expect("an answer");
    let all: Vec<_> = read
        .into_iter()
        .flatten()
        .filter(|one| one.labels.value("job") == JOB || one.labels.value("job") == "mine")
        .collect();
    let up = all.iter().find(|one| one.labels.value("__name__") == "up")?;
    let number: BTreeMap<i64, usize> =
        up.samples.iter().enumerate().map(|(at, sample)| (sample.timestamp_ms, at)).collect();
    if number.len() <= SCRIPT.len() {
        return None;
    }
    let mut scraped = Scraped::new();
    for series in &all {
        if series.labels.value("__name__") == "scrape_duration_seconds" {
            continue;
        }
        let labels = series.labels.to_string().replace(instance, "TARGET");
        let samples = series.samples.iter().map(|sample| {
            let number = number.get(&sample.timestamp_ms).copied();
            (number.unwrap_or(usize::MAX), sample.value.to_bits())
        });
        let samples: BTreeMap<usize, u64> =
            samples.filter(|(number, _)| *number < SCRIPT.len()).collect();
        scraped.insert(labels, samples);
    }
    Some(scraped)
}

/// What both have of the script: Prometheus' first.
fn scraped_by_both() -> (Scraped, Scraped) {
    let (for_peer, for_store) =
        (Exposer::start().expect("it starts"), Exposer::start().expect("it starts"));
    let directory = tempfile::tempdir().expect("a directory");
    let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
    let peer = config.scrape(JOB, for_peer.address).start().expect("Prometheus starts");
    let file = directory.path().join("tidepool.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: {JOB}\n    static_configs:\n      - targets: ['{}']\n",
        for_store.address
    );
    std::fs::write(&file, text).expect("a file");
    let flag = format!("--config={}", file.display());
    let store = Store::start_with(|config| config.flag(&flag)).expect("tidepool starts");
    let all = |server: &Server, exposer: &Exposer| {
        let address = exposer.address.to_string();
        wait::until("all pages", TIMEOUT, || scraped(server, &address))
            .unwrap_or_else(|error| panic!("{error}\n{}", server.log()))
    };
    (all(&peer, &for_peer), all(&store.server, &for_store))
}

/// Tried three times: on a busy machine a scrape may take longer than its second.
#[test]
fn a_script_of_pages_is_scraped_as_prometheus_scrapes_it() {
    let mut found = scraped_by_both();
    for _ in 0..2 {
        if found.0 != found.1 {
            found = scraped_by_both();
        }
    }
    let (theirs, ours) = found;
    let names = |scraped: &Scraped| scraped.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    for (labels, wanted) in &theirs {
        assert_eq!(&ours[labels], wanted, "{labels}");
    }
}
