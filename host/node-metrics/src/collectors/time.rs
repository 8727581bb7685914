//! `time`: the clock, its time zone and its source. Upstream: `collector/time.go` and
//! `collector/time_linux.go`.
//!
//! The time zone is that of this process, determined as in Go (`time/zoneinfo_unix.go`): by `TZ`,
//! or else by `/etc/localtime`, or else UTC.

use super::{Collector, Round};
use crate::error::{CollectError, Result};
use crate::read::{Reader, numbered};
use crate::sink::{Kind, Output};
use crate::text::valid_utf8;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const LOCAL_TIME: &str = "/etc/localtime";
const ZONE_DIRECTORIES: [&str; 4] =
    ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"];
const NANOS: f64 = 1e9;

pub(crate) struct Time {
    zone: TimeZone,
}

struct ClockSource {
    available: Vec<String>,
    current: String,
}

impl Collector for Time {
    fn name(&self) -> &'static str {
        "time"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let help = "System time in seconds since epoch (1970).";
        output.single("node_time_seconds", help, Kind::Gauge, nanos as f64 / NANOS);
        self.write_zone(nanos, output);
        // Done last, so that the time is shown even if a source is unreadable.
        write_sources(&clock_sources(round)?, output);
        Ok(())
    }
}

impl Time {
    pub(crate) fn new(reader: &mut Reader) -> Time {
        Time { zone: zone(std::env::var_os("TZ").as_deref(), reader).unwrap_or(TimeZone::UTC) }
    }

    fn write_zone(&self, nanos: u128, output: &mut Output<'_>) {
        let now =
            i128::try_from(nanos).ok().and_then(|nanos| Timestamp::from_nanosecond(nanos).ok());
        let now = now.unwrap_or(Timestamp::MAX);
        let info = self.zone.to_offset_info(now);
        let help = "System time zone offset in seconds.";
        let mut family = output.family("node_time_zone_offset_seconds", help, Kind::Gauge);
        let seconds = f64::from(info.offset().seconds());
        family.sample(&[("time_zone", info.abbreviation())], seconds);
    }
}

/// Returns the time zone named by `TZ`, or else that of `/etc/localtime`.
fn zone(variable: Option<&OsStr>, reader: &mut Reader) -> Option<TimeZone> {
    let mut load = |path: &Path| TimeZone::tzif("Local", reader.bytes(path).ok()?).ok();
    let Some(variable) = variable else { return load(Path::new(LOCAL_TIME)) };
    // As in Go, a leading colon is accepted.
    let name = variable.as_bytes();
    let name = Path::new(OsStr::from_bytes(name.strip_prefix(b":").unwrap_or(name)));
    if name.as_os_str().is_empty() {
        return None;
    }
    // If the name is an absolute path, `join` ignores the directory.
    ZONE_DIRECTORIES.iter().find_map(|directory| load(&Path::new(directory).join(name)))
}

fn clock_sources(round: &mut Round<'_>) -> Result<Vec<ClockSource>> {
    let directory = round.paths.sysfs("devices/system/clocksource");
    // As in upstream, a missing directory is treated as empty.
    let names = numbered(&directory, "clocksource").unwrap_or_default();
    let mut read = |path: PathBuf| match round.reader.attribute(&path) {
        Ok(text) => Ok(valid_utf8(text).into_owned()),
        Err(error) => Err(CollectError::read(&path, error)),
    };
    let sources = names.iter().map(|name| {
        let available = read(directory.join(name).join("available_clocksource"))?;
        let current = read(directory.join(name).join("current_clocksource"))?;
        let mut available: Vec<String> = available.split_whitespace().map(str::to_owned).collect();
        available.sort_unstable();
        available.dedup();
        Ok(ClockSource { available, current })
    });
    sources.collect()
}

fn write_sources(sources: &[ClockSource], output: &mut Output<'_>) {
    let help = "Available clocksources read from '/sys/devices/system/clocksource'.";
    let mut family = output.family("node_time_clocksource_available_info", help, Kind::Gauge);
    for (device, source) in sources.iter().enumerate() {
        for available in &source.available {
            family.sample(&[("clocksource", available), ("device", &device.to_string())], 1.0);
        }
    }
    let help = "Current clocksource read from '/sys/devices/system/clocksource'.";
    let mut family = output.family("node_time_clocksource_current_info", help, Kind::Gauge);
    for (device, source) in sources.iter().enumerate() {
        let labels = [("clocksource", source.current.as_str()), ("device", &device.to_string())];
        family.sample(&labels, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    #[test]
    fn the_clock_and_its_sources() {
        let tree = Tree::new();
        let directory = "sys/devices/system/clocksource/clocksource0";
        tree.write_all(
            directory,
            &[("available_clocksource", "tsc hpet acpi_pm "), ("current_clocksource", "tsc")],
        );
        let mut recorder = Recorder::default();
        let seconds =
            || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        let before = seconds();
        let mut time = Time { zone: TimeZone::UTC };
        tree.collect_into(&mut time, &mut recorder).expect("collected");
        let now = recorder.value("node_time_seconds").expect("a sample");
        assert!(before <= now && now <= seconds());
        assert_eq!(
            recorder.samples[1..],
            [
                r#"node_time_zone_offset_seconds{time_zone="UTC"} 0"#,
                r#"node_time_clocksource_available_info{clocksource="acpi_pm",device="0"} 1"#,
                r#"node_time_clocksource_available_info{clocksource="hpet",device="0"} 1"#,
                r#"node_time_clocksource_available_info{clocksource="tsc",device="0"} 1"#,
                r#"node_time_clocksource_current_info{clocksource="tsc",device="0"} 1"#,
            ]
        );
        tree.remove(&format!("{directory}/current_clocksource"));
        let mut recorder = Recorder::default();
        assert!(tree.collect_into(&mut time, &mut recorder).is_err());
        assert_eq!(recorder.samples.len(), 2);
        tree.remove("sys/devices");
        assert_eq!(tree.collect(&mut time).expect("collected").len(), 2);
    }

    /// A zone of two hours in version 1 of `tzfile(5)`, and an empty version 2.
    fn two_hours() -> Vec<u8> {
        let header = |version: u8, types: u8, characters: u8| {
            let mut header = b"TZif".to_vec();
            header.push(version);
            header.extend([0; 15]);
            for count in [0, 0, 0, 0, types, characters] {
                header.extend([0, 0, 0, count]);
            }
            header
        };
        let mut file = Vec::new();
        for _ in 0..2 {
            file.extend(header(b'2', 1, 5));
            file.extend(7200i32.to_be_bytes());
            file.extend([0, 0]);
            file.extend(b"TEST\0");
        }
        file.extend(b"\nTEST-2\n");
        file
    }

    #[test]
    fn the_zone_is_that_of_the_environment() {
        let tree = Tree::new();
        tree.write("zone", two_hours());
        let path = tree.path("zone");
        let mut reader = Reader::default();
        let mut shown = |variable: &str| {
            let zone = zone(Some(OsStr::new(variable)), &mut reader).unwrap_or(TimeZone::UTC);
            let mut recorder = Recorder::default();
            Time { zone }.write_zone(1_000_000_000, &mut Output::new(&mut recorder));
            recorder.samples.concat()
        };
        let utc = r#"node_time_zone_offset_seconds{time_zone="UTC"} 0"#;
        let ours = r#"node_time_zone_offset_seconds{time_zone="TEST"} 7200"#;
        let path = path.to_str().expect("a text");
        assert_eq!(shown(path), ours);
        assert_eq!(shown(&format!(":{path}")), ours);
        for none in ["", ":", "no/such/zone", "/dev/null"] {
            assert_eq!(shown(none), utc, "{none}");
        }
    }
}
