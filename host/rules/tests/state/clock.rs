//! Clocks that are set or doubted: no alert fires or ends because of them.

use crate::engine::{MINUTE, Vector, alerts, at, float, group_of, options};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tidepool_rules::alert::{Change, State};
use tidepool_rules::clock::{REPEATED_MS_MAX, STEP_INTERVALS_MAX, Trust};
use tidepool_rules::group::{AlertSnapshot, Group, Options};

/// State of each alert that is not resolved, by its label.
fn states(group: &Group) -> BTreeMap<String, State> {
    let active = alerts(group).into_iter().filter(|alert| alert.resolved_at_ms.is_none());
    active.map(|alert: AlertSnapshot| (alert.labels.get("k").to_owned(), alert.state)).collect()
}

fn always(_: i64) -> Vector {
    vec![float(1.0, &[("k", "a")])]
}

#[test]
fn a_jump_does_not_make_an_alert_fire() {
    let hour = 60;
    for jump in [hour, -hour, 24 * 365 * hour] {
        let mut group = group_of("{alert: A, expr: q, for: 10m}");
        let mut memory = at(always);
        for minute in 1000..1007 {
            group.evaluate(minute * MINUTE, &mut memory, &options());
        }
        let mut fired = None;
        for minute in 1007..1020 {
            let report = group.evaluate((minute + jump) * MINUTE, &mut memory, &options());
            assert_eq!(report.is_held, minute == 1007);
            if alerts(&group)[0].state == State::Firing {
                fired = fired.or(Some(minute));
            }
        }
        // The step backwards counts for nothing, as nobody knows its length.
        assert_eq!(fired, Some(if jump > 0 { 1010 } else { 1011 }));
        let alert = alerts(&group).remove(0);
        let lasted = alert.fired_at_ms.expect("it fires") - alert.active_at_ms;
        assert_eq!(lasted, 10 * MINUTE);
    }
}

#[test]
fn missed_slots_count_as_upstream() {
    let mut group = group_of("{alert: A, expr: q, for: 10m}");
    let mut memory = at(always);
    group.evaluate(0, &mut memory, &options());
    group.evaluate(5 * MINUTE, &mut memory, &options());
    group.evaluate(10 * MINUTE, &mut memory, &options());
    assert_eq!(alerts(&group)[0].state, State::Firing);
    assert_eq!(alerts(&group)[0].active_at_ms, 0);
}

#[test]
fn after_a_jump_missing_data_ends_nothing() {
    // Scrapes have the new time a while after the first evaluation.
    let data = |time_ms: i64| match time_ms / MINUTE {
        0..=2 | 64.. => always(time_ms),
        _ => vec![],
    };
    let mut group = group_of("{alert: A, expr: q}");
    let mut memory = at(data);
    let options = Options { settle_ms: 3 * MINUTE, ..options() };
    let mut changes = Vec::new();
    for minute in [0, 1, 2, 62, 63, 64, 65] {
        let report = group.evaluate(minute * MINUTE, &mut memory, &options);
        let transitions = &report.rules[0].transitions;
        changes.extend(transitions.iter().map(|transition| (minute, transition.change)));
    }
    assert_eq!(changes, [(0, Change::Firing)]);
}

#[test]
fn while_the_clock_is_doubted_alerts_stay() {
    let mut group = group_of("{alert: A, expr: q, for: 5m, keep_firing_for: 5m}");
    let present = Arc::new(Mutex::new(true));
    let answer = present.clone();
    let mut memory =
        at(
            move |time_ms| {
                if *answer.lock().expect("no test failed") { always(time_ms) } else { vec![] }
            },
        );
    let doubted = Options { trust: Trust::Doubted, ..options() };
    let mut minute = 0;
    let mut run = |group: &mut Group, options: &Options, times: i64| {
        for _ in 0..times {
            group.evaluate(minute * MINUTE, &mut memory, options);
            minute += 1;
        }
        states(group).values().copied().collect::<Vec<_>>()
    };
    let set = |is_present: bool| *present.lock().expect("no test failed") = is_present;
    assert_eq!(run(&mut group, &doubted, 10), []);
    assert_eq!(run(&mut group, &options(), 3), [State::Pending]);
    assert_eq!(run(&mut group, &doubted, 60), [State::Pending]);
    assert!(group.snapshot().is_held);
    // Two of five minutes are over.
    assert_eq!(run(&mut group, &options(), 2), [State::Pending]);
    assert_eq!(run(&mut group, &options(), 1), [State::Firing]);
    set(false);
    assert_eq!(run(&mut group, &doubted, 60), [State::Firing]);
    assert_eq!(run(&mut group, &options(), 3), [State::Firing]);
    assert_eq!(run(&mut group, &doubted, 60), [State::Firing]);
    assert_eq!(run(&mut group, &options(), 2), [State::Firing]);
    assert_eq!(run(&mut group, &options(), 1), []);
}

#[derive(Clone, Debug)]
struct Turn {
    /// In intervals.
    step: i64,
    is_doubted: bool,
    present: [bool; 3],
}

fn turn() -> impl Strategy<Value = Turn> {
    let usual = 1..=STEP_INTERVALS_MAX;
    let step =
        prop_oneof![8 => Just(1i64), 2 => usual, 1 => 6i64..5000, 1 => -5000i64..0, 1 => -12i64..0];
    (step, prop::bool::weighted(0.1), any::<[bool; 3]>())
        .prop_map(|(step, is_doubted, present)| Turn { step, is_doubted, present })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A model counts the time that evaluations cover, and knows nothing of times of alerts.
    #[test]
    fn alerts_fire_for_time_that_evaluations_cover(
        turns in prop::collection::vec(turn(), 1..60), for_minutes in 0..8i64
    ) {
        let mut group = group_of(&format!("{{alert: A, expr: q, for: {for_minutes}m}}"));
        let present = Arc::new(Mutex::new([false; 3]));
        let answer = present.clone();
        let mut memory = at(move |_| {
            let present = *answer.lock().expect("no test failed");
            let names = ["a", "b", "c"].into_iter().zip(present).filter(|(_, is)| *is);
            names.map(|(name, _)| float(1.0, &[("k", name)])).collect()
        });
        // Intervals that are covered since an alert began.
        let mut covered: BTreeMap<String, i64> = BTreeMap::new();
        let (mut minute, mut before_step_back, mut moved) = (1_000_000, None, 0);
        for (position, turn) in turns.iter().enumerate() {
            *present.lock().expect("no test failed") = turn.present;
            minute += turn.step;
            let trust = if turn.is_doubted { Trust::Doubted } else { Trust::Trusted };
            let options = Options { trust, ..options() };
            let before = states(&group);
            let report = group.evaluate(minute * MINUTE, &mut memory, &options);
            let after = states(&group);
            let is_jump = position > 0 && !(1..=STEP_INTERVALS_MAX).contains(&turn.step);
            if position > 0 && turn.step < 0 {
                let last = minute - turn.step;
                before_step_back = before_step_back.max(Some(last));
            }
            let behind = before_step_back.map(|before| before - minute);
            let is_repeated = behind.is_some_and(|behind| (0..=REPEATED_MS_MAX / MINUTE).contains(&behind));
            // Small steps back repeat time; others move it, until a jump moves it back.
            let is_small = moved <= REPEATED_MS_MAX / MINUTE;
            moved = match turn.step {
                ..0 if position > 0 => moved - turn.step,
                step if is_small => (moved - step).max(0),
                step if step > STEP_INTERVALS_MAX => {
                    (moved - step + i64::from(!turn.is_doubted)).max(0)
                }
                _ => moved,
            };
            let passed = behind.filter(|behind| is_small && *behind < 0);
            let passed = passed.map_or(i64::MAX, |behind| -behind);
            before_step_back = before_step_back.filter(|before| minute <= *before);
            moved = before_step_back.map_or(0, |_| moved);
            prop_assert_eq!(report.is_held, is_jump || turn.is_doubted || is_repeated);
            if report.is_held {
                prop_assert_eq!(&before, &after);
                prop_assert!(report.rules[0].transitions.is_empty());
            }
            let counted = match turn.step {
                _ if turn.is_doubted || is_repeated => 0,
                ..=0 => 0,
                // Time up to the step backwards was covered before it.
                1..=STEP_INTERVALS_MAX => turn.step.min(passed),
                _ => 1,
            };
            covered.retain(|name, _| after.contains_key(name));
            covered.values_mut().for_each(|covered| *covered += counted);
            for (name, state) in &after {
                let covered = *covered.entry(name.clone()).or_insert(0);
                if *state == State::Firing && before.get(name) != Some(&State::Firing) {
                    prop_assert!(covered >= for_minutes, "{} fires after {}", name, covered);
                }
                // It does not fire later than upstream's would either.
                if *state == State::Pending && !report.is_held {
                    prop_assert!(covered < for_minutes, "{} waits for {}", name, covered);
                }
            }
            for alert in alerts(&group) {
                let times = [Some(alert.active_at_ms), alert.fired_at_ms, alert.resolved_at_ms];
                prop_assert!(times.iter().flatten().all(|time_ms| *time_ms <= minute * MINUTE));
            }
        }
    }
}

#[test]
fn resolved_alerts_are_kept_for_time_that_counts() {
    let data = |time_ms: i64| if time_ms == 0 { always(time_ms) } else { vec![] };
    let mut group = group_of("{alert: A, expr: q}");
    let mut memory = at(data);
    let mut kept = 0;
    for minute in [0, 1, 2].into_iter().chain(62..90) {
        group.evaluate(minute * MINUTE, &mut memory, &options());
        kept += alerts(&group).len();
    }
    // Firing once, and resolved for 15 minutes, the first and the last one included.
    assert_eq!(kept, 1 + 16);
}

/// A clock that ran fast is set back, and scrapes of the time that repeats have old values.
#[test]
fn time_that_repeats_changes_no_alert() {
    let data = |time_ms: i64| if time_ms == 5 * MINUTE { always(time_ms) } else { vec![] };
    let mut group = group_of("{alert: A, expr: q}");
    let mut memory = at(data);
    let mut changes = Vec::new();
    for minute in [4, 5, 6, 7, 4, 5, 6, 7, 8] {
        let report = group.evaluate(minute * MINUTE, &mut memory, &options());
        let transitions = &report.rules[0].transitions;
        changes.extend(transitions.iter().map(|transition| (minute, transition.change)));
    }
    assert_eq!(changes, [(5, Change::Firing), (6, Change::Resolved)]);
}

#[test]
fn times_come_back_with_the_clock() {
    let hour = 60 * MINUTE;
    for (wrong_ms, trust) in [
        (-3 * hour, Trust::Trusted),
        (-500_000 * hour, Trust::Doubted),
        (-2 * MINUTE, Trust::Trusted),
    ] {
        let mut group = group_of("{alert: A, expr: q}");
        let mut memory = at(always);
        let begin_ms = 1_000_000 * hour;
        group.evaluate(begin_ms, &mut memory, &options());
        for minute in 1..4 {
            let time_ms = begin_ms + minute * MINUTE + wrong_ms;
            group.evaluate(time_ms, &mut memory, &Options { trust, ..options() });
        }
        for minute in 4..9 {
            group.evaluate(begin_ms + minute * MINUTE, &mut memory, &options());
        }
        let alert = alerts(&group).remove(0);
        assert_eq!((alert.fired_at_ms, alert.active_at_ms), (Some(begin_ms), begin_ms));
    }
}
