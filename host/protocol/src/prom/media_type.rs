//! Parses media types as in HTTP headers: `type/subtype; name=value; name="quoted value"`.
//!
//! Source: RFC 9110, sections 5.6 (tokens, quoted strings, parameters) and 8.3.1. Names of types
//! and parameters are compared case-insensitively, values are not. White space around `=` is
//! accepted, though the RFC forbids it.

/// A media type with its parameters, in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct MediaType<'a> {
    essence: &'a str,
    parameters: Vec<(&'a str, String)>,
}

impl<'a> MediaType<'a> {
    /// Parses a media type; `None` if it is not valid.
    pub fn parse(text: &'a str) -> Option<MediaType<'a>> {
        let (essence, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        let essence = trim(essence);
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut parameters = Vec::new();
        while let Some(after) = rest.strip_prefix(';') {
            rest = trim_start(after);
            // RFC 9110 allows empty parameters between semicolons and after the last one.
            if rest.is_empty() || rest.starts_with(';') {
                continue;
            }
            let (name, after) = rest.split_once('=')?;
            let name = trim(name);
            let (value, after) = split_value(trim_start(after))?;
            if !is_token(name) {
                return None;
            }
            parameters.push((name, value));
            rest = trim_start(after);
        }
        rest.is_empty().then_some(MediaType { essence, parameters })
    }

    /// Returns whether type and subtype equal `essence`; parameters are ignored.
    pub fn is(&self, essence: &str) -> bool {
        self.essence.eq_ignore_ascii_case(essence)
    }

    pub fn values<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m str> {
        let named = move |(own, _): &&(&str, String)| own.eq_ignore_ascii_case(name);
        self.parameters.iter().filter(named).map(|(_, value)| value.as_str())
    }
}

/// Splits a token or quoted string off the front.
fn split_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return is_token(value).then(|| (value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(chars.next()?),
            other => value.push(other),
        }
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn trim_start(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_in_every_form() {
        let texts = [
            "a/b;c=d",
            "A/B; C=d",
            " a/b\t;\tc = \"d\" ",
            "a/b;;c=\"\\d\";",
            "a/b; x=\"1;c=2\\\"\"; c=d",
        ];
        for text in texts {
            let media_type = MediaType::parse(text);
            let values = media_type.as_ref().map(|m| m.values("c").collect::<Vec<_>>());
            assert!(media_type.as_ref().is_some_and(|m| m.is("a/b")), "{text:?}");
            assert_eq!(values, Some(vec!["d"]), "{text:?}");
        }
        assert_eq!(MediaType::parse("a/b").map(|m| m.values("c").count()), Some(0));
    }

    #[test]
    fn what_is_no_media_type_is_refused() {
        for text in [
            "",
            "a",
            "a/",
            "/b",
            "a b/c",
            "a/b c",
            "a/b;c",
            "a/b;c=",
            "a/b;=d",
            "a/b;c=d e",
            "a/b;c=\"d",
            "a/b;c=\"d\\",
            "a/b;c=\"d\"e",
            "a/b;c=d,e/f",
            "a/b;c\u{e9}=d",
        ] {
            assert_eq!(MediaType::parse(text), None, "{text:?}");
        }
    }
}
