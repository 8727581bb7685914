//! A server that records requests, and whose answers a test decides byte by byte.

use super::PATIENCE;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

#[derive(Clone, Debug)]
pub struct Request {
    /// The first line.
    pub line: String,
    /// All headers, in lower case.
    pub head: String,
    pub body: Value,
}

/// What follows the bytes of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Close,
    /// The connection stays open, and nothing comes.
    Silence,
    /// More bytes come, without an end.
    Endless,
}

pub type Reply = (Vec<u8>, End);

pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Receiver<usize>,
    /// Answers that may be given; see [`Server::gated`].
    gate: Arc<Semaphore>,
}

/// A whole answer with this status and text.
pub fn reply(status: &str, text: &str) -> Reply {
    with_header(status, "Server: test", text)
}

pub fn with_header(status: &str, header: &str, text: &str) -> Reply {
    let length = text.len();
    let head = format!("HTTP/1.1 {status}\r\n{header}\r\nConnection: close\r\n");
    (format!("{head}Content-Length: {length}\r\n\r\n{text}").into_bytes(), End::Close)
}

impl Server {
    /// Answers each request by a function of its number, from 0 on.
    pub async fn start(answer: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Server {
        Server::bound("127.0.0.1:0", Semaphore::MAX_PERMITS, answer).await
    }

    pub async fn ok() -> Server {
        Server::start(|_| reply("200 OK", "")).await
    }

    /// Reads requests, and answers each only when a test allows it.
    pub async fn gated() -> Server {
        Server::bound("127.0.0.1:0", 0, |_| reply("200 OK", "")).await
    }

    pub async fn bound(
        address: &str,
        answers: usize,
        answer: impl Fn(usize) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (requests, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let (counted, count) = watch::channel(0);
        let gate = Arc::new(Semaphore::new(answers));
        let server =
            Server { address, requests: Arc::clone(&requests), count, gate: Arc::clone(&gate) };
        let counted = Arc::new(counted);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                let (counted, gate) = (Arc::clone(&counted), Arc::clone(&gate));
                tokio::spawn(async move {
                    let Some(request) = read(&mut stream).await else { return };
                    let number = {
                        let mut requests = requests.lock().expect("a lock");
                        requests.push(request);
                        requests.len() - 1
                    };
                    counted.send_modify(|count| *count += 1);
                    gate.acquire().await.expect("a gate").forget();
                    let (bytes, end) = answer(number);
                    // A client may go at any time.
                    let _ = stream.write_all(&bytes).await;
                    match end {
                        End::Close => {}
                        End::Silence => std::future::pending().await,
                        End::Endless => while stream.write_all(&[b' '; 4096]).await.is_ok() {},
                    }
                });
            }
        });
        server
    }

    /// Lets one more request be answered.
    pub fn allow_one(&self) {
        self.gate.add_permits(1);
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self) -> String {
        format!("http://{}/api/v2/alerts", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("a lock").clone()
    }

    /// Waits for this number of requests in all; returns them.
    pub async fn wait_for(&self, count: usize) -> Vec<Request> {
        let mut seen = self.count.clone();
        let arrived = timeout(PATIENCE, seen.wait_for(|seen| *seen >= count)).await;
        assert!(arrived.is_ok(), "{count} requests never came: {:?}", self.requests());
        self.requests()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_bytes = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_bytes].to_vec()).expect("a head");
    let line = head.lines().next().expect("a line").to_owned();
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
    while bytes.len() < head_bytes + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[head_bytes..]).unwrap_or(Value::Null);
    Some(Request { line, head, body })
}
