//! A proxy between a sender and a receiver that makes requests fail in chosen ways.
//!
//! The proxy reads a whole request before it decides about it, so a request either reaches the
//! receiver as it was sent or not at all; on the way back, answers get lost.

use crate::http::{self, HttpError, Response};
use crate::process::ProcessError;
use crate::series::Random;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Timeout of the receiver's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of header fields in a request.
const HEADERS_MAX: usize = 64;
/// Size of the pieces of an answer when the proxy is slow.
const SLOW_BYTES: usize = 16;

/// Treatment of a request by the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The request arrives, and so does its answer.
    Arrives,
    /// The connection is reset, and the receiver gets nothing.
    Lost,
    /// The request arrives, but the connection is reset in place of an answer.
    AnswerLost,
    /// The request arrives, and half of the answer comes back.
    AnswerCut,
    /// Request and answer are each delayed.
    Delayed {
        /// Delay of each direction in milliseconds.
        ms: u64,
    },
    /// The answer comes sixteen bytes at a time, with pauses.
    Slow {
        /// Pause between two pieces in milliseconds.
        pause_ms: u64,
    },
    /// The proxy answers in the receiver's place, which gets nothing.
    Refused {
        status: u16,
        /// Value of the header `Retry-After` in seconds.
        retry_after_s: Option<u64>,
    },
}

/// A running proxy, which ends when it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    way: Arc<Way>,
    thread: Option<JoinHandle<()>>,
}

struct Way {
    to: SocketAddr,
    plan: Mutex<Plan>,
    ends: AtomicBool,
}

struct Plan {
    random: Random,
    fates: Vec<Fate>,
    counts: BTreeMap<Fate, u64>,
}

impl FaultProxy {
    /// Starts on a free port. By default all requests arrive.
    pub fn start(to: SocketAddr, seed: u64) -> Result<FaultProxy, ProcessError> {
        let system = |source| ProcessError::System { what: "listening as a proxy", source };
        // Bound at once, because another process may take a free port a moment later.
        let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
        let address = listener.local_addr().map_err(system)?;
        let random = Random::new(seed, 0);
        let plan = Plan { random, fates: vec![Fate::Arrives], counts: BTreeMap::new() };
        let way = Arc::new(Way { to, plan: Mutex::new(plan), ends: AtomicBool::new(false) });
        let shared = Arc::clone(&way);
        let thread = std::thread::spawn(move || accept(&listener, &shared));
        Ok(FaultProxy { address, way, thread: Some(thread) })
    }

    /// Returns the address for senders.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Chooses one of these treatments at random for each request from now on; repeated ones are
    /// chosen more often.
    pub fn meets(&self, fates: &[Fate]) {
        self.way.with_plan(|plan| plan.fates = fates.to_vec());
    }

    /// Returns the number of requests by their treatment.
    pub fn counts(&self) -> BTreeMap<Fate, u64> {
        self.way.with_plan(|plan| plan.counts.clone())
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.way.ends.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Way {
    fn with_plan<T>(&self, look: impl FnOnce(&mut Plan) -> T) -> T {
        look(&mut self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next_fate(&self) -> Fate {
        self.with_plan(|plan| {
            let fate = plan.random.pick(&plan.fates);
            *plan.counts.entry(fate).or_default() += 1;
            fate
        })
    }
}

fn accept(listener: &TcpListener, way: &Arc<Way>) {
    for stream in listener.incoming() {
        if way.ends.load(Ordering::SeqCst) {
            break;
        }
        let way = Arc::clone(way);
        // Connections end with their senders; an error of a connection is one more fault.
        std::thread::spawn(move || stream.map(|stream| serve(stream, &way)));
    }
}

/// Serves a connection until it ends or a fault ends it.
fn serve(mut sender: TcpStream, way: &Way) {
    let mut waiting = Vec::new();
    while let Ok(Some(request)) = read_request(&mut sender, &mut waiting) {
        let answer = match way.next_fate() {
            Fate::Arrives => pass_on(way, request).and_then(|answer| send(&mut sender, &answer)),
            Fate::Lost => Err(reset(&sender)),
            Fate::AnswerLost => pass_on(way, request).and_then(|_| Err(reset(&sender))),
            Fate::AnswerCut => pass_on(way, request).and_then(|answer| {
                sender.write_all(&answer[..answer.len() / 2])?;
                Err(reset(&sender))
            }),
            Fate::Delayed { ms } => {
                std::thread::sleep(Duration::from_millis(ms));
                pass_on(way, request).and_then(|answer| {
                    std::thread::sleep(Duration::from_millis(ms));
                    send(&mut sender, &answer)
                })
            }
            Fate::Slow { pause_ms } => pass_on(way, request).and_then(|answer| {
                answer.chunks(SLOW_BYTES).try_for_each(|piece| {
                    std::thread::sleep(Duration::from_millis(pause_ms));
                    send(&mut sender, piece)
                })
            }),
            Fate::Refused { status, retry_after_s } => {
                let retry_after = retry_after_s.map(|s| ("retry-after".into(), s.to_string()));
                let headers = retry_after.into_iter().collect();
                let body = b"refused by the proxy".to_vec();
                send(&mut sender, &Response { status, headers, body }.to_bytes())
            }
        };
        if answer.is_err() {
            break;
        }
    }
}

/// Reads the bytes of the next request; `None` if the connection ended before one.
pub(crate) fn read_request(
    reader: &mut impl Read,
    waiting: &mut Vec<u8>,
) -> io::Result<Option<Vec<u8>>> {
    let mut piece = [0; 16 * 1024];
    loop {
        if let Some(bytes) = request_length(waiting).map_err(io::Error::other)? {
            let rest = waiting.split_off(bytes);
            return Ok(Some(std::mem::replace(waiting, rest)));
        }
        match reader.read(&mut piece)? {
            0 => return Ok(None),
            read => waiting.extend_from_slice(&piece[..read]),
        }
    }
}

/// Returns the length of the first request in these bytes, if the request is complete.
fn request_length(bytes: &[u8]) -> Result<Option<usize>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = head.parse(bytes)? else { return Ok(None) };
    let length = head.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|h| std::str::from_utf8(h.value).ok()?.parse().ok());
    let total = head_bytes + length.unwrap_or(0);
    Ok((bytes.len() >= total).then_some(total))
}

/// Returns the receiver's answer, or a 502 with the error if there is none.
fn pass_on(way: &Way, request: Vec<u8>) -> io::Result<Vec<u8>> {
    let answer = http::exchange(way.to, request, ANSWER_TIMEOUT);
    let answer = answer.unwrap_or_else(|error: HttpError| Response {
        status: 502,
        headers: Vec::new(),
        body: error.to_string().into_bytes(),
    });
    Ok(answer.to_bytes())
}

fn send(sender: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    sender.write_all(bytes)
}

/// Makes the connection end with a reset as soon as it is dropped.
fn reset(sender: &TcpStream) -> io::Error {
    // With a linger time of zero, closing sends a reset.
    match rustix::net::sockopt::set_socket_linger(sender, Some(Duration::ZERO)) {
        Ok(()) => io::ErrorKind::ConnectionReset.into(),
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Client;
    use crate::target::Target;

    /// A page that counts its requests shows which of them arrived.
    #[test]
    fn each_fate_is_what_it_says() {
        let target = Target::start().expect("a target");
        let proxy = FaultProxy::start(target.address(), 1).expect("a proxy");
        let url = format!("http://{}/metrics", proxy.address());
        let ask = |fate| {
            proxy.meets(&[fate]);
            let before = target.scrapes();
            let status = Client::default().get(&url).map(|answer| answer.status).ok();
            (status, target.scrapes() - before)
        };
        let refused = Fate::Refused { status: 429, retry_after_s: Some(1) };
        assert_eq!(ask(Fate::Arrives), (Some(200), 1));
        assert_eq!(ask(Fate::Lost), (None, 0));
        assert_eq!(ask(Fate::AnswerLost), (None, 1));
        assert_eq!(ask(Fate::AnswerCut), (None, 1));
        assert_eq!(ask(Fate::Delayed { ms: 1 }), (Some(200), 1));
        assert_eq!(ask(Fate::Slow { pause_ms: 0 }), (Some(200), 1));
        assert_eq!(ask(refused), (Some(429), 0));
        assert_eq!(proxy.counts().get(&refused), Some(&1));
    }
}
