//! Seeded series of the kinds that functions distinguish: gauges, counters, flags, classic and
//! native histograms, with gaps, stale markers, resets and values that are no numbers.

use crate::histogram::generate::{Family, HistogramShape, SentSeries, SentValue, generate};
use crate::series::{Labels, Random, STALE_MARKER_BITS};

/// Interval between two samples of a series.
const INTERVAL_MS: i64 = 15_000;

/// Upper bounds of classic histograms.
const BOUNDS: [&str; 5] = ["0.1", "0.5", "1", "5", "+Inf"];

/// Series, with their out-of-order samples apart.
pub struct Data {
    pub series: Vec<SentSeries>,
    /// Out-of-order samples of the same series.
    pub out_of_order: Vec<SentSeries>,
}

/// Makes data of some scrapes that end at a time.
pub fn data(seed: u64, scrapes: usize, end_ms: i64) -> Data {
    let start_ms = end_ms - scrapes as i64 * INTERVAL_MS;
    let shape = HistogramShape { seed, series: 18, scrapes, start_ms, interval_ms: INTERVAL_MS };
    // A server reduces finer resolutions when it stores them, upstream only when it scrapes.
    let is_stored_as_sent = |series: &SentSeries| !matches!(series.family, Family::Fine { .. });
    let mut series: Vec<_> = generate(shape).into_iter().filter(is_stored_as_sent).collect();
    let mut out_of_order = Vec::new();
    for (number, labels) in floats().into_iter().enumerate() {
        let mut random = Random::new(seed, 1_000 + number as u64);
        let (mut values, mut behind) = (Vec::new(), Vec::new());
        let name = labels.value("__name__").to_owned();
        let mut value = random.below(100) as f64;
        let mut gap = 0;
        for scrape in 0..scrapes as i64 {
            value = next(&name, value, &mut random);
            if gap == 0 && random.one_in(80) {
                gap = 1 + random.below(40);
                // A removed target ends its series by stale markers; an unreachable one does not.
                let time_ms = start_ms + scrape * INTERVAL_MS;
                let stale = SentValue::Float(f64::from_bits(STALE_MARKER_BITS));
                values.extend(random.one_in(2).then_some((time_ms, stale)));
            }
            if gap > 0 {
                gap -= 1;
                continue;
            }
            let time_ms = start_ms + scrape * INTERVAL_MS + random.below(20) as i64;
            let sample = (time_ms, SentValue::Float(special(&name, value, &mut random)));
            match random.one_in(30) {
                true => behind.push(sample),
                false => values.push(sample),
            }
        }
        let family = Family::Mixed;
        out_of_order.push(SentSeries { labels: labels.clone(), family, values: behind });
        series.push(SentSeries { labels, family, values });
    }
    Data { series, out_of_order }
}

fn floats() -> Vec<Labels> {
    let mut all = Vec::new();
    for (job, instance) in [("api", "a:1"), ("api", "b:1"), ("db", "c:1"), ("db", "d:1")] {
        let own = |name: &str, more: (&str, &str)| {
            Labels::from_pairs([("__name__", name), ("job", job), ("instance", instance), more])
        };
        all.push(own("up", ("", "")));
        // One target has no zone.
        let zone = if job == "api" { "north" } else { "south" };
        all.extend((instance != "d:1").then(|| own("target_info", ("zone", zone))));
        all.push(own("build_info", ("version", if job == "api" { "1.2" } else { "2.0" })));
        for mode in ["user", "system", "idle"] {
            all.push(own("cpu_seconds_total", ("mode", mode)));
        }
        for room in ["north", "south"] {
            all.push(own("temperature", ("room", room)));
        }
        all.extend(BOUNDS.map(|bound| own("request_seconds_bucket", ("le", bound))));
        all.push(own("request_seconds_count", ("", "")));
        all.push(own("request_seconds_sum", ("", "")));
    }
    all
}

/// Returns the value after another one.
fn next(name: &str, value: f64, random: &mut Random) -> f64 {
    match name {
        "up" => f64::from(u8::from(!random.one_in(10))),
        "build_info" | "target_info" => 1.0,
        "temperature" => value + random.fraction() * 4.0 - 2.0,
        _ if random.one_in(150) => 0.0,
        "request_seconds_bucket" | "request_seconds_count" => value + random.below(9) as f64,
        _ => value + random.fraction() * 15.0,
    }
}

/// Replaces a gauge's value now and then by NaN or an extreme one.
fn special(name: &str, value: f64, random: &mut Random) -> f64 {
    match name == "temperature" && random.one_in(100) {
        true => random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e300, -1e-300]),
        false => value,
    }
}
