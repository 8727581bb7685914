//! One transform made of two, which `chain.wac` composes: the second gets the output of the first.
//!
//! The configuration is that of the first, a line `---`, and that of the second.

mod batch;
mod edit;
mod transforms;
mod turns;

use tidepool_plugin::transform::{Batch, Guest, Interest, Verdict};
use transforms::{first, second};
use turns::then;

/// Line that separates the two configurations.
const BETWEEN: &str = "---";

struct Chain;

impl Guest for Chain {
    fn configure(config: String) -> Result<Interest, String> {
        let (for_first, for_second) = split(&config);
        let wants = first::configure(&for_first).map_err(|why| format!("the first: {why}"))?;
        let also = second::configure(&for_second).map_err(|why| format!("the second: {why}"))?;
        Ok(wants | also)
    }

    fn transform(batch: Batch) -> Result<Verdict, String> {
        let verdict = first::transform(&batch).map_err(|why| format!("the first: {why}"))?;
        let second = |batch: &Batch| match second::transform(batch) {
            Ok(verdict) => Ok(Verdict::from(verdict)),
            Err(why) => Err(format!("the second: {why}")),
        };
        then(&batch, verdict.into(), second)
    }
}

/// Returns the lines before and after the separator.
fn split(config: &str) -> (String, String) {
    let mut parts = [String::new(), String::new()];
    let mut place = 0;
    for line in config.lines() {
        if place == 0 && line.trim_end() == BETWEEN {
            place = 1;
        } else {
            parts[place].push_str(line);
            parts[place].push('\n');
        }
    }
    parts.into()
}

tidepool_plugin::export_transform!(Chain);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_its_configuration() {
        assert_eq!(split("a\n---\nb\n---\n"), ("a\n".to_owned(), "b\n---\n".to_owned()));
        assert_eq!(split("a"), ("a\n".to_owned(), String::new()));
    }
}
