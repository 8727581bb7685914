//! Counts of instructions, and their comparison with the recorded ones.
//!
//! `expected.txt` has a line for each piece of work: its name, a colon, and its instructions. A
//! line before it that begins with `#` gives the reason for which the count was once raised.

use std::collections::BTreeMap;
use std::fmt;

/// Accepted difference of a count: changes elsewhere in the engine change what the compiler
/// inlines.
pub const TOLERANCE_PERCENT: u64 = 2;

/// Variable with the reason for higher counts, or any value if none is higher.
pub const ACCEPT_VARIABLE: &str = "ACCEPT_COUNTS";

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions/expected.txt");

const HOW_TO_ACCEPT: &str = "If that is meant, write it down and commit it:\n  \
     cargo build-component && ACCEPT_COUNTS='why a count is higher' \
     cargo test --release --workspace --test instructions";

#[derive(Default)]
pub struct Counts(Vec<Count>);

struct Count {
    name: String,
    instructions: u64,
    /// Number of samples or series, to show the count for each.
    samples: u64,
}

/// Recorded count of a piece of work.
#[derive(Default)]
struct Written<'a> {
    instructions: u64,
    /// Reason in the line before the count.
    reason: Option<&'a str>,
}

impl Counts {
    pub fn add(&mut self, name: &str, instructions: u64, samples: u64) {
        self.0.push(Count { name: name.into(), instructions, samples });
    }

    /// Compares with the recorded counts; the error names every difference.
    pub fn judge(&self, expected: &str) -> Result<(), String> {
        let mut expected = parse(expected)?;
        let mut failures = Vec::new();
        for Count { name, instructions, .. } in &self.0 {
            let Some(Written { instructions: written, .. }) = expected.remove(name.as_str()) else {
                failures.push(format!("{name}: {instructions} instructions, none written down"));
                continue;
            };
            if !is_tolerated(*instructions, written) {
                let percent = (*instructions as f64 / written as f64 - 1.0) * 100.0;
                failures.push(format!(
                    "{name}: {instructions} instructions, {percent:+.1} % of the {written} \
                     written down; {TOLERANCE_PERCENT} % are tolerated"
                ));
            }
        }
        failures.extend(expected.keys().map(|name| format!("{name}: written down, not counted")));
        if failures.is_empty() {
            return Ok(());
        }
        Err(format!("{}\n{HOW_TO_ACCEPT}", failures.join("\n")))
    }

    /// Records the counts, with the reason for those that are higher than before.
    pub fn accept(&self, expected: &str, reason: &str) -> Result<(), String> {
        let text = self.to_file(expected, reason)?;
        std::fs::write(FILE, text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Returns the new text of the file.
    fn to_file(&self, expected: &str, reason: &str) -> Result<String, String> {
        let mut expected = parse(expected)?;
        let mut text = String::new();
        for Count { name, instructions, .. } in &self.0 {
            let written = expected.remove(name.as_str()).unwrap_or_default();
            let is_known = written.instructions > 0;
            let is_higher = *instructions > written.instructions
                && !is_tolerated(*instructions, written.instructions);
            if is_known && is_higher {
                // A single word, such as `1` or `yes`, is not accepted as a reason.
                if reason.split_whitespace().nth(1).is_none() {
                    return Err(format!(
                        "{name}: {instructions} instructions instead of {}: {ACCEPT_VARIABLE} has \
                         to say why",
                        written.instructions
                    ));
                }
                text += &format!("# {} before: {reason}\n", written.instructions);
            } else if let Some(kept) =
                written.reason.filter(|_| *instructions >= written.instructions)
            {
                text += &format!("{kept}\n");
            }
            text += &format!("{name}: {instructions}\n");
        }
        Ok(text)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Count { name, instructions, samples } in &self.0 {
            let each = *instructions as f64 / *samples as f64;
            writeln!(f, "{name:50} {instructions:>12} {each:>12.1} each")?;
        }
        Ok(())
    }
}

fn is_tolerated(instructions: u64, written: u64) -> bool {
    instructions.abs_diff(written) * 100 <= written * TOLERANCE_PERCENT
}

fn parse(expected: &str) -> Result<BTreeMap<&str, Written<'_>>, String> {
    let mut reason = None;
    let mut counts = BTreeMap::new();
    for line in expected.lines() {
        if line.starts_with('#') {
            reason = Some(line);
            continue;
        }
        let count =
            line.rsplit_once(": ").and_then(|(name, number)| Some((name, number.parse().ok()?)));
        let (name, instructions) =
            count.ok_or_else(|| format!("expected.txt: {line:?} is no count"))?;
        counts.insert(name, Written { instructions, reason: reason.take() });
    }
    Ok(counts)
}

fn counts(instructions: u64) -> Counts {
    let mut counts = Counts::default();
    counts.add("a, b", instructions, 1);
    counts
}

#[test]
fn differences_are_named_with_the_way_to_accept_them() {
    let written = "a, b: 1000\n";
    assert_eq!(counts(1000).to_file("", "").as_deref(), Ok(written));
    for within in [980, 1000, 1020] {
        assert_eq!(counts(within).judge(written), Ok(()));
    }
    for (beyond, percent) in [(979, "-2.1 %"), (1021, "+2.1 %")] {
        let failure = counts(beyond).judge(written).expect_err("it is too far off");
        assert!(failure.starts_with("a, b: ") && failure.contains(percent), "{failure}");
        assert!(failure.contains("ACCEPT_COUNTS="), "{failure}");
    }
    for other in ["", "a, b: 1000\nc: 1\n", "a, b\n"] {
        assert!(counts(1000).judge(other).is_err(), "{other:?}");
    }
}

#[test]
fn a_higher_count_needs_a_reason() {
    let written = "a, b: 1000\n";
    assert!(counts(2000).to_file(written, "1").is_err());
    let raised = "# 1000 before: a reason why\na, b: 2000\n";
    assert_eq!(counts(2000).to_file(written, "a reason why").as_deref(), Ok(raised));
    // The reason stays until the count falls.
    assert_eq!(counts(2000).judge(raised), Ok(()));
    assert_eq!(counts(2000).to_file(raised, "1").as_deref(), Ok(raised));
    assert_eq!(counts(500).to_file(raised, "1").as_deref(), Ok("a, b: 500\n"));
}
