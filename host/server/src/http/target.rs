//! Encodes request targets as people type them. Prometheus accepts `GET
//! /api/v1/series?match[]=up{job="x"}`, as its documentation shows. RFC 3986 and our HTTP parser
//! require percent-encoding for some of these characters, so they are encoded before the parser
//! sees them.
//!
//! Boundaries of heads and bodies are found by the parser's own rules, as far as these are
//! unambiguous. At the first doubt, everything passes unchanged for the rest of the connection.
//! Only request lines are ever changed.

use std::fmt::Write as _;

/// Characters that clients send unencoded although a URI may not contain them.
const UNENCODED: &[u8] = b"\"<>\\^`{|}#";

/// Maximum size of a request head, in bytes.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Maximum number of header fields of a request.
pub const HEADERS_MAX: usize = 100;

/// Follows the boundaries of requests on a connection.
pub struct Requests {
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Head,
    /// In a body, with the number of bytes left.
    Body(u64),
    /// In a body with chunked transfer coding.
    Chunks(Chunk),
    /// The position is not known, so that all bytes pass unchanged.
    Lost,
}

/// Position in a chunked body (RFC 9112, section 7.1). Forms beyond the RFC are doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// In a chunk's size, with its value and number of digits so far.
    Size {
        bytes: u64,
        digits: u8,
    },
    Extension {
        bytes: u64,
    },
    /// Before the line feed after a chunk's size.
    SizeEnd {
        bytes: u64,
    },
    /// In a chunk's data, with the number of bytes left.
    Data {
        bytes: u64,
    },
    /// Before the line end after a chunk's data.
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    Trailer,
    InTrailer,
    TrailerLf,
    /// Before the line feed that ends the body.
    EndLf,
}

/// Result of parsing a request head.
enum Head {
    /// A complete head with its length, and the position after it.
    Plain { bytes: usize, next: At },
    /// A complete head whose target, at these bytes, must be encoded.
    Unencoded { bytes: usize, next: At, target: std::ops::Range<usize> },
    /// The beginning of a head; the rest has not arrived.
    Partial,
    /// Not a head, or an ambiguous head.
    Broken,
}

impl Requests {
    /// Starts at the first byte of a connection.
    pub fn new() -> Requests {
        Requests { at: At::Head }
    }

    /// Returns how many bytes pass unchanged. Stops before an incomplete head or one to be encoded.
    pub fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        while passed < bytes.len() {
            let rest = &bytes[passed..];
            match self.at {
                At::Lost => return bytes.len(),
                At::Body(left) => {
                    let here = left.min(rest.len() as u64);
                    self.at = if left == here { At::Head } else { At::Body(left - here) };
                    passed += here as usize;
                }
                At::Chunks(chunk) => {
                    let (here, next) = chunk.step(rest);
                    self.at = next;
                    passed += here;
                }
                At::Head => match head(rest) {
                    Head::Plain { bytes, next } => {
                        self.at = next;
                        passed += bytes;
                    }
                    Head::Broken => self.at = At::Lost,
                    Head::Partial | Head::Unencoded { .. } => break,
                },
            }
        }
        passed
    }

    /// Returns the head's length, and the head with an encoded target; `None` if none is due.
    pub fn encoded(&mut self, bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
        let Head::Unencoded { bytes: head, next, target } = head(bytes) else { return None };
        self.at = next;
        let mut encoded = String::new();
        for &byte in &bytes[target.clone()] {
            match byte {
                // The parser has checked that the target is UTF-8.
                byte if !byte.is_ascii() || UNENCODED.contains(&byte) => {
                    // Writing to a string cannot fail.
                    let _ = write!(encoded, "%{byte:02X}");
                }
                byte => encoded.push(char::from(byte)),
            }
        }
        let parts = [&bytes[..target.start], encoded.as_bytes(), &bytes[target.end..head]];
        Some((head, parts.concat()))
    }

    /// Lets all bytes pass unchanged from now on.
    pub fn lose(&mut self) {
        self.at = At::Lost;
    }
}

fn head(bytes: &[u8]) -> Head {
    // The same maximum as in hyper, so that both parsers see the same head.
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let head_bytes = match request.parse(bytes) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Head::Partial,
        Err(_) => return Head::Broken,
    };
    let (Some(target), Some(version)) = (request.path, request.version) else {
        return Head::Broken;
    };
    let next = match request.method {
        // The bytes in a tunnel are not requests.
        Some("CONNECT") | None => At::Lost,
        Some(_) => behind(version, request.headers),
    };
    let is_encoded = |byte: &u8| !UNENCODED.contains(byte);
    if target.as_bytes().iter().all(is_encoded) {
        return Head::Plain { bytes: head_bytes, next };
    }
    // `target` is a part of `bytes`, so the difference of the addresses is its offset.
    let begin = target.as_ptr().addr() - bytes.as_ptr().addr();
    Head::Unencoded { bytes: head_bytes, next, target: begin..begin + target.len() }
}

/// Returns the position after a head with these fields (RFC 9112, section 6.3).
fn behind(version: u8, headers: &[httparse::Header<'_>]) -> At {
    let (mut length, mut coding) = (None, None);
    for field in headers {
        let place = match field.name {
            name if name.eq_ignore_ascii_case("content-length") => &mut length,
            name if name.eq_ignore_ascii_case("transfer-encoding") => &mut coding,
            // The bytes after an upgrade belong to another protocol.
            name if name.eq_ignore_ascii_case("upgrade") => return At::Lost,
            _ => continue,
        };
        // Repeated fields are used for request smuggling, so they are doubtful.
        if place.replace(field.value).is_some() {
            return At::Lost;
        }
    }
    match (length, coding) {
        (None, None) => At::Head,
        (Some(length), None) if length.iter().all(u8::is_ascii_digit) => {
            let length = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok());
            length.map_or(At::Lost, |bytes| if bytes == 0 { At::Head } else { At::Body(bytes) })
        }
        // HTTP/1.0 has no chunked coding (RFC 9112, section 6.1).
        (None, Some(coding)) if version == 1 && coding.eq_ignore_ascii_case(b"chunked") => {
            At::Chunks(Chunk::Size { bytes: 0, digits: 0 })
        }
        _ => At::Lost,
    }
}

impl Chunk {
    /// Advances by at least one byte, unless in doubt. Returns the bytes and the next position.
    fn step(self, bytes: &[u8]) -> (usize, At) {
        let Some(&byte) = bytes.first() else { return (0, At::Chunks(self)) };
        let next = match (self, byte) {
            (Chunk::Data { bytes: left }, _) => {
                let here = left.min(bytes.len() as u64);
                let next = match left - here {
                    0 => Chunk::DataCr,
                    left => Chunk::Data { bytes: left },
                };
                return (here as usize, At::Chunks(next));
            }
            // A number of fifteen digits fits into 64 bits.
            (Chunk::Size { bytes, digits }, byte) if byte.is_ascii_hexdigit() && digits < 15 => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                Chunk::Size { bytes: bytes * 16 + u64::from(digit), digits: digits + 1 }
            }
            (Chunk::Size { bytes, digits: 1.. }, b'\r') => Chunk::SizeEnd { bytes },
            (Chunk::Size { bytes, digits: 1.. }, b';') => Chunk::Extension { bytes },
            (Chunk::Extension { bytes }, b'\r') => Chunk::SizeEnd { bytes },
            (Chunk::Extension { bytes }, byte) if byte != b'\n' => Chunk::Extension { bytes },
            (Chunk::SizeEnd { bytes: 0 }, b'\n') => Chunk::Trailer,
            (Chunk::SizeEnd { bytes }, b'\n') => Chunk::Data { bytes },
            (Chunk::DataCr, b'\r') => Chunk::DataLf,
            (Chunk::DataLf, b'\n') => Chunk::Size { bytes: 0, digits: 0 },
            (Chunk::Trailer, b'\r') => Chunk::EndLf,
            (Chunk::InTrailer, b'\r') => Chunk::TrailerLf,
            (Chunk::Trailer | Chunk::InTrailer, byte) if byte != b'\n' => Chunk::InTrailer,
            (Chunk::TrailerLf, b'\n') => Chunk::Trailer,
            (Chunk::EndLf, b'\n') => return (1, At::Head),
            _ => return (0, At::Lost),
        };
        (1, At::Chunks(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that the parser would see.
    fn seen(pieces: &[&[u8]]) -> String {
        let mut requests = Requests::new();
        let (mut seen, mut held) = (Vec::new(), Vec::new());
        for piece in pieces {
            held.extend_from_slice(piece);
            loop {
                let passed = requests.pass(&held);
                seen.extend(held.drain(..passed));
                let Some((bytes, encoded)) = requests.encoded(&held) else { break };
                held.drain(..bytes);
                seen.extend(encoded);
            }
        }
        String::from_utf8_lossy(&[seen, held].concat()).into_owned()
    }

    const QUESTION: &str = "GET /series?match[]=up{job=\"x\"} HTTP/1.1\r\nHost: a\r\n\r\n";
    const ENCODED: &str = "GET /series?match[]=up%7Bjob=%22x%22%7D HTTP/1.1\r\nHost: a\r\n\r\n";

    /// Tests the whole text, all cuts in two, and single bytes.
    #[track_caller]
    fn assert_seen(sent: &str, expected: &str) {
        assert_eq!(seen(&[sent.as_bytes()]), expected);
        for cut in 0..sent.len() {
            let (one, other) = sent.as_bytes().split_at(cut);
            assert_eq!(seen(&[one, other]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = sent.as_bytes().chunks(1).collect();
        assert_eq!(seen(&bytes), expected);
    }

    #[test]
    fn targets_are_encoded_and_bodies_are_not() {
        assert_seen(QUESTION, ENCODED);
        assert_seen(&QUESTION.repeat(3), &ENCODED.repeat(3));
        let length = format!("POST /a HTTP/1.1\r\nContent-Length: {}\r\n\r\n", QUESTION.len());
        let sent = format!("{length}{QUESTION}{QUESTION}");
        assert_seen(&sent, &format!("{length}{QUESTION}{ENCODED}"));
        let chunks = format!(
            "POST /{{ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
             {:x};ext=\"{{\"\r\n{QUESTION}\r\n1\r\n{{\r\n0\r\nTrailer: {{\r\n\r\n",
            QUESTION.len()
        );
        let encoded = chunks.replacen("/{", "/%7B", 1);
        assert_seen(&format!("{chunks}{QUESTION}"), &format!("{encoded}{ENCODED}"));
        assert_seen("GET /\u{e9}|#` HTTP/1.1\r\n\r\n", "GET /%C3%A9%7C%23%60 HTTP/1.1\r\n\r\n");
    }

    /// The start of the next request is uncertain after each of these.
    #[test]
    fn nothing_is_changed_after_a_doubt() {
        for doubt in [
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
            "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0 \r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0;\n\r\n\r\n",
            "GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\n\r\n",
            "no http\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let sent = format!("{doubt}{QUESTION}");
            assert_seen(&sent, &sent);
        }
    }

    proptest::proptest! {
        /// Requests that the parser accepts do not change, and changes only encode characters.
        #[test]
        fn nothing_but_what_is_encoded_changes(
            text in "(?s)[ -~\r\n]{0,80}|(GET|POST) /[ -~]{0,9} HTTP/1.1\r\n[ -~\r\n]{0,40}\r\n\r\n.{0,40}",
            cut in 0usize..200,
        ) {
            let (one, other) = text.as_bytes().split_at(cut.min(text.len()));
            let (whole, pieces) = (seen(&[text.as_bytes()]), seen(&[one, other]));
            proptest::prop_assert_eq!(&whole, &pieces);
            let decode = |text: &str| {
                let text = text.replace(['+', '&', '='], "_");
                let names = form_urlencoded::parse(text.as_bytes());
                names.map(|(name, _)| name.into_owned()).collect::<String>()
            };
            proptest::prop_assert_eq!(decode(&whole), decode(&text));
        }
    }
}
