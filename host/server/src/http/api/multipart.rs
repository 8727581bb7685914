//! Forms as `multipart/form-data` (RFC 7578), as sent by `curl -F`.

use memchr::memmem::{Finder, find};

pub struct Field<'a> {
    pub name: String,
    pub value: &'a [u8],
}

/// Returns at most `fields_max` fields of a form. Files are left out.
pub fn fields<'a>(
    body: &'a [u8],
    content_type: &str,
    fields_max: usize,
) -> Result<Vec<Field<'a>>, &'static str> {
    let boundary = parameter(content_type, "boundary").filter(|text| !text.is_empty());
    let delimiter = format!("\r\n--{}", boundary.ok_or("it names no boundary")?);
    let delimiter = Finder::new(&delimiter);
    let unfinished = "it has no end";
    // Text before the first boundary is ignored.
    let mut rest = match body.strip_prefix(&delimiter.needle()[2..]) {
        // The delimiter has a line end, which is missing at the start of a body.
        Some(rest) => rest,
        None => behind(body, &delimiter).ok_or(unfinished)?.1,
    };
    let mut fields = Vec::new();
    while !rest.starts_with(b"--") && fields.len() < fields_max {
        let (_, part) = behind(rest, &Finder::new("\r\n")).ok_or(unfinished)?;
        let (part, after) = behind(part, &delimiter).ok_or(unfinished)?;
        rest = after;
        // A part without a header starts with an empty line, and is skipped.
        let Some(end) = find(part, b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&part[..end]).map_err(|_| "a header is not text")?;
        let named = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let is_it = name.trim().eq_ignore_ascii_case("content-disposition");
            let is_field = is_it && parameter(value, "filename").is_none();
            is_field.then(|| parameter(value, "name")).flatten()
        };
        if let Some(name) = head.lines().find_map(named) {
            fields.push(Field { name, value: &part[end + 4..] });
        }
    }
    Ok(fields)
}

/// Returns the bytes before and after the first occurrence of `what`.
fn behind<'a>(bytes: &'a [u8], what: &Finder<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let at = what.find(bytes)?;
    Some((&bytes[..at], &bytes[at + what.needle().len()..]))
}

/// Returns a parameter of a header value, as in `form-data; name="query"`, quoted or not.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (found, text) = rest.split_once('=')?;
        let (text, after) = match text.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (text, after) = text.split_at(text.find(';').unwrap_or(text.len()));
                (text.trim().to_owned(), after)
            }
        };
        if found.trim().eq_ignore_ascii_case(name) {
            return Some(text);
        }
        rest = after.trim_start().strip_prefix(';')?;
    }
}

/// Splits off a text up to its closing quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut unquoted = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((unquoted, &text[at + 1..])),
            '\\' => unquoted.push(chars.next()?.1),
            _ => unquoted.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fields;

    fn read(content_type: &str, body: &str) -> Result<Vec<(String, String)>, &'static str> {
        let fields = fields(body.as_bytes(), content_type, 3)?;
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Ok(fields.into_iter().map(|field| (field.name, text(field.value))).collect())
    }

    /// The first case is the example of RFC 7578, section 4.3, and the output of curl 8.
    #[test]
    fn fields_are_found_and_files_left_out() {
        let form = "multipart/form-data; boundary=AaB03x";
        let part = |head: &str, text: &str| format!("--AaB03x\r\n{head}\r\n\r\n{text}\r\n");
        let field = |name: &str| format!("Content-Disposition: form-data; name={name}");
        let end = "--AaB03x--\r\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let two = part(&field("\"query\""), "up{a=\"--AaB03x\"}") + &part(&field("time"), "1");
        for (content_type, body, expected) in [
            (form, two.clone() + end, vec![pair("query", "up{a=\"--AaB03x\"}"), pair("time", "1")]),
            (
                "multipart/form-data; charset=utf-8; Boundary=\"AaB03x\"",
                two + end,
                vec![pair("query", "up{a=\"--AaB03x\"}"), pair("time", "1")],
            ),
            (form, "ignored\r\n".to_owned() + &part(&field("a"), "") + end, vec![pair("a", "")]),
            (
                form,
                part(&field(r#""a\"b""#), "\r\n\r\nx\r\n") + end,
                vec![pair("a\"b", "\r\n\r\nx\r\n")],
            ),
            (
                form,
                part("content-type: text/plain\r\ncontent-disposition: form-data;name=a", "x")
                    + end,
                vec![pair("a", "x")],
            ),
            (form, part(&(field("a") + "; filename=b"), "x") + &part("", "y") + end, vec![]),
            (form, "--AaB03x\r\n\r\nx\r\n".to_owned() + end, vec![]),
            (form, part(&field("a"), "x").repeat(9) + end, vec![pair("a", "x"); 3]),
            (form, end.to_owned(), vec![]),
        ] {
            assert_eq!(read(content_type, &body), Ok(expected), "{body}");
        }
        for (content_type, body) in [
            (form, String::new()),
            (form, part(&field("a"), "x")),
            (form, "--AaB03x".to_owned()),
            ("multipart/form-data", part(&field("a"), "x") + end),
            ("multipart/form-data; boundary=\"\"", part(&field("a"), "x") + end),
            ("multipart/form-data; boundary=\"AaB03x", part(&field("a"), "x") + end),
        ] {
            assert!(read(content_type, &body).is_err(), "{content_type} {body}");
        }
    }
}
