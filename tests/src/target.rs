//! A scrape target whose pages are all known, so that scraped samples can be compared bit by bit.
//!
//! The value of each series follows from the number of the scrape, which [`COUNTER`] contains.

use crate::process::{ProcessError, free_address};
use crate::series::{ORDINARY_NAN_BITS, Sample, Series};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The counter whose value is the number of the scrape, counted from one.
pub const COUNTER: &str = "scrapes_total";
/// Help text of the counter on the page.
pub const COUNTER_HELP: &str = "How often this page was asked for.";

/// Returns the value of a series from the number of the scrape.
type ValueAt = fn(f64) -> f64;

/// Name, labels and value of a series.
type Line = (&'static str, &'static [(&'static str, &'static str)], ValueAt);

/// Series on the page, in order.
const CONTENT: [Line; 8] = [
    (COUNTER, &[], |n| n),
    ("odd", &[("kind", "nan")], |_| f64::from_bits(ORDINARY_NAN_BITS)),
    ("odd", &[("kind", "infinite")], |_| f64::NEG_INFINITY),
    ("odd", &[("kind", "text"), ("text", "line\nbreak, \"quote\", \\ \u{df} \u{1f30a}")], |n| {
        -n / 3.0
    }),
    ("wait_seconds_bucket", &[("le", "0.5")], |n| n),
    ("wait_seconds_bucket", &[("le", "+Inf")], |n| 2.0 * n),
    ("wait_seconds_sum", &[], |n| 0.7 * n),
    ("wait_seconds_count", &[], |n| 2.0 * n),
];

/// Serves the page until it is dropped.
pub struct Target {
    address: SocketAddr,
    scrapes: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    /// Starts on a free port.
    pub fn start() -> Result<Target, ProcessError> {
        Target::start_with(page)
    }

    /// Starts with other pages, made from the number of the scrape.
    pub fn start_with(page: fn(u64) -> String) -> Result<Target, ProcessError> {
        let address = free_address()?;
        let system = |source| ProcessError::System { what: "listening as a target", source };
        let listener = TcpListener::bind(address).map_err(system)?;
        let scrapes = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let (counter, flag) = (Arc::clone(&scrapes), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::SeqCst) {
                    break;
                }
                // A scraper that is disconnected sends its request again.
                let _ = stream.and_then(|stream| answer(stream, &counter, page));
            }
        });
        Ok(Target { address, scrapes, ends, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of scrapes so far.
    pub fn scrapes(&self) -> u64 {
        self.scrapes.load(Ordering::SeqCst)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the series that a scraper that adds these labels has after the scrapes in the counter's
/// samples.
pub fn expected(added: &[(&str, &str)], counter: &[Sample]) -> Vec<Series> {
    let series = |(name, labels, value_at): Line| {
        let pairs = [&[("__name__", name)], labels, added].concat();
        let samples = counter.iter().map(|s| (s.timestamp_ms, value_at(s.value)));
        Series::new(&pairs, &samples.collect::<Vec<_>>())
    };
    CONTENT.into_iter().map(series).collect()
}

/// Returns the page of a scrape, as text.
pub fn page(scrape: u64) -> String {
    let mut page = String::new();
    let mut last = "";
    for (name, labels, value_at) in CONTENT {
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        if family != last {
            let (kind, help) = match family {
                COUNTER => ("counter", COUNTER_HELP),
                "odd" => ("gauge", "Values and labels that are seldom seen."),
                _ => ("histogram", "How long it took."),
            };
            page += &format!("# HELP {family} {help}\n# TYPE {family} {kind}\n");
            last = family;
        }
        let escaped =
            |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let value = match value_at(scrape as f64) {
            value if value == f64::NEG_INFINITY => "-Inf".to_string(),
            value => value.to_string(),
        };
        page += &format!("{name}{{{}}} {value}\n", labels.join(","));
    }
    page
}

/// Reads a request's head and answers it; each scrape has a connection of its own.
fn answer(mut stream: TcpStream, scrapes: &AtomicU64, page: fn(u64) -> String) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let body = page(scrapes.fetch_add(1, Ordering::SeqCst) + 1);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
                Connection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
}
