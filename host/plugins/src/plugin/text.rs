//! Texts of plugins, made safe for log lines and for responses.

/// Maximum length of a plugin's text in a log line or a response, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// Returns a text cut to the maximum length, on one line: a plugin must neither flood the log nor
/// write lines that look like the server's.
pub fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    let (kept, rest) = text.split_at(end);
    let mut line = one_line(kept);
    if !rest.is_empty() {
        line.push_str(&format!("… ({} bytes more)", rest.len()));
    }
    line
}

/// Returns a text without control characters, which terminals and log readers would interpret.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_within_bounds() {
        assert_eq!(bounded("as it is: é"), "as it is: é");
        assert_eq!(bounded("a\nERROR b\r\u{1b}[31mc"), "a ERROR b  [31mc");
        let long = bounded(&"é".repeat(1 << 20));
        assert!(long.starts_with("éé") && long.len() < TEXT_BYTES_MAX + 40, "{long}");
        assert!(long.ends_with(&format!("… ({} bytes more)", (2 << 20) - TEXT_BYTES_MAX)));
    }
}
