//! The results as Markdown: a column for each server, the aims, and notes on single answers.

use super::super::queries::table::aim_lines;
use super::super::report::line;
use super::phases::Phase;
use super::verdict::{self, ms, write_percentile};
use super::{Options, Outcome, ServerFigures};
use std::fmt::Write as _;
use std::time::Duration;
use tidepool_tests::latency::Latencies;

/// Maximum number of failures and differences that are shown.
const NOTES_MAX: usize = 20;

pub fn text(options: &Options, outcome: &Outcome) -> String {
    let Options { viewers, panels, write_rate, phase_s, phases, series, hours, .. } = options;
    let mut text = format!(
        "{viewers} viewers of {panels} panels each, refreshed every {} s, beside {write_rate} samples \
         a second. Phases of {phase_s} s: {phases} of writes alone, as many beside viewers. Panels select \
         from {series} series, of which {hours} hours were stored before.\n\n",
        options.refresh_every.as_secs_f64()
    );
    let names = outcome.found.iter().map(|found| found.contender.to_string());
    let head: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    text += &line(&head);
    text += &line(head.iter().map(|_| "---"));
    for (title, cell) in ROWS {
        let cells = outcome.found.iter().map(cell);
        text += &line(std::iter::once(title.to_string()).chain(cells));
    }
    text.push('\n');
    text += &aim_lines(&verdict::aims(outcome));
    text + &notes(outcome)
}

/// A row: its title and the content of a server's cell.
type Row = (&'static str, fn(&ServerFigures) -> String);

const ROWS: [Row; 14] = [
    ("a panel: p50 / p99 / longest, ms", |found| spread(found.refreshes().panels)),
    ("a look-up: p50 / p99 / longest, ms", |found| spread(found.refreshes().look_ups)),
    ("a whole refresh: p50 / p99 / longest, ms", |found| spread(found.refreshes().whole)),
    ("refreshes made / missed", |found| {
        let refreshes = found.refreshes();
        format!("{} / {}", refreshes.whole.len(), refreshes.missed)
    }),
    ("a write alone: p50 / p99, ms", |found| writes(&found.quiet)),
    ("a write beside viewers: p50 / p99, ms", |found| writes(&found.beside)),
    ("remote write", |found| found.version.to_string()),
    ("samples written alone / beside viewers, k a second", |found| {
        let rate = |phases| total(phases).samples as f64 / total(phases).wall.as_secs_f64() / 1e3;
        format!("{:.0} / {:.0}", rate(&found.quiet), rate(&found.beside))
    }),
    ("CPU of writes alone, s per M samples", |found| {
        let all = total(&found.quiet);
        format!("{:.2}", all.cpu.as_secs_f64() / (all.samples as f64 / 1e6))
    }),
    ("CPU alone / beside viewers, s a second", |found| {
        format!("{:.2} / {:.2}", total(&found.quiet).load(), total(&found.beside).load())
    }),
    ("CPU of a refresh beside writes, ms", |found| {
        let (quiet, beside) = (total(&found.quiet), total(&found.beside));
        let more = (beside.load() - quiet.load()) * beside.wall.as_secs_f64();
        format!("{:.0}", more * 1e3 / found.refreshes().whole.len().max(1) as f64)
    }),
    ("peak memory, MB", |found| format!("{:.0}", found.peak_memory_bytes as f64 / 1e6)),
    ("first refresh without writes: CPU ms (wall)", |found| {
        format!("{} ({})", ms(found.first.cpu), ms(found.first.wall))
    }),
    ("the same a step later: CPU ms (wall)", |found| {
        let part = found.repeated.cpu.as_secs_f64() / found.first.cpu.as_secs_f64();
        format!("{} ({}), {part:.2} ×", ms(found.repeated.cpu), ms(found.repeated.wall))
    }),
];

#[derive(Default)]
struct Total {
    samples: u64,
    wall: Duration,
    cpu: Duration,
}

impl Total {
    /// Returns CPU seconds per second.
    fn load(&self) -> f64 {
        self.cpu.as_secs_f64() / self.wall.as_secs_f64()
    }
}

fn total(phases: &[Phase]) -> Total {
    phases.iter().fold(Total::default(), |sum, phase| Total {
        samples: sum.samples + phase.samples,
        wall: sum.wall + phase.wall,
        cpu: sum.cpu + phase.cpu,
    })
}

fn spread(times: Vec<Duration>) -> String {
    if times.is_empty() {
        return "none".to_string();
    }
    let all = Latencies::new(times);
    [all.percentile(50), all.percentile(99), all.longest()].map(ms).join(" / ")
}

/// Returns the medians of all phases.
fn writes(phases: &[Phase]) -> String {
    [50, 99].map(|percent| ms(write_percentile(phases, percent))).join(" / ")
}

/// Returns failed requests and differing answers.
fn notes(outcome: &Outcome) -> String {
    let mut all: Vec<String> = Vec::new();
    for found in &outcome.found {
        all.extend(found.failures.iter().map(|failure| format!("{}: {failure}", found.contender)));
    }
    let differences = outcome.differences.iter().flatten();
    all.extend(differences.map(|difference| format!("tidepool's answer differs: {difference}")));
    let mut text = String::new();
    for note in all.iter().take(NOTES_MAX) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "- {note}");
    }
    if let Some(more) = all.len().checked_sub(NOTES_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "- and {more} more");
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Returns one phase as a line for the log.
pub fn progress(phase: &Phase) -> String {
    let Phase { writes, samples, wall, cpu, refreshes } = phase;
    let rate = *samples as f64 / wall.as_secs_f64() / 1e3;
    let [p50, p99] = [50, 99].map(|percent| ms(writes.percentile(percent)));
    let panels = spread(refreshes.panels.clone());
    let cpu = cpu.as_secs_f64();
    format!("{rate:.0} k samples/s, writes {p50} / {p99} ms, panels {panels} ms, {cpu:.1} CPU s")
}

#[cfg(test)]
mod tests {
    use super::super::super::contender::Contender;
    use super::super::super::queries::REFERENCE;
    use super::super::verdict::tests::found;
    use super::*;

    const OPTIONS: Options = Options {
        viewers: 20,
        panels: 24,
        refresh_every: Duration::from_secs(10),
        write_rate: 200_000,
        phase_s: 20,
        phases: 1,
        series: 10_000,
        hours: 6,
        repeats: 1,
    };

    #[test]
    fn every_server_has_a_column_of_figures() {
        let mut ours = found(Contender::Tidepool, 12, &[3], &[4]);
        ours.beside[0].cpu = Duration::from_millis(900);
        let found = vec![ours, found(REFERENCE, 700, &[8], &[900])];
        let outcome = Outcome { found, compared: 54, differences: Some(Vec::new()) };
        let text = text(&OPTIONS, &outcome);
        for row in [
            "|  | tidepool | Prometheus 3.x |",
            "| a panel: p50 / p99 / longest, ms | 1 / 12 / 12 | 1 / 700 / 700 |",
            "| refreshes made / missed | 100 / 0 | 100 / 0 |",
            "| a write beside viewers: p50 / p99, ms | 1 / 4 | 1 / 900 |",
            "| CPU of writes alone, s per M samples | 0.50 | 0.50 |",
            "| CPU alone / beside viewers, s a second | 0.10 / 0.18 | 0.10 / 0.10 |",
            "| CPU of a refresh beside writes, ms | 4 | 0 |",
            "| the same a step later: CPU ms (wall) | 25 (0), 0.25 × | 25 (0), 0.25 × |",
            "| answers: the same as Prometheus': 54 of 54 compared | yes |",
        ] {
            assert!(text.contains(&format!("{row}\n")), "no {row} in\n{text}");
        }
        assert!(text.ends_with("| yes |\n"), "{text}");
    }

    #[test]
    fn failures_are_named_up_to_a_bound() {
        let mut ours = found(Contender::Tidepool, 1, &[3], &[4]);
        ours.failures = vec!["sum(x): 503: busy".to_string(); 30];
        let differences = Some(vec!["x: 1 series, not 2".to_string()]);
        let text = text(&OPTIONS, &Outcome { found: vec![ours], compared: 54, differences });
        assert_eq!(text.matches("- tidepool: sum(x): 503: busy\n").count(), NOTES_MAX);
        assert!(text.ends_with("- and 11 more\n"), "{text}");
    }
}
