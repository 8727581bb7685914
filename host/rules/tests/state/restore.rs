//! Alerts after a start: upstream's cases of `RestoreForState`, and what is back at once here.

use crate::engine::{MINUTE, Memory, Vector, alerts, at, defaults, float, groups_of, options};
use tidepool_rules::alert::{Change, RestoreOptions, State, Told, mark_shared};
use tidepool_rules::group::{AlertSnapshot, Group, Options};

const RESTORE: RestoreOptions = RestoreOptions {
    outage_tolerance_ms: 30 * MINUTE,
    grace_period_ms: 10 * MINUTE,
    alerts_max: 100,
};

fn group(rule: &str, interval: &str) -> Group {
    let text = format!("groups: [{{name: g, interval: {interval}, rules: [{rule}]}}]");
    groups_of("f", &text, &defaults()).remove(0)
}

/// Restores all that the store has between the tolerance and now.
fn restore(group: &mut Group, memory: &Memory, now_ms: i64) {
    let mut requests = group.restore_requests();
    mark_shared(&mut requests);
    for request in &requests {
        let from_ms = now_ms - RESTORE.outage_tolerance_ms;
        let of = |name: &str| {
            let last = memory.last(name, from_ms, now_ms).into_iter();
            let matches = |series: &tidepool_rules::labels::LabelSet| {
                request.matchers.iter().all(|(name, value)| series.get(name) == value)
            };
            last.filter(|sample| matches(&sample.series)).collect::<Vec<_>>()
        };
        group.restore(request, &of("ALERTS_FOR_STATE"), &of("ALERTS"), now_ms, &RESTORE);
    }
}

fn always(_: i64) -> Vector {
    vec![float(1.0, &[])]
}

/// Evaluates the first run of a rule at minutes of a day.
fn first_run(rule: &str, minutes: &[i64], memory: &mut Memory) -> Group {
    let mut first = group(rule, "10m");
    first.skip_restore();
    for minute in minutes {
        first.evaluate(minute * MINUTE, memory, &options());
    }
    first
}

#[test]
fn upstreams_cases_are_restored() {
    // Minutes: `for`, evaluations, restoration; state before; active since after.
    for (for_, evaluations, restored, state, active) in [
        (5, &[0, 4, 6, 8][..], 12, State::Firing, 0),
        (10, &[0, 9, 11, 13], 17, State::Firing, 0),
        (15, &[0, 14, 16, 18], 22, State::Firing, 0),
        // Upstream lets `for` begin again, as it is shorter than the grace period.
        (5, &[0, 2], 6, State::Pending, 4),
        (25, &[0, 5], 15, State::Pending, 10),
        (25, &[0, 20], 25, State::Pending, 10),
        // Longer ago than the tolerance.
        (5, &[0, 4, 6, 8], 40, State::Firing, -1),
        (0, &[0, 2], 6, State::Firing, 0),
    ] {
        let rule = format!("{{alert: A, expr: q, for: {for_}m}}");
        let mut memory = at(always);
        let first = first_run(&rule, evaluations, &mut memory);
        assert_eq!(alerts(&first)[0].state, state);
        let mut second = group(&rule, "1m");
        restore(&mut second, &memory, restored * MINUTE);
        let found: Vec<AlertSnapshot> = alerts(&second);
        if active < 0 {
            assert_eq!(found, []);
            continue;
        }
        // At once, before an evaluation.
        assert_eq!((found[0].state, found[0].active_at_ms), (state, active * MINUTE), "{for_}");
        second.evaluate((restored + 1) * MINUTE, &mut memory, &options());
        assert_eq!(alerts(&second)[0].state, state);
        // A pending one fires when what was left of `for` is over.
        let due = active + for_;
        for minute in restored + 2..due {
            second.evaluate(minute * MINUTE, &mut memory, &options());
            assert_eq!(alerts(&second)[0].state, state);
        }
        second.evaluate(due.max(restored + 2) * MINUTE, &mut memory, &options());
        assert_eq!(alerts(&second)[0].state, State::Firing);
    }
}

#[test]
fn an_evaluation_before_the_restoration_writes_nothing() {
    let rule = "{alert: A, expr: q, for: 25m}";
    let mut memory = at(always);
    first_run(rule, &[0, 5], &mut memory);
    let before = memory.rows.clone();
    let mut second = group(rule, "10m");
    second.evaluate(14 * MINUTE, &mut memory, &options());
    second.evaluate(15 * MINUTE, &mut memory, &options());
    assert_eq!(memory.rows, before);
    assert_eq!(alerts(&second)[0].active_at_ms, 14 * MINUTE);
    restore(&mut second, &memory, 15 * MINUTE);
    // Ten minutes of outage.
    assert_eq!(alerts(&second)[0].active_at_ms, 10 * MINUTE);
    second.evaluate(16 * MINUTE, &mut memory, &options());
    assert_ne!(memory.rows, before);
}

#[test]
fn firing_alerts_await_the_second_evaluation() {
    let seen = |minutes: &'static [i64]| {
        move |time_ms: i64| {
            if minutes.contains(&(time_ms / MINUTE)) { always(time_ms) } else { vec![] }
        }
    };
    for (rule, minutes, settle_ms, expected) in [
        // Found again: nothing happened.
        ("{alert: A, expr: q}", &[0, 1, 12, 13][..], 0, &[][..]),
        // Gone: receivers are told, which upstream never does.
        ("{alert: A, expr: q}", &[0, 1], 0, &[(12, Change::Resolved)]),
        ("{alert: A, expr: q}", &[0, 1], 3 * MINUTE, &[(13, Change::Resolved)]),
        ("{alert: A, expr: q, keep_firing_for: 2m}", &[0, 1], 0, &[(14, Change::Resolved)]),
        ("{alert: A, expr: q, for: 5m}", &[0, 1], 0, &[(12, Change::Dropped)]),
    ] {
        let mut memory = at(seen(minutes));
        first_run(rule, &[0, 1], &mut memory);
        let mut second = group(rule, "1m");
        restore(&mut second, &memory, 10 * MINUTE);
        let mut changes = Vec::new();
        for minute in 11..14 + i64::from(minutes.len() == 2) {
            let options = Options { settle_ms, ..options() };
            let report = second.evaluate(minute * MINUTE, &mut memory, &options);
            let transitions = &report.rules[0].transitions;
            changes.extend(transitions.iter().map(|transition| (minute, transition.change)));
        }
        assert_eq!(changes, expected, "{rule}");
    }
}

#[test]
fn samples_of_several_rules_tell_nobody() {
    let two = "{alert: A, expr: q}, {alert: A, expr: none}";
    let mut memory = Memory::new(|query, _| {
        let found = if query.expression == "q" { always(0) } else { vec![] };
        Ok(tidepool_rules::engine::Answer::Vector(found))
    });
    first_run(two, &[0, 1], &mut memory);
    let mut second = group(two, "1m");
    restore(&mut second, &memory, 2 * MINUTE);
    assert_eq!(second.alert_count(), 2);
    let mut notices = 0;
    for minute in 3..6 {
        let report = second.evaluate(minute * MINUTE, &mut memory, &options());
        assert!(report.rules.iter().all(|rule| rule.transitions.is_empty()));
        assert_eq!(report.rules[1].notices, []);
        assert_eq!(report.rules[0].refused, report.rules[1].refused);
        notices += report.rules[0].notices.len();
    }
    assert_eq!((second.alert_count(), notices), (1, 2));
}

#[test]
fn requests_leave_templates_out() {
    let rules = "{alert: A, expr: q, labels: {severity: critical, empty: '', \
                 ext: 'i_{{ $labels.instance }}'}}, {record: r, expr: q}, \
                 {alert: A, expr: q, labels: {severity: warning}}, {alert: B, expr: q}, \
                 {alert: B, expr: q, labels: {severity: warning}}";
    let mut requests = group(rules, "1m").restore_requests();
    mark_shared(&mut requests);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(requests[0].matchers, [pair("alertname", "A"), pair("severity", "critical")]);
    let found: Vec<_> = requests.iter().map(|request| (request.rule, request.is_shared)).collect();
    assert_eq!(found, [(0, false), (2, false), (3, true), (4, true)]);
}

#[test]
fn labels_that_expanded_to_nothing_are_restored() {
    let rule = "{alert: A, expr: q, labels: {rare: '{{ if gt $value 8.0 }}yes{{ end }}'}}";
    let mut memory = at(always);
    let first = first_run(rule, &[0, 1], &mut memory);
    let mut second = group(rule, "1m");
    restore(&mut second, &memory, 2 * MINUTE);
    assert_eq!(alerts(&second)[0].labels, alerts(&first)[0].labels);
    second.evaluate(3 * MINUTE, &mut memory, &options());
    assert_eq!(alerts(&second).len(), 1);
}

#[test]
fn a_clock_behind_the_samples_has_no_alerts_of_the_future() {
    let rule = "{alert: A, expr: q, for: 5m}";
    let mut memory = at(always);
    first_run(rule, &[60, 62], &mut memory);
    let mut second = group(rule, "1m");
    let samples = |name| memory.last(name, 0, i64::MAX);
    let request = second.restore_requests().remove(0);
    let (for_state, active) = (samples("ALERTS_FOR_STATE"), samples("ALERTS"));
    second.restore(&request, &for_state, &active, 10 * MINUTE, &RESTORE);
    assert_eq!(alerts(&second)[0].active_at_ms, 8 * MINUTE);
}

#[test]
fn alerts_that_may_be_gone_do_not_count_for_the_limit() {
    let rule = "{alert: A, expr: q}";
    let mut memory =
        at(|time_ms| vec![float(1.0, &[("k", &(time_ms / (5 * MINUTE)).to_string())])]);
    first_run(rule, &[0, 1], &mut memory);
    let text = format!("groups: [{{name: g, limit: 1, rules: [{rule}]}}]");
    let mut second = groups_of("f", &text, &defaults()).remove(0);
    restore(&mut second, &memory, 5 * MINUTE);
    for (minute, count) in [(6, 2), (7, 1)] {
        let report = second.evaluate(minute * MINUTE, &mut memory, &options());
        assert!(report.rules[0].result.is_ok());
        assert_eq!(second.alert_count(), count);
    }
}

#[test]
fn a_firing_alert_is_active_since_the_same_time_though_its_for_was_raised() {
    let mut memory = at(always);
    first_run("{alert: A, expr: q, for: 1m}", &[0, 1, 2], &mut memory);
    let mut second = group("{alert: A, expr: q, for: 20m}", "1m");
    restore(&mut second, &memory, 10 * MINUTE);
    let before = alerts(&second).remove(0);
    second.evaluate(11 * MINUTE, &mut memory, &options());
    let after = alerts(&second).remove(0);
    assert_eq!((before.state, before.active_at_ms), (State::Firing, 0));
    assert_eq!((after.state, after.active_at_ms), (State::Pending, 0));
}

/// Rules that ship write no samples, so only receivers know what fired.
#[test]
fn what_receivers_take_for_firing_comes_back() {
    let told = |value: &str| Told {
        labels: crate::engine::labels(&[("alertname", "A"), ("k", value), ("severity", "page")]),
        annotations: Default::default(),
        value: 7.0,
        fired_at_ms: 100 * MINUTE,
    };
    for is_found in [true, false] {
        let mut group = group("{alert: A, expr: q, for: 5m, labels: {severity: page}}", "1m");
        group.skip_restore();
        let other = Told {
            labels: crate::engine::labels(&[("alertname", "B"), ("severity", "page")]),
            ..told("")
        };
        group.bring_back(vec![told("a"), other], 120 * MINUTE, 10);
        let found = alerts(&group);
        let [alert] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (alert.state, alert.fired_at_ms, alert.active_at_ms, alert.value),
            (State::Firing, Some(100 * MINUTE), 95 * MINUTE, 7.0)
        );
        let mut memory =
            at(move |_| if is_found { vec![float(1.0, &[("k", "a")])] } else { vec![] });
        let mut changes = Vec::new();
        for minute in 121..125 {
            let report = group.evaluate(minute * MINUTE, &mut memory, &options());
            let transitions = &report.rules[0].transitions;
            changes.extend(transitions.iter().map(|transition| (minute, transition.change)));
        }
        let ended = (122, Change::Resolved);
        assert_eq!(changes, if is_found { vec![] } else { vec![ended] });
    }
    let mut bounded = group("{alert: A, expr: q, labels: {severity: page}}", "1m");
    bounded.bring_back(vec![told("a"), told("b"), told("c")], 120 * MINUTE, 2);
    assert_eq!(alerts(&bounded).len(), 2);
    // One that fires takes the exact time: samples have whole seconds.
    let exact = Told { fired_at_ms: 100 * MINUTE + 78, ..told("a") };
    bounded.bring_back(vec![exact], 120 * MINUTE, 2);
    assert_eq!(alerts(&bounded)[0].fired_at_ms, Some(100 * MINUTE + 78));
}
