//! Requests over a real socket.
//!
//! [`Client`] keeps its connections alive and serves most tests. [`exchange`] writes given bytes
//! and reads one answer, for requests that no client library would send: a body that never comes,
//! or one larger than allowed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of an answer; exceeding it is a failure.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of header fields in an answer.
const HEADERS_MAX: usize = 64;

/// An answer, whole in memory.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// Header fields with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as it was received.
    pub body: Vec<u8>,
}

/// An answer whose body is still to be read.
pub struct Streaming {
    pub status: u16,
    /// Header fields with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body; reading fails if the connection breaks.
    pub body: Box<dyn Read>,
}

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The request failed below HTTP, or the answer is not HTTP.
    #[error("{method} {url} got no answer")]
    Request {
        method: &'static str,
        url: String,
        /// Error of the HTTP client.
        source: Box<ureq::Error>,
    },
    /// The connection failed while the answer was read or the request written.
    #[error("the connection failed")]
    Connection(#[from] io::Error),
    /// Bytes came, but not an HTTP answer.
    #[error("the answer is not HTTP")]
    Malformed(#[from] httparse::Error),
    /// The connection ended inside the answer.
    #[error("the connection ended after {bytes} bytes, inside the answer's head")]
    Truncated {
        /// Number of bytes received before the end.
        bytes: usize,
    },
}

/// A client that keeps connections open; clones share them.
#[derive(Clone, Debug)]
pub struct Client {
    agent: ureq::Agent,
}

impl Default for Client {
    fn default() -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .build();
        Client { agent: config.into() }
    }
}

impl Client {
    pub fn get(&self, url: &str) -> Result<Response, HttpError> {
        let answer = self.agent.get(url).call();
        whole(answer.map_err(|e| request_error("GET", url, e))?)
    }

    /// Posts a body with exactly these headers (and those that HTTP itself needs).
    pub fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, HttpError> {
        let streaming = self.post_streaming(url, headers, body)?;
        let Streaming { status, headers, body: mut reader } = streaming;
        let mut body = Vec::new();
        reader.read_to_end(&mut body)?;
        Ok(Response { status, headers, body })
    }

    /// Posts a body and returns the answer's body as a stream.
    pub fn post_streaming(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Streaming, HttpError> {
        let mut request = self.agent.post(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send(body).map_err(|e| request_error("POST", url, e))?;
        let (parts, body) = answer.into_parts();
        let body = Box::new(body.into_with_config().limit(u64::MAX).reader());
        Ok(Streaming { status: parts.status.as_u16(), headers: lower_case(&parts.headers), body })
    }
}

impl Response {
    /// Returns the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Returns the body as text, with invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Encodes the response for the wire, with its content length.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Answer\r\n", self.status);
        for (name, value) in &self.headers {
            let is_ours =
                matches!(name.as_str(), "content-length" | "transfer-encoding" | "connection");
            if !is_ours {
                head += &format!("{name}: {value}\r\n");
            }
        }
        if self.status != 204 {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }

    /// Returns whether the status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Streaming {
    /// Returns the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

/// Writes these bytes on a new connection and reads one answer, while still writing if need be.
pub fn exchange(
    address: SocketAddr,
    request: Vec<u8>,
    timeout: Duration,
) -> Result<Response, HttpError> {
    let mut reader = TcpStream::connect(address)?;
    reader.set_read_timeout(Some(timeout))?;
    reader.set_write_timeout(Some(timeout))?;
    let mut writer = reader.try_clone()?;
    // A server that refuses early closes its side; then only the answer matters.
    let writing = std::thread::spawn(move || drop(writer.write_all(&request)));
    let response = read_response(&mut reader);
    // Also ends the writing thread, if it still waits.
    let _ = reader.shutdown(std::net::Shutdown::Both);
    let _ = writing.join();
    response
}

/// Returns the content of a chunked body.
///
/// # Panics
/// If chunks are incomplete or invalid.
pub fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a size");
        let size = std::str::from_utf8(&bytes[..end]).expect("digits");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
}

/// Returns a request with these headers and no others, for [`exchange`].
///
/// The announced length may differ from the body's.
pub fn request_bytes(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    announced_bytes: usize,
    body: &[u8],
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {announced_bytes}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn read_response(reader: &mut impl Read) -> Result<Response, HttpError> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let mut ended = false;
    loop {
        if let Some(response) = parse_response(&bytes, ended)? {
            return Ok(response);
        }
        if ended {
            return Err(HttpError::Truncated { bytes: bytes.len() });
        }
        let read = reader.read(&mut piece)?;
        ended = read == 0;
        bytes.extend_from_slice(&piece[..read]);
    }
}

/// Parses the answer in these bytes if it is complete, by its length or by the connection's end.
fn parse_response(bytes: &[u8], ended: bool) -> Result<Option<Response>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = head.parse(bytes)? else { return Ok(None) };
    let body = &bytes[head_bytes..];
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|h| (h.name.to_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
        .collect();
    let length = find(&headers, "content-length").and_then(|length| length.parse().ok());
    let status = head.code.unwrap_or(0);
    let length = if status == 204 { Some(0) } else { length };
    let complete = ended || length.is_some_and(|length: usize| body.len() >= length);
    let body = body[..length.unwrap_or(body.len()).min(body.len())].to_vec();
    Ok(complete.then_some(Response { status, headers, body }))
}

fn whole(answer: ureq::http::Response<ureq::Body>) -> Result<Response, HttpError> {
    let (parts, body) = answer.into_parts();
    let mut bytes = Vec::new();
    body.into_with_config().limit(u64::MAX).reader().read_to_end(&mut bytes)?;
    let headers = lower_case(&parts.headers);
    Ok(Response { status: parts.status.as_u16(), headers, body: bytes })
}

fn lower_case(headers: &ureq::http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn request_error(method: &'static str, url: &str, error: ureq::Error) -> HttpError {
    HttpError::Request { method, url: url.to_string(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_by_length_or_by_end() {
        let bytes = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nabcd";
        let response = parse_response(bytes, false).expect("it is HTTP").expect("it is complete");
        assert_eq!((response.status, response.body.as_slice()), (400, &b"abc"[..]));
        let bytes = b"HTTP/1.0 200 OK\r\n\r\nab";
        assert!(parse_response(bytes, false).expect("it is HTTP").is_none());
        assert_eq!(parse_response(bytes, true).expect("it is HTTP").expect("ended").body, b"ab");
    }
}
