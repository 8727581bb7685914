//! Texts of plugins, made fit for a line of the log and for an answer.

/// Longest text of a plugin that is logged or given to a sender, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// A text within bounds, on one line: a plugin must not fill the log, nor write lines that look
/// like those of others.
pub fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    let (kept, rest) = text.split_at(end);
    let mut line = one_line(kept);
    if !rest.is_empty() {
        line.push_str(&format!("… ({} bytes more)", rest.len()));
    }
    line
}

/// A text without what terminals and readers of logs would take for more than a text.
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
