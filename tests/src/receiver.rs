//! A remote-write receiver that keeps every request as it came, and answers as the test chooses, so
//! that a sender's requests can be checked byte by byte.

use crate::fault_proxy::read_request;
use crate::http::Response;
use crate::process::ProcessError;
use crate::proto::{prometheus, write_v2};
use crate::remote_write::{PATH, Version};
use crate::series::{Labels, Sample, Series};
use prost::Message as _;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Maximum number of header fields in a request.
const HEADERS_MAX: usize = 64;

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    /// Path with its query string.
    pub path: String,
    /// Header fields with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as it was sent, compressed.
    pub body: Vec<u8>,
    /// Time at which the last byte was received.
    pub at: Instant,
}

/// A message of either version.
#[derive(Clone, Debug)]
pub enum Message {
    /// Message of remote write 1.0.
    V1(prometheus::WriteRequest),
    /// Message of remote write 2.0.
    V2(write_v2::Request),
}

/// Returns the answer to the request of this number, counted from zero.
type Answers = Box<dyn Fn(usize, &Received) -> Vec<u8> + Send + Sync>;

/// A running receiver, which ends when it is dropped.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    received: Mutex<Vec<Received>>,
    answers: Mutex<Arc<Answers>>,
    ends: AtomicBool,
}

impl Receiver {
    /// Starts on a free port. By default it accepts everything.
    pub fn start() -> Result<Receiver, ProcessError> {
        let system = |source| ProcessError::System { what: "listening as a receiver", source };
        // Bound at once, because another process may take a free port a moment later.
        let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
        let address = listener.local_addr().map_err(system)?;
        let answers: Answers = Box::new(|_, received| taken(received).to_bytes());
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            answers: Mutex::new(Arc::new(answers)),
            ends: AtomicBool::new(false),
        });
        let all = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if all.ends.load(Ordering::SeqCst) {
                    break;
                }
                let one = Arc::clone(&all);
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, &one)));
            }
        });
        Ok(Receiver { address, shared, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for remote writes.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Sets the answers from now on; the first request of all has the number 0.
    pub fn answers(&self, answer: impl Fn(usize, &Received) -> Response + Send + Sync + 'static) {
        self.answers_in_bytes(move |number, received| answer(number, received).to_bytes());
    }

    /// As [`Receiver::answers`], with any bytes as answers.
    pub fn answers_in_bytes(
        &self,
        answer: impl Fn(usize, &Received) -> Vec<u8> + Send + Sync + 'static,
    ) {
        let answer: Answers = Box::new(answer);
        *lock(&self.shared.answers) = Arc::new(answer);
    }

    /// Returns all requests so far.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Received {
    /// Returns the first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the version in the content type.
    pub fn version(&self) -> Version {
        match self.header("content-type") {
            Some(kind) if kind == Version::V2.content_type() => Version::V2,
            _ => Version::V1,
        }
    }

    /// Decodes the message; an error if the body is not a snappy block with such a message.
    pub fn message(&self) -> Result<Message, Box<dyn std::error::Error>> {
        let body = snap::raw::Decoder::new().decompress_vec(&self.body)?;
        Ok(match self.version() {
            Version::V1 => Message::V1(prometheus::WriteRequest::decode(body.as_slice())?),
            Version::V2 => Message::V2(write_v2::Request::decode(body.as_slice())?),
        })
    }

    pub fn series(&self) -> Result<Vec<Series>, Box<dyn std::error::Error>> {
        Ok(self.message()?.series())
    }
}

impl Message {
    /// Returns the label sets in the message's own order.
    ///
    /// # Panics
    /// If a symbol reference points outside the table.
    pub fn label_sets(&self) -> Vec<Labels> {
        match self {
            Message::V1(message) => {
                let pairs = |series: &prometheus::TimeSeries| {
                    let labels = series.labels.iter();
                    Labels::verbatim(labels.map(|l| (l.name.clone(), l.value.clone())))
                };
                message.timeseries.iter().map(pairs).collect()
            }
            Message::V2(message) => {
                let series = message.timeseries.iter();
                series.map(|series| labels_v2(message, &series.labels_refs)).collect()
            }
        }
    }

    pub fn series(&self) -> Vec<Series> {
        let samples: Vec<Vec<Sample>> = match self {
            Message::V1(message) => {
                let sample =
                    |s: &prometheus::Sample| Sample { timestamp_ms: s.timestamp, value: s.value };
                let series = message.timeseries.iter();
                series.map(|series| series.samples.iter().map(sample).collect()).collect()
            }
            Message::V2(message) => {
                let sample =
                    |s: &write_v2::Sample| Sample { timestamp_ms: s.timestamp, value: s.value };
                let series = message.timeseries.iter();
                series.map(|series| series.samples.iter().map(sample).collect()).collect()
            }
        };
        let labels = self.label_sets().into_iter();
        labels.zip(samples).map(|(labels, samples)| Series { labels, samples }).collect()
    }
}

/// Resolves references to labels, in their order.
///
/// # Panics
/// If a symbol reference points outside the table, or a name has no value.
pub fn labels_v2(message: &write_v2::Request, refs: &[u32]) -> Labels {
    let text = |at: u32| message.symbols.get(at as usize).expect("the symbol is there").clone();
    assert!(refs.len().is_multiple_of(2), "names and values come in pairs: {refs:?}");
    Labels::verbatim(refs.chunks(2).map(|pair| (text(pair[0]), text(pair[1]))))
}

/// Returns the answer of a receiver that accepted everything.
pub fn taken(received: &Received) -> Response {
    let mut counts = [0; 3];
    if let Ok(Message::V2(message)) = received.message() {
        for series in &message.timeseries {
            counts[0] += series.samples.len();
            counts[1] += series.histograms.len();
            counts[2] += series.exemplars.len();
        }
    }
    let header = |kind: &str, count: usize| {
        (format!("x-prometheus-remote-write-{kind}-written"), count.to_string())
    };
    let headers = match received.version() {
        Version::V1 => Vec::new(),
        Version::V2 => {
            let kinds = ["samples", "histograms", "exemplars"];
            kinds.iter().zip(counts).map(|(kind, count)| header(kind, count)).collect()
        }
    };
    Response { status: 204, headers, body: Vec::new() }
}

/// Returns an answer with a status only.
pub fn status(status: u16) -> Response {
    Response { status, headers: Vec::new(), body: format!("this is {status}").into_bytes() }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut waiting = Vec::new();
    while let Some(bytes) = read_request(&mut stream, &mut waiting)? {
        let received = parse(&bytes)?;
        let number = {
            let mut all = lock(&shared.received);
            all.push(received.clone());
            all.len() - 1
        };
        let answers = Arc::clone(&lock(&shared.answers));
        stream.write_all(&answers(number, &received))?;
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> io::Result<Received> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = head.parse(bytes).map_err(io::Error::other)?
    else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let header = |header: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(header.value).into_owned();
        (header.name.to_ascii_lowercase(), value)
    };
    Ok(Received {
        method: head.method.unwrap_or_default().to_string(),
        path: head.path.unwrap_or_default().to_string(),
        headers: head.headers.iter().map(header).collect(),
        body: bytes[head_bytes..].to_vec(),
        at: Instant::now(),
    })
}
