//! The results as Markdown, and whether the aims are reached.

use super::super::contender::Contender;
use super::super::queries::REFERENCE;
use super::super::report::line;
use super::asks::Kind;
use super::{Cost, DataLocation, Pace, Row};
use std::fmt::Write as _;
use std::time::Duration;

/// Largest median of an instant query of ten series, one after the other.
const INSTANT_MEDIAN_MAX: Duration = Duration::from_millis(1);
/// Largest CPU time of an instant query of ten series, as a ratio to Prometheus.
const INSTANT_CPU_RATIO_MAX: f64 = 0.5;
/// The same ratio for reads and lookups.
const OTHER_CPU_RATIO_MAX: f64 = 0.8;

/// Returns a table for each place and pace.
pub fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    for place in DataLocation::ALL {
        for pace in [Pace::Fast, Pace::Slow] {
            let of: Vec<&Row> =
                rows.iter().filter(|row| (row.place, row.pace) == (place, pace)).collect();
            let Some(first) = of.first() else { continue };
            // Writing to a string does not fail, here and below.
            let _ = writeln!(text, "\n### {}, {}\n", heading(place), speed(pace));
            let names = first.costs.iter().map(|(contender, _)| *contender).collect::<Vec<_>>();
            let mut servers = vec![Contender::Tidepool, REFERENCE];
            servers.retain(|server| names.contains(server));
            let head = ["request".to_owned()].into_iter();
            let head = head.chain(servers.iter().map(Contender::to_string));
            let head: Vec<String> =
                head.chain(["CPU", "aim", "reached"].map(str::to_owned)).collect();
            text += &line(&head);
            text += &line(head.iter().map(|_| "---"));
            for row in of {
                text += &line(cells(row, &servers));
            }
        }
    }
    for row in rows.iter().filter(|row| row.pace == Pace::Fast) {
        if let Some(difference) = &row.difference {
            let (kind, place) = (row.kind.name(), heading(row.place));
            let _ = writeln!(text, "\n- {kind}, {place}: an answer differs: {difference}");
        }
    }
    text
}

fn heading(place: DataLocation) -> &'static str {
    match place {
        DataLocation::Head => "Series in the head",
        DataLocation::Blocks => "Series in blocks of a day and in the head",
    }
}

fn speed(pace: Pace) -> &'static str {
    match pace {
        Pace::Fast => "one request after the other",
        Pace::Slow => "20 requests a second",
    }
}

fn cells(row: &Row, servers: &[Contender]) -> Vec<String> {
    // `|` ends a column of a table, even in code.
    let mut cells = vec![row.kind.name().replace('|', "\\|")];
    cells.extend(
        servers.iter().map(|&server| row.cost(server).map_or(String::new(), |cost| figures(&cost))),
    );
    cells.push(ratio(row).map_or(String::new(), |ratio| format!("{ratio:.2} ×")));
    let aim = aim(row);
    cells.push(aim.clone().map_or(String::new(), |(text, _)| text));
    cells.push(match aim {
        Some((_, Some(true))) => "yes".to_owned(),
        Some((_, Some(false))) => "**no**".to_owned(),
        _ => String::new(),
    });
    cells
}

/// Formats CPU, median and 99th percentile in milliseconds.
pub fn figures(cost: &Cost) -> String {
    let ms = |duration: Duration| format!("{:.2}", duration.as_secs_f64() * 1e3);
    format!("{} / {} / {}", ms(cost.cpu), ms(cost.median), ms(cost.p99))
}

fn ratio(row: &Row) -> Option<f64> {
    let cpu = |contender| Some(row.cost(contender)?.cpu.as_secs_f64());
    Some(cpu(Contender::Tidepool)? / cpu(REFERENCE)?).filter(|ratio| ratio.is_finite())
}

/// Returns the aim of a row, and whether it is reached, if that is known.
fn aim(row: &Row) -> Option<(String, Option<bool>)> {
    if row.pace == Pace::Slow {
        return None;
    }
    match row.kind {
        Kind::Instant => {
            let median = row.cost(Contender::Tidepool).map(|cost| cost.median);
            let is_quick = median.map(|median| median <= INSTANT_MEDIAN_MAX);
            let is_cheap = ratio(row).map(|ratio| ratio <= INSTANT_CPU_RATIO_MAX);
            let is_reached = is_quick.zip(is_cheap).map(|(quick, cheap)| quick && cheap);
            Some((format!("≤ {INSTANT_CPU_RATIO_MAX} ×, median ≤ 1 ms"), is_reached))
        }
        Kind::Streamed | Kind::Sampled | Kind::Names | Kind::Values | Kind::Series => {
            let is_reached = ratio(row).map(|ratio| ratio <= OTHER_CPU_RATIO_MAX);
            Some((format!("≤ {OTHER_CPU_RATIO_MAX} ×"), is_reached))
        }
        Kind::Regex | Kind::Count | Kind::Range => None,
    }
}

/// Returns whether all compared answers equal Prometheus'.
pub fn are_right(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.difference.is_none())
}

/// Returns whether all aims are reached.
pub fn is_reached(rows: &[Row]) -> bool {
    rows.iter().filter_map(aim).all(|(_, is_reached)| is_reached == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, pace: Pace, ours_us: u64, theirs_us: u64, median_us: u64) -> Row {
        let cost = |us| Cost {
            cpu: Duration::from_micros(us),
            median: Duration::from_micros(median_us),
            p99: Duration::from_micros(2 * median_us),
        };
        let costs = vec![(Contender::Tidepool, cost(ours_us)), (REFERENCE, cost(theirs_us))];
        Row { place: DataLocation::Head, kind, pace, costs, difference: None }
    }

    #[test]
    fn aims_are_of_cpu_and_of_the_median() {
        let reached = |row: Row| is_reached(&[row]);
        assert!(reached(row(Kind::Instant, Pace::Fast, 500, 1000, 1000)));
        assert!(!reached(row(Kind::Instant, Pace::Fast, 501, 1000, 1000)));
        assert!(!reached(row(Kind::Instant, Pace::Fast, 500, 1000, 1001)));
        assert!(reached(row(Kind::Instant, Pace::Slow, 900, 1000, 9000)));
        assert!(reached(row(Kind::Streamed, Pace::Fast, 800, 1000, 9000)));
        assert!(!reached(row(Kind::Values, Pace::Fast, 801, 1000, 9000)));
        assert!(reached(row(Kind::Count, Pace::Fast, 2000, 1000, 9000)));
        let mut alone = row(Kind::Series, Pace::Fast, 1, 1, 1);
        alone.costs.pop();
        assert!(!reached(alone));
    }

    #[test]
    fn a_line_has_both_servers_and_the_ratio() {
        let mut rows = [row(Kind::Sampled, Pace::Fast, 400, 1000, 700)];
        rows[0].difference = Some("other samples".to_owned());
        let text = text(&rows);
        let expected = "| remote read, SAMPLES, 10 series | 0.40 / 0.70 / 1.40 \
                        | 1.00 / 0.70 / 1.40 | 0.40 × | ≤ 0.8 × | yes |";
        assert!(text.lines().any(|line| line == expected), "{text}");
        assert!(text.ends_with("an answer differs: other samples\n"), "{text}");
        assert!(!are_right(&rows));
    }
}
