//! Lines of a bounded length: a text of a target or a sender that is part of a line may have a
//! megabyte.

use std::io::{self, Write};

/// Longest line, in bytes, with what says that it was cut.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// What a cut line ends with.
const MARK: &str = " … (cut)\n";

/// Writes lines to standard error, each with one call.
pub(super) struct Cut {
    /// Whether a line is an object that a reader takes as a whole or not at all.
    pub is_json: bool,
}

impl Write for Cut {
    /// The library writes each line as one buffer.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = line.len();
        let cut = cut(line, self.is_json);
        io::stderr().write_all(cut.as_deref().unwrap_or(line)).map(|()| written)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A line that is too long, made shorter.
fn cut(line: &[u8], is_json: bool) -> Option<Vec<u8>> {
    if line.len() <= LINE_BYTES_MAX {
        return None;
    }
    let text = String::from_utf8_lossy(line.get(..LINE_BYTES_MAX)?);
    // What JSON escapes takes up to six bytes.
    let kept = if is_json { LINE_BYTES_MAX / 8 } else { LINE_BYTES_MAX - MARK.len() };
    let text = &text[..text.floor_char_boundary(kept)];
    Some(match is_json {
        true => {
            let bytes = line.len();
            let object = serde_json::json!({
                "level": "WARN",
                "fields": { "message": "a log line was cut", "bytes": bytes, "line": text },
                "target": module_path!(),
            });
            format!("{object}\n").into_bytes()
        }
        false => format!("{text}{MARK}").into_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The story of a series with a value of a megabyte, which each scrape wrote into the log.
    #[test]
    fn long_lines_are_cut_and_stay_lines() {
        assert_eq!(cut(b"short\n", false), None);
        let long = format!("{}\n", "ü\"\n\\".repeat(1 << 18));
        let text = cut(long.as_bytes(), false).expect("it is long");
        assert!(text.len() <= LINE_BYTES_MAX && text.ends_with(MARK.as_bytes()));
        let json = cut(long.as_bytes(), true).expect("it is long");
        assert!(json.len() <= LINE_BYTES_MAX && json.ends_with(b"}\n"));
        let object: serde_json::Value = serde_json::from_slice(&json).expect("an object");
        assert_eq!(object["fields"]["bytes"], long.len());
        assert_eq!(json.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
