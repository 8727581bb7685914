//! A target that answers by scripts: the page of a path depends on the number of its requests, or
//! on the turn of the test.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Far longer than the timeout of any scrape.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Headers by which a scraper describes itself and the answers it accepts.
const NOTED_HEADERS: [&str; 6] = [
    "accept",
    "accept-encoding",
    "x-prometheus-scrape-timeout-seconds",
    "authorization",
    "cookie",
    "x-edge",
];

/// An answer to a scrape.
#[derive(Clone, Debug)]
pub struct Page {
    status: &'static str,
    headers: Vec<String>,
    body: Vec<u8>,
    sent: Sent,
}

/// Part of an answer that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Whole,
    Chunked,
    /// The connection ends before the body does.
    Cut,
    /// Half of the body is sent, then nothing until the scraper gives up.
    Stalls,
    /// Nothing is sent, not even a head.
    Silent,
}

impl Page {
    /// Makes a page with a body of this content type.
    pub fn new(kind: &str, body: impl Into<Vec<u8>>) -> Page {
        let headers = vec![format!("Content-Type: {kind}")];
        Page { status: "200 OK", headers, body: body.into(), sent: Sent::Whole }
    }

    /// Makes a page in the classic text format.
    pub fn text(body: &str) -> Page {
        Page::new(TEXT, body)
    }

    /// Makes a page in OpenMetrics.
    pub fn openmetrics(body: &str) -> Page {
        Page::new(OPENMETRICS, body)
    }

    pub fn status(self, status: &'static str) -> Page {
        Page { status, ..self }
    }

    pub fn header(mut self, header: &str) -> Page {
        self.headers.push(header.to_owned());
        self
    }

    pub fn without_type(mut self) -> Page {
        self.headers.retain(|header| !header.starts_with("Content-Type"));
        self
    }

    /// Compresses by gzip, and keeps only this number of bytes.
    pub fn gzip(self, bytes_max: usize) -> Page {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&self.body).expect("memory takes everything");
        let mut body = encoder.finish().expect("memory takes everything");
        body.truncate(bytes_max);
        Page { body, ..self }.header("Content-Encoding: gzip")
    }

    /// Sends two chunks without a content length.
    pub fn chunked(self) -> Page {
        Page { sent: Sent::Chunked, ..self }
    }

    /// Ends the body before its content length.
    pub fn cut(self) -> Page {
        Page { sent: Sent::Cut, ..self }
    }

    /// Stops sending in the middle of the body.
    pub fn stalls(self) -> Page {
        Page { sent: Sent::Stalls, ..self }
    }

    pub fn silent(self) -> Page {
        Page { sent: Sent::Silent, ..self }
    }
}

/// Pages by path with query; the last page of a script is repeated.
pub type Scripts = BTreeMap<&'static str, Vec<Page>>;

/// Serves scripts until it is dropped.
pub struct Exposer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    scripts: Scripts,
    state: Mutex<State>,
    ends: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Number of the page of all paths, unless it depends on the number of requests.
    turn: Option<usize>,
    /// Number of requests by path, in this turn.
    asked: BTreeMap<String, usize>,
    /// The headers of each path's first request.
    headers: BTreeMap<String, BTreeMap<String, String>>,
}

impl Exposer {
    /// Starts on a free port.
    pub fn start(scripts: Scripts) -> Exposer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (state, ends) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { scripts, state, ends });
        let all = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if all.ends.load(SeqCst) {
                    break;
                }
                let one = Arc::clone(&all);
                // A scraper that is disconnected sends its request again.
                std::thread::spawn(move || stream.and_then(|stream| answer(stream, &one)));
            }
        });
        Exposer { address, shared, thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with the page of this number on all paths from now on.
    pub fn turn(&self, number: usize) {
        let mut state = self.shared.state();
        state.turn = Some(number);
        state.asked.clear();
    }

    /// Returns the number of requests for a path, in this turn.
    pub fn asked(&self, path: &str) -> usize {
        self.shared.state().asked.get(path).copied().unwrap_or(0)
    }

    /// Returns the headers of the first request for each path.
    pub fn headers(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.shared.state().headers.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Exposer {
    fn drop(&mut self) {
        self.shared.ends.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let first = lines.first().map_or("", String::as_str);
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let Some(script) = shared.scripts.get(path.as_str()) else {
        return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    };
    let page = {
        let mut state = shared.state();
        state.headers.entry(path.clone()).or_insert_with(|| noted(&lines));
        let turn = state.turn;
        let asked = state.asked.entry(path).or_insert(0);
        let number = turn.unwrap_or(*asked);
        *asked += 1;
        script[number.min(script.len() - 1)].clone()
    };
    send(&mut stream, &page)
}

fn noted(lines: &[String]) -> BTreeMap<String, String> {
    let pairs = lines.iter().filter_map(|line| line.split_once(": "));
    let pairs = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    pairs.filter(|(name, _)| NOTED_HEADERS.contains(&name.as_str())).collect()
}

fn send(stream: &mut TcpStream, page: &Page) -> io::Result<()> {
    let Page { status, headers, body, sent } = page;
    if *sent == Sent::Silent {
        return wait_for_the_end(stream);
    }
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for header in headers {
        head += &format!("{header}\r\n");
    }
    let (first, second) = body.split_at(body.len() / 2);
    if *sent == Sent::Chunked {
        write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n")?;
        for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
            write!(stream, "{:x}\r\n", part.len())?;
            stream.write_all(part)?;
            stream.write_all(b"\r\n")?;
        }
        return stream.write_all(b"0\r\n\r\n");
    }
    let length = body.len() + if *sent == Sent::Cut { 100 } else { 0 };
    write!(stream, "{head}Content-Length: {length}\r\n\r\n")?;
    stream.write_all(first)?;
    if *sent == Sent::Stalls {
        return wait_for_the_end(stream);
    }
    stream.write_all(second)
}

fn wait_for_the_end(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(STALL_MAX))?;
    stream.read(&mut [0]).map(drop)
}
