//! Shows the configuration of a running server as YAML, without secrets.
//!
//! Hidden values: keys that hold secrets in Prometheus' configuration (type `Secret` in `config` of
//! prometheus/common), headers, and parts of URLs (see [`redact`](super::redact)). Aliases and
//! merge keys are expanded.

use crate::redact::shown;
use crate::yaml::{Data, Entry, Node};
use url::Url;

/// Replaces a secret, as in Prometheus.
const HIDDEN: &str = "<secret>";

/// Keys whose values are hidden at any depth, in the spelling with underscores.
const SECRET_KEYS: [&str; 12] = [
    "password",
    "credentials",
    "bearer_token",
    "client_secret",
    "client_certificate_key",
    "secret_key",
    "secret",
    "secrets",
    "token",
    "api_key",
    // Headers that authenticate.
    "headers",
    "proxy_connect_header",
];

/// Sections, each with a key that is hidden only there: elsewhere `key` is no secret.
const SECRETS_WITHIN: [(&str, &str); 5] = [
    ("tls_config", "key"),
    ("plugins", "config"),
    // Many have their token in the path.
    ("webhook", "url"),
    // Some want their token in the body.
    ("webhook", "body"),
    ("heartbeat", "url"),
];

/// Keys whose values are regular expressions or replacements. Shown even if they look like URLs.
const EXPRESSIONS: [&str; 2] = ["regex", "replacement"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has more than {bytes_max} bytes once its aliases are written out")]
struct TooLong {
    bytes_max: usize,
}

/// Maximum length of the text: the size of the largest file, with room for expanded aliases.
const BYTES_MAX: usize = 4 << 20;

/// Prints entries of a mapping as YAML with this indent. If that fails, prints a comment.
pub fn shown_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>, indent: usize) -> String {
    let written = write_entries(entries, indent, BYTES_MAX);
    written.unwrap_or_else(|error| format!("# Not shown: {error}.\n"))
}

fn write_entries<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    indent: usize,
    bytes_max: usize,
) -> Result<String, TooLong> {
    let mut writer = Writer { text: String::new(), bytes_max };
    for entry in entries {
        writer.indent(indent);
        writer.entry(entry, indent, KeyContext::default())?;
    }
    Ok(writer.text)
}

/// Prints a text in double quotes. YAML has all escapes of JSON, and also requires them for some
/// further characters (YAML 1.2, section 5.1).
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => quoted += &format!("\\u{:04x}", c as u32),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

struct Writer {
    text: String,
    bytes_max: usize,
}

/// The position of a value below its keys.
#[derive(Clone, Copy, Default)]
struct KeyContext<'a> {
    /// The key of the value; items of a list have the key of the list.
    within: &'a str,
    is_hidden: bool,
}

impl Writer {
    fn indent(&mut self, columns: usize) {
        self.text.extend(std::iter::repeat_n(' ', columns));
    }

    /// Writes a key with its value, after the indent of its line.
    fn entry(
        &mut self,
        entry: &Entry,
        indent: usize,
        place: KeyContext<'_>,
    ) -> Result<(), TooLong> {
        let Entry { key, value, .. } = entry;
        // The constants above have underscores; some keys of the file have dashes.
        let within = key.replace('-', "_");
        // All values below a hidden key are hidden, such as each of the `headers`.
        let is_hidden = place.is_hidden
            || SECRET_KEYS.contains(&within.as_str())
            || SECRETS_WITHIN.contains(&(place.within, within.as_str()));
        self.text += &if is_plain_key(key) { key.clone() } else { quoted(key) };
        self.text.push(':');
        self.value(value, indent, KeyContext { within: &within, is_hidden })
    }

    /// Writes a value after its key or dash, including the end of its last line.
    fn value(&mut self, node: &Node, indent: usize, place: KeyContext<'_>) -> Result<(), TooLong> {
        match &node.data {
            Data::List(items) if !items.is_empty() => {
                self.text.push('\n');
                for item in items {
                    self.indent(indent);
                    self.text.push('-');
                    self.item(item, indent + 2, place)?;
                }
            }
            Data::Map(entries) if !entries.is_empty() => {
                self.text.push('\n');
                for entry in entries {
                    self.indent(indent + 2);
                    self.entry(entry, indent + 2, place)?;
                }
            }
            data => {
                let text = match data {
                    Data::Plain(text) | Data::Quoted(text) => scalar(data, text, place),
                    Data::List(_) => " []".to_owned(),
                    Data::Map(_) => " {}".to_owned(),
                    Data::Nothing => String::new(),
                };
                self.text += &text;
                self.text.push('\n');
            }
        }
        // Checked after every value, so that aliases cannot expand far beyond the limit.
        match self.text.len() > self.bytes_max {
            true => Err(TooLong { bytes_max: self.bytes_max }),
            false => Ok(()),
        }
    }

    /// Writes an item after its dash. The first entry of a mapping is on the line of the dash.
    fn item(&mut self, item: &Node, indent: usize, place: KeyContext<'_>) -> Result<(), TooLong> {
        let Data::Map(entries) = &item.data else { return self.value(item, indent, place) };
        if entries.is_empty() {
            return self.value(item, indent, place);
        }
        for (number, entry) in entries.iter().enumerate() {
            match number {
                0 => self.text.push(' '),
                _ => self.indent(indent),
            }
            self.entry(entry, indent, place)?;
        }
        Ok(())
    }
}

/// Prints a space and a scalar.
fn scalar(data: &Data, text: &str, place: KeyContext<'_>) -> String {
    if place.is_hidden && !text.is_empty() {
        return format!(" {HIDDEN}");
    }
    match data {
        Data::Plain(text) if is_plain(text) => format!(" {text}"),
        _ if EXPRESSIONS.contains(&place.within) => format!(" {}", quoted(text)),
        _ => format!(" {}", quoted(&url_shown(text))),
    }
}

/// Hides the secret parts of a text that is a URL; other texts stay unchanged. A text that contains
/// `://` and may have secret parts, but is not a valid URL, is hidden completely.
fn url_shown(text: &str) -> String {
    if !text.contains("://") || !text.contains(['@', '?', '#']) {
        return text.to_owned();
    }
    Url::parse(text).map_or_else(|_| HIDDEN.to_owned(), |url| shown(&url))
}

/// Returns whether a text that was written without quotes can be printed without quotes.
fn is_plain(text: &str) -> bool {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.chars().all(is_harmless) && text.contains(|c: char| c.is_ascii_alphanumeric())
}

/// Returns whether a key can be printed without quotes.
fn is_plain_key(key: &str) -> bool {
    // YAML 1.1 reads these words as booleans or null.
    const OTHER: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let begins = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && is_plain(key) && !OTHER.contains(&key.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::load;

    fn shown_text(text: &str, bytes_max: usize) -> Result<String, TooLong> {
        let document = load(text).expect("YAML");
        let Data::Map(entries) = &document.data else { panic!("no mapping") };
        write_entries(entries, 0, bytes_max)
    }

    #[test]
    fn what_is_secret_is_hidden_and_all_else_is_there() {
        let text = r#"
data-dir: /var/lib/x
on: 'true'
empty: {a: [], b: {}, c: , d: ''}
remote_write:
  - url: https://me:hunter2@a/w?token=hunter2
    headers: {X-Any: hunter2}
    authorization: {type: Bearer, credentials: hunter2}
    oauth2: {client_id: id, client_secret: hunter2, endpoint_params: {password: hunter2}}
    tls_config: {key: hunter2, key_file: /k, cert_file: /c}
    http_headers: {X-B: {values: [v], secrets: [hunter2, "hunter2"], files: [f]}}
scrape_configs:
  - &a {job_name: "a b", basic_auth: {username: u, password: hunter2, password_file: p}}
  - {<<: *a, job_name: c, bearer_token: hunter2, params: {token: [hunter2], q: [1, x y]}}
  - relabel_configs: [{regex: 'https?://(.+)@x', replacement: "a\nb", key: shown}]
plugins: [{name: p, config: hunter2}]
notify:
  receivers:
    - {name: p, webhook: {url: https://a/hunter2, url_file: f, headers: {X-A: hunter2}}}
    - {name: q, heartbeat: {url: https://a/hunter2}}
lists: [[1, [2]], [{a: 1}, {b: 2, c: 3}]]
"#;
        let wanted = r#"data-dir: /var/lib/x
"on": "true"
empty:
  a: []
  b: {}
  c:
  d: ""
remote_write:
- url: "https://a/w?token=xxxxx"
  headers:
    X-Any: <secret>
  authorization:
    type: Bearer
    credentials: <secret>
  oauth2:
    client_id: id
    client_secret: <secret>
    endpoint_params:
      password: <secret>
  tls_config:
    key: <secret>
    key_file: /k
    cert_file: /c
  http_headers:
    X-B:
      values:
      - v
      secrets:
      - <secret>
      - <secret>
      files:
      - f
scrape_configs:
- job_name: "a b"
  basic_auth:
    username: u
    password: <secret>
    password_file: p
- job_name: c
  bearer_token: <secret>
  params:
    token:
    - <secret>
    q:
    - 1
    - "x y"
  basic_auth:
    username: u
    password: <secret>
    password_file: p
- relabel_configs:
  - regex: "https?://(.+)@x"
    replacement: "a\nb"
    key: shown
plugins:
- name: p
  config: <secret>
notify:
  receivers:
  - name: p
    webhook:
      url: <secret>
      url_file: f
      headers:
        X-A: <secret>
  - name: q
    heartbeat:
      url: <secret>
lists:
-
  - 1
  -
    - 2
-
  - a: 1
  - b: 2
    c: 3
"#;
        let written = shown_text(text, 10_000);
        assert_eq!(written.as_deref(), Ok(wanted));
        // Read again it is the same.
        assert_eq!(shown_text(wanted, 10_000).as_deref(), Ok(wanted));
    }

    #[test]
    fn aliases_cannot_make_it_endless() {
        let long = "x".repeat(1000);
        let text = format!(
            "a: &a '{long}'
b: [{}]
",
            "*a, ".repeat(1000)
        );
        assert_eq!(shown_text(&text, 100_000), Err(TooLong { bytes_max: 100_000 }));
        assert!(shown_text(&text, 2_000_000).is_ok());
    }

    #[test]
    fn texts_of_any_characters_are_quoted() {
        assert_eq!(quoted("a: \"b\"\n\\"), r#""a: \"b\"\n\\""#);
        assert_eq!(quoted("\u{85}é\u{1}"), "\"\\u0085é\\u0001\"");
        for text in ["#", "- a", "*", "a: b", "~", "", " a", "<<"] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
