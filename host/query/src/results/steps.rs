//! The steps of a range query.

use tidepool_runtime::QueryTimes;

/// Steps of a range query. There is at least one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    pub first_ms: i64,
    pub last_ms: i64,
    /// Distance between two steps, greater than zero.
    pub step_ms: i64,
}

impl Steps {
    /// Returns the steps of a range query; `None` for an instant query.
    pub fn of(times: QueryTimes) -> Option<Steps> {
        match times {
            QueryTimes::Range { start_ms, end_ms, step_ms }
                if step_ms > 0 && start_ms <= end_ms =>
            {
                let last_ms = start_ms + (end_ms.checked_sub(start_ms)?) / step_ms * step_ms;
                Some(Steps { first_ms: start_ms, last_ms, step_ms })
            }
            _ => None,
        }
    }

    pub fn times(self) -> QueryTimes {
        let Steps { first_ms, last_ms, step_ms } = self;
        QueryTimes::Range { start_ms: first_ms, end_ms: last_ms, step_ms }
    }

    /// Returns the range between the times of two steps; `None` if the first is after the last.
    pub fn between(self, first_ms: i64, last_ms: i64) -> Option<Steps> {
        (first_ms <= last_ms).then_some(Steps { first_ms, last_ms, ..self })
    }

    /// Returns the common steps of two ranges with the same step and phase.
    pub fn intersect(self, other: Steps) -> Option<Steps> {
        self.between(self.first_ms.max(other.first_ms), self.last_ms.min(other.last_ms))
    }

    /// Returns the steps before a time; `None` if there are none.
    pub fn before(self, time_ms: i64) -> Option<Steps> {
        if self.last_ms < time_ms {
            return Some(self);
        }
        let steps = time_ms.saturating_sub(1).checked_sub(self.first_ms)?.div_euclid(self.step_ms);
        self.between(self.first_ms, self.first_ms.checked_add(steps.checked_mul(self.step_ms)?)?)
    }

    /// Splits the range into consecutive parts of nearly equal length, each with at least one step.
    pub fn split(self, parts: u64) -> Vec<Steps> {
        let count = self.count();
        let parts = parts.clamp(1, count);
        let time_ms = |step: u64| self.first_ms + step as i64 * self.step_ms;
        (0..parts)
            .map(|part| Steps {
                first_ms: time_ms(count * part / parts),
                last_ms: time_ms(count * (part + 1) / parts - 1),
                ..self
            })
            .collect()
    }

    pub fn count(self) -> u64 {
        self.index(self.last_ms) as u64 + 1
    }

    /// Returns the index of the step at a time.
    pub fn index(self, time_ms: i64) -> usize {
        ((time_ms - self.first_ms) / self.step_ms) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_or_before_the_end() {
        let of = |start_ms, end_ms| Steps::of(QueryTimes::Range { start_ms, end_ms, step_ms: 10 });
        let steps = of(5, 39).expect("a range");
        assert_eq!((steps.first_ms, steps.last_ms, steps.count()), (5, 35, 4));
        assert_eq!(of(5, 5).map(Steps::count), Some(1));
        assert_eq!(of(5, 4), None);
        assert_eq!(Steps::of(QueryTimes::Instant(5)), None);
        let before = |time_ms| steps.before(time_ms).map(|steps| steps.last_ms);
        assert_eq!([4, 5].map(before), [None, None]);
        assert_eq!([6, 15, 16, 35, 36].map(before), [5, 5, 15, 25, 35].map(Some));
        assert_eq!([i64::MIN, i64::MAX].map(before), [None, Some(35)]);
        let ends = |parts| {
            let split = steps.split(parts).into_iter();
            split.map(|part| (part.first_ms, part.last_ms)).collect::<Vec<_>>()
        };
        assert_eq!(ends(1), [(5, 35)]);
        assert_eq!(ends(3), [(5, 5), (15, 15), (25, 35)]);
        assert_eq!(ends(9), [(5, 5), (15, 15), (25, 25), (35, 35)]);
        let others = of(25, 60).expect("a range");
        assert_eq!(steps.intersect(others), steps.between(25, 35));
        assert_eq!(steps.intersect(of(45, 60).expect("a range")), None);
    }
}
