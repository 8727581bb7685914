//! Random expressions that are correctly typed.

mod experimental;
mod operands;

use crate::series::Random;
use operands::{
    AGGREGATIONS, ARITHMETIC, COMPARISONS, COMPUTED_DURATIONS, DURATIONS, FILLS, FLOATS, GROUPS,
    HISTOGRAMS, MATCHERS, OF_NUMBERS, OVER_TIME,
};

/// A seeded generator of random expressions.
pub struct Expressions {
    random: Random,
    /// Times that `@` may name, in seconds.
    at: (i64, i64),
}

impl Expressions {
    /// Makes the expressions of a seed; `@` names times between two, in seconds.
    pub fn new(seed: u64, at: (i64, i64)) -> Expressions {
        Expressions { random: Random::new(seed, 77), at }
    }

    /// Returns the next expression, whose result is an instant vector or a scalar.
    pub fn next_expression(&mut self) -> String {
        let depth = 1 + self.random.below(4);
        match self.random.below(12) {
            0 => self.scalar(depth),
            // Only the outermost function decides the order of an answer.
            1 => self.sorted(depth - 1),
            _ => self.vector(depth),
        }
    }

    fn pick(&mut self, items: &[&'static str]) -> &'static str {
        self.random.pick(items)
    }

    fn number(&mut self) -> String {
        let number = self.pick(&["0", "1", "2", "0.5", "-1", "3e5", "1e-3", "NaN", "+Inf", "90"]);
        number.to_owned()
    }

    fn scalar(&mut self, depth: u64) -> String {
        match (depth, self.random.below(6)) {
            (0, 0..4) => self.number(),
            (0, _) => {
                let calls = ["time()", "pi()", "start()", "end()", "step()", "range()"];
                self.pick(&calls).to_owned()
            }
            (_, 0) => self.number(),
            (_, 1) => "time()".to_owned(),
            (_, 2) => format!("scalar({})", self.vector(depth - 1)),
            (_, 3) if self.random.one_in(3) => {
                let call = self.pick(&["min_of", "max_of"]);
                format!("{call}({}, {})", self.scalar(depth - 1), self.scalar(depth - 1))
            }
            (_, 3) => {
                let op = self.pick(&COMPARISONS);
                format!("({} {op} bool {})", self.scalar(depth - 1), self.scalar(depth - 1))
            }
            _ => {
                let op = self.pick(&ARITHMETIC);
                format!("({} {op} {})", self.scalar(depth - 1), self.scalar(depth - 1))
            }
        }
    }

    /// Returns a duration for a range or a step.
    fn duration(&mut self) -> &'static str {
        match self.random.one_in(6) {
            true => self.pick(&COMPUTED_DURATIONS),
            false => self.pick(&DURATIONS),
        }
    }

    fn shift(&mut self) -> String {
        let offset = match self.random.below(24) {
            0..3 => format!(" offset {}", self.pick(&DURATIONS)),
            3..6 => format!(" offset -{}", self.pick(&DURATIONS)),
            6 => format!(" offset ({})", self.pick(&COMPUTED_DURATIONS)),
            7 => format!(" offset -({})", self.pick(&COMPUTED_DURATIONS)),
            _ => String::new(),
        };
        let at = match self.random.below(12) {
            0 => {
                let (first, last) = self.at;
                format!(" @ {}", first + self.random.below((last - first) as u64) as i64)
            }
            1 => self.pick(&[" @ start()", " @ end()"]).to_owned(),
            _ => String::new(),
        };
        format!("{at}{offset}")
    }

    fn selector(&mut self) -> String {
        let name = match self.random.one_in(4) {
            true => self.pick(&HISTOGRAMS),
            false => self.pick(&FLOATS),
        };
        // Most selectors have no matchers, or they would select nothing.
        let count = self.random.pick(&[0, 0, 0, 0, 1, 1, 2]);
        let matchers: Vec<_> = (0..count).map(|_| self.random.pick(&MATCHERS)).collect();
        let matchers = matchers.join(",");
        match (matchers.is_empty(), self.random.one_in(30)) {
            (_, true) => format!("{{__name__=~\"cpu.*|temp.*|latency_custom\",{matchers}}}"),
            (true, _) => name.to_owned(),
            (false, _) => format!("{name}{{{matchers}}}"),
        }
    }

    fn range(&mut self, depth: u64) -> String {
        let (duration, shift) = (self.duration(), self.shift());
        match depth > 0 && self.random.one_in(5) {
            false => format!("{}[{duration}]{shift}", self.selector()),
            true => {
                let step = self.pick(&["", "30s", "1m", "45s", "2m"]);
                format!("({})[{duration}:{step}]{shift}", self.vector(depth - 1))
            }
        }
    }

    fn vector(&mut self, depth: u64) -> String {
        if depth == 0 {
            return match self.random.below(3) {
                0 => format!("{}{}", self.selector(), self.shift()),
                _ => self.over_time(0),
            };
        }
        let below = depth - 1;
        match self.random.below(16) {
            0 => self.over_time(depth),
            1 => format!("{}({})", self.pick(&OF_NUMBERS), self.vector(below)),
            2 | 3 => self.aggregation(below),
            4 => format!("({} {} {})", self.vector(below), self.pick(&ARITHMETIC), self.scalar(0)),
            5 => {
                let is_bool = self.pick(&["", " bool"]);
                let op = self.pick(&COMPARISONS);
                format!("({} {op}{is_bool} {})", self.vector(below), self.scalar(0))
            }
            6 | 7 => self.binary(below),
            8 => {
                let op = self.pick(&["and", "or", "unless"]);
                let by = self.pick(&["", " on (job)", " ignoring (mode, room, le)", " on ()"]);
                format!("({} {op}{by} {})", self.vector(below), self.vector(below))
            }
            9 => self.labels(below),
            10 => self.of_buckets(below),
            11 => match self.random.below(3) {
                0 => format!("clamp({}, {}, {})", self.vector(below), self.number(), self.number()),
                1 => format!("clamp_min({}, {})", self.vector(below), self.scalar(below)),
                _ => format!("vector({})", self.scalar(below)),
            },
            12 => format!("-{}", self.vector(below)),
            _ => self.experimental(below),
        }
    }

    fn over_time(&mut self, depth: u64) -> String {
        match self.random.below(12) {
            0 => format!("quantile_over_time({}, {})", self.number(), self.range(depth)),
            1 => format!("predict_linear({}, {})", self.range(depth), self.number()),
            2 => {
                let factors = ["0.1", "0.5", "0.9"];
                let (level, trend) = (self.pick(&factors), self.pick(&factors));
                let range = self.range(depth);
                format!("double_exponential_smoothing({range}, {level}, {trend})")
            }
            _ => format!("{}({})", self.pick(&OVER_TIME), self.range(depth)),
        }
    }

    fn aggregation(&mut self, depth: u64) -> String {
        let by = self.pick(&GROUPS);
        match self.random.below(6) {
            0 => {
                let op = self.pick(&["topk", "bottomk"]);
                let count = self.pick(&["1", "2", "5", "0"]);
                format!("{op}{by} ({count}, {})", self.vector(depth))
            }
            1 => format!("quantile{by} ({}, {})", self.number(), self.vector(depth)),
            // A value becomes a label, in which the last digits count.
            2 => format!(
                "count_values{by} (\"value\", clamp(round({}), -1000, 1000))",
                self.vector(depth)
            ),
            _ => format!("{}{by} ({})", self.pick(&AGGREGATIONS), self.vector(depth)),
        }
    }

    fn binary(&mut self, depth: u64) -> String {
        let op = match self.random.one_in(3) {
            true => format!("{}{}", self.pick(&COMPARISONS), self.pick(&["", " bool"])),
            false => self.pick(&ARITHMETIC).to_owned(),
        };
        let by = self.pick(&[
            "",
            "",
            " on (job, instance)",
            " ignoring (mode)",
            " on (instance) group_left",
            " on (job, instance) group_left (version)",
            " on (instance) group_right",
            " on (job) group_left ()",
            " ignoring (mode, room, le, version) group_left",
        ]);
        let fill = match self.random.one_in(5) {
            true => self.pick(&FILLS),
            false => "",
        };
        let (left, right) = match self.random.one_in(3) {
            // The same vector on both sides, so that all series match.
            true => {
                let vector = self.vector(depth);
                (vector.clone(), vector)
            }
            false => (self.vector(depth), self.vector(depth)),
        };
        format!("({left} {op}{by}{fill} {right})")
    }

    fn labels(&mut self, depth: u64) -> String {
        let vector = self.vector(depth);
        match self.random.below(5) {
            0 => format!("label_replace({vector}, \"new\", \"$1-x\", \"instance\", \"(.):.*\")"),
            1 => format!("label_replace({vector}, \"job\", \"\", \"job\", \"a(.*)\")"),
            2 => format!("label_join({vector}, \"both\", \"/\", \"job\", \"instance\")"),
            3 => format!("label_replace({vector}, \"__name__\", \"as_$1\", \"job\", \"(.*)\")"),
            _ => format!("label_join({vector}, \"__name__\", \"_\", \"__name__\", \"job\")"),
        }
    }

    fn of_buckets(&mut self, depth: u64) -> String {
        let duration = self.pick(&DURATIONS);
        let of = match self.random.below(4) {
            0 => format!("rate(request_seconds_bucket[{duration}])"),
            1 => format!("sum by (le, job) (rate(request_seconds_bucket[{duration}]))"),
            2 => format!("rate({}[{duration}])", self.pick(&HISTOGRAMS)),
            _ => self.vector(depth),
        };
        match self.random.below(4) {
            0 => format!("histogram_fraction({}, {}, {of})", self.number(), self.number()),
            1 => format!("histogram_stddev({of})"),
            _ => {
                let quantile = self.pick(&["0", "0.5", "0.9", "0.99", "1", "-1", "2", "NaN"]);
                format!("histogram_quantile({quantile}, {of})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_expressions_and_another_seed_others() {
        let some = |seed| {
            let mut expressions = Expressions::new(seed, (0, 100));
            (0..50).map(|_| expressions.next_expression()).collect::<Vec<_>>()
        };
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
    }
}
