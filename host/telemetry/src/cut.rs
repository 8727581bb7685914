//! Limits the length of log lines, which may contain a megabyte of text from a target or a sender.

use std::io::{self, Write};

/// Longest line in bytes, including the mark of a cut line.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// End of a line that was cut.
const MARK: &str = " … (cut)\n";

/// Writes log lines to standard error, each with one system call.
pub(super) struct Cut {
    /// Whether lines are JSON objects, which a reader accepts only as a whole.
    pub is_json: bool,
}

impl Write for Cut {
    /// Writes one line: the library calls this once for each line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = line.len();
        let cut = cut(line, self.is_json);
        // Reports the whole line as written; otherwise the library would write the rest.
        io::stderr().write_all(cut.as_deref().unwrap_or(line)).map(|()| written)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Shortens a line; `None` if it is short enough.
fn cut(line: &[u8], is_json: bool) -> Option<Vec<u8>> {
    if line.len() <= LINE_BYTES_MAX {
        return None;
    }
    // Lossy, because the limit may be inside of a character.
    let text = String::from_utf8_lossy(line.get(..LINE_BYTES_MAX)?);
    // In JSON a byte can need six bytes once it is escaped.
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

    /// Each scrape wrote a series with a value of a megabyte into the log.
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
