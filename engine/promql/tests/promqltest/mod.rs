//! Runner of upstream's test scripts.
//!
//! Source: prometheus/prometheus, `promql/promqltest/README.md`.

mod classic;
mod compare;
mod engine;
mod run;
mod script;
mod series;
mod store;
mod upstream;

use script::Command;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use store::Store;

/// Statements that are left out, as `file:line reason` each.
const LEFT_OUT: &str = include_str!("../left_out.txt");

/// Runs one of upstream's scripts. Skips it without Go's module cache, or fails if peers are
/// required.
pub fn run_file(name: &str) {
    let Some(directory) = upstream::scripts() else { return };
    let path = directory.join(format!("{name}.test"));
    let text = std::fs::read_to_string(&path).expect("a script of the module");
    run_text(name, &text);
}

pub fn run_text(name: &str, text: &str) {
    let commands = script::commands(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut left_out = left_out(name);
    let mut store = Rc::new(Store::default());
    let (mut passed, mut failed) = (0, Vec::new());
    for command in &commands {
        let eval = match command {
            Command::Clear => {
                store = Rc::default();
                continue;
            }
            Command::Load(load) => {
                Rc::make_mut(&mut store).load(load);
                continue;
            }
            Command::Eval(eval) => eval,
        };
        let run = || run::run(&store, eval);
        let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panics".into()));
        match (outcome, left_out.remove(&eval.line)) {
            (Ok(()), None) => passed += 1,
            (Err(_), Some(_)) => {}
            (Ok(()), Some(reason)) => {
                failed.push(format!("line {}: passes, though left out: {reason}", eval.line));
            }
            (Err(error), None) => {
                failed.push(format!("line {}: {}\n    {error}", eval.line, eval.text));
            }
        }
    }
    upstream::say(&format!("{name}: {passed} statements pass, {} fail", failed.len()));
    failed.extend(left_out.keys().map(|line| format!("line {line}: left out, but not there")));
    assert!(failed.is_empty(), "{} of {name}:\n{}", failed.len(), failed.join("\n"));
}

/// Fails if upstream has a script that is missing here.
pub fn expect_files(names: &[&str]) {
    let Some(directory) = upstream::scripts() else { return };
    for entry in std::fs::read_dir(directory).expect("the module's scripts") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        assert!(names.contains(&stem.replace('-', "_").as_str()), "{stem} is not run");
    }
}

fn left_out(name: &str) -> BTreeMap<usize, &'static str> {
    let lines = LEFT_OUT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.filter_map(|line| {
        let (place, reason) = line.split_once(' ').expect("a reason");
        let (file, line) = place.split_once(':').expect("a line");
        (file == format!("{name}.test")).then(|| (line.parse().expect("a number"), reason))
    });
    entries.collect()
}
