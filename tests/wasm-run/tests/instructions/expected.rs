//! Counts, and how they compare with those that were written down.
//!
//! `expected.txt` has a line for each piece of work: its name, a colon, and its instructions.

use std::collections::BTreeMap;
use std::fmt;

/// A count may be off by so much: what changes elsewhere in the engine makes the compiler inline
/// this and not that.
pub const TOLERANCE_PERCENT: u64 = 2;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions/expected.txt");

const HOW_TO_ACCEPT: &str = "If that is meant, write it down and commit it:\n  \
     cargo build-component && ACCEPT_COUNTS=1 \
     cargo test --release --workspace --test instructions";

/// What each piece of work took.
#[derive(Default)]
pub struct Counts(Vec<Count>);

struct Count {
    name: String,
    instructions: u64,
    /// Or series, to show the count for each.
    samples: u64,
}

impl Counts {
    pub fn add(&mut self, name: &str, instructions: u64, samples: u64) {
        self.0.push(Count { name: name.into(), instructions, samples });
    }

    /// Compares with what was written down; the error names every difference.
    pub fn judge(&self, expected: &str) -> Result<(), String> {
        let mut expected = parse(expected)?;
        let mut failures = Vec::new();
        for Count { name, instructions, .. } in &self.0 {
            let Some(written) = expected.remove(name.as_str()) else {
                failures.push(format!("{name}: {instructions} instructions, none written down"));
                continue;
            };
            if instructions.abs_diff(written) * 100 > written * TOLERANCE_PERCENT {
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

    /// Writes the counts down.
    pub fn accept(&self) -> std::io::Result<()> {
        std::fs::write(FILE, self.to_file())
    }

    fn to_file(&self) -> String {
        let line = |count: &Count| format!("{}: {}\n", count.name, count.instructions);
        self.0.iter().map(line).collect()
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

fn parse(expected: &str) -> Result<BTreeMap<&str, u64>, String> {
    let count = |line| {
        let (name, number): (&str, &str) = str::rsplit_once(line, ": ")?;
        Some((name, number.parse().ok()?))
    };
    let counted = |line| count(line).ok_or_else(|| format!("expected.txt: {line:?} is no count"));
    expected.lines().map(counted).collect()
}

fn counts(instructions: u64) -> Counts {
    let mut counts = Counts::default();
    counts.add("a, b", instructions, 1);
    counts
}

#[test]
fn more_and_fewer_are_told_with_the_way_to_accept_them() {
    let written = counts(1000).to_file();
    assert_eq!(written, "a, b: 1000\n");
    for within in [980, 1000, 1020] {
        assert_eq!(counts(within).judge(&written), Ok(()));
    }
    for (beyond, percent) in [(979, "-2.1 %"), (1021, "+2.1 %")] {
        let failure = counts(beyond).judge(&written).expect_err("it is too far off");
        assert!(failure.starts_with("a, b: ") && failure.contains(percent), "{failure}");
        assert!(failure.contains("ACCEPT_COUNTS=1"), "{failure}");
    }
    for other in ["", "a, b: 1000\nc: 1\n", "a, b\n"] {
        assert!(counts(1000).judge(other).is_err(), "{other:?}");
    }
}
