//! `thermal_zone`: temperatures and cooling devices. Upstream: `collector/thermal_zone_linux.go`;
//! the kernel's `Documentation/driver-api/thermal/sysfs-api.rst`.

use super::{Collector, Round};
use crate::error::{CollectError, Result};
use crate::read::{Reader, numbered};
use crate::sink::{Kind, Output};
use crate::text::valid_utf8;
use rustix::io::Errno;
use std::path::Path;

const ZONE: &str = "thermal_zone";
const COOLING_DEVICE: &str = "cooling_device";
const MILLI: f64 = 1000.0;

pub(crate) struct ThermalZone;

struct Zone {
    name: String,
    kind: String,
    milli_celsius: i64,
}

struct CoolingDevice {
    name: String,
    kind: String,
    /// Current state of the device; some devices have -1.
    current: i64,
    maximum: i64,
}

impl Collector for ThermalZone {
    fn name(&self) -> &'static str {
        "thermal_zone"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let directory = round.paths.sysfs("class/thermal");
        // As in upstream, a missing directory is treated as empty.
        let names = numbered(&directory, ZONE).unwrap_or_default();
        let zones = names.iter().map(|name| read_zone(&directory, name, round.reader));
        let zones: Vec<Zone> = zones.collect();
        let help = "Zone temperature in Celsius";
        let mut family = output.family("node_thermal_zone_temp", help, Kind::Gauge);
        for Zone { name, kind, milli_celsius } in &zones {
            family.sample(&[("type", kind), ("zone", name)], *milli_celsius as f64 / MILLI);
        }

        let names = numbered(&directory, COOLING_DEVICE).unwrap_or_default();
        let devices = names.iter().filter_map(|name| read_device(&directory, name, round.reader));
        let devices: Vec<CoolingDevice> = devices.collect::<Result<_>>()?;
        let help = "Current throttle state of the cooling device";
        let mut family = output.family("node_cooling_device_cur_state", help, Kind::Gauge);
        for CoolingDevice { name, kind, current, .. } in &devices {
            family.sample(&[("name", name), ("type", kind)], *current as f64);
        }
        let help = "Maximum throttle state of the cooling device";
        let mut family = output.family("node_cooling_device_max_state", help, Kind::Gauge);
        for CoolingDevice { name, kind, maximum, .. } in &devices {
            family.sample(&[("name", name), ("type", kind)], *maximum as f64);
        }
        Ok(())
    }
}

/// Reads a zone. As in upstream since procfs 0.21, an unreadable value is 0 or empty: sensors of
/// switched-off devices, such as wireless adapters, report no temperature.
fn read_zone(directory: &Path, name: &str, reader: &mut Reader) -> Zone {
    let path = directory.join(name);
    let kind = reader.attribute(&path.join("type")).map(|kind| valid_utf8(kind).into_owned());
    Zone {
        name: name[ZONE.len()..].to_owned(),
        kind: kind.unwrap_or_default(),
        milli_celsius: reader.number(&path.join("temp")).unwrap_or_default(),
    }
}

/// Reads a cooling device; `None` if the device has no current or maximum state.
fn read_device(directory: &Path, name: &str, reader: &mut Reader) -> Option<Result<CoolingDevice>> {
    let path = directory.join(name);
    let mut read = || {
        let file = path.join("type");
        let kind = reader.attribute(&file).map_err(|error| (file, error))?;
        let kind = valid_utf8(kind).into_owned();
        let mut state = |name: &str| {
            let file = path.join(name);
            reader.number(&file).map_err(|error| (file, error))
        };
        let (maximum, current) = (state("max_state")?, state("cur_state")?);
        Ok(CoolingDevice { name: name[COOLING_DEVICE.len()..].to_owned(), kind, current, maximum })
    };
    match read() {
        Ok(device) => Some(Ok(device)),
        Err((_, error)) if is_absent(error) => None,
        Err((file, error)) => Some(Err(CollectError::read(&file, error))),
    }
}

fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    #[test]
    fn temperatures_and_states() {
        let tree = Tree::new();
        let thermal = "sys/class/thermal";
        tree.write_all(
            &format!("{thermal}/thermal_zone0"),
            &[("type", "bcm2835"), ("temp", "49925")],
        );
        tree.write_all(
            &format!("{thermal}/thermal_zone11"),
            &[("type", "acpitz"), ("temp", "-44000")],
        );
        // A sensor that is switched off.
        tree.write_all(
            &format!("{thermal}/thermal_zone2"),
            &[("type", "iwlwifi"), ("mode", "disabled")],
        );
        tree.write_all(
            &format!("{thermal}/cooling_device0"),
            &[("type", "Processor"), ("max_state", "50"), ("cur_state", "-1")],
        );
        tree.write_all(&format!("{thermal}/cooling_device1"), &[("type", "Fan")]);
        let samples = tree.collect(&mut ThermalZone).expect("collected");
        assert_eq!(
            samples,
            [
                r#"node_thermal_zone_temp{type="bcm2835",zone="0"} 49.925"#,
                r#"node_thermal_zone_temp{type="acpitz",zone="11"} -44"#,
                r#"node_thermal_zone_temp{type="iwlwifi",zone="2"} 0"#,
                r#"node_cooling_device_cur_state{name="0",type="Processor"} -1"#,
                r#"node_cooling_device_max_state{name="0",type="Processor"} 50"#,
            ]
        );
    }

    #[test]
    fn a_device_that_fails_costs_no_temperature() {
        let tree = Tree::new();
        assert!(tree.collect(&mut ThermalZone).expect("collected").is_empty());
        let thermal = "sys/class/thermal";
        tree.write_all(&format!("{thermal}/thermal_zone0"), &[("type", "x"), ("temp", "1000")]);
        // Reading a directory fails in another way than an absent device.
        tree.write(&format!("{thermal}/cooling_device0/type/x"), "");
        let mut recorder = Recorder::default();
        let error = tree.collect_into(&mut ThermalZone, &mut recorder).expect_err("a directory");
        assert!(error.to_string().contains("cooling_device0/type"), "{error}");
        assert_eq!(recorder.samples, [r#"node_thermal_zone_temp{type="x",zone="0"} 1"#]);
    }
}
