//! `os`: the distribution. Upstream: `collector/os_release.go`; `os-release(5)`.
//!
//! The syntax is that of upstream's parser (hashicorp/go-envparse): quotes, few escapes, comments.

use super::{Collector, Round};
use crate::error::{CollectError, Malformed, Result};
use crate::read::Reader;
use crate::sink::{Kind, Output};
use crate::text::valid_utf8;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};

const FILES: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];

/// Labels of `node_os_info`, each with its name in the file.
const INFO: [(&str, &str); 12] = [
    ("build_id", "BUILD_ID"),
    ("id", "ID"),
    ("id_like", "ID_LIKE"),
    ("image_id", "IMAGE_ID"),
    ("image_version", "IMAGE_VERSION"),
    ("name", "NAME"),
    ("pretty_name", "PRETTY_NAME"),
    ("variant", "VARIANT"),
    ("variant_id", "VARIANT_ID"),
    ("version", "VERSION"),
    ("version_codename", "VERSION_CODENAME"),
    ("version_id", "VERSION_ID"),
];

pub(crate) struct Os;

/// Names and values, in the order of the file.
#[derive(Debug)]
struct Release(Vec<(String, String)>);

impl Collector for Os {
    fn name(&self) -> &'static str {
        "os"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let (path, release) = read(|file| round.paths.rootfs(Path::new(file)), round.reader)?;
        let end = match release.get("SUPPORT_END") {
            "" => None,
            text => Some(support_end(text).ok_or_else(|| {
                Malformed::new(0, "SUPPORT_END= and a date (2026-12-31)", text).of(&path)
            })?),
        };
        let labels = INFO.map(|(label, name)| (label, release.get(name)));
        let help = "A metric with a constant '1' value labeled by build_id, id, id_like, image_id, \
                    image_version, name, pretty_name, variant, variant_id, version, \
                    version_codename, version_id.";
        output.family("node_os_info", help, Kind::Gauge).sample(&labels, 1.0);
        if let Some(version) = version(release.get("VERSION_ID")).filter(|version| *version > 0.0) {
            let labels = [
                ("id", release.get("ID")),
                ("id_like", release.get("ID_LIKE")),
                ("name", release.get("NAME")),
            ];
            let help = "Metric containing the major.minor part of the OS version.";
            output.family("node_os_version", help, Kind::Gauge).sample(&labels, version);
        }
        if let Some(end) = end {
            let name = "node_os_support_end_timestamp_seconds";
            let help = "Metric containing the end-of-life date timestamp of the OS.";
            output.single(name, help, Kind::Gauge, end);
        }
        Ok(())
    }
}

fn read(path_of: impl Fn(&str) -> PathBuf, reader: &mut Reader) -> Result<(PathBuf, Release)> {
    // By `os-release(5)`, the file in `/etc` has priority.
    for file in FILES {
        let path = path_of(file);
        match reader.bytes(&path) {
            Ok(bytes) => {
                let release = parse(&valid_utf8(bytes)).map_err(|error| error.of(&path))?;
                return Ok((path, release));
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Err(CollectError::NoData("there is no os-release"))
}

/// Parses the beginning of a text that matches upstream's `^[0-9]+\.?[0-9]*`.
fn version(text: &str) -> Option<f64> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut len = digits(text);
    if len > 0 && text[len..].starts_with('.') {
        len += 1 + digits(&text[len + 1..]);
    }
    text[..len].parse().ok()
}

/// Returns the start of a day in UTC, as Unix time.
fn support_end(text: &str) -> Option<f64> {
    let date = Date::strptime("%Y-%m-%d", text).ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second() as f64)
}

impl Release {
    /// Returns a value; empty if absent. Of a name's several values, the last is returned.
    fn get(&self, name: &str) -> &str {
        self.0.iter().rev().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

fn parse(text: &str) -> std::result::Result<Release, Malformed> {
    let mut release = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() {
            continue;
        }
        let malformed = |expected| Malformed::new(number, expected, line);
        let (name, value) = line.split_once('=').ok_or_else(|| malformed("a name and ="))?;
        let name = name.trim();
        let name = name.strip_prefix("export ").unwrap_or(name);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(malformed("a name that begins with a letter"));
        }
        release.push((name.to_owned(), unquoted(value.trim()).map_err(malformed)?));
    }
    Ok(Release(release))
}

/// Returns the value as a shell would read it. The error is the syntax that was expected.
fn unquoted(text: &str) -> std::result::Result<String, &'static str> {
    let mut value = String::with_capacity(text.len());
    // Length of the value without white space before a comment.
    let mut significant = 0;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (_, '\0'..'\u{20}') => return Err("a value without control characters"),
            (None, '"' | '\'') => quote = Some(character),
            (None, '#') => {
                value.truncate(significant);
                return Ok(value);
            }
            (None, ' ') => value.push(' '),
            (Some(mark), _) if mark == character => quote = None,
            (Some('"'), '\\') => {
                value.push(match characters.next() {
                    Some(escaped @ ('"' | '\\')) => escaped,
                    Some('n') => '\n',
                    Some('t') => '\t',
                    _ => return Err(r#"one of \" \\ \n \t"#),
                });
                significant = value.len();
            }
            (_, other) => {
                value.push(other);
                significant = value.len();
            }
        }
    }
    if quote.is_some() { Err("a quote that ends") } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const UBUNTU: &str = "NAME=\"Ubuntu\"\nVERSION=\"20.04.2 LTS (Focal Fossa)\"\nID=ubuntu\n\
        ID_LIKE=debian\nPRETTY_NAME=\"Ubuntu 20.04.2 LTS\"\nVERSION_ID=\"20.04\"\n\
        HOME_URL=\"https://www.ubuntu.com/\"\n\nVERSION_CODENAME=focal\n";

    #[test]
    fn the_distribution_and_its_version() {
        let tree = Tree::new();
        let error = tree.collect(&mut Os).expect_err("no file");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        tree.write("root/usr/lib/os-release", UBUNTU);
        let samples = tree.collect(&mut Os).expect("collected");
        assert_eq!(
            samples,
            [
                r#"node_os_info{id="ubuntu",id_like="debian",name="Ubuntu",pretty_name="Ubuntu 20.04.2 LTS",version="20.04.2 LTS (Focal Fossa)",version_codename="focal",version_id="20.04"} 1"#,
                r#"node_os_version{id="ubuntu",id_like="debian",name="Ubuntu"} 20.04"#,
            ]
        );
        tree.write("root/etc/os-release", "ID=arch\nVERSION_ID=rolling\nSUPPORT_END=2026-12-31\n");
        let samples = tree.collect(&mut Os).expect("collected");
        assert_eq!(
            samples,
            [
                r#"node_os_info{id="arch",version_id="rolling"} 1"#,
                "node_os_support_end_timestamp_seconds 1798675200",
            ]
        );
        tree.write("root/etc/os-release", "SUPPORT_END=soon\n");
        assert!(tree.collect(&mut Os).expect_err("no date").to_string().contains("soon"));
    }

    #[test]
    fn versions_are_cut_after_the_minor_part() {
        for (text, expected) in [
            ("20.04", Some(20.04)),
            ("1.2.3", Some(1.2)),
            ("7", Some(7.0)),
            ("7.", Some(7.0)),
            ("8-beta", Some(8.0)),
            (".5", None),
            ("", None),
            ("v1", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[test]
    fn quotes_escapes_and_comments() {
        for (line, expected) in [
            (r#"A=plain text"#, "plain text"),
            (r#" export A = "quoted # text" "#, "quoted # text"),
            (r#"A='single \n'"#, r"single \n"),
            (r#"A="a \"b\" \\ \n\t""#, "a \"b\" \\ \n\t"),
            (r#"A=one two   # comment"#, "one two"),
            (r#"A="a "b' c'"#, "a b c"),
            (r#"A="#, ""),
            (r#"A=ü # x"#, "ü"),
        ] {
            let release = parse(line).expect(line);
            assert_eq!(release.get("A"), expected, "{line}");
        }
        for hostile in
            ["A", "=b", "1A=b", "A=\"b", "A='b", r#"A="\x""#, "A=\"b\\", "A=\u{1}", "# a"]
        {
            let error = parse(&format!("ID=x\n{hostile}")).expect_err(hostile);
            let error = error.of(Path::new("os-release")).to_string();
            assert!(error.starts_with("os-release:2: expected"), "{error}");
        }
    }
}
