//! A viewer of a dashboard, who requests all of its panels repeatedly, at fixed times.
//!
//! A browser has six connections to a server, and requests the next panel when one is free. The
//! latency of a panel counts from its request. If a refresh is not over when the next is due, the
//! next one is missed.

use super::panels::Panel;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, HttpError, Response};
use tidepool_tests::wait::chain;

/// Connections of a browser to one server.
const CONNECTIONS: usize = 6;
/// Maximum bytes of an error that are quoted.
const QUOTE_BYTES_MAX: usize = 300;

/// A viewer and the panels of its dashboard.
pub struct Viewer {
    base_url: String,
    panels: Vec<Panel>,
    clients: Vec<Client>,
}

/// Latencies of one or more refreshes.
#[derive(Clone, Debug, Default)]
pub struct Refreshes {
    pub panels: Vec<Duration>,
    pub look_ups: Vec<Duration>,
    /// Time of each refresh, from the first request to the last answer.
    pub whole: Vec<Duration>,
    /// Number of refreshes that were due while an earlier one ran.
    pub missed: usize,
    /// Failed requests with their reasons.
    pub failures: Vec<String>,
}

impl Refreshes {
    pub fn extend(&mut self, other: Refreshes) {
        self.panels.extend(other.panels);
        self.look_ups.extend(other.look_ups);
        self.whole.extend(other.whole);
        self.missed += other.missed;
        self.failures.extend(other.failures);
    }
}

impl Viewer {
    /// Makes a viewer for the server at this base address.
    pub fn new(base_url: &str, panels: Vec<Panel>) -> Viewer {
        let clients = (0..CONNECTIONS).map(|_| Client::default()).collect();
        Viewer { base_url: base_url.to_string(), panels, clients }
    }

    /// Requests everything once, evaluated at this time.
    pub fn refresh(&self, now_ms: i64) -> Refreshes {
        let (next, begun) = (AtomicUsize::new(0), Instant::now());
        let mut all = Refreshes::default();
        std::thread::scope(|scope| {
            let connections: Vec<_> = self
                .clients
                .iter()
                .map(|client| {
                    let next = &next;
                    scope.spawn(move || {
                        let mut asked = Refreshes::default();
                        while let Some(panel) = self.panels.get(next.fetch_add(1, Relaxed)) {
                            self.ask(client, panel, now_ms, &mut asked);
                        }
                        asked
                    })
                })
                .collect();
            for connection in connections {
                match connection.join() {
                    Ok(asked) => all.extend(asked),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        all.whole.push(begun.elapsed());
        all
    }

    /// Refreshes whenever a refresh is due, until `end`.
    pub fn watch(&self, first: Instant, every: Duration, end: Instant) -> Refreshes {
        let (mut all, mut due) = (Refreshes::default(), first);
        while due < end {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            all.extend(self.refresh(now_ms()));
            let (next, missed) = next_due(due, every, Instant::now(), end);
            (due, all.missed) = (next, all.missed + missed);
        }
        all
    }

    fn ask(&self, client: &Client, panel: &Panel, now_ms: i64, asked: &mut Refreshes) {
        let begun = Instant::now();
        let answer = send(client, &self.base_url, panel, now_ms);
        let taken = begun.elapsed();
        match answer {
            Ok(answer) if answer.is_success() => match panel.is_look_up() {
                true => asked.look_ups.push(taken),
                false => asked.panels.push(taken),
            },
            Ok(refusal) => {
                let text = refusal.text();
                let end = text.floor_char_boundary(QUOTE_BYTES_MAX);
                let why = text[..end].replace(['\n', '|'], " ");
                asked.failures.push(format!("{}: {}: {why}", panel.promql, refusal.status));
            }
            Err(error) => asked.failures.push(format!("{}: {}", panel.promql, chain(&error))),
        }
    }
}

/// Requests a panel evaluated at this time.
pub fn send(
    client: &Client,
    base_url: &str,
    panel: &Panel,
    now_ms: i64,
) -> Result<Response, HttpError> {
    let request = panel.request(now_ms);
    let url = format!("{base_url}{}", request.target);
    match request.form {
        None => client.get(&url),
        Some(form) => {
            let headers = [("Content-Type", "application/x-www-form-urlencoded")];
            client.post(&url, &headers, form.as_bytes())
        }
    }
}

/// Returns the time of the next refresh after one that was due and is over, and the number of
/// refreshes missed before the end.
fn next_due(due: Instant, every: Duration, now: Instant, end: Instant) -> (Instant, usize) {
    let (mut next, mut missed) = (due + every, 0);
    while next < now && next < end {
        next += every;
        missed += 1;
    }
    (next, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_that_fall_into_another_are_missed() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let every = Duration::from_secs(10);
        let next = |over: u64| {
            let (next, missed) = next_due(at(3), every, at(over), at(60));
            (next.duration_since(start).as_secs(), missed)
        };
        assert_eq!(next(4), (13, 0));
        assert_eq!(next(13), (13, 0));
        assert_eq!(next(14), (23, 1));
        assert_eq!(next(38), (43, 3));
        // Refreshes that were due after the end are not missed.
        assert_eq!(next(500), (63, 5));
    }
}
