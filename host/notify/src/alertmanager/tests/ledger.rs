//! The ledger alone, step by step and against a plain model.

use super::super::ledger::{Accepted, Ledger, Noted, Position};
use super::{alert, key};
use crate::alertmanager::alert::Alert;
use crate::event::Change;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

fn noted(number: u64, change: Change, name: &str, fired_at_ms: i64, time_ms: i64) -> Noted {
    Noted { number, change, key: key(name), fired_at_ms, time_ms }
}

fn firing(number: u64, name: &str, at_ms: i64) -> Noted {
    noted(number, Change::Firing, name, at_ms, at_ms)
}

fn resolved(number: u64, name: &str, fired_at_ms: i64, time_ms: i64) -> Noted {
    noted(number, Change::Resolved, name, fired_at_ms, time_ms)
}

fn position(through: u64, beyond: &[u64]) -> Position {
    Position { through, beyond: beyond.iter().copied().collect() }
}

/// What live sending has accepted: an alert that fires since a time, or that has ended.
fn accepted(alerts: &[(&str, i64, Option<i64>)]) -> Accepted {
    let mut accepted = Accepted::default();
    add(&mut accepted, alerts);
    accepted
}

fn add(accepted: &mut Accepted, alerts: &[(&str, i64, Option<i64>)]) {
    for (name, starts_at_ms, ended_ms) in alerts {
        let one = Alert {
            starts_at_ms: *starts_at_ms,
            ends_at_ms: ended_ms.unwrap_or(i64::MAX),
            is_resolved: ended_ms.is_some(),
            ..alert(name)
        };
        accepted.add(&[one], Instant::now());
    }
}

#[test]
fn an_end_that_was_not_accepted_live_is_due() {
    let now = Instant::now();
    let due_at = now + Duration::from_secs(30);
    let mut ledger = Ledger::new(position(4, &[]));
    let events = vec![firing(5, "A", 10), resolved(6, "A", 10, 20), firing(7, "B", 30)];
    assert_eq!(ledger.note(events, 7, due_at), 0);
    assert_eq!((ledger.read_to(), ledger.ends()), (7, 1));
    assert!(ledger.due(now, 10).is_empty());
    assert_eq!((ledger.due(due_at, 10), ledger.next_due_at()), (vec![6], Some(due_at)));
    assert_eq!(ledger.position(), position(4, &[]));
    // Its beginning was never accepted, so nobody is notified.
    assert_eq!(ledger.settle_ends(&[6]), 1);
    assert_eq!(ledger.settle_ends(&[6]), 0);
    assert_eq!(ledger.position(), position(6, &[]));
    assert_eq!(ledger.settle_accepted(&accepted(&[("B", 30, None)])), 0);
    assert_eq!(ledger.position(), position(7, &[]));
}

#[test]
fn live_acceptance_settles_the_same_alert_only() {
    let now = Instant::now();
    let mut ledger = Ledger::new(Position::default());
    ledger.note(vec![firing(1, "A", 10), resolved(2, "A", 10, 20)], 2, now);
    for other in [("B", 10, Some(20)), ("A", 9, Some(20)), ("A", 10, Some(19)), ("A", 10, None)] {
        let mut ledger = Ledger::new(Position::default());
        ledger.note(vec![resolved(2, "A", 10, 20)], 2, now);
        ledger.settle_accepted(&accepted(&[other]));
        assert_eq!(ledger.due(now, 10), [2], "{other:?}");
    }
    let mut live = accepted(&[("A", 10, None)]);
    assert_eq!(ledger.settle_accepted(&live), 0);
    assert_eq!(ledger.position(), position(1, &[]));
    add(&mut live, &[("A", 10, Some(20))]);
    assert_eq!(ledger.settle_accepted(&live), 0);
    assert_eq!(ledger.position(), position(2, &[]));
}

/// Alertmanager would take the end of the first for that of the second, which has begun after it.
#[test]
fn the_end_of_an_alert_that_has_begun_again_is_not_sent() {
    let now = Instant::now();
    let mut ledger = Ledger::new(Position::default());
    ledger.note(vec![firing(1, "A", 10), resolved(2, "A", 10, 20)], 2, now);
    assert_eq!(ledger.note(vec![firing(3, "A", 30), firing(4, "B", 30)], 4, now), 1);
    assert!(ledger.due(now, 10).is_empty());
    assert_eq!(ledger.position(), position(2, &[]));
    // The second was accepted live before its event is read.
    let mut ledger = Ledger::new(Position::default());
    ledger.note(vec![firing(1, "A", 10), resolved(2, "A", 10, 20)], 2, now);
    assert_eq!(ledger.settle_accepted(&accepted(&[("A", 30, None)])), 1);
    assert_eq!(ledger.position(), position(2, &[]));
}

#[test]
fn a_position_goes_on_where_it_was() {
    let now = Instant::now();
    let mut ledger = Ledger::new(Position::default());
    let events = || {
        vec![firing(1, "A", 10), firing(2, "B", 10), resolved(3, "B", 10, 20), firing(4, "C", 30)]
    };
    ledger.note(events(), 4, now);
    ledger.settle_accepted(&accepted(&[("B", 10, None), ("C", 30, None)]));
    assert_eq!(ledger.position(), position(0, &[2, 4]));
    let mut again = Ledger::new(ledger.position());
    again.note(events(), 4, now);
    assert_eq!(again.position(), position(0, &[2, 4]));
    assert_eq!(again.settle_ends(&[3]), 0, "the beginning of B was accepted before");
    assert_eq!(again.position(), position(0, &[2, 3, 4]));
}

#[test]
fn what_the_journal_dropped_is_settled() {
    let now = Instant::now();
    let mut ledger = Ledger::new(Position::default());
    let events = vec![
        firing(1, "A", 10),
        firing(2, "B", 10),
        resolved(3, "A", 10, 20),
        firing(4, "C", 10),
        resolved(5, "C", 10, 20),
    ];
    ledger.note(events, 5, now);
    assert_eq!(ledger.drop_before(5), (1, 1));
    // B is still open, and the journal keeps its beginning.
    assert_eq!(ledger.position(), position(1, &[3]));
    assert_eq!(ledger.due(now, 10), [5]);
}

#[test]
fn a_beginning_that_is_never_accepted_does_not_make_the_position_long() {
    let mut ledger = Ledger::new(Position::default());
    ledger.note(vec![firing(1, "Refused", 10)], 1, Instant::now());
    ledger.note(Vec::new(), 1001, Instant::now());
    assert_eq!(ledger.position().through, 0);
    assert_eq!(ledger.position().beyond.len(), 1000);
    ledger.note(Vec::new(), 1002, Instant::now());
    assert_eq!(ledger.position(), position(1002, &[]));
    // The end of an alert is not given up.
    ledger.note(vec![resolved(1003, "A", 1, 2)], 5000, Instant::now());
    assert_eq!(ledger.position().through, 1002);
    assert_eq!(ledger.position().beyond.len(), 1000);
    assert_eq!(ledger.ends(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_remembered_for_minutes() {
    let mut live = accepted(&[("A", 10, Some(20))]);
    let settles = |live: &Accepted| {
        let mut ledger = Ledger::new(Position::default());
        ledger.note(vec![resolved(1, "A", 10, 20)], 1, Instant::now());
        ledger.settle_accepted(live);
        ledger.ends() == 0
    };
    tokio::time::advance(Duration::from_secs(599)).await;
    add(&mut live, &[("B", 10, None)]);
    assert!(settles(&live));
    tokio::time::advance(Duration::from_secs(62)).await;
    add(&mut live, &[("B", 10, None)]);
    assert!(!settles(&live));
}

/// One time that an alert fired.
#[derive(Debug)]
struct Episode {
    name: usize,
    fired_at_ms: i64,
    ended_at_ms: Option<i64>,
    is_begin_accepted: bool,
    is_end_settled: bool,
}

const NAMES: [&str; 3] = ["A", "B", "C"];

#[derive(Clone, Debug)]
enum Step {
    /// The alert begins or ends, whichever is next.
    Turn(usize),
    /// Live sending delivers the state of the alert.
    Accept(usize),
    /// What is due is posted.
    Post,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..3).prop_map(Step::Turn),
        3 => (0usize..3).prop_map(Step::Accept),
        1 => Just(Step::Post),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    /// Whatever happens, an end is sent at most once and only while the alert has not begun again;
    /// and alerts whose end is settled before their beginning are counted, each once.
    #[test]
    fn a_ledger_is_a_list_of_episodes(steps in prop::collection::vec(step(), 0..40)) {
        let now = Instant::now();
        let (mut episodes, mut journal) = (Vec::<Episode>::new(), Vec::<Noted>::new());
        let (mut ledger, mut counted) = (Ledger::new(Position::default()), 0);
        for (time_ms, step) in (1i64..).zip(steps.into_iter().chain([Step::Post])) {
            let last = |episodes: &[Episode], name| episodes.iter().rposition(|one| one.name == name);
            match step {
                Step::Turn(name) => {
                    let number = journal.len() as u64 + 1;
                    let open = last(&episodes, name).filter(|at| episodes[*at].ended_at_ms.is_none());
                    let event = match open {
                        Some(at) => {
                            episodes[at].ended_at_ms = Some(time_ms);
                            resolved(number, NAMES[name], episodes[at].fired_at_ms, time_ms)
                        }
                        None => {
                            // It begins again: the end of the one before is not sent any more.
                            if let Some(before) = last(&episodes, name) {
                                episodes[before].is_end_settled = true;
                            }
                            episodes.push(Episode {
                                name,
                                fired_at_ms: time_ms,
                                ended_at_ms: None,
                                is_begin_accepted: false,
                                is_end_settled: false,
                            });
                            firing(number, NAMES[name], time_ms)
                        }
                    };
                    journal.push(event);
                    counted += ledger.note(vec![event], number, now);
                }
                Step::Accept(name) => {
                    let Some(at) = last(&episodes, name) else { continue };
                    let one = &mut episodes[at];
                    match one.ended_at_ms {
                        None => one.is_begin_accepted = true,
                        Some(_) => one.is_end_settled = true,
                    }
                    let live = accepted(&[(NAMES[name], one.fired_at_ms, one.ended_at_ms)]);
                    counted += ledger.settle_accepted(&live);
                }
                Step::Post => {
                    let due = ledger.due(now, 100);
                    let expected = episodes.iter_mut().filter(|one| {
                        one.ended_at_ms.is_some() && !one.is_end_settled
                    });
                    let expected: BTreeSet<u64> = expected.map(|one| {
                        one.is_end_settled = true;
                        let is_end = |event: &&Noted| {
                            event.key == key(NAMES[one.name]) && Some(event.time_ms) == one.ended_at_ms
                        };
                        journal.iter().find(is_end).expect("an event").number
                    }).collect();
                    prop_assert_eq!(due.iter().copied().collect::<BTreeSet<u64>>(), expected);
                    counted += ledger.settle_ends(&due);
                }
                Step::Restart => {
                    let position = ledger.position();
                    let rest = journal.iter().filter(|event| event.number > position.through);
                    let rest = rest.copied().collect();
                    ledger = Ledger::new(position);
                    counted += ledger.note(rest, journal.len() as u64, now);
                }
            }
        }
        let unheard = episodes.iter().filter(|one| one.is_end_settled && !one.is_begin_accepted);
        prop_assert_eq!(counted, unheard.count() as u64);
        prop_assert_eq!(ledger.ends(), 0);
        let open = episodes.iter().filter(|one| one.ended_at_ms.is_none() && !one.is_begin_accepted);
        let position = ledger.position();
        let settled = position.through as usize + position.beyond.len();
        prop_assert_eq!(journal.len() - settled, open.count());
    }
}
