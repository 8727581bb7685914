//! Sums over queries, and whether the aims are reached.

use super::super::contender::Contender;
use super::catalogue::Set;
use super::measure::Cost;
use super::{REFERENCE, Row};

/// Largest accepted CPU time, as a ratio to another server.
struct CpuBar {
    contender: Contender,
    name: &'static str,
    /// Ratio over all queries, both as total and as geometric mean.
    all: f64,
    /// Ratio of each single query.
    each: f64,
}

/// Largest accepted ratio to Prometheus' CPU, for each query.
pub const EACH_MAX: f64 = 0.5;

const CPU_BARS: [CpuBar; 2] = [
    CpuBar { contender: REFERENCE, name: "Prometheus", all: 0.2, each: EACH_MAX },
    CpuBar { contender: Contender::VictoriaMetrics, name: "VictoriaMetrics", all: 0.8, each: 1.3 },
];

/// Largest accepted ratio to Prometheus' peak memory, for queries of the wide data set.
const PEAK_RATIO_MAX: f64 = 0.2;

/// Queries that are summed up together.
pub struct Group<'a> {
    /// Name of the group in the table.
    pub name: String,
    pub rows: Vec<&'a Row>,
}

/// An aim, and whether it is reached.
pub struct Aim {
    /// The aim and the measured value.
    pub text: String,
    /// Whether the aim is reached; `None` unless all that it compares was measured.
    pub is_reached: Option<bool>,
}

/// Returns the group of all queries; before it one for each data set, if there are several.
pub fn groups(rows: &[Row]) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    for set in Set::ALL {
        let of_set: Vec<&Row> = rows.iter().filter(|row| row.query.set == set).collect();
        if !of_set.is_empty() && of_set.len() < rows.len() {
            groups.push(Group::new(&format!("{set} "), of_set));
        }
    }
    groups.push(Group::new("", rows.iter().collect()));
    groups
}

impl<'a> Group<'a> {
    fn new(what: &str, rows: Vec<&'a Row>) -> Group<'a> {
        let noun = if rows.len() == 1 { "query" } else { "queries" };
        Group { name: format!("{} {what}{noun}", rows.len()), rows }
    }

    /// Returns the CPU seconds of each query, if the server answered all of them.
    fn cpu(&self, contender: Contender) -> Option<Vec<f64>> {
        let seconds = |row: &&Row| Some(row.cost(contender)?.cpu.as_secs_f64());
        self.rows.iter().map(seconds).collect()
    }

    /// Returns the CPU seconds of all queries together.
    pub fn total(&self, contender: Contender) -> Option<f64> {
        Some(self.cpu(contender)?.iter().sum())
    }

    /// Returns the geometric mean of the CPU seconds.
    pub fn mean(&self, contender: Contender) -> Option<f64> {
        let all = self.cpu(contender)?;
        let logarithms: f64 = all.iter().map(|seconds| seconds.ln()).sum();
        Some((logarithms / all.len() as f64).exp())
    }
}

/// Returns the ratio of tidepool's need to Prometheus'.
pub fn ratio(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(ours? / theirs?).filter(|ratio| ratio.is_finite())
}

pub fn aims(rows: &[Row]) -> Vec<Aim> {
    let all = Group::new("", rows.iter().collect());
    let mut aims = Vec::new();
    for bar in &CPU_BARS {
        let CpuBar { name, contender, .. } = *bar;
        let total = ratio(all.total(Contender::Tidepool), all.total(contender));
        let mean = ratio(all.mean(Contender::Tidepool), all.mean(contender));
        let what = |sum: &str| format!("CPU of {}, {sum}, next to {name}", all.name);
        aims.push(at_most(&what("total"), bar.all, total, ""));
        aims.push(at_most(&what("geometric mean"), bar.all, mean, ""));
        let most = the_most(rows, |row| part(row, contender, |cost| cost.cpu.as_secs_f64()));
        aims.push(of_each(&format!("CPU of each query next to {name}"), bar.each, most));
    }
    aims.push(of_memory(rows));
    let wide: Vec<&Row> = rows.iter().filter(|row| row.query.set == Set::Wide).collect();
    if !wide.is_empty() {
        let most = the_most(wide, |row| part(row, REFERENCE, |cost| cost.peak_bytes as f64));
        let what = "peak memory of each wide query next to Prometheus";
        aims.push(of_each(what, PEAK_RATIO_MAX, most));
    }
    aims.push(of_answers(rows));
    aims
}

/// Returns the ratio of tidepool's need to another server's for a query.
pub fn part(row: &Row, contender: Contender, figure: impl Fn(Cost) -> f64) -> Option<f64> {
    ratio(row.cost(Contender::Tidepool).map(&figure), row.cost(contender).map(&figure))
}

/// Returns the query with the largest figure; `None` if one of the figures is not known.
fn the_most<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    figure: impl Fn(&Row) -> Option<f64>,
) -> Option<(&'a Row, f64)> {
    let figures: Option<Vec<_>> = rows.into_iter().map(|row| Some((row, figure(row)?))).collect();
    figures?.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

fn at_most(what: &str, bar: f64, found: Option<f64>, whose: &str) -> Aim {
    let said = found.map_or("not known".to_string(), |found| format!("{found:.2} ×{whose}"));
    Aim {
        text: format!("{what}: at most {bar} ×: {said}"),
        is_reached: found.map(|found| found <= bar),
    }
}

fn of_each(what: &str, bar: f64, most: Option<(&Row, f64)>) -> Aim {
    let whose = most.map_or(String::new(), |(row, _)| format!(", of {}", row.query.name));
    at_most(what, bar, most.map(|(_, part)| part), &whose)
}

/// Judges the memory that each query adds to the memory before, within a bound of its own.
fn of_memory(rows: &[Row]) -> Aim {
    let filled = |row: &Row| {
        let extra_bytes = row.cost(Contender::Tidepool)?.extra_bytes;
        Some(extra_bytes as f64 / row.query.memory_bytes_max() as f64)
    };
    let most = the_most(rows, filled);
    let found = most.map_or("not known".to_string(), |(row, filled)| {
        let megabytes = |bytes: f64| bytes / 1e6;
        let bound = row.query.memory_bytes_max() as f64;
        format!(
            "{:.0} of {:.0} MB, of {}",
            megabytes(filled * bound),
            megabytes(bound),
            row.query.name
        )
    });
    Aim {
        text: format!("memory that a query adds: at most 16 MB, 48 MB for a join: {found}"),
        is_reached: most.map(|(_, filled)| filled <= 1.0),
    }
}

/// Judges whether all answers are equal.
fn of_answers(rows: &[Row]) -> Aim {
    let compared = rows.iter().filter(|row| are_both_known(row)).count();
    let differ: Vec<&str> =
        rows.iter().filter(|row| row.difference.is_some()).map(|row| row.query.name).collect();
    let found = match differ.is_empty() {
        true => format!("{compared} of {} compared", rows.len()),
        false => format!("not of {}", differ.join(", ")),
    };
    let is_reached = match are_right(rows) {
        false if differ.is_empty() => None,
        is_right => Some(is_right),
    };
    Aim { text: format!("answers: the same as Prometheus': {found}"), is_reached }
}

/// Returns whether tidepool answered every query as Prometheus did.
pub fn are_right(rows: &[Row]) -> bool {
    rows.iter().all(|row| are_both_known(row) && row.difference.is_none())
}

fn are_both_known(row: &Row) -> bool {
    row.cost(Contender::Tidepool).is_some() && row.cost(REFERENCE).is_some()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::QueryOutcome;
    use super::super::catalogue::QUERIES;
    use super::*;
    use std::time::Duration;

    /// Returns a row with CPU milliseconds and megabytes of tidepool and Prometheus.
    pub fn row(number: usize, ours: (u64, u64), theirs: (u64, u64)) -> Row {
        let found = |contender, (ms, megabytes): (u64, u64)| {
            let (cpu, bytes) = (Duration::from_millis(ms), megabytes * 1_000_000);
            let cost = Cost { cpu, wall: cpu, peak_bytes: bytes, extra_bytes: bytes / 2 };
            QueryOutcome { contender, cost: Ok(cost), series: 3 }
        };
        let found = vec![found(Contender::Tidepool, ours), found(REFERENCE, theirs)];
        Row { query: QUERIES[number], hours: QUERIES[number].hours, found, difference: None }
    }

    fn verdicts(rows: &[Row]) -> Vec<Option<bool>> {
        aims(rows).iter().map(|aim| aim.is_reached).collect()
    }

    /// Returns the verdicts beside Prometheus alone: on total, mean and each query; then memory and
    /// answers.
    fn beside_prometheus(rows: &[Row]) -> Vec<Option<bool>> {
        let all = verdicts(rows);
        assert_eq!(all[3..6], [None; 3], "VictoriaMetrics was not asked");
        [&all[..3], &all[6..]].concat()
    }

    #[test]
    fn total_mean_and_each_query_are_judged_for_themselves() {
        // 0.19 in total, but one in the geometric mean.
        let rows = [row(0, (40, 10), (10, 20)), row(1, (50, 10), (200, 20))];
        let group = &groups(&rows)[0];
        assert_eq!(group.name, "2 queries");
        let mean = group.mean(Contender::Tidepool).expect("all answered");
        assert!((mean - 0.002f64.sqrt()).abs() < 1e-12, "{mean}");
        assert_eq!(beside_prometheus(&rows), [false, false, false, true, true].map(Some));
        let rows = [row(0, (6, 10), (10, 20)), row(1, (10, 10), (400, 20))];
        assert_eq!(beside_prometheus(&rows), [true, true, false, true, true].map(Some));
        let rows = [row(0, (5, 10), (10, 20)), row(1, (60, 10), (400, 20))];
        assert_eq!(beside_prometheus(&rows), [true, false, true, true, true].map(Some));
    }

    #[test]
    fn victoria_metrics_has_a_bar_of_its_own() {
        let mut rows = [row(0, (8, 1), (90, 2))];
        let mut theirs = row(0, (10, 1), (1, 1)).found.remove(0);
        theirs.contender = Contender::VictoriaMetrics;
        rows[0].found.push(theirs);
        assert_eq!(verdicts(&rows)[3..6], [true, true, true].map(Some));
        rows[0].found[0].cost.as_mut().expect("it answered").cpu = Duration::from_millis(14);
        assert_eq!(verdicts(&rows)[3..6], [false, false, false].map(Some));
        rows[0].found[0].cost.as_mut().expect("it answered").cpu = Duration::from_millis(13);
        assert_eq!(verdicts(&rows)[3..6], [false, false, true].map(Some));
    }

    #[test]
    fn data_sets_are_summed_up_each_and_together() {
        let rows = [row(0, (1, 1), (9, 2)), row(13, (1, 1), (9, 5)), row(14, (1, 1), (9, 6))];
        let names: Vec<_> = groups(&rows).into_iter().map(|group| group.name).collect();
        assert_eq!(names, ["1 long query", "2 wide queries", "3 queries"]);
        // Only wide queries have a bar for memory beside Prometheus.
        assert_eq!(beside_prometheus(&rows), [Some(true); 6]);
        let rows = [row(0, (1, 1), (9, 2)), row(13, (1, 1), (9, 4))];
        assert_eq!(beside_prometheus(&rows)[4..], [false, true].map(Some));
    }

    #[test]
    fn memory_is_judged_by_the_query_that_is_nearest_to_its_bound() {
        // Half of the memory was there before.
        let rows = [row(0, (1, 30), (9, 40)), row(1, (1, 34), (9, 60))];
        assert_eq!(beside_prometheus(&rows)[3..], [Some(false), Some(true)]);
        // A join may take three times as much memory.
        let rows = [row(0, (1, 30), (9, 40)), row(7, (1, 94), (9, 60))];
        assert_eq!(beside_prometheus(&rows)[3..], [Some(true), Some(true)]);
    }

    #[test]
    fn what_was_not_answered_or_differs_is_not_reached() {
        let mut rows = [row(0, (1, 1), (9, 2)), row(1, (1, 1), (9, 2))];
        rows[1].found[0].cost = Err("422".to_string());
        assert_eq!(verdicts(&rows), [None; 8]);
        let mut rows = [row(0, (1, 1), (9, 2))];
        rows[0].difference = Some("1 series, not 2".to_string());
        assert_eq!(verdicts(&rows).last(), Some(&Some(false)));
    }
}
