//! An HTTP client with little CPU cost: one connection, and requests encoded before the clock
//! starts.

use super::super::BenchError;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tidepool_tests::http::HttpError;

/// Timeout of an answer; exceeding it is a failure.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Size of one read from the socket.
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of header fields in an answer.
const HEADERS_MAX: usize = 32;

/// A connection that is kept alive.
pub struct Client {
    stream: TcpStream,
    /// Bytes of the answer received so far.
    bytes: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Body without the framing of chunks.
    pub body: Vec<u8>,
}

/// Framing of a body's length.
enum Length {
    Bytes(usize),
    Chunked,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Client, BenchError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Client { stream, bytes: Vec::new() })
    }

    /// Sends a whole request and waits for the last byte of its answer.
    pub fn ask(&mut self, request: &[u8]) -> Result<Answer, BenchError> {
        self.stream.write_all(request)?;
        self.bytes.clear();
        let mut piece = [0; PIECE_BYTES];
        loop {
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                let error = HttpError::Truncated { bytes: self.bytes.len() };
                return Err(BenchError::Http(error));
            }
            self.bytes.extend_from_slice(&piece[..read]);
            if let Some(answer) = whole(&self.bytes)? {
                return Ok(answer);
            }
        }
    }
}

/// Returns the answer in these bytes if it is complete.
fn whole(bytes: &[u8]) -> Result<Option<Answer>, BenchError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let parsed = head.parse(bytes).map_err(HttpError::from)?;
    let httparse::Status::Complete(head_bytes) = parsed else { return Ok(None) };
    let rest = &bytes[head_bytes..];
    let field = |name: &str| {
        let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    let status = head.code.unwrap_or(0);
    let length = match field("content-length") {
        Some(bytes) => Length::Bytes(bytes.parse().map_err(io::Error::other)?),
        None if field("transfer-encoding").is_some_and(|coding| coding == "chunked") => {
            Length::Chunked
        }
        None => return Err(io::Error::other("an answer whose length is not known").into()),
    };
    let body = match length {
        Length::Bytes(length) => rest.get(..length).map(<[u8]>::to_vec),
        Length::Chunked => unchunked(rest)?,
    };
    Ok(body.map(|body| Answer { status, body }))
}

/// Returns the content of a chunked body once its last chunk has arrived.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, BenchError> {
    let mut body = Vec::new();
    loop {
        let parsed = httparse::parse_chunk_size(rest).map_err(|_| io::Error::other("no chunk"))?;
        let httparse::Status::Complete((start, size)) = parsed else { return Ok(None) };
        let end = start + size as usize;
        // Each chunk, and the empty trailer after the last one, ends with a line break.
        if rest.len() < end + 2 {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&rest[start..end]);
        rest = &rest[end + 2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_by_its_length_or_its_last_chunk() {
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        let chunked = b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n\
                        2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        for (bytes, status) in [(&sized[..], 200), (&chunked[..], 503)] {
            for end in 0..bytes.len() {
                assert_eq!(whole(&bytes[..end]).expect("HTTP"), None, "{end}");
            }
            let expected = Answer { status, body: b"abc".to_vec() };
            assert_eq!(whole(bytes).expect("HTTP"), Some(expected));
        }
        assert!(whole(b"HTTP/1.1 200 OK\r\n\r\nabc").is_err());
    }
}
