//! Expressions that need features which upstream enables by flags.

use super::Expressions;
use super::operands::{DURATIONS, FILLS, GROUPS, INFOS, OF_ANCHORED, OF_SMOOTHED, OVER_TIME};

impl Expressions {
    pub(super) fn experimental(&mut self, depth: u64) -> String {
        match self.random.below(6) {
            0 => self.extended_range(),
            1 => {
                let (op, number) = (self.pick(&["</", ">/"]), self.number());
                format!("({} {op} {number})", self.histograms(depth))
            }
            2 => {
                let vector = self.vector(depth);
                format!("info({vector}{})", self.pick(&INFOS))
            }
            3 => self.limited(depth),
            4 => {
                let quantiles = self.pick(&["0.5", "0.9, 0.99", "0, 1, 0.5"]);
                format!("histogram_quantiles({}, \"q\", {quantiles})", self.histograms(depth))
            }
            _ => self.filled(),
        }
    }

    /// Makes a function that decides the order of an instant query's answer.
    pub(super) fn sorted(&mut self, depth: u64) -> String {
        let vector = self.vector(depth);
        match self.random.below(4) {
            0 => format!("sort({vector})"),
            1 => format!("sort_desc({vector})"),
            2 => format!("sort_by_label({vector}, \"instance\")"),
            _ => format!("sort_by_label_desc({vector}, \"instance\")"),
        }
    }

    fn extended_range(&mut self) -> String {
        let (selector, duration) = (self.selector(), self.pick(&DURATIONS));
        let shift = self.shift();
        match self.random.below(9) {
            0..4 => {
                let function = self.pick(&OF_ANCHORED);
                format!("{function}({selector}[{duration}] anchored{shift})")
            }
            4..7 => {
                let function = self.pick(&OF_SMOOTHED);
                format!("{function}({selector}[{duration}] smoothed{shift})")
            }
            7 => format!("{selector} smoothed{shift}"),
            // Most functions do not accept these modifiers.
            _ => {
                let word = self.pick(&["anchored", "smoothed"]);
                format!("{}({selector}[{duration}] {word}{shift})", self.pick(&OVER_TIME))
            }
        }
    }

    /// Makes an expression with histograms, most of the time.
    fn histograms(&mut self, depth: u64) -> String {
        let (name, duration) = (self.pick(&super::HISTOGRAMS), self.pick(&DURATIONS));
        match self.random.below(4) {
            0 => self.vector(depth),
            1 => format!("{name}{}", self.shift()),
            2 => format!("rate({name}[{duration}])"),
            _ => format!("sum by (job) (increase({name}[{duration}]))"),
        }
    }

    /// Makes a `limitk` or `limit_ratio` whose result does not depend on the selected series,
    /// because upstream does not specify which ones it selects.
    fn limited(&mut self, depth: u64) -> String {
        let (by, vector) = (self.pick(&GROUPS), self.vector(depth));
        let (count, ratio) = (self.pick(&["0", "1", "2", "5"]), self.pick(&["0.2", "0.5", "0.75"]));
        match self.random.below(5) {
            0 => format!("count{by} (limitk{by} ({count}, {vector}))"),
            1 => format!("limitk{by} (1000, {vector})"),
            2 => format!("limit_ratio{by} ({}, {vector})", self.pick(&["1", "-1", "0", "2"])),
            3 => format!("(limit_ratio({ratio}, {vector}) or limit_ratio({ratio} - 1, {vector}))"),
            _ => format!(
                "count(limit_ratio({ratio}, {vector}) and limit_ratio({ratio} - 1, {vector}))"
            ),
        }
    }

    /// Makes a match in which one side lacks some series.
    fn filled(&mut self) -> String {
        let (op, fill) = (self.pick(&["+", "-", "*", "/", "> bool", "<", "=="]), self.pick(&FILLS));
        let of_api = "{instance=~\"[ac]:.\"}";
        match self.random.below(3) {
            0 => format!("(up {op}{fill} up{of_api})"),
            1 => format!(
                "(cpu_seconds_total{of_api} {op} on (job, instance, mode){fill} cpu_seconds_total)"
            ),
            _ => format!("(cpu_seconds_total {op} on (instance) group_left{fill} up{of_api})"),
        }
    }
}
