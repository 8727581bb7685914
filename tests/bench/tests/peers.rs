//! The benchmark runs: every scenario at the size of a smoke test, with every row of the table.

use std::process::Command;
use tidepool_bench::bars::ROWS;

/// Returns the standard output and the log of a run, which must succeed.
#[track_caller]
fn bench(arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(arguments)
        .output()
        .expect("the benchmark runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, log) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{log}");
    (said, log)
}

#[test]
fn every_scenario_fills_its_rows() {
    let (table, log) = bench(&["table", "--quick"]);
    let rows: Vec<_> = ROWS.iter().filter(|row| row.scenario.is_usual(true)).collect();
    let lines: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    assert_eq!(lines.len(), rows.len(), "{table}");
    for (row, line) in rows.iter().zip(lines) {
        let cells: Vec<&str> = line.split(" | ").collect();
        assert_eq!(cells[0], format!("| {}", row.title));
        for cell in &cells[1..=2] {
            let number = cell.split(' ').next().unwrap_or("").trim_end_matches(['k', 'M']);
            let figure: f64 = number.parse().unwrap_or(f64::NAN);
            assert!(figure.is_finite() && figure >= 0.0, "{cell:?} is no figure: {line}");
        }
    }
    for chart in ["series-write", "series-read", "days-write", "days-read"] {
        assert!(log.contains(chart), "no point of the chart {chart}:\n{log}");
    }
}

#[test]
fn queries_are_measured_and_have_prometheus_answers() {
    let (text, _) =
        bench(&["table", "queries", "--quick", "--queries=rate-8h,one-to-one,increase,wide-join"]);
    assert!(text.contains("| answers: the same as Prometheus': 4 of 4 compared | yes |"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), 4, "{text}");
    for row in rows {
        // Figures of tidepool and of Prometheus: CPU and wall seconds, megabytes.
        for cell in row.split(" | ").skip(2).take(2) {
            let figures: Vec<f64> =
                cell.split([' ', '/']).filter_map(|word| word.parse().ok()).collect();
            let is_measured = figures.len() == 3 && figures.iter().all(|figure| *figure > 0.0);
            assert!(is_measured, "{cell:?}: {row}");
        }
    }
}

#[test]
fn dashboards_are_measured_and_have_prometheus_answers() {
    let (text, _) = bench(&["table", "dashboard", "--quick", "--servers=tidepool,prometheus3"]);
    assert!(
        text.contains("| answers: the same as Prometheus': 54 of 54 compared | yes |"),
        "{text}"
    );
    assert!(text.contains(" 0 requests without an answer |"), "{text}");
    for title in ["a panel: ", "a write alone: ", "a write beside viewers: ", "first refresh "] {
        let row = text.lines().find(|line| line.starts_with(&format!("| {title}")));
        let cells: Vec<&str> = row.unwrap_or_default().trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 3, "{title}: {text}");
        for cell in &cells[1..] {
            let words = cell.split([' ', '/', '(', ')', ',']).filter(|word| !word.is_empty());
            let figures: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
            let is_measured = figures.len() >= 2 && figures.iter().all(|figure| *figure > 0.0);
            assert!(is_measured, "{cell:?}: {row:?}");
        }
    }
}
