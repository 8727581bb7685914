//! `hwmon`: sensors of the hardware. Upstream: `collector/hwmon_linux.go`; the kernel's
//! `Documentation/hwmon/sysfs-interface.rst`.
//!
//! Names of attributes have a type, a number and possibly a property: `temp1_max`. Attributes are
//! in the directory of the sensors, or of their device. Each round lists the sensors again, and
//! writes their values grouped by family at its end, since one chip contributes to many families.

mod chips;
mod families;

use super::{Collector, Round};
use crate::error::{CollectError, Result};
use crate::read::{Reader, entries};
use crate::sink::Output;
use chips::Chip;
use families::Families;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Types of sensors; other files in the directories are ignored.
const TYPES: [&str; 14] = [
    "vrm",
    "beep_enable",
    "update_interval",
    "in",
    "cpu",
    "fan",
    "pwm",
    "temp",
    "curr",
    "power",
    "energy",
    "humidity",
    "intrusion",
    "freq",
];

pub(crate) struct Hwmon;

type Properties = BTreeMap<String, Vec<u8>>;

/// Sensors of a chip by name, such as `temp1`, with type and properties.
type Sensors = BTreeMap<String, (&'static str, Properties)>;

impl Collector for Hwmon {
    fn name(&self) -> &'static str {
        "hwmon"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let directory = round.paths.sysfs("class/hwmon");
        let names = match entries(&directory) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(CollectError::NoData("there are no sensors"));
            }
            Err(error) => return Err(CollectError::read(&directory, error)),
        };
        let mut families = Families::default();
        let mut last_error = None;
        for Chip { path, label, readable_name } in chips::all(&directory, names, round.reader) {
            match read_sensors(&path, round.reader) {
                Ok(sensors) => families.add_chip(&label, readable_name.as_deref(), &sensors),
                // A broken chip only misses its own series, but the collector reports the failure.
                Err(error) => last_error = Some(error),
            }
        }
        families.write(output);
        last_error.map_or(Ok(()), Err)
    }
}

fn read_sensors(directory: &Path, reader: &mut Reader) -> Result<Sensors> {
    let mut sensors = Sensors::new();
    read_directory(directory, &mut sensors, reader)?;
    // Some drivers place the attributes in the device's directory.
    let device = directory.join("device");
    if device.exists() {
        read_directory(&device, &mut sensors, reader)?;
    }
    Ok(sensors)
}

fn read_directory(directory: &Path, sensors: &mut Sensors, reader: &mut Reader) -> Result<()> {
    let names = entries(directory).map_err(|error| CollectError::read(directory, error))?;
    for name in names {
        let Some((kind, number, property)) = split_name(&name) else { continue };
        let Some(kind) = TYPES.into_iter().find(|known| *known == kind) else { continue };
        // Directories such as `power` match as well, and broken sensors fail. Both are skipped.
        let Ok(value) = reader.raw_attribute(&directory.join(&name)) else { continue };
        // As in upstream, only line breaks are removed.
        let first = value.iter().take_while(|byte| **byte == b'\n').count();
        let last = value.iter().rev().take_while(|byte| **byte == b'\n').count();
        let value = value.get(first..value.len() - last).unwrap_or_default().to_vec();
        let sensor = sensors.entry(format!("{kind}{number}"));
        let (_, properties) = sensor.or_insert_with(|| (kind, Properties::new()));
        properties.insert(property.to_owned(), value);
    }
    Ok(())
}

/// Returns type, number (0 if absent) and property (empty if absent) by upstream's
/// `^([^0-9]+)([0-9]*)?(_(.+))?$`, in which the type is as long as possible.
fn split_name(name: &str) -> Option<(&str, u64, &str)> {
    let type_len = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (kind, rest) = name.split_at(type_len);
    if kind.is_empty() {
        return None;
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, property) = rest.split_at(digits);
    let number = if number.is_empty() { 0 } else { number.parse().ok()? };
    if property.is_empty() {
        return Some((kind, number, ""));
    }
    if let Some(property) = property.strip_prefix('_').filter(|property| !property.is_empty()) {
        return Some((kind, number, property));
    }
    // Without a number, the last underscore separates type and property.
    let at = kind.rfind('_').filter(|at| *at > 0)?;
    Some((&name[..at], 0, &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    #[test]
    fn names_of_attributes() {
        for (name, expected) in [
            ("temp1_input", Some(("temp", 1, "input"))),
            ("pwm1", Some(("pwm", 1, ""))),
            ("fan12_min_alarm", Some(("fan", 12, "min_alarm"))),
            ("pwm1_auto_point1_temp", Some(("pwm", 1, "auto_point1_temp"))),
            ("beep_enable", Some(("beep_enable", 0, ""))),
            ("update_interval", Some(("update_interval", 0, ""))),
            ("foo_bar1x", Some(("foo", 0, "bar1x"))),
            ("temp1_", None),
            ("in0input", None),
            ("1temp", None),
            ("temp99999999999999999999", None),
            ("", None),
        ] {
            assert_eq!(split_name(name), expected, "{name}");
        }
    }

    #[test]
    fn sensors_of_a_chip_and_of_its_device() {
        let tree = Tree::new();
        let error = tree.collect(&mut Hwmon).expect_err("no directory");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        let chip = "sys/devices/platform/coretemp.0/hwmon/hwmon0";
        tree.write_all(
            chip,
            &[
                ("name", "coretemp"),
                ("temp1_label", "Physical id 0"),
                ("temp1_input", "55000"),
                ("temp1_crit_alarm", "0"),
                ("power/control", "auto"),
                ("uevent", ""),
            ],
        );
        tree.link(&format!("{chip}/device"), "sys/devices/platform/coretemp.0");
        tree.link("sys/class/hwmon/hwmon0", chip);
        tree.write("sys/devices/platform/coretemp.0/fan1_input", "1200\n");
        let samples = tree.collect(&mut Hwmon).expect("collected");
        assert_eq!(
            samples,
            [
                r#"node_hwmon_chip_names{chip="platform_coretemp_0",chip_name="coretemp"} 1"#,
                r#"node_hwmon_fan_rpm{chip="platform_coretemp_0",sensor="fan1"} 1200"#,
                r#"node_hwmon_sensor_label{chip="platform_coretemp_0",label="Physical id 0",sensor="temp1"} 1"#,
                r#"node_hwmon_temp_celsius{chip="platform_coretemp_0",sensor="temp1"} 55"#,
                r#"node_hwmon_temp_crit_alarm_celsius{chip="platform_coretemp_0",sensor="temp1"} 0"#,
            ]
        );
    }

    #[test]
    fn what_is_hostile_is_left_out() {
        let tree = Tree::new();
        tree.write_all(
            "sys/class/hwmon/hwmon3",
            &[
                ("name", "x"),
                ("temp1_input", "hot"),
                ("temp2_input", "-5000"),
                ("temp3_input", &"1".repeat(1000)),
                ("temp4_strange-\u{e9}property", "1000"),
            ],
        );
        tree.write("sys/class/hwmon/hwmon3/temp2_label", b"a\xff\xfe\n\n");
        // A chip that vanishes while it is read.
        tree.link("sys/class/hwmon/hwmon4", "nowhere");
        tree.write("sys/class/hwmon/file", "");
        let mut recorder = Recorder::default();
        tree.collect_into(&mut Hwmon, &mut recorder).expect("collected");
        let of = |name: &str| recorder.samples.iter().filter(|line| line.contains(name)).count();
        assert_eq!(of("temp1"), 0);
        assert_eq!(
            recorder.value(r#"node_hwmon_temp_celsius{chip="x",sensor="temp2"}"#),
            Some(-5.0)
        );
        let label = "node_hwmon_sensor_label{chip=\"x\",label=\"a\u{fffd}\",sensor=\"temp2\"}";
        assert_eq!(recorder.value(label), Some(1.0));
        let strange = r#"node_hwmon_temp_strange__property_celsius{chip="x",sensor="temp4"}"#;
        assert_eq!(recorder.value(strange), Some(1.0));
    }
}
