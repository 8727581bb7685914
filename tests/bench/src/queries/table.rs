//! The results as Markdown: a row for each query, sums, aims, and notes on single answers.

use super::super::contender::Contender;
use super::super::plot::{self, RatioBar};
use super::super::report::line;
use super::measure::Cost;
use super::verdict::{self, Aim, Group, ratio};
use super::{REFERENCE, Row, Stored};
use std::fmt::Write as _;

pub fn text(servers: &[Contender], stored: &[Stored], rows: &[Row]) -> String {
    let mut text = String::new();
    for Stored { set, series, samples, block_bytes } in stored {
        let (millions, megabytes) = (*samples as f64 / 1e6, *block_bytes as f64 / 1e6);
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            text,
            "- Data set *{set}*: {series} series, {millions:.1} million samples, {megabytes:.0} MB of blocks."
        );
    }
    text.push('\n');
    let names = servers.iter().map(Contender::to_string);
    let head = ["query", "over"].map(str::to_owned).into_iter().chain(names);
    let head: Vec<String> = head.chain(["CPU", "memory"].map(str::to_owned)).collect();
    text += &line(&head);
    text += &line(head.iter().map(|_| "---"));
    for row in rows {
        text += &line(cells(servers, row));
    }
    for group in verdict::groups(rows) {
        text += &sum_line(servers, &group, "total", |who| group.total(who));
        text += &sum_line(servers, &group, "geometric mean", |who| group.mean(who));
    }
    text + "\n" + &aim_lines(&verdict::aims(rows)) + &notes(servers, rows)
}

/// Draws the ratios to Prometheus as a chart.
pub fn chart(rows: &[Row]) -> String {
    let bars = rows.iter().filter_map(|row| {
        let ratio = verdict::part(row, REFERENCE, |cost| cost.cpu.as_secs_f64())?;
        let (name, over) = (row.query.name, over(row));
        Some(RatioBar { title: format!("{name}, {over}"), ratio, bar: Some(verdict::EACH_MAX) })
    });
    plot::ratios("CPU of a query: tidepool ÷ Prometheus; less is better", &bars.collect::<Vec<_>>())
}

/// Returns the time range of a query as text.
fn over(row: &Row) -> String {
    row.hours.map_or("an instant".to_string(), |hours| format!("{hours} h"))
}

/// Returns a table of aims.
pub fn aim_lines(aims: &[Aim]) -> String {
    let mut text = "| aim | reached |\n| --- | --- |\n".to_string();
    for Aim { text: aim, is_reached } in aims {
        let reached = match is_reached {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "not known",
        };
        text += &line([aim.as_str(), reached]);
    }
    text
}

/// Formats a query's figures: CPU s / wall s / peak MB (of which its own).
fn cells(servers: &[Contender], row: &Row) -> Vec<String> {
    // `|` ends a column of a table, even in code.
    let promql = row.query.promql.replace('|', "\\|");
    let mut cells = vec![format!("`{promql}`"), over(row)];
    cells.extend(servers.iter().map(
        |&contender| match row.of(contender).map(|found| &found.cost) {
            Some(Ok(cost)) => figures(cost),
            Some(Err(_)) => "no answer".to_string(),
            None => String::new(),
        },
    ));
    let part = |of: fn(Cost) -> f64| times(verdict::part(row, REFERENCE, of));
    cells.push(part(|cost| cost.cpu.as_secs_f64()));
    cells.push(part(|cost| cost.peak_bytes as f64));
    cells
}

fn figures(cost: &Cost) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    format!(
        "{} / {} / {:.0} (+{:.0})",
        seconds(cost.cpu.as_secs_f64()),
        seconds(cost.wall.as_secs_f64()),
        megabytes(cost.peak_bytes),
        megabytes(cost.extra_bytes)
    )
}

fn sum_line(
    servers: &[Contender],
    group: &Group<'_>,
    what: &str,
    of: impl Fn(Contender) -> Option<f64>,
) -> String {
    let mut cells = vec![format!("*{}, {what}*", group.name), String::new()];
    cells.extend(servers.iter().map(|&server| of(server).map_or_else(String::new, seconds)));
    cells.push(times(ratio(of(Contender::Tidepool), of(REFERENCE))));
    cells.push(String::new());
    line(&cells)
}

/// Returns notes on differences, refusals, and other servers' answers with other series.
fn notes(servers: &[Contender], rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let name = row.query.name;
        if let Some(difference) = &row.difference {
            let _ = writeln!(text, "- {name}: tidepool's answer differs: {difference}");
        }
        for &contender in servers {
            let Some(found) = row.of(contender) else { continue };
            if let Err(error) = &found.cost {
                let _ = writeln!(text, "- {name}: {contender} gave no answer: {error}");
                continue;
            }
            let Some(theirs) = row.of(REFERENCE).filter(|theirs| theirs.cost.is_ok()) else {
                continue;
            };
            if found.series != theirs.series {
                let (ours, theirs) = (found.series, theirs.series);
                let _ = writeln!(text, "- {name}: {contender} gave {ours} series, not {theirs}");
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Returns one measurement as a line for the log.
pub fn progress(cost: &Result<Cost, String>) -> String {
    match cost {
        Ok(cost) => figures(cost),
        Err(error) => error.clone(),
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        much if much >= 10.0 => format!("{much:.1}"),
        some if some >= 0.1 => format!("{some:.2}"),
        little => format!("{little:.3}"),
    }
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.2} ×"))
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::row;
    use super::*;

    const SERVERS: [Contender; 2] = [Contender::Tidepool, REFERENCE];

    #[test]
    fn a_row_has_all_figures_and_both_ratios() {
        let text = text(&SERVERS, &[], &[row(2, (120, 30), (480, 40)), row(12, (10, 1), (20, 5))]);
        let lines: Vec<&str> = text.lines().collect();
        let expected = "| `sum by (instance) (rate({__name__=~\"x\\|y\"}[5m]))` | 24 h \
             | 0.12 / 0.12 / 30 (+15) | 0.48 / 0.48 / 40 (+20) | 0.25 × | 0.75 × |";
        assert_eq!(lines[3], expected);
        assert!(lines[4].contains("| an instant |"), "{text}");
        assert_eq!(lines[5], "| *2 queries, total* |  | 0.13 | 0.50 | 0.26 × |  |");
        assert!(lines[6].starts_with("| *2 queries, geometric mean* |  | 0.035 |"), "{text}");
        assert!(text.ends_with("2 of 2 compared | yes |\n"), "{text}");
    }

    #[test]
    fn what_went_wrong_stands_below() {
        let mut rows = [row(0, (1, 1), (2, 2)), row(1, (1, 1), (2, 2))];
        rows[0].difference = Some("1 series, not 2".to_string());
        rows[0].found[0].series = 1;
        rows[1].found[0].cost = Err("422: too much".to_string());
        let text = text(&SERVERS, &[], &rows);
        assert!(text.contains("| no answer | 0.002 / 0.002 / 2 (+1) |  |  |"), "{text}");
        let notes: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
        let expected = [
            "- rate-8h: tidepool's answer differs: 1 series, not 2",
            "- rate-8h: tidepool gave 1 series, not 3",
            "- rate-24h: tidepool gave no answer: 422: too much",
        ];
        assert_eq!(notes, expected);
    }
}
