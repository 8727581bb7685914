//! Measures a line: `cargo run --release -p tidepool-exposition --example exposition_speed`.

use std::fmt::Write as _;
use std::time::Instant;
use tidepool_exposition::{Item, TextFormat, TextParser};

/// Size of a piece, about that of one read from a connection.
const PIECE_BYTES: usize = 16 * 1024;

const ROUNDS: usize = 2000;

fn main() {
    let text = body();
    let lines = text.lines().count();
    for _ in 0..3 {
        let (seconds, samples) = read(&text, ROUNDS, |_| {});
        println!("{:.1} ns a line, {samples} samples", seconds * 1e9 / (lines * ROUNDS) as f64);
    }
    let mut labels = 0;
    // Parsing labels takes longer, so fewer rounds give as steady a figure.
    let rounds = ROUNDS / 10;
    let (seconds, _) = read(&text, rounds, |item| {
        if let Item::Sample(sample) = item {
            labels += sample.series.labels().map_or(0, |labels| labels.len());
        }
    });
    println!("with {labels} labels {:.1} ns a line", seconds * 1e9 / (lines * rounds) as f64);
}

/// A thousand counters with six labels each.
fn body() -> String {
    let mut text = String::new();
    for family in 0..20 {
        let name = format!("family_{family}_total");
        let _ = write!(text, "# HELP {name} What it counts.\n# TYPE {name} counter\n");
        for series in 0..50 {
            let _ = writeln!(
                text,
                "{name}{{handler=\"/api/v1/query_{series}\",method=\"GET\",code=\"200\",\
                 instance=\"node-{family:03}\",region=\"eu-west-1\",\
                 pod=\"service-7c9d6b5f4-{series:05}\"}} {}",
                series * 7919 + family * 31
            );
        }
    }
    text
}

fn read(text: &str, rounds: usize, mut look: impl FnMut(&Item<'_>)) -> (f64, usize) {
    let began = Instant::now();
    let mut samples = 0;
    for _ in 0..rounds {
        let mut parser = TextParser::new(TextFormat::Prometheus);
        let mut pieces = text.as_bytes().chunks(PIECE_BYTES);
        loop {
            match pieces.next() {
                Some(piece) => parser.feed(piece),
                None => parser.end(),
            }
            while let Ok(Some(item)) = parser.next() {
                look(&item);
                samples += usize::from(matches!(item, Item::Sample(_)));
            }
            if pieces.len() == 0 {
                break;
            }
        }
    }
    (began.elapsed().as_secs_f64(), samples)
}
