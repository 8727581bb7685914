//! Sums over queries, and whether what we aim at is reached.

use super::super::contender::Contender;
use super::catalogue::Set;
use super::measure::Cost;
use super::{REFERENCE, Row};

/// Of Prometheus' CPU, as total and as geometric mean.
const CPU_RATIO_MAX: f64 = 0.5;
/// Most memory that a query may take.
const PEAK_BYTES_MAX: u64 = 48_000_000;

/// Queries that are summed up together.
pub struct Group<'a> {
    /// How the table calls them.
    pub name: String,
    /// The queries.
    pub rows: Vec<&'a Row>,
}

/// Something that we aim at.
pub struct Aim {
    /// What, and what was found.
    pub text: String,
    /// Whether it is reached; not known, if not all that it compares was measured.
    pub is_reached: Option<bool>,
}

/// All queries; before them those of each data set, if there are several.
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

    /// CPU seconds, if the server answered all queries.
    fn cpu(&self, contender: Contender) -> Option<Vec<f64>> {
        let seconds = |row: &&Row| Some(row.cost(contender)?.cpu.as_secs_f64());
        self.rows.iter().map(seconds).collect()
    }

    /// CPU seconds of all queries together.
    pub fn total(&self, contender: Contender) -> Option<f64> {
        Some(self.cpu(contender)?.iter().sum())
    }

    /// The geometric mean of the CPU seconds.
    pub fn mean(&self, contender: Contender) -> Option<f64> {
        let all = self.cpu(contender)?;
        let logarithms: f64 = all.iter().map(|seconds| seconds.ln()).sum();
        Some((logarithms / all.len() as f64).exp())
    }
}

/// What tidepool needs of what Prometheus needs.
pub fn ratio(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(ours? / theirs?).filter(|ratio| ratio.is_finite())
}

/// All that we aim at.
pub fn aims(rows: &[Row]) -> Vec<Aim> {
    let mut aims = Vec::new();
    for group in groups(rows) {
        let Group { name, .. } = &group;
        let total = ratio(group.total(Contender::Tidepool), group.total(REFERENCE));
        let mean = ratio(group.mean(Contender::Tidepool), group.mean(REFERENCE));
        aims.push(of_cpu(&format!("CPU of {name}, total"), total));
        aims.push(of_cpu(&format!("CPU of {name}, geometric mean"), mean));
    }
    aims.push(of_memory(rows));
    aims.push(beside_prometheus(rows));
    aims.push(of_answers(rows));
    aims
}

fn of_cpu(what: &str, ratio: Option<f64>) -> Aim {
    let found = ratio.map_or("not known".to_string(), |ratio| format!("{ratio:.2} ×"));
    Aim {
        text: format!("{what}: at most {CPU_RATIO_MAX} × Prometheus': {found}"),
        is_reached: ratio.map(|ratio| ratio <= CPU_RATIO_MAX),
    }
}

/// Every query within a bound.
fn of_memory(rows: &[Row]) -> Aim {
    let costs: Option<Vec<(&Row, Cost)>> =
        rows.iter().map(|row| Some((row, row.cost(Contender::Tidepool)?))).collect();
    let most = costs.and_then(|costs| costs.into_iter().max_by_key(|(_, cost)| cost.peak_bytes));
    let found = most.map_or("not known".to_string(), |(row, cost)| {
        format!("{:.0} MB, of {}", cost.peak_bytes as f64 / 1e6, row.query.name)
    });
    Aim {
        text: format!("peak memory: at most {} MB: {found}", PEAK_BYTES_MAX / 1_000_000),
        is_reached: most.map(|(_, cost)| cost.peak_bytes <= PEAK_BYTES_MAX),
    }
}

/// Every query within what it takes in Prometheus.
fn beside_prometheus(rows: &[Row]) -> Aim {
    let part = |row: &Row| {
        let bytes = |contender| Some(row.cost(contender)?.peak_bytes as f64);
        ratio(bytes(Contender::Tidepool), bytes(REFERENCE))
    };
    let parts: Option<Vec<(&Row, f64)>> = rows.iter().map(|row| Some((row, part(row)?))).collect();
    let most = parts.and_then(|parts| parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)));
    let found = most.map_or("not known".to_string(), |(row, part)| {
        format!("at most {part:.2} ×, of {}", row.query.name)
    });
    Aim {
        text: format!("peak memory of each query: no more than Prometheus': {found}"),
        is_reached: most.map(|(_, part)| part <= 1.0),
    }
}

/// Every answer the same.
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

/// Whether every query has an answer of tidepool that is Prometheus'.
pub fn are_right(rows: &[Row]) -> bool {
    rows.iter().all(|row| are_both_known(row) && row.difference.is_none())
}

fn are_both_known(row: &Row) -> bool {
    row.cost(Contender::Tidepool).is_some() && row.cost(REFERENCE).is_some()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Found;
    use super::super::catalogue::QUERIES;
    use super::*;
    use std::time::Duration;

    /// A row with CPU milliseconds and megabytes of tidepool and Prometheus.
    pub fn row(number: usize, ours: (u64, u64), theirs: (u64, u64)) -> Row {
        let found = |contender, (ms, megabytes): (u64, u64)| {
            let (cpu, bytes) = (Duration::from_millis(ms), megabytes * 1_000_000);
            let cost = Cost { cpu, wall: cpu, peak_bytes: bytes, extra_bytes: bytes / 2 };
            Found { contender, cost: Ok(cost), series: 3 }
        };
        let found = vec![found(Contender::Tidepool, ours), found(REFERENCE, theirs)];
        Row { query: QUERIES[number], hours: QUERIES[number].hours, found, difference: None }
    }

    fn verdicts(rows: &[Row]) -> Vec<Option<bool>> {
        aims(rows).iter().map(|aim| aim.is_reached).collect()
    }

    #[test]
    fn total_and_mean_are_judged_each_for_itself() {
        // In total 0.46, in the geometric mean one.
        let rows = [row(0, (40, 10), (10, 20)), row(1, (50, 10), (200, 20))];
        let group = &groups(&rows)[0];
        assert_eq!(group.name, "2 queries");
        let mean = group.mean(Contender::Tidepool).expect("all answered");
        assert!((mean - 0.002f64.sqrt()).abs() < 1e-12, "{mean}");
        assert_eq!(verdicts(&rows), [true, false, true, true, true].map(Some));
    }

    #[test]
    fn data_sets_are_summed_up_each_and_together() {
        let rows = [row(0, (1, 1), (2, 2)), row(13, (1, 1), (4, 2)), row(14, (1, 1), (4, 2))];
        let names: Vec<_> = groups(&rows).into_iter().map(|group| group.name).collect();
        assert_eq!(names, ["1 long query", "2 wide queries", "3 queries"]);
        assert_eq!(verdicts(&rows), [Some(true); 9]);
    }

    #[test]
    fn memory_is_judged_by_the_worst_query() {
        let rows = [row(0, (1, 30), (9, 40)), row(1, (1, 49), (9, 60))];
        assert_eq!(verdicts(&rows)[2..], [Some(false), Some(true), Some(true)]);
        let rows = [row(0, (1, 30), (9, 29)), row(1, (1, 40), (9, 90))];
        assert_eq!(verdicts(&rows)[2..], [Some(true), Some(false), Some(true)]);
    }

    #[test]
    fn what_was_not_answered_or_differs_is_not_reached() {
        let mut rows = [row(0, (1, 1), (9, 2)), row(1, (1, 1), (9, 2))];
        rows[1].found[0].cost = Err("422".to_string());
        assert_eq!(verdicts(&rows), [None; 5]);
        let mut rows = [row(0, (1, 1), (9, 2))];
        rows[0].difference = Some("1 series, not 2".to_string());
        assert_eq!(verdicts(&rows).last(), Some(&Some(false)));
    }
}
