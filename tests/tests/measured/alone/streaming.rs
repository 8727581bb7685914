//! The answer to a range query is streamed: the memory of the process does not grow with it, even
//! if its client reads slowly.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const SERIES: usize = 10_000;
const STEPS: usize = 1_440;

/// A step each second, a sample each half minute: an answer is much larger than its samples.
const STEP_MS: i64 = 1_000;
const INTERVAL_MS: i64 = 30_000;

/// Number of pauses of the client, each until the server has nothing more to do.
const PAUSES: u64 = 8;

/// Maximum growth of the process during a query: its instance, and the unread part of the answer.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// Smallest ratio of an answer's size to that growth.
const ANSWER_TO_GROWTH: u64 = 16;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that takes so little CPU time within a window waits for its client.
const IDLE_WINDOW: Duration = Duration::from_millis(100);
const IDLE_CPU_MAX: Duration = Duration::from_millis(10);

/// Counts of an answer's parts.
#[derive(Debug, Default)]
struct Came {
    bytes: u64,
    series: u64,
    points: u64,
    end: Vec<u8>,
    pauses: u64,
}

impl Came {
    /// Counts the ends of label sets and of points by bytes that no label or value contains.
    fn take(&mut self, part: &[u8]) {
        for &byte in part {
            match (self.end.last(), byte) {
                (Some(b'"'), b'}') => self.series += 1,
                (Some(b'"'), b']') => self.points += 1,
                _ => {}
            }
            if self.end.len() == 32 {
                self.end.remove(0);
            }
            self.end.push(byte);
        }
        self.bytes += part.len() as u64;
    }
}

fn wait_until_idle(server: &Server) {
    let cpu = || server.usage().expect("the usage of the process").cpu;
    let (mut before, mut since) = (cpu(), Instant::now());
    let is_idle = || {
        if since.elapsed() < IDLE_WINDOW {
            return None;
        }
        let now = cpu();
        let is_idle = now.saturating_sub(before) <= IDLE_CPU_MAX;
        (before, since) = (now, Instant::now());
        is_idle.then_some(())
    };
    wait::until("a server that waits", TIMEOUT, is_idle).expect("an idle server");
}

/// Reads an answer with a pause after each part of this number of bytes.
fn read_slowly(server: &Server, mut body: impl Read, pause_every: u64) -> Came {
    let mut came = Came::default();
    let mut part = vec![0; 256 << 10];
    loop {
        let count = body.read(&mut part).expect("the rest of the answer");
        if count == 0 {
            return came;
        }
        came.take(&part[..count]);
        if came.pauses < PAUSES && came.bytes >= came.pauses * pause_every {
            came.pauses += 1;
            wait_until_idle(server);
        }
    }
}

/// Calls a function, and returns the peak of the anonymous memory meanwhile.
fn watched<T>(server: &Server, run: impl FnOnce() -> T) -> (T, u64) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak_bytes = 0;
            while !is_over.load(Relaxed) {
                peak_bytes = server.anonymous_memory().expect("its memory").max(peak_bytes);
                std::thread::sleep(Duration::from_millis(1));
            }
            peak_bytes
        });
        let done = run();
        is_over.store(true, Relaxed);
        (done, watch.join().expect("the watch"))
    })
}

#[test]
fn a_large_answer_to_a_slow_client_does_not_grow_in_the_process() {
    let store = Store::start().expect("tidepool starts");
    let end_ms = now_ms();
    let start_ms = end_ms - STEPS as i64 * STEP_MS;
    // The first steps have samples in their lookback.
    let scrapes = STEPS * STEP_MS as usize / INTERVAL_MS as usize + 4;
    let data = Dataset::generate(Shape {
        seed: 19,
        series: SERIES,
        scrapes,
        start_ms: start_ms - 3 * INTERVAL_MS,
        interval_ms: INTERVAL_MS,
        texture: Texture::Regular,
    });
    send_all(&store, Version::V2, &data);
    for expression in ["{__name__=~\".+\"}", "last_over_time({__name__=~\".+\"}[1m])"] {
        wait_until_idle(&store.server);
        let before = store.server.anonymous_memory().expect("its memory");
        let times = [start_ms, start_ms + (STEPS as i64 - 1) * STEP_MS];
        let [start, end] = times.map(|ms| format!("{}.{:03}", ms / 1000, ms % 1000));
        let query = percent_encode(expression);
        let form = format!("query={query}&start={start}&end={end}&step=1");
        let url = format!("{}/api/v1/query_range", store.server.url());
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let (came, peak) = watched(&store.server, || {
            let answer = Client::default().post_streaming(&url, &headers, form.as_bytes());
            let answer = answer.expect("an answer");
            assert_eq!(answer.status, 200);
            read_slowly(&store.server, answer.body, 20 << 20)
        });
        let growth = peak.saturating_sub(before);
        println!("{expression}: {} bytes, {growth} more than {before} in memory", came.bytes);
        let end = String::from_utf8_lossy(&came.end);
        assert!(end.ends_with("]]}]}}"), "{end}");
        assert_eq!((came.series, came.points), (SERIES as u64, (SERIES * STEPS) as u64));
        assert_eq!(came.pauses, PAUSES, "{} bytes", came.bytes);
        assert!(growth <= GROWTH_BYTES_MAX, "{growth} bytes more than {before}");
        assert!(came.bytes >= ANSWER_TO_GROWTH * GROWTH_BYTES_MAX, "only {} bytes", came.bytes);
    }
}
