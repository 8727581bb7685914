//! Alerts that wait for being sent to one Alertmanager.
//!
//! Source: `add` and `nextBatch` in `notifier/sendloop.go` of prometheus/prometheus: if the queue
//! is full, the oldest alerts are dropped, because those that still fire are sent again soon.

use super::alert::Alert;
use std::collections::VecDeque;

pub(super) struct Queue {
    alerts: VecDeque<Alert>,
    capacity: usize,
}

impl Queue {
    pub fn new(capacity: usize) -> Queue {
        Queue { alerts: VecDeque::new(), capacity }
    }

    /// Appends alerts; returns how many were dropped for room.
    pub fn push(&mut self, alerts: Vec<Alert>) -> usize {
        let dropped = (self.alerts.len() + alerts.len()).saturating_sub(self.capacity);
        let of_queue = dropped.min(self.alerts.len());
        self.alerts.drain(..of_queue);
        self.alerts.extend(alerts.into_iter().skip(dropped - of_queue));
        dropped
    }

    /// Takes the oldest alerts, at most `count`.
    pub fn take(&mut self, count: usize) -> Vec<Alert> {
        let batch = self.alerts.drain(..count.min(self.alerts.len())).collect();
        if self.alerts.is_empty() {
            // An outage may have made it large.
            self.alerts.shrink_to(count);
        }
        batch
    }

    pub fn len(&self) -> usize {
        self.alerts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alertmanager::tests::alert;
    use proptest::prelude::*;

    fn numbers(alerts: &[Alert]) -> Vec<i64> {
        alerts.iter().map(|alert| alert.starts_at_ms).collect()
    }

    fn alerts(numbers: impl IntoIterator<Item = i64>) -> Vec<Alert> {
        numbers.into_iter().map(|number| Alert { starts_at_ms: number, ..alert("A") }).collect()
    }

    #[test]
    fn the_newest_alerts_stay() {
        let mut queue = Queue::new(5);
        assert_eq!(queue.push(alerts(0..4)), 0);
        assert_eq!(queue.push(alerts(4..7)), 2);
        assert_eq!(numbers(&queue.take(2)), [2, 3]);
        assert_eq!(queue.push(alerts(10..20)), 8);
        assert_eq!(numbers(&queue.take(100)), [15, 16, 17, 18, 19]);
        assert_eq!(queue.len(), 0);
    }

    proptest! {
        /// Whatever comes and goes, the queue is the end of all that came, without what was taken.
        #[test]
        fn a_queue_is_the_end_of_a_list(
            capacity in 0usize..8,
            steps in prop::collection::vec((0i64..12, 0usize..6), 0..20),
        ) {
            let (mut queue, mut list, mut next) = (Queue::new(capacity), Vec::new(), 0);
            for (pushed, taken) in steps {
                let dropped = queue.push(alerts(next..next + pushed));
                list.extend(next..next + pushed);
                next += pushed;
                let surplus = list.len().saturating_sub(capacity);
                prop_assert_eq!(dropped, surplus);
                list.drain(..surplus);
                let batch: Vec<i64> = list.drain(..taken.min(list.len())).collect();
                prop_assert_eq!(numbers(&queue.take(taken)), batch);
                prop_assert_eq!(queue.len(), list.len());
            }
        }
    }
}
