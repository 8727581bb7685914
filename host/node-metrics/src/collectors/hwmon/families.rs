//! Names, units and help texts of sensors, as in upstream.

use super::chips::clean;
use super::{Properties, Sensors};
use crate::sink::{Kind, Label, Output};
use crate::text::{is_name_part, valid_utf8};
use std::collections::BTreeMap;

const MILLI: f64 = 0.001;
const MICROS: f64 = 1_000_000.0;

type NamedLabel<'a> = (&'static str, &'a str);

#[derive(Default)]
pub(super) struct Families(BTreeMap<String, Family>);

struct Family {
    help: String,
    kind: Kind,
    samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

impl Families {
    pub(super) fn add_chip(&mut self, chip: &str, readable: Option<&str>, sensors: &Sensors) {
        if let Some(name) = readable {
            let labels = [("chip", chip), ("chip_name", name)];
            let help = "Annotation metric for human-readable chip names";
            self.add("node_hwmon_chip_names", help, Kind::Gauge, &labels, 1.0);
        }
        for (sensor, (kind, properties)) in sensors {
            if let Some(label) = properties.get("label") {
                let label = valid_utf8(label);
                let labels = [("chip", chip), ("label", label.as_ref()), ("sensor", sensor)];
                let help = "Label for given chip and sensor";
                self.add("node_hwmon_sensor_label", help, Kind::Gauge, &labels, 1.0);
            }
            self.add_sensor(&[("chip", chip), ("sensor", sensor)], kind, properties);
        }
    }

    fn add_sensor(&mut self, labels: &[NamedLabel<'_>], kind: &str, properties: &Properties) {
        let whole = properties.get("");
        match kind {
            "beep_enable" => {
                let value = f64::from(u8::from(whole.is_some_and(|value| value == b"1")));
                let (name, help) = ("node_hwmon_beep_enabled", "Hardware beep enabled");
                self.add(name, help, Kind::Gauge, labels, value);
            }
            "vrm" => {
                if let Some(value) = whole.and_then(|value| number(value)) {
                    let name = "node_hwmon_voltage_regulator_version";
                    self.add(name, "Hardware voltage regulator", Kind::Gauge, labels, value);
                }
            }
            "update_interval" => {
                if let Some(value) = whole.and_then(|value| number(value)) {
                    let name = "node_hwmon_update_interval_seconds";
                    let help = "Hardware monitor update interval";
                    self.add(name, help, Kind::Gauge, labels, value * MILLI);
                }
            }
            _ => {
                for (property, value) in properties {
                    self.add_property(labels, kind, property, value, properties);
                }
            }
        }
    }

    fn add_property(
        &mut self,
        labels: &[NamedLabel<'_>],
        kind: &str,
        property: &str,
        value: &[u8],
        properties: &Properties,
    ) {
        // A label that happens to be a number is not a measured value.
        let Some(value) = number(value).filter(|_| property != "label") else { return };
        // The measured value has no suffix, unless there is a file without any property.
        let base = match property {
            "" => format!("node_hwmon_{kind}"),
            "input" if !properties.contains_key("") => format!("node_hwmon_{kind}"),
            _ => format!("node_hwmon_{kind}_{}", clean(property)),
        };
        if kind == "freq" && property == "input" {
            // As in upstream, the label replaces the sensor's name. Without it nothing is shown.
            if let (Some(label), [chip, _]) = (properties.get("label"), labels) {
                let sensor = clean(&valid_utf8(label));
                let labels = [*chip, ("sensor", sensor.as_str())];
                let help = "Hardware monitor for GPU frequency in MHz";
                let name = format!("{base}_freq_mhz");
                self.add(&name, help, Kind::Gauge, &labels, value / MICROS);
            }
            return;
        }
        let (suffix, help, value) = unit(kind, property, value);
        let metric = if suffix == "_joule_total" { Kind::Counter } else { Kind::Gauge };
        self.add(&format!("{base}{suffix}"), &help, metric, labels, value);
    }

    /// Adds a sample. If its labels exist already, or if the name is invalid, nothing is added.
    fn add(&mut self, name: &str, help: &str, kind: Kind, labels: &[NamedLabel<'_>], value: f64) {
        // Drivers choose the names of properties, so they may be invalid.
        if !is_name_part(name) {
            return;
        }
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family {
            help: help.to_owned(),
            kind,
            samples: Vec::new(),
        });
        let is_same = |known: &[(&str, String)]| {
            known.iter().zip(labels).all(|(known, new)| known.1 == new.1)
        };
        if !family.samples.iter().any(|(known, _)| is_same(known)) {
            let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned()));
            family.samples.push((labels.collect(), value));
        }
    }

    pub(super) fn write(&self, output: &mut Output<'_>) {
        for (name, Family { help, kind, samples }) in &self.0 {
            let mut family = output.family(name, help, *kind);
            for (labels, value) in samples {
                let labels: Vec<Label<'_>> =
                    labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                family.sample(&labels, *value);
            }
        }
    }
}

fn number(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Returns the suffix of the metric's name, the help text, and the value in the metric's unit.
fn unit(kind: &str, property: &str, value: f64) -> (&'static str, String, f64) {
    let element = property;
    match (kind, property) {
        (_, "fault" | "alarm") => ("", format!("Hardware sensor {element} status ({kind})"), value),
        (_, "beep") => {
            ("_enabled", "Hardware monitor sensor has beeping enabled".to_owned(), value)
        }
        ("in" | "cpu", _) => {
            ("_volts", format!("Hardware monitor for voltage ({element})"), value * MILLI)
        }
        ("temp", property) if property != "type" => {
            let element = if element.is_empty() { "input" } else { element };
            ("_celsius", format!("Hardware monitor for temperature ({element})"), value * MILLI)
        }
        ("curr", _) => {
            ("_amps", format!("Hardware monitor for current ({element})"), value * MILLI)
        }
        ("energy", _) => {
            let help = format!("Hardware monitor for joules used so far ({element})");
            ("_joule_total", help, value / MICROS)
        }
        ("power", "accuracy") => {
            ("", "Hardware monitor power meter accuracy, as a ratio".to_owned(), value / MICROS)
        }
        ("power", "average_interval" | "average_interval_min" | "average_interval_max") => {
            let help = format!("Hardware monitor power usage update interval ({element})");
            ("_seconds", help, value * MILLI)
        }
        ("power", _) => {
            let help = format!("Hardware monitor for power usage in watts ({element})");
            ("_watt", help, value / MICROS)
        }
        ("humidity", _) => {
            let help = format!(
                "Hardware monitor for humidity, as a ratio (multiply with 100.0 to get the \
                 humidity as a percentage) ({element})"
            );
            ("", help, value / MICROS)
        }
        ("fan", "input" | "min" | "max" | "target") => {
            ("_rpm", format!("Hardware monitor for fan revolutions per minute ({element})"), value)
        }
        _ => ("", format!("Hardware monitor {kind} element {element}"), value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recorder;

    /// Attributes with their values, and names and values of upstream's expected output.
    #[test]
    fn units_are_those_of_prometheus() {
        let cases = [
            ("beep_enable", "beep_enable0", "", "1", "beep_enabled", 1.0),
            ("vrm", "vrm0", "", "100", "voltage_regulator_version", 100.0),
            ("update_interval", "update_interval0", "", "2000", "update_interval_seconds", 2.0),
            ("in", "in0", "input", "792", "in_volts", 0.792),
            ("in", "in0", "max", "1744", "in_max_volts", 1.744),
            ("in", "in1", "alarm", "1", "in_alarm", 1.0),
            ("in", "in1", "beep", "0", "in_beep_enabled", 0.0),
            ("cpu", "cpu0", "vid", "1200", "cpu_vid_volts", 1.2),
            ("temp", "temp1", "input", "-5000", "temp_celsius", -5.0),
            ("temp", "temp1", "crit_alarm", "0", "temp_crit_alarm_celsius", 0.0),
            ("temp", "temp1", "type", "4", "temp_type", 4.0),
            ("temp", "temp1", "fault", "1", "temp_fault", 1.0),
            ("curr", "curr1", "input", "1500", "curr_amps", 1.5),
            ("energy", "energy1", "input", "2500000", "energy_joule_total", 2.5),
            ("power", "power1", "input", "12000000", "power_watt", 12.0),
            ("power", "power1", "accuracy", "500000", "power_accuracy", 0.5),
            ("power", "power1", "average_interval", "1000", "power_average_interval_seconds", 1.0),
            ("humidity", "humidity1", "input", "250000", "humidity", 0.25),
            ("fan", "fan2", "input", "1098", "fan_rpm", 1098.0),
            ("fan", "fan2", "target", "27000", "fan_target_rpm", 27000.0),
            ("fan", "fan2", "pulses", "2", "fan_pulses", 2.0),
            ("pwm", "pwm1", "", "77", "pwm", 77.0),
            ("pwm", "pwm1", "auto_point1_temp", "30000", "pwm_auto_point1_temp", 30000.0),
            ("intrusion", "intrusion0", "alarm", "1", "intrusion_alarm", 1.0),
        ];
        let mut sensors = Sensors::new();
        for (kind, sensor, property, value, ..) in cases {
            let (_, properties) =
                sensors.entry(sensor.to_owned()).or_insert((kind, Properties::new()));
            properties.insert(property.to_owned(), value.as_bytes().to_vec());
        }
        let mut families = Families::default();
        families.add_chip("chip", None, &sensors);
        let mut recorder = Recorder::default();
        families.write(&mut Output::new(&mut recorder));
        for (_, sensor, .., name, value) in cases {
            let series = format!("node_hwmon_{name}{{chip=\"chip\",sensor=\"{sensor}\"}}");
            assert_eq!(recorder.value(&series), Some(value), "{:#?}", recorder.samples);
        }
        assert_eq!(recorder.samples.len(), cases.len());
        let counters = recorder.families.iter().filter(|(_, _, kind)| *kind == Kind::Counter);
        assert_eq!(counters.count(), 1);
    }

    #[test]
    fn frequencies_have_the_label_as_sensor_and_inputs_beside_a_whole_their_name() {
        let properties = |values: &[(&str, &str)]| {
            let values = values.iter();
            values.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
        };
        let sensors = Sensors::from([
            (
                "freq1".to_owned(),
                ("freq", properties(&[("input", "214000000"), ("label", "Sclk\u{e9}")])),
            ),
            ("freq2".to_owned(), ("freq", properties(&[("input", "300000000")]))),
            ("fan1".to_owned(), ("fan", properties(&[("", "7"), ("input", "8")]))),
        ]);
        let mut families = Families::default();
        families.add_chip("gpu", Some("amdgpu"), &sensors);
        let mut recorder = Recorder::default();
        families.write(&mut Output::new(&mut recorder));
        assert_eq!(
            recorder.samples,
            [
                r#"node_hwmon_chip_names{chip="gpu",chip_name="amdgpu"} 1"#,
                r#"node_hwmon_fan{chip="gpu",sensor="fan1"} 7"#,
                r#"node_hwmon_fan_input_rpm{chip="gpu",sensor="fan1"} 8"#,
                r#"node_hwmon_freq_freq_mhz{chip="gpu",sensor="sclk"} 214"#,
                "node_hwmon_sensor_label{chip=\"gpu\",label=\"Sclk\u{e9}\",sensor=\"freq1\"} 1",
            ]
        );
    }
}
