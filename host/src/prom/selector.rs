//! Series selectors as PromQL writes them: `up{job="node",instance=~"a.*"}`.
//!
//! A metric name that is not plain goes inside the braces, quoted and without an operator.
//! Strings are quoted by `"` or `'` with Go's escapes, or by backquotes without any.

use crate::wasm::{MatchOp, Matcher};

const METRIC_NAME: &str = "__name__";

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no series selector: {what} at byte {offset}")]
pub struct SelectorError {
    /// The text.
    pub text: String,
    /// What is missing or wrong.
    pub what: &'static str,
    /// Where.
    pub offset: usize,
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

/// Reads a selector into matchers, all of which must hold.
pub fn parse_selector(text: &str) -> Result<Vec<Matcher>, SelectorError> {
    let mut parser = Parser { text, rest: text };
    let mut matchers = Vec::new();
    parser.skip_space();
    let name = parser.name(|byte| matches!(byte, b'_' | b':'));
    if let Some(name) = name {
        matchers.push(equals(name.to_owned()));
    }
    parser.skip_space();
    if parser.take("{") {
        parser.matchers(&mut matchers, name.is_some())?;
    } else if name.is_none() {
        return Err(parser.error("a metric name or { is missing"));
    }
    parser.skip_space();
    match parser.rest.is_empty() {
        true => Ok(matchers),
        false => Err(parser.error("nothing may follow")),
    }
}

fn equals(name: String) -> Matcher {
    Matcher { name: METRIC_NAME.to_owned(), op: MatchOp::Equal, value: name }
}

impl<'a> Parser<'a> {
    fn matchers(
        &mut self,
        matchers: &mut Vec<Matcher>,
        mut has_name: bool,
    ) -> Result<(), SelectorError> {
        loop {
            self.skip_space();
            if self.take("}") {
                return Ok(());
            }
            let quoted = self.string()?;
            let is_quoted = quoted.is_some();
            let plain = |parser: &mut Parser<'a>| parser.name(|byte| byte == b'_');
            let name = quoted.or_else(|| plain(self).map(str::to_owned));
            let name = name.ok_or_else(|| self.error("a label name or } is missing"))?;
            self.skip_space();
            let ops = [
                ("=~", MatchOp::Regex),
                ("!~", MatchOp::NotRegex),
                ("!=", MatchOp::NotEqual),
                ("=", MatchOp::Equal),
            ];
            match ops.into_iter().find(|(sign, _)| self.take(sign)) {
                Some((_, op)) => {
                    self.skip_space();
                    let value = self.string()?;
                    let value = value.ok_or_else(|| self.error("a quoted value is missing"))?;
                    matchers.push(Matcher { name, op, value });
                }
                None if is_quoted && !has_name => {
                    has_name = true;
                    matchers.push(equals(name));
                }
                None => return Err(self.error("one of = != =~ !~ is missing")),
            }
            self.skip_space();
            if !self.take(",") && !self.rest.starts_with('}') {
                return Err(self.error("a comma or } is missing"));
            }
        }
    }

    /// A name without quotes, if one begins here.
    fn name(&mut self, is_mark: impl Fn(u8) -> bool) -> Option<&'a str> {
        let begins = |byte: u8| byte.is_ascii_alphabetic() || is_mark(byte);
        self.rest.bytes().next().filter(|byte| begins(*byte))?;
        let end = self.rest.bytes().position(|byte| !begins(byte) && !byte.is_ascii_digit());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(name)
    }

    /// A quoted string, if one begins here.
    fn string(&mut self) -> Result<Option<String>, SelectorError> {
        let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else {
            return Ok(None);
        };
        let whole = self.rest;
        let open = |parser: &Parser<'a>| parser.error("a string does not end");
        self.take_char();
        let mut bytes = Vec::new();
        let mut utf8 = [0; 4];
        loop {
            match self.take_char() {
                None => {
                    self.rest = whole;
                    return Err(open(self));
                }
                Some(c) if c == quote => break,
                Some('\\') if quote != '`' => self.escape(&mut bytes)?,
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()),
            }
        }
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| self.error("a string is not UTF-8"))
    }

    /// What follows a backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SelectorError> {
        let mut utf8 = [0; 4];
        let mut put = |c: char, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
        };
        match self.take_char() {
            Some('a') => bytes.push(0x07),
            Some('b') => bytes.push(0x08),
            Some('f') => bytes.push(0x0c),
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('t') => bytes.push(b'\t'),
            Some('v') => bytes.push(0x0b),
            Some(c @ ('\\' | '"' | '\'')) => put(c, bytes),
            Some('x') => bytes.push(self.digits(2, 16)? as u8),
            Some(kind @ ('u' | 'U')) => {
                let number = self.digits(if kind == 'u' { 4 } else { 8 }, 16)?;
                let c = char::from_u32(number);
                put(c.ok_or_else(|| self.error("no character has this number"))?, bytes);
            }
            _ => return Err(self.error("an escape is not known")),
        }
        Ok(())
    }

    fn digits(&mut self, count: usize, radix: u32) -> Result<u32, SelectorError> {
        (0..count).try_fold(0u32, |number, _| {
            let digit = self.take_char().and_then(|c| c.to_digit(radix));
            let digit = digit.ok_or_else(|| self.error("an escape lacks digits"))?;
            Ok(number.wrapping_mul(radix) | digit)
        })
    }

    fn take(&mut self, token: &str) -> bool {
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn take_char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn error(&self, what: &'static str) -> SelectorError {
        let offset = self.text.len() - self.rest.len();
        SelectorError { text: self.text.to_owned(), what, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<(String, MatchOp, String)>, SelectorError> {
        let triple = |matcher: Matcher| (matcher.name, matcher.op, matcher.value);
        Ok(parse_selector(text)?.into_iter().map(triple).collect())
    }

    fn named(name: &str) -> (String, MatchOp, String) {
        (METRIC_NAME.to_owned(), MatchOp::Equal, name.to_owned())
    }

    #[test]
    fn selectors_of_every_shape() -> Result<(), SelectorError> {
        let label = |op, value: &str| ("a".to_owned(), op, value.to_owned());
        assert_eq!(read("up")?, [named("up")]);
        assert_eq!(read(" job:up { } ")?, [named("job:up")]);
        assert_eq!(read("{}")?, []);
        assert_eq!(
            read(r#"up{a="x\n\x41\u00e9", a!='"' ,a=~`\d`,a!~"",}"#)?,
            [
                named("up"),
                label(MatchOp::Equal, "x\nA\u{e9}"),
                label(MatchOp::NotEqual, "\""),
                label(MatchOp::Regex, r"\d"),
                label(MatchOp::NotRegex, ""),
            ]
        );
        assert_eq!(read(r#"{"a.b"}"#)?, [named("a.b")]);
        let quoted = ("c.d".to_owned(), MatchOp::Equal, "e".to_owned());
        assert_eq!(read(r#"{"a.b", "c.d"="e"}"#)?, [named("a.b"), quoted]);
        Ok(())
    }

    #[test]
    fn what_is_no_selector_is_refused_with_its_place() {
        for (text, offset) in [
            ("", 0),
            ("up{", 3),
            ("up{a}", 4),
            ("up{a=b}", 5),
            ("up{a=\"b}", 5),
            ("up x", 3),
            ("up{a=\"b\" c=\"d\"}", 9),
            ("up{\"x\"}", 6),
            ("{a=\"\\q\"}", 6),
        ] {
            assert_eq!(parse_selector(text).map_err(|e| e.offset).err(), Some(offset), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in r#"[a{}"',=~!\\x\n` ]{0,30}"#) {
            let _ = parse_selector(&text);
        }
    }
}
