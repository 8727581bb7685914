//! A transform that does what its configuration tells it to do: a word, and optionally the number
//! of calls during which it behaves.

use std::cell::RefCell;
use std::time::Duration;
use tidepool_plugin::transform::{Batch, Guest, Interest, Verdict};
use tidepool_plugin::{BatchBuilder, Edits};

thread_local! {
    static WORD: RefCell<(String, u64)> = const { RefCell::new((String::new(), 0)) };
    /// Memory that is kept, so that it is never freed.
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

struct Hostile;

impl Guest for Hostile {
    fn configure(config: String) -> Result<Interest, String> {
        let mut words = config.split_whitespace();
        let word = words.next().unwrap_or_default().to_owned();
        let spared = words.next().and_then(|number| number.parse().ok()).unwrap_or_default();
        match word.as_str() {
            "refuse-configuration" => return Err("as it was told".to_owned()),
            "loop-at-start" => endless(),
            _ => {}
        }
        WORD.set((word, spared));
        Ok(Interest::SAMPLES)
    }

    fn transform(batch: Batch) -> Result<Verdict, String> {
        let word = WORD.with_borrow_mut(|(word, spared)| match spared.checked_sub(1) {
            Some(left) => {
                *spared = left;
                String::new()
            }
            None => word.clone(),
        });
        match word.as_str() {
            "loop" => endless(),
            "sleep" => std::thread::sleep(Duration::from_secs(3600)),
            "memory" => loop {
                KEPT.with_borrow_mut(|kept| kept.push(vec![1; 1 << 20]));
            },
            "leak" => KEPT.with_borrow_mut(|kept| kept.push(vec![1; 1 << 20])),
            "trap" => panic!("as it was told"),
            "error" => return Err("as it was told".to_owned()),
            "long-error" => return Err("one line\nand another ".repeat(1 << 20)),
            // Keeps each series, and adds others that take a megabyte.
            "grow" => {
                let mut edits = Edits::of(&batch);
                edits.add(grown(batch.samples.timestamps_ms.first().copied().unwrap_or(0)));
                return Ok(edits.verdict());
            }
            "words" => (0..5_000).for_each(|i| println!("word {i}")),
            "flood" => return Ok(Verdict::Replaced(flood())),
            "bad-refs" => {
                let mut edits = Edits::of(&batch);
                edits.relabel_by_refs(0, &[1_000_000, 2_000_000]);
                return Ok(edits.verdict());
            }
            "bad-ends" => {
                let mut wrong = flood();
                wrong.symbol_ends = vec![5, 3, 1];
                wrong.samples.values.truncate(1);
                return Ok(Verdict::Replaced(wrong));
            }
            "drop-all" => {
                let mut edits = Edits::of(&batch);
                (0..batch.series_ends.len()).for_each(|series| edits.drop(series));
                return Ok(edits.verdict());
            }
            "double" => {
                let mut changed = batch;
                changed.samples.values.iter_mut().for_each(|value| *value *= 2.0);
                return Ok(Verdict::Replaced(changed));
            }
            "open-files" => {
                for _ in 0..5000 {
                    std::mem::forget(std::fs::File::create("/data/file"));
                }
            }
            "read-files" => {
                let found = std::fs::read_to_string("/etc/hostname").is_ok()
                    || std::fs::read_dir("/").is_ok_and(|files| files.count() > 0)
                    || std::net::TcpStream::connect("127.0.0.1:9").is_ok()
                    || std::env::vars().count() > 0
                    || std::env::args().count() > 0;
                assert!(!found, "it sees more than its world has");
                let mut edits = Edits::of(&batch);
                let mut seen = BatchBuilder::new();
                let series = seen.series([("__name__", "nothing_seen")]);
                seen.sample(series, batch.samples.timestamps_ms.first().copied().unwrap_or(0), 1.0);
                edits.add(seen.finish());
                return Ok(edits.verdict());
            }
            _ => {}
        }
        Ok(Verdict::Unchanged)
    }
}

fn endless() -> ! {
    let mut number = 0u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}

/// Returns two thousand series with long labels.
fn grown(timestamp_ms: i64) -> Batch {
    let mut grown = BatchBuilder::new();
    for number in 0..2000 {
        let long = format!("{number:0>500}");
        let series = grown.series([("__name__", "grown"), ("long", long.as_str())]);
        grown.sample(series, timestamp_ms, 1.0);
    }
    grown.finish()
}

/// Returns a batch of some hundred megabytes.
fn flood() -> Batch {
    let mut flood = BatchBuilder::new();
    let series = flood.series([("__name__", "flood")]);
    for i in 0..2_000_000 {
        flood.sample(series, i, 1.0);
    }
    flood.finish()
}

tidepool_plugin::export_transform!(Hostile);
