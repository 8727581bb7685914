//! Disabling of plugins that fail.
//!
//! Each plugin has a score. It rises by ten with each fault and falls by one with each good call.
//! At thirty (three faults in a row, or over a longer time more than one fault in eleven calls),
//! the plugin is disabled: first for a second, then each time for twice as long, up to five
//! minutes. After the pause, one call at a time tests the plugin; a good call enables it again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FAULT: u32 = 10;
const LIMIT: u32 = 30;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

#[derive(Default)]
pub struct Health {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    score: u32,
    /// End of the pause; `None` if the plugin is not disabled.
    until: Option<Instant>,
    /// Length of the current pause.
    pause: Duration,
    is_tried: bool,
}

/// Permission for one call, whose outcome must be reported to [`Health`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Whether the call tests a disabled plugin.
    is_try: bool,
}

impl Health {
    /// Admits a call, unless the plugin is disabled or being tested.
    pub fn admit(&self, now: Instant) -> Option<Admitted> {
        let mut state = self.lock();
        if let Some(until) = state.until {
            if now < until || state.is_tried {
                return None;
            }
            // Only one call tests the plugin, because several might each wait until their timeout.
            state.is_tried = true;
            return Some(Admitted { is_try: true });
        }
        Some(Admitted { is_try: false })
    }

    /// Reports a good call. Returns whether this call enabled the plugin again.
    pub fn good(&self, admitted: Admitted) -> bool {
        let mut state = self.lock();
        state.score = state.score.saturating_sub(1);
        if admitted.is_try {
            // The score starts at zero again, so that one fault does not disable the plugin.
            *state = State::default();
        }
        admitted.is_try
    }

    /// Reports a fault. Returns the length of the pause if this fault disabled the plugin.
    pub fn fault(&self, admitted: Admitted, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        state.score = (state.score + FAULT).min(LIMIT);
        if admitted.is_try {
            state.is_tried = false;
        }
        // Calls that began before the pause may end during the pause, but must not extend it.
        let is_due = admitted.is_try || (state.score >= LIMIT && state.until.is_none());
        if !is_due {
            return None;
        }
        state.pause = (state.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        state.until = now.checked_add(state.pause);
        Some(state.pause)
    }

    /// Reports that an admitted call was not made.
    pub fn nothing(&self, admitted: Admitted) {
        if admitted.is_try {
            self.lock().is_tried = false;
        }
    }

    /// Returns whether the plugin is disabled or being tested.
    pub fn is_disabled(&self) -> bool {
        self.lock().until.is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(health: &Health, now: Instant) -> Option<Duration> {
        let admitted = health.admit(now)?;
        health.fault(admitted, now)
    }

    #[test]
    fn three_faults_in_a_row_disable_for_longer_and_longer() {
        let health = Health::default();
        let mut now = Instant::now();
        assert_eq!((fail(&health, now), fail(&health, now)), (None, None));
        let mut pause = PAUSE_MIN;
        assert_eq!(fail(&health, now), Some(pause));
        for _ in 0..12 {
            assert_eq!(health.admit(now + pause / 2), None);
            now += pause;
            let first = health.admit(now);
            assert!(first.is_some() && health.admit(now).is_none(), "one at a time");
            pause = (pause * 2).min(PAUSE_MAX);
            assert_eq!(first.and_then(|first| health.fault(first, now)), Some(pause));
        }
        now += pause;
        assert!(health.admit(now).is_some_and(|tried| health.good(tried)));
        assert!(!health.is_disabled());
        assert_eq!(fail(&health, now), None, "it starts over");
    }

    #[test]
    fn rare_faults_are_forgiven() {
        let health = Health::default();
        let now = Instant::now();
        for _ in 0..100 {
            assert_eq!(fail(&health, now), None);
            for _ in 0..11 {
                assert!(health.admit(now).is_some_and(|admitted| !health.good(admitted)));
            }
        }
        assert!(!health.is_disabled());
    }

    #[test]
    fn calls_that_end_late_disable_it_once() {
        let health = Health::default();
        let now = Instant::now();
        let calls: Vec<_> = (0..6).filter_map(|_| health.admit(now)).collect();
        let pauses: Vec<_> = calls.into_iter().filter_map(|call| health.fault(call, now)).collect();
        assert_eq!(pauses, [PAUSE_MIN]);
        if let Some(tried) = health.admit(now + PAUSE_MIN) {
            health.nothing(tried);
        }
        assert!(health.admit(now + PAUSE_MIN).is_some());
    }
}
