//! `timex`: accuracy of the clock. Upstream: `collector/timex.go`; `adjtimex(2)`.

use super::{Collector, Round, adjtimex};
use crate::error::{CollectError, Result};
use crate::sink::{Kind, Output};
use std::io::ErrorKind;

const NANOS: f64 = 1e9;
const MICROS: f64 = 1e6;
/// Factor for values in parts per million with 16 fractional bits.
const SCALED_PPM: f64 = 1_000_000.0 * 65_536.0;

pub(crate) struct Timex;

impl Collector for Timex {
    fn name(&self) -> &'static str {
        "timex"
    }

    fn collect(&mut self, _round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        match adjtimex::read() {
            Ok((state, timex)) => {
                write(state, &timex, output);
                Ok(())
            }
            // Some sandboxes forbid the call, which is not a fault of the machine.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(CollectError::NoData("adjtimex(2) is not permitted"))
            }
            Err(source) => Err(CollectError::Call { call: "adjtimex(2)", source }),
        }
    }
}

fn write(state: i32, timex: &libc::timex, output: &mut Output<'_>) {
    // The flag in `status` determines the unit of offset and jitter.
    let divisor = if timex.status & libc::STA_NANO != 0 { NANOS } else { MICROS };
    let families = [
        (
            "node_timex_sync_status",
            "Is clock synchronized to a reliable server (1 = yes, 0 = no).",
            f64::from(u8::from(state != libc::TIME_ERROR)),
        ),
        (
            "node_timex_offset_seconds",
            "Time offset in between local system and reference clock.",
            timex.offset as f64 / divisor,
        ),
        (
            "node_timex_frequency_adjustment_ratio",
            "Local clock frequency adjustment.",
            1.0 + timex.freq as f64 / SCALED_PPM,
        ),
        (
            "node_timex_maxerror_seconds",
            "Maximum error in seconds.",
            timex.maxerror as f64 / MICROS,
        ),
        (
            "node_timex_estimated_error_seconds",
            "Estimated error in seconds.",
            timex.esterror as f64 / MICROS,
        ),
        ("node_timex_status", "Value of the status array bits.", f64::from(timex.status)),
        (
            "node_timex_loop_time_constant",
            "Phase-locked loop time constant.",
            timex.constant as f64,
        ),
        ("node_timex_tick_seconds", "Seconds between clock ticks.", timex.tick as f64 / MICROS),
        (
            "node_timex_pps_frequency_hertz",
            "Pulse per second frequency.",
            timex.ppsfreq as f64 / SCALED_PPM,
        ),
        (
            "node_timex_pps_jitter_seconds",
            "Pulse per second jitter.",
            timex.jitter as f64 / divisor,
        ),
        (
            "node_timex_pps_shift_seconds",
            "Pulse per second interval duration.",
            f64::from(timex.shift),
        ),
        (
            "node_timex_pps_stability_hertz",
            "Pulse per second stability, average of recent frequency changes.",
            timex.stabil as f64 / SCALED_PPM,
        ),
        (
            "node_timex_pps_jitter_total",
            "Pulse per second count of jitter limit exceeded events.",
            timex.jitcnt as f64,
        ),
        (
            "node_timex_pps_calibration_total",
            "Pulse per second count of calibration intervals.",
            timex.calcnt as f64,
        ),
        (
            "node_timex_pps_error_total",
            "Pulse per second count of calibration errors.",
            timex.errcnt as f64,
        ),
        (
            "node_timex_pps_stability_exceeded_total",
            "Pulse per second count of stability limit exceeded events.",
            timex.stbcnt as f64,
        ),
        (
            "node_timex_tai_offset_seconds",
            "International Atomic Time (TAI) offset.",
            f64::from(timex.tai),
        ),
    ];
    for (name, help, value) in families {
        let kind = if name.ends_with("_total") { Kind::Counter } else { Kind::Gauge };
        output.single(name, help, kind, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recorder;

    fn recorded(state: i32, change: impl FnOnce(&mut libc::timex)) -> Option<Recorder> {
        let (_, mut timex) = adjtimex::read().ok()?;
        change(&mut timex);
        let mut recorder = Recorder::default();
        write(state, &timex, &mut Output::new(&mut recorder));
        Some(recorder)
    }

    #[test]
    fn units_depend_on_the_resolution_that_the_kernel_says() {
        for (nano, offset) in [(0, -0.5), (libc::STA_NANO, -0.0005)] {
            let Some(recorder) = recorded(libc::TIME_OK, |timex| {
                timex.status = nano;
                timex.offset = -500_000;
                timex.freq = 65_536 * 20;
                timex.maxerror = 16_000_000;
                timex.tai = 37;
            }) else {
                return;
            };
            assert_eq!(recorder.value("node_timex_offset_seconds"), Some(offset));
            assert_eq!(recorder.value("node_timex_frequency_adjustment_ratio"), Some(1.000_02));
            assert_eq!(recorder.value("node_timex_maxerror_seconds"), Some(16.0));
            assert_eq!(recorder.value("node_timex_tai_offset_seconds"), Some(37.0));
            assert_eq!(recorder.value("node_timex_sync_status"), Some(1.0));
            assert_eq!(recorder.families.len(), 17);
        }
        let Some(recorder) = recorded(libc::TIME_ERROR, |_| {}) else { return };
        assert_eq!(recorder.value("node_timex_sync_status"), Some(0.0));
        let counters = recorder.families.iter().filter(|(_, _, kind)| *kind == Kind::Counter);
        assert_eq!(counters.count(), 4);
    }
}
