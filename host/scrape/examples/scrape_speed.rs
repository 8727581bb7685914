//! Measures the time of a sample from the body to the store, without HTTP:
//! `cargo run --release -p tidepool-scrape --example scrape_speed`.

use flate2::{Compression, write::GzEncoder};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;
use tidepool_exposition::Format;
use tidepool_scrape::append::{Appender, BodyReader, Histograms, Mutator, Options};
use tidepool_scrape::error::ScrapeError;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::report::Report;
use tidepool_scrape::store::{Appended, Batch, SeriesRef, SeriesRefused, Store, StoreError};
use tidepool_turns::Gunzip;

/// The size of a piece that a connection returns at once.
const PIECE_BYTES: usize = 16 * 1024;

const ROUNDS: usize = 2000;

/// A store that numbers series and drops samples.
struct Nowhere;

impl Store for Nowhere {
    async fn resolve(
        &self,
        sets: Vec<Labels>,
    ) -> Result<Vec<Result<SeriesRef, SeriesRefused>>, StoreError> {
        Ok((0..sets.len() as u64).map(Ok).collect())
    }

    async fn append(&self, _: Arc<Batch>, _: i64) -> Result<Appended, StoreError> {
        Ok(Appended::default())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let bodies: Vec<Vec<u8>> = (0..8).map(|round| body(round, false)).collect();
    let shuffled: Vec<Vec<u8>> = (0..8).map(|round| body(round, round % 2 == 1)).collect();
    let compressed: Vec<Vec<u8>> = bodies.iter().map(|body| gzip(body)).collect();
    for _ in 0..3 {
        print("a scrape of text", &bodies, false).await;
    }
    print("in another order each time", &shuffled, false).await;
    print("with gzip", &compressed, true).await;
}

async fn print(what: &str, bodies: &[Vec<u8>], is_gzip: bool) {
    let target = vec![("job".to_owned(), "j".to_owned()), ("instance".to_owned(), "i".to_owned())];
    let mutator = Mutator {
        target,
        honor_labels: false,
        rules: Arc::default(),
        validation: Default::default(),
        limits: Default::default(),
    };
    let options = Options {
        mutator,
        honor_timestamps: true,
        track_timestamps_staleness: false,
        sample_limit: 0,
        bucket_limit: 0,
        schema_max: 8,
        extra_metrics: false,
    };
    let mut appender = Appender::new(options, Arc::default(), 7);
    scrape(&mut appender, &bodies[0], is_gzip, 0).await;
    let began = Instant::now();
    let mut samples = 0;
    for round in 0..ROUNDS {
        let body = &bodies[round % bodies.len()];
        samples += scrape(&mut appender, body, is_gzip, round as i64 + 1).await;
    }
    let micros = began.elapsed().as_secs_f64() * 1e6 / samples as f64;
    println!("{what}: {micros:.3} µs a sample");
}

async fn scrape(appender: &mut Appender, body: &[u8], is_gzip: bool, at_ms: i64) -> u64 {
    appender.begin(at_ms, at_ms);
    let mut reader = BodyReader::new(Format::Prometheus, Histograms::default());
    let mut gunzip = Gunzip::default();
    let mut result = Ok(());
    for piece in body.chunks(PIECE_BYTES) {
        let mut take = |bytes: &[u8]| -> Result<(), ScrapeError> {
            appender.add_body_bytes(bytes.len() as u64);
            reader.feed(bytes, appender)
        };
        result = result.and_then(|()| match is_gzip {
            true => gunzip.push(piece, &mut take),
            false => take(piece),
        });
    }
    let result = result.and_then(|()| reader.end(appender));
    let (totals, result) = appender.finish(result);
    let is_up = result.is_ok();
    appender.report(&Report { is_up, totals, ..Report::default() });
    appender.commit(&Nowhere, at_ms).await.expect("it takes everything");
    assert!(is_up && totals.scraped == 1000);
    totals.scraped
}

/// A thousand counters with six labels each.
fn body(round: usize, is_reversed: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for family in 0..20 {
        let name = format!("family_{family}_total");
        let mut text = String::new();
        let _ = write!(text, "# HELP {name} What it counts.\n# TYPE {name} counter\n");
        for place in 0..50 {
            let series = if is_reversed { place * 7 % 50 } else { place };
            let _ = writeln!(
                text,
                "{name}{{handler=\"/api/v1/query_{series}\",method=\"GET\",code=\"200\",\
                 node=\"node-{family:03}\",region=\"eu-west-1\",\
                 pod=\"service-7c9d6b5f4-{series:05}\"}} {}",
                series * 7919 + family * 31 + round
            );
        }
        lines.push(text);
    }
    lines.concat().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}
