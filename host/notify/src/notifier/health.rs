//! Whether heartbeats may be sent: rules are evaluated, samples are stored, and the clock is
//! trusted. Firing alerts do not stop them.

use super::lock;
use crate::event::Origin;
use crate::observe::origin;
use crate::silences::Clock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidepool_rules::group::GroupSnapshot;

/// Intervals after which an evaluation is missing, and the time that an evaluation itself may take.
const EVALUATION_INTERVALS: u32 = 2;
const EVALUATION_GRACE: Duration = Duration::from_secs(60);

/// Time in which at least one sample has to be stored. Longer than usual intervals of scrapes.
const STORED_WITHIN: Duration = Duration::from_secs(5 * 60);

pub struct Beats {
    clock: Clock,
    newest_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    /// Last evaluation and interval of each group.
    groups: BTreeMap<Origin, (Instant, Duration)>,
    /// Time of the newest sample, and when it was seen to change.
    newest_ms: (i64, Instant),
}

impl Beats {
    pub fn new(clock: Clock, newest_ms: Arc<dyn Fn() -> i64 + Send + Sync>) -> Beats {
        let begun = Instant::now();
        let state = State { begun, groups: BTreeMap::new(), newest_ms: (i64::MIN, begun) };
        Beats { clock, newest_ms, state: Mutex::new(state) }
    }

    pub fn evaluated(&self, group: &GroupSnapshot) {
        let interval = Duration::from_millis(group.interval_ms.unsigned_abs());
        let origin = origin(&group.file, &group.name);
        lock(&self.state).groups.insert(origin, (Instant::now(), interval));
    }

    /// Notes which groups there are. New ones are due within their interval, which is not known
    /// yet.
    pub fn retain(&self, groups: &BTreeSet<Origin>) {
        let mut state = lock(&self.state);
        state.groups.retain(|origin, _| groups.contains(origin));
    }

    /// Returns why no heartbeat may be sent.
    pub fn health(&self) -> Result<(), String> {
        self.health_at(Instant::now())
    }

    fn health_at(&self, now: Instant) -> Result<(), String> {
        if (self.clock)().is_doubted {
            return Err("the clock is doubted".to_owned());
        }
        let newest_ms = (self.newest_ms)();
        let mut state = lock(&self.state);
        if newest_ms != state.newest_ms.0 {
            state.newest_ms = (newest_ms, now);
        }
        if now.saturating_duration_since(state.newest_ms.1) > STORED_WITHIN {
            let seconds = STORED_WITHIN.as_secs();
            return Err(format!("no sample was stored in the last {seconds} s"));
        }
        let is_missing = |(at, interval): &(Instant, Duration)| {
            let due = interval.saturating_mul(EVALUATION_INTERVALS) + EVALUATION_GRACE;
            now.saturating_duration_since(*at) > due
        };
        let missing = state.groups.iter().find(|(_, evaluated)| is_missing(evaluated));
        if let Some((Origin { file, group }, _)) = missing {
            return Err(format!("the rule group {group:?} of {file} is not evaluated"));
        }
        // Without rules there is nothing that a receiver could miss, and nothing to vouch for.
        let is_starting = now.saturating_duration_since(state.begun) <= EVALUATION_GRACE;
        if state.groups.is_empty() && !is_starting {
            return Err("no rule is evaluated".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silences::Now;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn group(interval_ms: i64) -> GroupSnapshot {
        GroupSnapshot {
            name: "g".to_owned(),
            file: "f".to_owned(),
            interval_ms,
            query_offset_ms: 0,
            limit: 0,
            last_slot_ms: None,
            last_evaluation_ms: None,
            evaluation_time: Duration::ZERO,
            is_held: false,
            rules: Vec::new(),
        }
    }

    #[test]
    fn a_heartbeat_stops_with_what_it_vouches_for() {
        let (doubted, stored) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
        let (is_doubted, total) = (Arc::clone(&doubted), Arc::clone(&stored));
        let clock = move || Now {
            wall_ms: 0,
            is_doubted: is_doubted.load(Relaxed),
            monotonic: Duration::ZERO,
        };
        let beats = Beats::new(Arc::new(clock), Arc::new(move || total.load(Relaxed)));
        let begun = Instant::now();
        beats.evaluated(&group(60_000));
        stored.store(1, Relaxed);
        assert_eq!(beats.health_at(begun + seconds(1)), Ok(()));
        doubted.store(true, Relaxed);
        assert!(beats.health_at(begun + seconds(2)).is_err_and(|why| why.contains("clock")));
        doubted.store(false, Relaxed);
        assert_eq!(beats.health_at(begun + seconds(170)), Ok(()));
        let why = beats.health_at(begun + seconds(200));
        assert_eq!(why, Err("the rule group \"g\" of f is not evaluated".to_owned()));
        beats.evaluated(&group(600_000));
        assert_eq!(beats.health_at(begun + seconds(290)), Ok(()));
        assert!(beats.health_at(begun + seconds(302)).is_err_and(|why| why.contains("sample")));
        stored.store(2, Relaxed);
        assert_eq!(beats.health_at(begun + seconds(303)), Ok(()));
        beats.retain(&BTreeSet::new());
        let why = beats.health_at(begun + seconds(304));
        assert_eq!(why, Err("no rule is evaluated".to_owned()));
    }
}
