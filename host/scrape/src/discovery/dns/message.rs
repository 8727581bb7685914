//! Messages of the DNS (RFC 1035, section 4): a question for SRV records (RFC 2782), and its
//! answer.
//!
//! ```text
//! 0      2       4          6          8             10            12
//! │ id   │ flags │ questions │ answers │ authorities │ additional │ question │ records …
//! ```
//!
//! Numbers are big-endian. A name is a sequence of labels, each with its length before it. It ends
//! with a zero length, or with a pointer to the rest of the name earlier in the message: two bytes,
//! `0xc000` plus the offset.

/// Largest UDP answer that a question allows, in bytes (RFC 6891). Nearly all networks carry this
/// size without fragmentation.
pub(super) const UDP_BYTES_MAX: u16 = 1232;

/// Maximum number of answers of a message that are read.
const RECORDS_MAX: usize = 4096;

const TYPE_SRV: u16 = 33;
const TYPE_OPT: u16 = 41;
const CLASS_INTERNET: u16 = 1;

/// Longest name, in bytes of the message.
const NAME_BYTES_MAX: usize = 255;

/// Host and port of an SRV record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Service {
    /// The host, with its final dot.
    pub target: String,
    pub port: u16,
}

/// Content of an answer to [`question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The name exists and has these records.
    Found(Vec<Service>),
    /// There is no such name.
    NoName,
    /// The answer did not fit into UDP; over TCP it is complete.
    Truncated,
    /// The server refused, with this response code.
    Refused(u8),
}

/// Reasons why bytes are not a valid message, or not the expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The name cannot be encoded in a question.
    #[error("the name has an empty label, or one of more than 63 bytes, or more than 255 in all")]
    Name,
    /// The message ends too early, or its parts do not fit.
    #[error("the answer is malformed")]
    Malformed,
    /// The message answers another question.
    #[error("the answer is to another question")]
    Other,
}

/// Encodes a question for the SRV records of a name. `udp_bytes` allows UDP answers larger than 512
/// bytes.
pub(super) fn question(
    id: u16,
    name: &str,
    udp_bytes: Option<u16>,
) -> Result<Vec<u8>, MessageError> {
    let mut message = Vec::with_capacity(64);
    message.extend(id.to_be_bytes());
    // Recursion desired.
    message.extend([0x01, 0x00]);
    for count in [1, 0, 0, u16::from(udp_bytes.is_some())] {
        message.extend(count.to_be_bytes());
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    for label in name.split('.') {
        let length = u8::try_from(label.len()).map_err(|_| MessageError::Name)?;
        if !(1..=63).contains(&length) {
            return Err(MessageError::Name);
        }
        message.push(length);
        message.extend(label.as_bytes());
    }
    if name.len() + 2 > NAME_BYTES_MAX {
        return Err(MessageError::Name);
    }
    message.push(0);
    for number in [TYPE_SRV, CLASS_INTERNET] {
        message.extend(number.to_be_bytes());
    }
    if let Some(bytes) = udp_bytes {
        // OPT record: root name, type, size instead of a class, flags, no data.
        message.push(0);
        message.extend(TYPE_OPT.to_be_bytes());
        message.extend(bytes.to_be_bytes());
        message.extend([0; 6]);
    }
    Ok(message)
}

/// Parses an answer to a [`question`].
pub(super) fn answer(message: &[u8], id: u16, name: &str) -> Result<Answer, MessageError> {
    let mut reader = Reader { message, at: 0 };
    let is_answer = reader.number()? == id;
    let flags = reader.number()?;
    // The highest bit is set in answers only.
    if !is_answer || flags & 0x8000 == 0 {
        return Err(MessageError::Other);
    }
    let questions = reader.number()?;
    let answers = usize::from(reader.number()?);
    let (_authorities, _additional) = (reader.number()?, reader.number()?);
    // An answer repeats its question; a message with a different question may be forged.
    for _ in 0..questions {
        let asked = reader.name()?;
        let (kind, class) = (reader.number()?, reader.number()?);
        let rooted = format!("{}.", name.strip_suffix('.').unwrap_or(name));
        let is_asked = asked.eq_ignore_ascii_case(&rooted);
        if !is_asked || kind != TYPE_SRV || class != CLASS_INTERNET {
            return Err(MessageError::Other);
        }
    }
    match (flags & 0x000f) as u8 {
        0 if flags & 0x0200 != 0 => return Ok(Answer::Truncated),
        0 => {}
        3 => return Ok(Answer::NoName),
        code => return Ok(Answer::Refused(code)),
    }
    let mut services = Vec::new();
    for _ in 0..answers.min(RECORDS_MAX) {
        reader.name()?;
        let (kind, class) = (reader.number()?, reader.number()?);
        // Skips the time to live.
        reader.skip(4)?;
        let length = usize::from(reader.number()?);
        let end = reader.at + length;
        if end > message.len() {
            return Err(MessageError::Malformed);
        }
        // Alias records precede the SRV records that they lead to, and are skipped.
        if kind == TYPE_SRV && class == CLASS_INTERNET {
            // Skips priority and weight.
            reader.skip(4)?;
            let port = reader.number()?;
            let target = reader.name()?;
            if reader.at != end {
                return Err(MessageError::Malformed);
            }
            // RFC 2782: a single dot means that the service does not exist.
            if target != "." {
                services.push(Service { target, port });
            }
        }
        reader.at = end;
    }
    Ok(Answer::Found(services))
}

struct Reader<'m> {
    message: &'m [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, MessageError> {
        let byte = self.message.get(self.at).ok_or(MessageError::Malformed)?;
        self.at += 1;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u16, MessageError> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), MessageError> {
        self.at += bytes;
        if self.at > self.message.len() { Err(MessageError::Malformed) } else { Ok(()) }
    }

    /// Reads a name with its final dot, and moves to the byte after it.
    fn name(&mut self) -> Result<String, MessageError> {
        let mut name = String::new();
        let mut behind = None;
        loop {
            let start = self.at;
            match self.byte()? {
                0 => break,
                length @ 1..=63 => {
                    let end = self.at + usize::from(length);
                    let label = self.message.get(self.at..end).ok_or(MessageError::Malformed)?;
                    self.at = end;
                    for &byte in label {
                        // Bytes that are not valid in host names are written as decimal escapes, as
                        // in zone files.
                        match byte {
                            b'.' | b'\\' => name.extend(['\\', char::from(byte)]),
                            b'!'..=b'~' => name.push(char::from(byte)),
                            byte => name += &format!("\\{byte:03}"),
                        }
                    }
                    name.push('.');
                    // A byte needs at most four characters, so a valid name is never longer.
                    if name.len() > 4 * NAME_BYTES_MAX {
                        return Err(MessageError::Malformed);
                    }
                }
                high @ 0xc0.. => {
                    let offset = usize::from(u16::from_be_bytes([high & 0x3f, self.byte()?]));
                    // After the name, reading continues after its first pointer.
                    behind.get_or_insert(self.at);
                    // Each pointer must lead backwards, so that the loop ends.
                    if offset >= start {
                        return Err(MessageError::Malformed);
                    }
                    self.at = offset;
                }
                _ => return Err(MessageError::Malformed),
            }
        }
        if let Some(behind) = behind {
            self.at = behind;
        }
        if name.is_empty() {
            name.push('.');
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAME: &str = "_web._tcp.example";

    /// Makes an answer with these flags and records, which may point to the question's name at 12.
    fn reply(flags: u16, records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = question(7, NAME, None).expect("a question");
        message.splice(2..4, flags.to_be_bytes());
        message.splice(6..8, (records.len() as u16).to_be_bytes());
        for (kind, data) in records {
            message.extend([0xc0, 12]);
            message.extend(kind.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 60]);
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(*data);
        }
        message
    }

    #[test]
    fn a_question_is_that_of_rfc_1035() {
        let message = question(0x1234, "_a._tcp.b.", Some(1232)).expect("a question");
        let expected = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\x01\x02_a\x04_tcp\x01b\0\0\x21\0\x01\
                         \0\0\x29\x04\xd0\0\0\0\0\0\0";
        assert_eq!(message, expected);
        let (label, name) = ("a".repeat(64), "a.".repeat(127) + "a");
        for wrong in ["", ".", "a..b", &label, &name] {
            assert_eq!(question(1, wrong, None), Err(MessageError::Name), "{wrong}");
        }
    }

    #[test]
    fn answers_are_read() {
        // Priority, weight, port 9100, and a name that ends in the question's `example`.
        let srv = b"\0\x01\0\x02\x23\x8c\x01n\xc0\x16";
        let alias = b"\x01x\0";
        let none = b"\0\0\0\0\0\0\0";
        let message = reply(0x8180, &[(5, alias), (TYPE_SRV, srv), (TYPE_SRV, none)]);
        let service = Service { target: "n.example.".into(), port: 9100 };
        assert_eq!(answer(&message, 7, NAME), Ok(Answer::Found(vec![service.clone()])));
        assert_eq!(answer(&message, 7, "_WEB._tcp.example."), Ok(Answer::Found(vec![service])));
        assert_eq!(answer(&message, 8, NAME), Err(MessageError::Other));
        assert_eq!(answer(&message, 7, "other"), Err(MessageError::Other));
        assert_eq!(answer(&reply(0x0100, &[]), 7, NAME), Err(MessageError::Other), "a question");
        assert_eq!(answer(&reply(0x8180, &[]), 7, NAME), Ok(Answer::Found(vec![])));
        assert_eq!(answer(&reply(0x8183, &[]), 7, NAME), Ok(Answer::NoName));
        assert_eq!(answer(&reply(0x8380, &[]), 7, NAME), Ok(Answer::Truncated));
        assert_eq!(answer(&reply(0x8182, &[]), 7, NAME), Ok(Answer::Refused(2)));
        for end in 0..message.len() {
            assert!(answer(&message[..end], 7, NAME).is_err(), "{end}");
        }
        // Pointers to themselves, to each other, and forwards.
        for data in
            [&b"\0\0\0\0\0\x01\xc0\x35"[..], b"\0\0\0\0\0\x01\xc0\xff", b"\0\0\0\0\0\x01\x80"]
        {
            let message = reply(0x8180, &[(TYPE_SRV, data)]);
            assert_eq!(answer(&message, 7, NAME), Err(MessageError::Malformed), "{data:?}");
        }
        let odd = reply(0x8180, &[(TYPE_SRV, b"\0\0\0\0\0\x01\x04a.\\\xff\0")]);
        let target = "a\\.\\\\\\255.".to_owned();
        assert_eq!(answer(&odd, 7, NAME), Ok(Answer::Found(vec![Service { target, port: 1 }])));
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut message = reply(0x8180, &[]);
            message.splice(6..8, [0x0f, 0xff]);
            message.extend(bytes);
            let _ = answer(&message, 7, NAME);
        }
    }
}
