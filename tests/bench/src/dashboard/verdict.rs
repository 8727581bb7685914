//! Judges whether the aims are reached.

use super::super::contender::Contender;
use super::super::queries::verdict::Aim;
use super::phases::Phase;
use super::{Outcome, ServerFigures};
use std::time::Duration;
use tidepool_tests::latency::{Latencies, median};

/// Largest accepted 99th percentile of panels.
const PANEL_P99_MAX: Duration = Duration::from_millis(150);
/// Largest accepted 99th percentile of writes beside viewers, as a ratio to the one alone, or that
/// much above it.
const WRITE_RATIO_MAX: f64 = 1.2;
const WRITE_MORE_MAX: Duration = Duration::from_millis(10);

/// Returns the median of all phases' percentiles of writes.
pub fn write_percentile(phases: &[Phase], percent: usize) -> Duration {
    median(phases.iter().map(|phase| phase.writes.percentile(percent)))
}

pub fn aims(outcome: &Outcome) -> Vec<Aim> {
    let ours = outcome.found.iter().find(|found| found.contender == Contender::Tidepool);
    vec![of_panels(ours), of_writes(ours), of_refreshes(ours), of_answers(outcome)]
}

fn of_panels(ours: Option<&ServerFigures>) -> Aim {
    let panels = ours.map(|found| found.refreshes().panels).filter(|panels| !panels.is_empty());
    let p99 = panels.map(|panels| Latencies::new(panels).percentile(99));
    let found = p99.map_or("not known".to_string(), |p99| format!("{} ms", ms(p99)));
    Aim {
        text: format!("99th percentile of a panel: at most {} ms: {found}", ms(PANEL_P99_MAX)),
        is_reached: p99.map(|p99| p99 <= PANEL_P99_MAX),
    }
}

fn of_writes(ours: Option<&ServerFigures>) -> Aim {
    let both = ours.filter(|found| !found.quiet.is_empty() && !found.beside.is_empty());
    let p99 = |phases: &[Phase]| write_percentile(phases, 99);
    let both = both.map(|found| (p99(&found.quiet), p99(&found.beside)));
    let most = |quiet: Duration| quiet.mul_f64(WRITE_RATIO_MAX).max(quiet + WRITE_MORE_MAX);
    let found = both.map_or("not known".to_string(), |(quiet, beside)| {
        format!("{} ms beside viewers, at most {} ms", ms(beside), ms(most(quiet)))
    });
    Aim {
        text: format!(
            "99th percentile of a write: at most {WRITE_RATIO_MAX} × that without viewers, or {} ms \
             more: {found}",
            ms(WRITE_MORE_MAX)
        ),
        is_reached: both.map(|(quiet, beside)| beside <= most(quiet)),
    }
}

fn of_refreshes(ours: Option<&ServerFigures>) -> Aim {
    let (missed, failed) =
        ours.map_or((0, 0), |found| (found.refreshes().missed, found.failures.len()));
    let whole = ours.map_or(0, |found| found.refreshes().whole.len());
    Aim {
        text: format!(
            "refreshes: none missed, every panel answered: {whole} made, {missed} missed, {failed} \
             requests without an answer"
        ),
        is_reached: ours.map(|_| whole > 0 && missed == 0 && failed == 0),
    }
}

fn of_answers(outcome: &Outcome) -> Aim {
    let compared = outcome.compared;
    let found = match &outcome.differences {
        None => "not known".to_string(),
        Some(none) if none.is_empty() => format!("{compared} of {compared} compared"),
        Some(some) => format!("not of {} of {compared}", some.len()),
    };
    Aim {
        text: format!("answers: the same as Prometheus': {found}"),
        is_reached: outcome.differences.as_ref().map(Vec::is_empty),
    }
}

/// Formats milliseconds with as many digits as are significant.
pub fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        much if much >= 100.0 => format!("{much:.0}"),
        some if some >= 10.0 && some.fract() > 0.0 => format!("{some:.1}"),
        even if even.fract() == 0.0 => format!("{even:.0}"),
        little => format!("{little:.2}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::RefreshCost;
    use super::super::viewer::Refreshes;
    use super::*;
    use tidepool_tests::remote_write::Version;

    /// Returns a hundred durations, two of which have this length.
    fn times(slow_ms: u64) -> Vec<Duration> {
        let all = [vec![1; 98], vec![slow_ms; 2]].concat();
        all.into_iter().map(Duration::from_millis).collect()
    }

    /// Returns a server with these 99th percentiles in milliseconds: of panels, and in each phase
    /// of writes alone and of writes beside viewers.
    pub fn found(contender: Contender, panel: u64, quiet: &[u64], beside: &[u64]) -> ServerFigures {
        let phase = |write: u64, refreshes: Refreshes| Phase {
            writes: Latencies::new(times(write)),
            samples: 1_000_000,
            wall: Duration::from_secs(5),
            cpu: Duration::from_millis(500),
            refreshes,
        };
        let refreshes = Refreshes {
            panels: times(panel),
            look_ups: times(2),
            whole: times(panel * 2),
            ..Refreshes::default()
        };
        let cost = |ms| RefreshCost { cpu: Duration::from_millis(ms), wall: Duration::ZERO };
        ServerFigures {
            contender,
            version: Version::V2,
            stored: 7_200_000,
            quiet: quiet.iter().map(|ms| phase(*ms, Refreshes::default())).collect(),
            beside: beside.iter().map(|ms| phase(*ms, refreshes.clone())).collect(),
            peak_memory_bytes: 90_000_000,
            first: cost(100),
            repeated: cost(25),
            failures: Vec::new(),
        }
    }

    fn verdicts(found: ServerFigures, differences: Option<Vec<String>>) -> Vec<Option<bool>> {
        let outcome = Outcome { found: vec![found], compared: 2, differences };
        aims(&outcome).iter().map(|aim| aim.is_reached).collect()
    }

    fn ours(panel: u64, quiet: &[u64], beside: &[u64]) -> ServerFigures {
        found(Contender::Tidepool, panel, quiet, beside)
    }

    #[test]
    fn panels_and_writes_are_judged_by_their_99th_percentile() {
        let right = || Some(Vec::new());
        assert_eq!(verdicts(ours(150, &[5], &[15]), right()), [Some(true); 4]);
        assert_eq!(verdicts(ours(151, &[5], &[16]), right())[..2], [Some(false), Some(false)]);
        // A long quiet percentile may grow by a fifth.
        assert_eq!(verdicts(ours(1, &[100], &[120]), right())[1], Some(true));
        assert_eq!(verdicts(ours(1, &[100], &[121]), right())[1], Some(false));
        // One bad phase of three does not change the median.
        assert_eq!(verdicts(ours(1, &[5, 5, 5], &[6, 900, 7]), right())[1], Some(true));
        assert_eq!(verdicts(ours(1, &[5, 5, 5], &[60, 90, 7]), right())[1], Some(false));
    }

    #[test]
    fn what_is_missing_is_not_reached() {
        let mut missed = ours(1, &[5], &[5]);
        missed.beside[0].refreshes.missed = 1;
        assert_eq!(verdicts(missed, Some(Vec::new()))[2], Some(false));
        let mut failed = ours(1, &[5], &[5]);
        failed.failures.push("503".to_string());
        assert_eq!(verdicts(failed, Some(vec!["p: 1".to_string()]))[2..], [Some(false); 2]);
        let theirs = found(Contender::VictoriaMetrics, 1, &[5], &[5]);
        assert_eq!(verdicts(theirs, None), [None; 4]);
    }

    #[test]
    fn milliseconds_have_no_digits_that_say_nothing() {
        let ms = |micros| ms(Duration::from_micros(micros));
        assert_eq!([ms(150_000), ms(10_000)], ["150", "10"]);
        assert_eq!([ms(123_456), ms(12_345), ms(1_234)], ["123", "12.3", "1.23"]);
    }
}
