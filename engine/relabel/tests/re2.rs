//! Random regular expressions are parsed, refused and matched as by Go's own package, which a
//! program made by `tests/peers/build` runs.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidepool_relabel::re2::{Dot, parse};
use tidepool_relabel::{Pattern, Replacer, Search};

/// Seed of the cases, the same each time.
const SEED: &str = "20261129";
const COUNT: &str = "20000";
/// Maximum number of differences in a message.
const WRONG_MAX: usize = 20;

#[test]
fn expressions_are_what_they_are_upstream() {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let program = target.join("peers/go-regexp");
    let seed = std::env::var("TIDEPOOL_REGEX_SEED").unwrap_or(SEED.to_owned());
    let output = Command::new(&program).args([&seed, COUNT]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (mut refused, mut matched, mut differed, mut wrong) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let expression = line["expression"].as_str().expect("an expression");
        let expected = line["error"].as_str().expect("an error or none");
        let found = parse(expression, Dot::Any).err().map(|error| error.to_string());
        // Our message shortens a long expression.
        let is_same = match found.as_deref().map(|found| found.strip_suffix("…`").ok_or(found)) {
            Some(Ok(beginning)) => expected.starts_with(beginning),
            found => found.map_or("", Result::unwrap_err) == expected,
        };
        if !is_same {
            wrong.push(format!("{expression:?}: {found:?}, Go {expected:?}"));
            continue;
        }
        if found.is_some() {
            refused += 1;
            continue;
        }
        let compiled = match Compiled::new(expression) {
            Ok(compiled) => compiled,
            Err(error) => {
                wrong.push(format!("{expression:?}: {error}"));
                continue;
            }
        };
        for case in line["cases"].as_array().expect("cases") {
            let bytes = bytes(&case["text"]);
            let whole = case["groups"].as_array();
            match whole {
                Some(_) => matched += 1,
                None => differed += 1,
            }
            if let Err(what) = compiled.compare(&bytes, case["anywhere"] == true, whole) {
                wrong.push(format!("{expression:?} of {}: {what}", bytes.escape_ascii()));
            }
        }
    }
    let count = wrong.len();
    wrong.truncate(WRONG_MAX);
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
    assert!(
        refused > 1000 && matched > 5_000 && differed > 10_000,
        "{refused} refused, {matched} matched, {differed} did not"
    );
}

/// An expression compiled for each of its uses.
struct Compiled {
    search: Search,
    pattern: Pattern,
    replacer: Replacer,
}

impl Compiled {
    fn new(expression: &str) -> Result<Compiled, String> {
        Ok(Compiled {
            search: Search::new(expression)?,
            pattern: Pattern::new(expression)?,
            replacer: Replacer::new(expression)?,
        })
    }

    /// Compares the results for a text with Go's.
    fn compare(
        &self,
        bytes: &[u8],
        anywhere: bool,
        whole: Option<&Vec<Value>>,
    ) -> Result<(), String> {
        if self.search.is_match(bytes) != anywhere {
            return Err(format!("anywhere: not {anywhere}"));
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
        if self.pattern.is_match(text) != whole.is_some() {
            return Err(format!("the whole text: not {}", whole.is_some()));
        }
        let numbers = 1..=whole.map_or(0, Vec::len);
        let template: Vec<String> = numbers.map(|number| format!("${{{number}}}\u{1}")).collect();
        let expected = whole.map(|groups| {
            let group = |group: &Value| String::from_utf8(self::bytes(group)).expect("a text");
            groups.iter().map(|it| group(it) + "\u{1}").collect::<String>()
        });
        let found = self.replacer.replaced(text, &template.concat());
        match found == expected {
            true => Ok(()),
            false => Err(format!("groups: {found:?}, Go {expected:?}")),
        }
    }
}

/// Returns the bytes of a text in hexadecimal; `None` for null.
fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}
